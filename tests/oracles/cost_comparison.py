"""What a translation says of a random instance, beside what its linear programs say."""

import warnings
from dataclasses import dataclass

from takifugu.translation import Translation
from takifugu.translation.bounds import LooserTranslation
from tests.oracles.cost_instances import Instance

SLACK = 1e-9  # how far apart two sides may be that were rounded differently


@dataclass(frozen=True)
class Compared:
    """One instance: our bounds and the programs'.

    Attributes:
        seed: The number of the instance.
        family: What kind it is.
        upper: The bound.
        witness: What its witness leaks.
        least: What some mechanism leaks.
        most: What no mechanism leaks more than.
        complete: Whether ``most`` is about all laws.
        wrong_entry: An entry whose own bound is below the truth, if there is one.
    """

    seed: int
    family: str
    upper: float
    witness: float
    least: float
    most: float
    complete: bool
    wrong_entry: int | None = None

    @property
    def below(self) -> bool:
        """Whether the bound is below the truth."""
        return not self.upper >= self.least - SLACK or self.wrong_entry is not None

    @property
    def above(self) -> bool:
        """Whether the witness is above the truth, or the bound."""
        beyond = self.complete and self.witness > self.most + SLACK
        return beyond or not self.witness <= self.upper + SLACK


def compared(seed: int, drawn: Instance) -> Compared:
    """Translate one instance, and solve its programs."""
    losses = drawn.losses()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LooserTranslation)  # where there is no transport bound
        found = Translation(drawn.prior, drawn.secrets).explain_cost(drawn.costs)
    wrong = None
    if found.by_entry is not None:
        for pair, solved in losses:
            if not found.by_entry[pair.entry] >= solved.lower - SLACK:
                wrong = pair.entry
    return Compared(
        *(seed, drawn.family, found.pufferfish, found.witness.leak),
        max((solved.lower for _, solved in losses), default=0.0),
        max((solved.upper for _, solved in losses), default=0.0),
        drawn.complete,
        wrong,
    )
