"""Machines whose steps are counted: how often each was taken, refused, interrupted or noticed."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import ClassVar

from hypothesis.stateful import RuleBasedStateMachine

from takifugu.errors import TakifuguError

DONE, NOTICED, CRASHED = "done", "noticed", "crashed"


class Violation(AssertionError):
    """Something that must not be."""


def must(true: bool, what: str) -> None:
    """Raise unless it is so."""
    if not true:
        raise Violation(what)


@dataclass
class Tally:
    """How often each step of each machine ended how.

    Attributes:
        ended: By machine, step and end: `DONE`, `NOTICED`, `CRASHED`, or the kind of the refusal.
        examples: Machines that were run, by name.
    """

    ended: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    examples: Counter[str] = field(default_factory=Counter)

    def steps(self, machine: str) -> int:
        """How many steps a machine has taken."""
        return sum(number for (name, _, _), number in self.ended.items() if name == machine)

    def times(self, machine: str, step: str, end: str) -> int:
        """How often a step ended so."""
        return self.ended[machine, step, end]

    def refused(self, machine: str, step: str | None = None) -> int:
        """How often a step, or any, was refused."""
        return sum(
            number
            for (name, one, end), number in self.ended.items()
            if name == machine and step in (None, one) and end not in (DONE, NOTICED, CRASHED)
        )

    def rows(self, machine: str) -> Iterator[tuple[str, str, int, int, int, int, int, str]]:
        """Machine, step, taken, done, refused, crashed, noticed, and the refusals by kind."""
        for step in sorted({one for name, one, _ in self.ended if name == machine}):
            ends = {
                e: n for (name, one, e), n in self.ended.items() if (name, one) == (machine, step)
            }
            kinds = Counter({e: n for e, n in ends.items() if e not in (DONE, NOTICED, CRASHED)})
            yield (
                *(machine, step, sum(ends.values()), ends.get(DONE, 0), sum(kinds.values())),
                *(ends.get(CRASHED, 0), ends.get(NOTICED, 0)),
                ", ".join(f"{kind} {number}" for kind, number in kinds.most_common()),
            )


COLUMNS = ("machine", "step", "taken", "done", "refused", "crashed", "noticed", "refusals")


class CountedMachine(RuleBasedStateMachine):
    """A state machine that counts its steps in a tally of the class.

    Attributes:
        machine: Its name in the tally.
        tally: Where it counts; a run sets one.
    """

    machine: ClassVar[str]
    tally: ClassVar[Tally] = Tally()
    history: ClassVar[list[str]] = []  # the steps of the last example, as they were counted

    def __init__(self) -> None:
        super().__init__()
        self.resources = ExitStack()
        self.tally.examples[self.machine] += 1
        CountedMachine.history = []

    def took(self, step: str, end: str = DONE) -> None:
        """Count a step."""
        self.tally.ended[self.machine, step, end] += 1
        self.history.append(f"{step}: {end}")

    @contextmanager
    def attempt(self, step: str, state: Callable[[], Hashable]) -> Iterator[None]:
        """A step that may be refused; if it is, ``state`` must be what it was."""
        before = state()
        try:
            yield
        except TakifuguError as error:
            must(state() == before, f"{step} was refused ({type(error).__name__}) and left a trace")
            self.took(step, type(error).__name__)
        else:
            self.took(step)

    def teardown(self) -> None:
        """Close all that was opened."""
        self.resources.close()

    @classmethod
    def finish(cls) -> None:
        """Close what examples have shared, after the last of them."""
