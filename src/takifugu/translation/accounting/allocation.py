"""How to spread a Pufferfish budget over time.

Two objectives. ``least`` makes the smallest ε of any entry as large as it can be: since the loss
rises with every ε, a constant profile is best, so it is the largest constant. ``total``
aims at a large sum: entries near the ends, which have fewer neighbours, may get more. It levels the
losses of all entries to the target; the result is proven to be feasible, not to be the best.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from takifugu.errors import UnsoundRequest
from takifugu.numeric import Floats, frozen
from takifugu.translation.translation import Translation

Objective = Literal["least", "total"]
ROUNDS = 40
LEVEL = 1e-3  # losses this close to one another count as level
LONGEST = 5_000  # entries that are levelled one by one


@dataclass(frozen=True, eq=False)
class Allocation:
    """A profile of ε whose Pufferfish loss is at most ``target``.

    Attributes:
        target: The Pufferfish loss that may be spent.
        epsilon: ``[entry]``: ε of each; a single number if the entries are unbounded.
        loss: The certified loss of the profile.
        constant: The largest constant ε, for comparison.
    """

    target: float
    epsilon: Floats
    loss: float
    constant: float

    @property
    def total(self) -> float:
        """The sum of all ε; infinite for unbounded entries."""
        return float(self.epsilon.sum()) if self.epsilon.ndim else np.inf


def allocate(
    translation: Translation, target: float, *, objective: Objective = "least"
) -> Allocation:
    """A profile for ``target``: one ε for each entry, or one number if they are unbounded."""
    if not 0 < target < np.inf:  # also false for NaN
        raise UnsoundRequest(
            f"the target is {target}; it must be positive and finite", field="target", given=target
        )
    if objective not in ("least", "total"):
        raise UnsoundRequest(
            f"objective is {objective!r}; it must be least or total",
            field="objective",
            given=objective,
        )
    constant = float(translation.to_dp(target))
    size = translation.size
    if size is None:
        if objective == "total":
            raise UnsoundRequest(
                "an unbounded stream has no total; give the prior a `length`", field="length"
            )
        loss = float(translation.to_pufferfish(constant))
        return Allocation(target, frozen(constant), loss, constant)
    flat = np.full(size, constant)
    loss = translation.bound(flat).value
    if objective == "least" or constant == 0:
        if loss > target:  # a profile is bounded a little differently from a constant
            loss = float(translation.to_pufferfish(constant))
        return Allocation(target, frozen(flat), loss, constant)
    return _level(translation, target, flat, constant)


def _level(translation: Translation, target: float, flat: Floats, constant: float) -> Allocation:
    if len(flat) > LONGEST:
        raise UnsoundRequest(
            f"{len(flat):,} entries; at most {LONGEST:,} are levelled one by one",
            field="entries",
            given=len(flat),
            needed=LONGEST,
        )
    best, best_loss = flat, float(translation.to_pufferfish(constant))
    spent = flat
    for _ in range(ROUNDS):
        bound = translation.bound(spent, "transport")
        if bound.by_entry is None:
            break  # the loss of each entry is not known: the constant stays
        losses = bound.by_entry
        fitted, loss = _fitted(translation, target, spent, bound.value)
        if loss <= target and fitted.sum() > best.sum():
            best, best_loss = fitted, loss
        if losses.max() <= target * (1 + LEVEL) and losses.min() >= target * (1 - LEVEL):
            break
        step = (target / np.maximum(losses, target * 1e-3)) ** 0.7
        spent = spent * np.clip(step, 0.5, 2.0)
    return Allocation(target, frozen(best), best_loss, constant)


def _fitted(
    translation: Translation, target: float, spent: Floats, loss: float
) -> tuple[Floats, float]:
    """The profile scaled down until its loss fits."""
    for _ in range(6):
        if loss <= target:
            break
        spent = spent * (target / loss) * (1 - 1e-6)
        loss = translation.bound(spent, "transport").value
    return spent, loss
