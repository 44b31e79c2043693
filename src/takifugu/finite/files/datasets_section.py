"""The datasets and the secrets of a world file, and how a file refers to them."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

from takifugu.errors import InvalidFile
from takifugu.finite.files import fields as doc
from takifugu.finite.files.fields import FileSection
from takifugu.priors.secrets import EntryIs, OneOf, Secret, SecretPair, both_ways, entry_pairs
from takifugu.priors.universe import Name, Tables, Universe

MOST_DATASETS = 4096
STATEMENT_KEYS = ("entry", "value", "values", "where", "datasets")


@dataclass(frozen=True)
class Datasets:
    """A universe in which a dataset is found by name, by text or by its cells."""

    universe: Universe

    @property
    def tables(self) -> Tables | None:
        """The universe as tables over entries, or None if it is a plain list."""
        return self.universe if isinstance(self.universe, Tables) else None

    @cached_property
    def _named(self) -> Mapping[str, Hashable]:
        return {doc.identity(dataset): dataset for dataset in self.universe.datasets}

    @cached_property
    def _texts(self) -> Mapping[str, tuple[Hashable, ...]]:
        by_text: dict[str, tuple[Hashable, ...]] = {}
        for dataset in self.universe.datasets:
            key = doc.text(dataset)
            by_text[key] = (*by_text.get(key, ()), dataset)
        return by_text

    def find(self, value: Any, place: str) -> Hashable:
        """The dataset meant by its own name, its text ("home,ward"), its cells or a table."""
        if isinstance(value, dict) and self.tables:
            value = self._cells(FileSection(doc.table(value, place), place), self.tables)
        label = doc.label(value, place)
        if doc.identity(label) in self._named:
            return self._named[doc.identity(label)]
        meant = self._texts.get(doc.squeezed(label), ()) if isinstance(label, str) else ()
        if len(meant) == 1:
            return meant[0]
        given = f"{doc.shown(value)} " + (
            "could be several datasets" if meant else "is not a dataset"
        )
        first = ", ".join(doc.shown(doc.text(d)) for d in self.universe.datasets[:4])
        more = ", …" if len(self.universe) > 4 else ""
        needed = "list its cells" if meant else f"name one of the datasets: {first}{more}"
        raise InvalidFile(place, given=f"names {given}", needed=needed)

    def _cells(self, part: FileSection, tables: Tables) -> list[Any]:
        part.only([str(entry) for entry in tables.entries])
        return [part.get(str(entry)) for entry in tables.entries]

    def by_dataset(self, value: dict[str, Any], place: str) -> dict[Hashable, Any]:
        """A table whose keys are datasets, as text; an error if two keys are the same dataset."""
        by_dataset: dict[Hashable, Any] = {}
        for key, content in value.items():
            dataset = self.find(key, place)
            if dataset in by_dataset:
                raise InvalidFile(
                    place, given=f"has {doc.shown(key)} twice", needed="name each dataset once"
                )
            by_dataset[dataset] = content
        return by_dataset

    def column(self, value: Any, place: str) -> int:
        """The column of a named entry."""
        known = [str(entry) for entry in self.needs_tables(place).entries]
        wanted = doc.name(value, place)
        if wanted not in known:
            FileSection({wanted: None}, place).only(known)
        return known.index(wanted)

    def needs_tables(self, place: str) -> Tables:
        """The universe as tables; an error if it is a plain list of datasets."""
        if self.tables is None:
            raise InvalidFile(
                place,
                given="refers to entries, but the file lists `datasets`",
                needed="name datasets, or the file must have [entries]",
            )
        return self.tables

    def value(self, column: int, value: Any, place: str) -> Hashable:
        """One of the values that an entry may have."""
        domain = self.needs_tables(place).values[column]
        wanted = doc.label(value, place)
        for known in domain:
            if doc.identity(known) == doc.identity(wanted):
                return known
        listed = ", ".join(doc.shown(v) for v in domain[:8]) + (", …" if len(domain) > 8 else "")
        raise InvalidFile(
            place, given=f"is {doc.shown(value)}", needed=f"be a value of the entry: {listed}"
        )

    def value_texts(self, column: int, place: str) -> list[str]:
        """The values of an entry as keys of a table; an error if two would be one key."""
        keys = [doc.text(value) for value in self.needs_tables(place).values[column]]
        if len(set(keys)) != len(keys):
            raise InvalidFile(
                place, given="has values that look alike as keys", needed="be a list instead"
            )
        return keys

    def some_values(self, column: int, value: Any, place: str) -> tuple[Hashable, ...]:
        """One value of an entry, or a list of several different ones; in the entry's order."""
        wanted = doc.items(value, place) if isinstance(value, list) else [value]
        chosen = [self.value(column, item, place) for item in wanted]
        if len(set(chosen)) != len(chosen):
            raise InvalidFile(place, given="names a value twice", needed="name each value once")
        return tuple(known for known in self.needs_tables(place).values[column] if known in chosen)

    def statement(self, part: FileSection, name: str | None) -> Secret:
        """The statement that a table makes: `entry` and `value`, or `where`, or `datasets`."""
        way = part.one_of(("entry", "where", "datasets"), purpose="statement")
        if way == "entry":
            key = part.one_of(("value", "values"), purpose="value for its entry")
            column = self.column(part.get("entry"), part.at("entry"))
            entry = self.needs_tables(part.place).entries[column]
            return EntryIs(entry, self.some_values(column, part.get(key), part.at(key)))
        for key in ("value", "values"):
            if part.has(key):
                raise part.wrong(key, given=f"stands beside {way!r}", needed="stand beside `entry`")
        chosen = self._where(part) if way == "where" else self._listed(part)
        described = name or " or ".join(doc.text(d) for d in chosen[:3])
        return OneOf(described + (" or …" if not name and len(chosen) > 3 else ""), chosen)

    def _listed(self, part: FileSection) -> tuple[Hashable, ...]:
        place = part.at("datasets")
        chosen = [self.find(d, place) for d in doc.items(part.get("datasets"), place)]
        if len(set(chosen)) != len(chosen):
            raise InvalidFile(place, given="names a dataset twice", needed="name each once")
        return tuple(sorted(chosen, key=self.universe.position))

    def _where(self, part: FileSection) -> tuple[Hashable, ...]:
        place = part.at("where")
        tables = self.needs_tables(place)
        wanted = []
        for entry, value in doc.table(part.get("where"), place).items():
            column = self.column(entry, place)
            wanted.append((column, self.some_values(column, value, f"{place}, {entry}")))
        if not wanted:
            raise InvalidFile(place, given="is empty", needed="name at least one entry")
        return tuple(
            dataset
            for dataset in tables.datasets
            if isinstance(dataset, tuple) and all(dataset[c] in some for c, some in wanted)
        )


