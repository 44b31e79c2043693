r"""Uncertainty is a shift: 20 % off is log 1.5 = 0.405 less ε, and nothing else (theory, 3.8).

A mechanism that allows for 20 % uncertainty at ε may spend per entry what the plain one may at ε −
log 1.5, or what group DP may at ε if that is more (`experiments.allowances`). It
has then the same noise law, so on the same stream of random numbers it gives the same answers.
`shifts` shows that on our own tables, `printed_shifts` on what the paper prints.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log
from pathlib import Path

from takifugu.errors import UnsoundRequest
from takifugu.papers.composition.experiments.allowances import EPSILONS, SHIFT, allowances, shifted
from takifugu.papers.composition.experiments.contenders import CONTENDERS, calibrated
from takifugu.papers.composition.experiments.experiment import measures, trial
from takifugu.papers.composition.experiments.measurements import Cell, Estimate, Prepared


@dataclass(frozen=True)
class Shift:
    """One uncertain cell, and the plain experiment that it equals.

    Attributes:
        mechanism: The contender.
        epsilon: The Pufferfish ε of the uncertain cell.
        at: The plain ε that stands in for it: ε − log 1.5, or ε where only group DP is left.
        by_group: Whether group DP at ε allows more than the proof does at ε − log 1.5.
        epsilon_dp: What the uncertain cell spends per entry.
        plain_dp: What the plain experiment at ``at`` spends per entry.
        measured: What the uncertain cell measured.
        plain: What the plain experiment measured.
    """

    mechanism: str
    epsilon: float
    at: float
    by_group: bool
    epsilon_dp: float
    plain_dp: float
    measured: Mapping[str, Estimate]
    plain: Mapping[str, Estimate]

    @property
    def equal(self) -> bool:
        """Whether the two agree in everything, to the last bit."""
        return self.epsilon_dp == self.plain_dp and dict(self.measured) == dict(self.plain)


def shifts(
    prepared: Prepared,
    cells: Sequence[Cell],
    *,
    repetitions: int,
    rng_seed: int,
    folder: Path | None = None,
    epsilons: Sequence[float] = EPSILONS,
) -> tuple[Shift, ...]:
    """Every uncertain cell of a run beside the plain experiment at ε − log 1.5, run anew.

    ``cells`` are those of `experiment.run` with the same settings;
    Majority, which knows no ε, is left out.
    """
    allowed = allowances(prepared.chain, epsilons, folder=folder)
    found = []
    for cell in cells:
        if cell.data != prepared.key or not cell.uncertain or cell.mechanism not in CONTENDERS:
            continue
        proof, room = CONTENDERS[cell.mechanism].proof, shifted(cell.epsilon)
        below = allowed.at(proof, room) if room > 0 else 0.0
        group = allowed.at("group", cell.epsilon)
        by_group = group > below
        spent = group if by_group else below
        plain = trial(prepared, calibrated(cell.mechanism, prepared, spent), repetitions, rng_seed)
        found.append(
            Shift(
                cell.mechanism,
                cell.epsilon,
                cell.epsilon if by_group else room,
                by_group,
                cell.epsilon_dp,
                spent,
                cell.measured,
                measures(prepared, plain.found),
            )
        )
    return tuple(found)


@dataclass(frozen=True)
class PrintedShift:
    """A printed number with uncertainty, and what the printed numbers without it say of ε − 0.405.

    Attributes:
        epsilon: The ε of the number with uncertainty.
        at: ε − log 1.5.
        printed: The number with uncertainty.
        between: The two printed numbers without, at the ε next to ``at``; None outside the table.
        expected: Drawn between them as a straight line in log ε; None outside the table.
    """

    epsilon: float
    at: float
    printed: float
    between: tuple[float, float] | None
    expected: float | None

    @property
    def difference(self) -> float | None:
        """What is printed less what is expected."""
        return None if self.expected is None else self.printed - self.expected

    @property
    def inside(self) -> bool | None:
        """Whether the printed number is between its two neighbours, as the shift says."""
        if self.between is None:
            return None
        return min(self.between) <= self.printed <= max(self.between)


def printed_shifts(
    plain: Mapping[float, float], uncertain: Mapping[float, float]
) -> tuple[PrintedShift, ...]:
    """One printed column without uncertainty, read at ε − 0.405, beside the column with it."""
    if not all(epsilon > 0 for epsilon in (*plain, *uncertain)):
        raise UnsoundRequest("every ε of a printed column must be positive", field="epsilon")
    known = sorted(plain)
    found = []
    for epsilon, printed in sorted(uncertain.items()):
        at = epsilon - SHIFT
        around = next(((a, b) for a, b in pairwise(known) if a <= at <= b), None)
        if around is None:
            found.append(PrintedShift(epsilon, at, printed, None, None))
            continue
        low, high = around
        share = log(at / low) / log(high / low)
        ends = plain[low], plain[high]
        expected = ends[0] + share * (ends[1] - ends[0])
        found.append(PrintedShift(epsilon, at, printed, ends, expected))
    return tuple(found)
