"""The secrets of a world file, by name, and the pairs they form."""

from dataclasses import dataclass, field
from typing import Any

from takifugu.errors import InvalidFile
from takifugu.finite.files import fields as doc
from takifugu.finite.files.datasets_section import STATEMENT_KEYS, Datasets
from takifugu.finite.files.fields import FileSection
from takifugu.priors.secrets import Secret, SecretPair, both_ways, entry_pairs

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
