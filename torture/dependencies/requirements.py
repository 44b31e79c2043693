"""What the project asks for, what is pinned, and which installed packages follow from it."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from torture.part_report import ROOT

OURSELVES = "takifugu"
ALWAYS = "always"  # stands for what is installed without any extra
RUNTIME = ("postgres", "spark", "tables", "reports", "server")  # extras of people who use it
DEVELOPERS = ("dev", "torture", "nightly")  # extras that consist of others, each of the one before
CONSTRAINTS = ROOT / "constraints.txt"


@dataclass(frozen=True)
class Asked:
    """What ``pyproject.toml`` asks for.

    Attributes:
        requirements: By extra, `ALWAYS` for those without one; those of ours on our own extras too.
    """

    requirements: Mapping[str, tuple[Requirement, ...]]

    @classmethod
    def read(cls, root: Path = ROOT) -> "Asked":
        """The requirements of the project in a folder."""
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        extras = {ALWAYS: project["dependencies"], **project["optional-dependencies"]}
        return cls({extra: tuple(map(Requirement, lines)) for extra, lines in extras.items()})

    @property
    def direct(self) -> dict[str, Requirement]:
        """Every requirement on others by its name; one that is asked for twice must be equal."""
        found: dict[str, Requirement] = {}
        for one in (one for lines in self.requirements.values() for one in lines):
            name = canonicalize_name(one.name)
            if name != OURSELVES and found.setdefault(name, one) != one:
                raise ValueError(f"{name} is asked for as {found[name]} and as {one}")
        return found


def pinned(path: Path = CONSTRAINTS) -> dict[str, str]:
    """The versions that a file of constraints pins, by name."""
    versions: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        text = line.partition("#")[0].strip()
        if text:
            name, _, version = text.partition("==")
            versions[canonicalize_name(name)] = version
    return versions


def installed(path: Iterable[str] | None = None) -> dict[str, Distribution]:
    """What is installed in this environment, or in the folders given, by name."""
    found: dict[str, Distribution] = {}
    for one in distributions() if path is None else distributions(path=list(path)):
        found.setdefault(canonicalize_name(one.name), one)
    return found


def asked_by(one: Distribution, extras: Iterable[str] = ()) -> list[Requirement]:
    """What a package needs on this Python and system, with some of its extras."""
    given = ("", *extras)
    return [
        needed
        for needed in _requirements(one)
        if needed.marker is None or any(needed.marker.evaluate({"extra": one}) for one in given)
    ]


@cache
def _requirements(one: Distribution) -> tuple[Requirement, ...]:
    """All that a package may need: reading it takes a while."""
    return tuple(map(Requirement, one.requires or ()))


def closure(
    extra: str, asked: Asked, there: Mapping[str, Distribution]
) -> tuple[set[str], set[str]]:
    """What one extra of ours brings by itself, and which packages of that are not installed.

    Whatever `ALWAYS` brings is left out of the other extras only by their reader: it is in both
    where both need it.
    """
    found, missing = set[str](), set[str]()
    waiting = [(one, one.extras) for one in asked.requirements[extra]]
    seen = set[tuple[str, frozenset[str]]]()
    while waiting:
        one, extras = waiting.pop()
        name = canonicalize_name(one.name)
        if (name, frozenset(extras)) in seen:
            continue
        seen.add((name, frozenset(extras)))
        if one.marker is not None and not one.marker.evaluate({"extra": ""}):
            continue
        if name == OURSELVES:
            waiting += [(ours, ours.extras) for x in extras for ours in asked.requirements[x]]
        elif name in there:
            found.add(name)
            waiting += [
                (further if further.marker is None else _unmarked(further), further.extras)
                for further in asked_by(there[name], extras)
            ]
        else:
            missing.add(name)
    return found, missing


def _unmarked(one: Requirement) -> Requirement:
    """The same requirement where its marker has been found to hold."""
    copy = Requirement(str(one))
    copy.marker = None
    return copy


def used_by(asked: Asked, there: Mapping[str, Distribution]) -> dict[str, tuple[str, ...]]:
    """By package the extras that bring it; `ALWAYS` alone where it is installed in any case.

    Of `DEVELOPERS`, which consist of the other extras, the first is named, and only where no other
    extra brings the package.
    """
    extras = {extra: closure(extra, asked, there)[0] for extra in asked.requirements}
    found: dict[str, tuple[str, ...]] = {}
    for name in sorted(set().union(*extras.values())):
        by = tuple(extra for extra, names in extras.items() if name in names)
        narrow = tuple(extra for extra in by if extra not in DEVELOPERS)
        found[name] = (ALWAYS,) if ALWAYS in by else narrow or by[:1]
    return found