def read_datasets(file: FileSection) -> Datasets:
    """The datasets of a file: a plain list `datasets`, or all tables over `[entries]`."""
    way = file.one_of(("datasets", "entries"), purpose="datasets")
    if way == "entries":
        return Datasets(_tables(file))
    if file.has("records"):
        raise InvalidFile("records", given="stands beside `datasets`", needed="go with [entries]")
    listed = doc.items(file.get("datasets"), "datasets")
    _small(len(listed), "datasets")
    datasets = tuple(doc.label(item, f"datasets, item {i}") for i, item in enumerate(listed, 1))
    return Datasets(Universe(datasets))


def _tables(file: FileSection) -> Tables:
    domains: dict[Name, tuple[Hashable, ...]] = {
        entry: tuple(doc.label(item, f"entries, {entry}") for item in _domain(entry, values))
        for entry, values in doc.table(file.get("entries"), "entries").items()
    }
    _small(prod(len(domain) for domain in domains.values()), "entries")
    if not file.has("records"):
        return Tables.of(domains)
    records = FileSection(doc.table(file.get("records"), "records"), "records")
    records.only([str(entry) for entry in domains])
    return Tables.of(
        domains,
        records={e: _record(records.get(str(e)), records.at(str(e))) for e in domains},
    )


def _record(value: Any, place: str) -> str | int:
    record = doc.label(value, place)
    if isinstance(record, bool) or not isinstance(record, str | int):
        raise doc.wrong_kind(place, value, "be text or an integer")
    return record


def _domain(entry: str, values: Any) -> list[Any]:
    domain = doc.items(values, f"entries, {entry}")
    _small(len(domain), f"entries, {entry}")
    return domain


