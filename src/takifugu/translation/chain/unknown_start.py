r"""What the entries before one reveal when the law of the first entry is not known.

Let :math:`B_i(x,y)` bound :math:`\log E[h|X_i=x]/E[h|X_i=y]` over all admissible h of the entries
before i *and all laws of entry 0*. Entry i−1 has a law in the hull of the rows of the product of
the first i−1 matrices, so

.. math:: B_{i} \le \sup_{m ∈ H_{i-1}} T(p_m, q_m;\ c_{i-1} + B_{i-1}),\qquad B_0 = 0

(`takifugu.translation.chain.start_hull`): for the law μ of entry 0 that is worst, the step is taken
at m = μP…P, and what lies further back is bounded for all laws. The law that is worst may be
another one at every step, so this may lie above the truth: by 1.5 % for p = q = .9 at ε = 1.
What lies after an entry does not depend on the law of the first.

With one matrix P the hulls shrink: rows of :math:`P^{n+1}` are mixtures of rows of :math:`P^n`. So
a step with an earlier hull is at least one with a later, and a value V with T_H(V) ≤ V + r bounds
what n more steps give by V + n·r.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from takifugu._core.numeric import Booleans, Floats, Integers, frozen
from takifugu._core.rounding import up
from takifugu.translation.certify.flow import off_diagonal
from takifugu.translation.chain.start_hull import StartHull, hull_boxes, hull_step
from takifugu.translation.search.fixed_point import fixed_point

STILL = 1e-7  # a smaller relative change counts as none
NOTHING = 1e-10  # and so does a smaller absolute change
NARROW = 1e-8  # the width at which a hull is one law, as far as losses go
PATIENCE = 40  # steps with a narrow hull before the others are bounded at once
STAGES = 400  # steps of an unbounded chain, at most, before the others are bounded at once
TRIALS = 60  # of a bound for all later entries


@dataclass(frozen=True, eq=False)
class SideTables:
    """What the entries on one side of each entry reveal of it.

    Attributes:
        tables: The different tables ``[x, y]``.
        at: ``[entry]``: which of them holds there.
    """

    tables: tuple[Floats, ...]
    at: Integers

    def table(self, entry: int) -> Floats:
        """``[x, y]``: what is revealed of ``entry``."""
        return self.tables[int(self.at[entry])]


@dataclass(frozen=True, eq=False)
class UnknownStart:
    """The backward side of a chain whose first entry may have any law.

    Attributes:
        before: What the entries before each entry reveal.
        hulls: The different hulls of laws.
        hull_at: ``[entry]``: which of them holds the laws of the entry.
    """

    before: SideTables
    hulls: tuple[StartHull, ...]
    hull_at: Integers

    def possible(self, entry: int) -> Booleans:
        """``[x]``: whether x can happen there."""
        return self.hulls[int(self.hull_at[entry])].possible


def unknown_start(
    kernels: Sequence[Floats], charged: Sequence[Floats], *, close: float | None = 1e-3
) -> UnknownStart:
    """The tables of a finite chain: entry i costs ``charged[i]``, then ``kernels[i]`` follows.

    Kernels and costs that are equal are the same objects.
    """
    size = len(charged[0])
    alike = all(kernel is kernels[0] for kernel in kernels)
    hulls, hull_at = [StartHull.whole(size)], [0]
    tables, at = [frozen(np.zeros((size, size)))], [0]
    time, patience, steps = 0, 0, len(kernels)
    while time < steps:
        hull, last = hulls[-1], tables[-1]
        value = hull_step(
            hull, _turned(kernels[time]), charged[time] + last, guess=last, close=close
        )
        tables.append(frozen(value))
        at.append(len(tables) - 1)
        held = alike and (hull.steps > 0) and (hull.width <= NARROW)
        later = hull if held else hull.after(kernels[time])
        if alike and later.faint:  # an earlier hull holds all later laws
            later = hull
        if later is not hull:
            hulls.append(later)
        hull_at.append(len(hulls) - 1)
        time += 1
        left = _run(charged, time, steps) if alike else 0
        if not left or charged[time] is not charged[time - 1] or time == 1:
            patience = 0
            continue
        rise = max(float((value - last).max()), 0.0)
        still = STILL * float(value.max()) + NOTHING
        patience = patience + 1 if hulls[-1].width <= NARROW else 0
        falls = float((last - value).max()) > still  # later entries lose less: wait for that
        if patience < PATIENCE and (falls or left * rise > still):
            continue
        tables.append(frozen(_remaining(hulls[-1], kernels[0], charged[time], value, left * rise)))
        at += [len(tables) - 1] * left
        hull_at += [len(hulls) - 1] * left
        time += left
        patience = 0
    places = np.array(at, dtype=np.int64)
    return UnknownStart(
        SideTables(tuple(tables), places), tuple(hulls), np.array(hull_at, dtype=np.int64)
    )


def unbounded_start(
    kernel: Floats, charged: Floats, *, tolerance: float = 1e-3, close: float | None = 1e-3
) -> Floats:
    """``[x, y]``: what the entries before any entry reveal, however many there are."""
    size = len(charged)
    hull, value = StartHull.whole(size), np.zeros((size, size))
    turned, behind = _turned(kernel), np.zeros((size, size))
    for _ in range(STAGES):
        last = value
        value = hull_step(hull, turned, charged + last, guess=last, close=close)
        behind = np.maximum(behind, value)
        further = hull.after(kernel)
        if further.faint:
            break
        hull = further
        moved = float(np.abs(value - last).max())
        if hull.width <= NARROW and moved <= 0.1 * tolerance * float(value.max()) + NOTHING:
            break
    return np.maximum(behind, _for_ever(hull, kernel, charged, value, tolerance))


def _for_ever(
    hull: StartHull, kernel: Floats, charged: Floats, value: Floats, tolerance: float
) -> Floats:
    """A table that is at least ``value``, and which no further step raises; infinite if none."""
    turned, unit = _turned(kernel), off_diagonal(len(charged))
    if hull.width <= 0.1:
        settled = fixed_point(
            *(hull_boxes(hull, turned), charged),
            slack=2 * hull.slack,
            tolerance=tolerance,
            above=value,
            with_lower=False,
        ).upper
        if np.isfinite(settled).all():
            return settled
    room = 1e-3 * tolerance
    trial = value
    for _ in range(TRIALS):  # the hull stays wide: search with the step itself
        trial = np.maximum(trial, value) * (1 + room) + NOTHING * unit
        after = hull_step(hull, turned, charged + trial, guess=trial)
        if (after <= trial).all():
            return trial
        trial = np.maximum(after, trial)
        room *= 1.5
    return off_diagonal(len(charged), np.inf)


def _remaining(
    hull: StartHull, kernel: Floats, charged: Floats, value: Floats, rise: float
) -> Floats:
    """What the rest of a stretch reveals at most, if it rises by ``rise`` in all."""
    straight = np.asarray(up(value + rise * off_diagonal(len(value))))
    if rise <= STILL * float(value.max()) + NOTHING:
        return straight
    settled = _for_ever(hull, kernel, charged, value, 1e-3)
    return settled if settled.max() < straight.max() else straight


def _turned(kernel: Floats) -> Floats:
    return np.ascontiguousarray(kernel.T)


def _run(charged: Sequence[Floats], time: int, steps: int) -> int:
    """How many steps from ``time`` on have the same cost as that one."""
    end = time
    while end < steps and charged[end] is charged[time]:
        end += 1
    return end - time
