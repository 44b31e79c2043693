"""What the project requires, oldest and pinned, what that brings, and what the code imports."""

import ast
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, distributions, packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from torture.part_report import ROOT

OURSELVES = "takifugu"
ALWAYS = "always"  # stands for what is installed without any extra
RUNTIME = ("postgres", "spark", "tables", "reports", "server")  # extras of people who use it
DEVELOPERS = ("dev", "torture", "nightly")  # extras that consist of others, each of the one before
CONSTRAINTS = ROOT / "constraints.txt"
OLDEST = Path(__file__).with_name("oldest.txt")


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


def lower_bound(requirement: Requirement) -> Version:
    """The oldest version that a requirement allows.

    Raises:
        ValueError: It has no lower bound, or its bound is itself excluded.
    """
    bounds = [
        Version(clause.version)
        for clause in requirement.specifier
        if clause.operator in {">=", "==", "~="}
    ]
    if not bounds:
        raise ValueError(f"{requirement}: no oldest version is given; write {requirement.name}>=…")
    if not requirement.specifier.contains(max(bounds), prereleases=True):
        raise ValueError(f"{requirement}: its oldest version is excluded")
    return max(bounds)


def oldest_constraints(asked: Asked) -> str:
    """`OLDEST`: every lower bound, which is a version that was released, as a constraint."""
    return "".join(
        f"{name}=={lower_bound(requirement)}\n"
        for name, requirement in sorted(asked.direct.items())
    )


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


def imported(folder: Path) -> dict[str, set[Path]]:
    """The modules of others that the files of a folder import anywhere, and which files do."""
    importers: dict[str, set[Path]] = {}
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                names = [node.module]
            else:
                continue
            for name in names:
                module = name.partition(".")[0]
                if module not in sys.stdlib_module_names:
                    importers.setdefault(module, set()).add(path)
    return importers


def not_asked_for(
    modules: Mapping[str, set[Path]], asked: set[str], ours: set[str]
) -> dict[str, list[str]]:
    """Modules of packages that are not required by name, and the files that import them.

    What the code imports it has to require itself: other packages may stop needing it. A module
    that is not installed counts as a package of its own name.
    """
    holders = packages_distributions()
    return {
        module: sorted(path.name for path in files)
        for module, files in modules.items()
        if module not in ours
        and asked.isdisjoint(map(canonicalize_name, holders.get(module, [module])))
    }
