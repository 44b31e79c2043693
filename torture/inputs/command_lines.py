"""Every command of the command line: good lines of each, and what is done to them.

Options come from Typer's own tree, so that a new one is tried without a change here.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from takifugu.cli.command_reference import commands
from torture.inputs.case import Case
from torture.inputs.command_seeds import ALWAYS, FILES, GOOD, LINES, LONG_BY_RIGHT, SMALL
from torture.inputs.hostile import GARBAGE, NUMBERS, any_text, one_of


@dataclass(frozen=True)
class Slot:
    """An option or argument of a command, as Typer has it."""

    name: str  # the longest of its names
    names: tuple[str, ...]
    argument: bool
    flag: bool


@cache
def slots() -> dict[str, tuple[Slot, ...]]:
    """The options and arguments of every command."""
    return {
        name: tuple(
            Slot(
                max((*one.opts, *one.secondary_opts), key=len),
                (*one.opts, *one.secondary_opts),
                one.param_type_name == "argument",
                bool(getattr(one, "is_flag", False)),
            )
            for one in command.params
            if "--help" not in one.opts
        )
        for name, command in commands()
    }


def command_case(rng: np.random.Generator, name: str) -> Case:
    """A line of a command with a few things changed."""
    line = shlex.split(one_of(rng, LINES[name]))
    surface, known = f"command: {name}", slots()[name]
    options = [slot for slot in known if not slot.argument]
    if rng.random() < 0.04:
        return Case(surface, _kept(name, line))
    if rng.random() < 0.12 and (valued := [slot for slot in options if not slot.flag]):
        slot = one_of(rng, valued)
        if not any(word.partition("=")[0] in slot.names for word in line):
            added = [*line, f"{slot.name}={one_of(rng, GARBAGE)}"]
            return Case(surface, _kept(name, added), ignored=slot.name, base=_kept(name, line))
    for _ in range(int(rng.geometric(0.55))):
        line = _changed(rng, name, line, options)
    return Case(surface, _kept(name, line))


def _kept(name: str, line: Sequence[str]) -> tuple[str, ...]:
    if name == "collapse":
        line = [word for word in line if not word.startswith("--repetitions")]
        line = [word for word in line if word not in ("100", "10")]
    words = [_passed(word) for word in line]
    short = ALWAYS.get(name)
    before = ("", *words)  # what follows --out is a name, whatever it looks like
    if name == "demo" and not any(
        word.startswith("--rows") and earlier != "--out"
        for earlier, word in zip(before, words, strict=False)
    ):
        short = "--rows=-1"
    if short is not None and short not in words:
        words.insert(words.index("--") if "--" in words else len(words), short)
    return (*name.split(), *words)


def _passed(word: str) -> str:
    """A word as a system can pass it: without zero bytes, half characters as stray bytes."""
    return re.sub("[\ud800-\udc7f\udd00-\udfff]", "\udcff", word.replace("\0", ""))


def _changed(
    rng: np.random.Generator, name: str, line: list[str], options: Sequence[Slot]
) -> list[str]:
    at = int(rng.integers(len(line) + 1))
    match int(rng.integers(10)):
        case 0 | 1 if line:
            option = line[at - 1] if at and line[at - 1].startswith("-") else ""
            if at < len(line) and not line[at].startswith("--"):
                return [*line[:at], _value(rng, name, option), *line[at + 1 :]]
            return line
        case 2 if line:
            return [*line[: at - 1], *line[at:]] if at else line[1:]
        case 3 if line:
            return [*line, line[at - 1]]
        case 4 if line:
            spot = int(rng.integers(len(line[at - 1]) + 1))
            return [*line[: at - 1], line[at - 1][:spot] + one_of(rng, ("x", "-", "=", "\udcff"))]
        case 5:
            return [*line, _value(rng, name, "")]
        case _:
            slot = one_of(rng, options)
            if slot.flag:
                return [*line, one_of(rng, slot.names)]
            value = _value(rng, name, slot.name)
            written = [word for word in line if word.partition("=")[0] not in slot.names]
            if len(written) < len(line):  # given already, as two words: both go
                spot = next(
                    k for k, word in enumerate(line) if word.partition("=")[0] in slot.names
                )
                written = line[:spot] + line[spot + 1 + ("=" not in line[spot]) :]
            kept = written if rng.random() < 0.9 else line
            return [*kept, f"{slot.name}={value}"]


def _value(rng: np.random.Generator, name: str, option: str) -> str:
    """A value that may be right, or one that is hostile."""
    place = rng.random()
    if (name, option) in LONG_BY_RIGHT:
        return one_of(rng, ("0", "1", "-1", "x", "nan", "2", ""))
    if place < 0.4 and option in GOOD:
        return one_of(rng, GOOD[option])
    if place < 0.6:
        return one_of(rng, SMALL)
    if place < 0.7:
        return one_of(rng, FILES)
    if place < 0.8:
        return one_of(rng, NUMBERS)
    return any_text(rng)