def _small(size: int, place: str) -> None:
    if size > MOST_DATASETS:
        raise InvalidFile(
            place,
            given=f"make {size:,} datasets",
            needed=f"make at most {MOST_DATASETS:,}: a world is written out in full",
        )


MOST_PAIRS = 4096


@dataclass(frozen=True)
class NamedSecrets:
    """The named statements of a file, and which of them are used."""

    datasets: Datasets
    named: dict[str, Secret]
    used: set[str] = field(default_factory=set)

    def find(self, value: Any, place: str) -> Secret:
        """The statement meant by a name, or written out in place as a table."""
        if isinstance(value, dict):
            part = FileSection(doc.table(value, place), place)
            part.only(STATEMENT_KEYS)
            return self.datasets.statement(part, None)
        wanted = doc.name(value, place)
        if wanted not in self.named:
            known = ", ".join(doc.shown(n) for n in list(self.named)[:8]) or "none is written"
            raise InvalidFile(
                place,
                given=f"is {doc.shown(wanted)}, which no [[secret]] is named",
                needed=f"name a secret of the file ({known}) or be a table such as"
                ' { datasets = ["…"] }',
            )
        self.used.add(wanted)
        return self.named[wanted]

    def all_used(self) -> None:
        """Refuse a secret that is named but not used: it would not be protected."""
        for position, name in enumerate(self.named, start=1):
            if name not in self.used:
                raise InvalidFile(
                    f"secret {position}",
                    given=f"named {doc.shown(name)} is in no pair and no knowledge",
                    needed="be used, or be left out",
                )


def read_secrets(file: FileSection, datasets: Datasets) -> NamedSecrets:
    """The `[[secret]]` tables of a file."""
    named: dict[str, Secret] = {}
    for part in doc.parts(file, "secret"):
        part.only(("name", *STATEMENT_KEYS))
        name = part.read("name", doc.name)
        doc.unlike(name, named, part, "secret")
        named[name] = datasets.statement(part, name)
    return NamedSecrets(datasets, named)


def read_pairs(
    file: FileSection, datasets: Datasets, secrets: NamedSecrets
) -> tuple[SecretPair, ...]:
    """The `[[pair]]` tables of a file, each in both directions or `one_way`."""
    pairs: dict[SecretPair, None] = {}
    for part in doc.parts(file, "pair"):
        part.only(("left", "right", "one_way", "entries"))
        with doc.placed(part.place):
            written = _entries(part, datasets) if part.has("entries") else _pair(part, secrets)
        pairs.update(dict.fromkeys(written))
        if len(pairs) > MOST_PAIRS:
            raise _too_many(part.place, len(pairs))
    if not pairs:
        raise InvalidFile(
            "file",
            given="has no [[pair]]",
            needed="list the secrets that must not be distinguished",
        )
    return tuple(pairs)


def _pair(part: FileSection, secrets: NamedSecrets) -> tuple[SecretPair, ...]:
    left = secrets.find(part.get("left"), part.at("left"))
    right = secrets.find(part.get("right"), part.at("right"))
    pair = SecretPair(left, right)
    return (pair,) if doc.flag(part, "one_way") else both_ways([pair])


def _entries(part: FileSection, datasets: Datasets) -> tuple[SecretPair, ...]:
    """Every two values of every entry (`"all"`), or of the entries listed."""
    for key in ("left", "right", "one_way"):
        if part.has(key):
            raise part.wrong(key, given="stands beside `entries`", needed="be left out there")
    place = part.at("entries")
    tables = datasets.needs_tables(place)
    wanted = part.get("entries")
    columns = list(range(len(tables.entries)))
    if wanted != "all":
        if not isinstance(wanted, list):
            raise InvalidFile(
                place, given=f"is {doc.shown(wanted)}", needed='be "all" or a list of entries'
            )
        columns = [datasets.column(entry, place) for entry in doc.items(wanted, place)]
    count = sum(tables.shape[c] * (tables.shape[c] - 1) for c in columns)
    if count > MOST_PAIRS:
        raise _too_many(place, count)
    return entry_pairs(tables, entries=[tables.entries[c] for c in columns])


def _too_many(place: str, count: int) -> InvalidFile:
    return InvalidFile(
        place, given=f"make {count:,} pairs", needed=f"make at most {MOST_PAIRS:,} ordered pairs"
    )
