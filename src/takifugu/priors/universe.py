"""Universes: the possible datasets."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

import numpy as np

from takifugu._core.fingerprint import ByContent
from takifugu._core.numeric import Floats, Integers, frozen
from takifugu._core.numeric import numbers as checked_numbers
from takifugu.errors import InvalidWorld, Malformed

Name = str | int
State = Name | tuple[Name, ...]  # a joint state is the tuple of its columns' values


def is_name(value: object) -> bool:
    """Whether a value is a text or a whole number."""
    return isinstance(value, str | int) and not isinstance(value, bool)


def distinct(values: Sequence[Hashable], field: str, problem: type[Malformed]) -> bool:
    """Whether no value comes twice; an error if one cannot be hashed."""
    try:
        return len(set(values)) == len(values)
    except TypeError as error:
        raise problem(
            field,
            given="has a list, a set or another thing that can change",
            needed="hold names, numbers or tuples of them",
        ) from error


@dataclass(frozen=True, eq=False)
class Universe(ByContent):
    """A finite list of possible datasets, of any hashable kind, in a fixed order.

    >>> Universe(("rain", "shine")).position("shine")
    1
    """

    datasets: tuple[Hashable, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "datasets", tuple(self.datasets))
        if not self.datasets:
            raise InvalidWorld("datasets", given="is empty", needed="name at least one dataset")
        if not distinct(self.datasets, "datasets", InvalidWorld):
            raise InvalidWorld(
                "datasets", given="names a dataset twice", needed="name each dataset once"
            )

    def __len__(self) -> int:
        return len(self.datasets)

    def position(self, dataset: Hashable) -> int:
        """Where ``dataset`` stands in the order; an error if it is not one of them."""
        place = self._positions.get(dataset)
        if place is None:
            raise InvalidWorld(
                "dataset",
                given=f"{dataset!r} is not in the world",
                needed=f"be one of its {len(self)} datasets",
            )
        return place

    @cached_property
    def _positions(self) -> Mapping[Hashable, int]:
        return {dataset: i for i, dataset in enumerate(self.datasets)}


@dataclass(frozen=True, eq=False)
class Tables(Universe):
    """All tables over named entries: every way to fill every cell with one of its values.

    A dataset is the tuple of its cells, in the order of ``entries``; the last entry varies
    fastest. ``records`` names the record (the person) that each entry belongs to; by default
    every entry is a record of its own.

    >>> len(Tables.of({"mon": ("home", "ward"), "tue": ("home", "ward")}))
    4
    """

    datasets: tuple[Hashable, ...]
    entries: tuple[Name, ...]
    values: tuple[tuple[Hashable, ...], ...]
    records: tuple[Name, ...]

    @classmethod
    def of(
        cls,
        values: Mapping[Name, Iterable[Hashable]],
        *,
        records: Mapping[Name, Name] | None = None,
    ) -> "Tables":
        """The tables whose entry ``e`` takes the values ``values[e]``."""
        entries = tuple(values)
        domains = tuple(tuple(values[entry]) for entry in entries)
        if not entries:
            raise InvalidWorld("entries", given="is empty", needed="name at least one entry")
        for entry, domain in zip(entries, domains, strict=True):
            if not domain or not distinct(domain, "values", InvalidWorld):
                raise InvalidWorld(
                    "values",
                    given=f"of entry {entry!r} are empty or repeat themselves",
                    needed="list each value of the entry once",
                )
        belongs = {entry: entry for entry in entries} if records is None else records
        for entry in entries:
            if entry not in belongs:
                raise InvalidWorld(
                    "records", given=f"leaves out entry {entry!r}", needed="name a record for each"
                )
        size = prod(len(domain) for domain in domains)
        if size > 2**22:
            raise InvalidWorld(
                "values",
                given=f"make {size:,} datasets",
                needed=f"make at most {2**22:,}; a finite world is written out in full",
            )
        return cls(
            datasets=tuple(product(*domains)),
            entries=entries,
            values=domains,
            records=tuple(belongs[entry] for entry in entries),
        )

    @classmethod
    def bits(cls, n: int) -> "Tables":
        """All strings of ``n`` bits; entry i is the i-th bit, counted from 0."""
        return cls.of(dict.fromkeys(range(n), (0, 1)))

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each entry has."""
        return tuple(len(domain) for domain in self.values)

    @cached_property
    def codes(self) -> Integers:
        """``[dataset, entry]``: which of its values each entry has in each dataset."""
        grid = np.indices(self.shape).reshape(len(self.shape), -1).T
        codes = np.ascontiguousarray(grid, dtype=np.int64)
        codes.setflags(write=False)
        return codes

    def entry(self, name: Name) -> int:
        """The column of entry ``name``; an error if there is none."""
        if name not in self.entries:
            known = ", ".join(map(repr, self.entries[:8])) + (
                ", …" if len(self.entries) > 8 else ""
            )
            raise InvalidWorld("entry", given=f"{name!r} is unknown", needed=f"be one of {known}")
        return self.entries.index(name)

    def neighbours(self, column: int) -> Integers:
        """``[k, 2]``: ordered pairs of datasets that differ in entry ``column`` alone."""
        order = np.arange(len(self)).reshape(self.shape)
        lines = np.moveaxis(order, column, -1).reshape(-1, self.shape[column])
        n = self.shape[column]
        left, right = np.nonzero(~np.eye(n, dtype=bool))
        return np.stack([lines[:, left].ravel(), lines[:, right].ravel()], axis=1)

    def distances(self, rows: Sequence[int], columns: Sequence[int]) -> Integers:
        """``[row, column]``: in how many entries two datasets differ."""
        a, b = self.codes[np.asarray(rows)], self.codes[np.asarray(columns)]
        differ: Integers = (a[:, None, :] != b[None, :, :]).sum(axis=-1)
        return differ


def numbers_by_entry(
    entries: Sequence[Name], given: object, field: str, error: type[Malformed] = Malformed
) -> Floats:
    """One number for each entry: from one for all, a mapping by name, or a list."""
    listed = given
    if isinstance(given, Mapping):
        unknown = [name for name in given if name not in entries]
        missing = [name for name in entries if name not in given]
        if unknown or missing:
            what = f"names {unknown[0]!r}" if unknown else f"leaves out entry {missing[0]!r}"
            raise error(
                field, given=what, needed="give each entry its ε; write 0 for one never touched"
            )
        listed = [given[name] for name in entries]
    numbers = checked_numbers(listed, field, error, needed="hold numbers only")
    if numbers.ndim == 0:
        numbers = frozen(np.full(len(entries), float(numbers)))
    if numbers.shape != (len(entries),):
        raise error(
            field,
            given=f"has shape {numbers.shape}",
            needed=f"be one number, or one for each of the {len(entries)} entries",
        )
    return numbers
