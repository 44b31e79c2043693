"""How to spread a Pufferfish budget over time.

Two objectives. ``least`` makes the smallest ε of any entry as large as it can be: since the loss
rises with every ε, a constant profile is best, so it is the largest constant. ``total`` aims at a
large sum: entries near the ends, which have fewer neighbours, get more.

For ``total`` the losses of all entries are brought to the target
(`takifugu.translation.accounting.levelling`). Such a profile is a local maximum of the sum if the
sum rises with the target of every single entry: then lowering a loss anywhere lowers it, and all
directions that stay within the target do. For chains that rather stay, that is the closed form of
Cao, Yoshikawa, Xiao and Xiong (ICDE 2017), the ends more and the rest the same. Where it is not so,
or some ε would have to be negative, as in chains that alternate, linear programs go on from there
(`takifugu.translation.accounting.profile_programs`): for chains with two states, and for others of
few entries. The result is proven to be within the target, and its sum is at least that of the
constant; that no other profile has a larger sum is not proven.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from takifugu.errors import UnsoundRequest
from takifugu.numeric import Floats, frozen
from takifugu.priors.markov import MarkovChain
from takifugu.translation.accounting.levelling import Losses, levelled, relaxed
from takifugu.translation.accounting.profile_programs import (
    Model,
    gains,
    improved,
    measured,
    two_states,
)
from takifugu.translation.chain.binary_transport import BinaryTransport
from takifugu.translation.chain.chain_transport import ChainTransport
from takifugu.translation.translation import Translation

Objective = Literal["least", "total"]
LONGEST = 5_000  # entries that are levelled one by one
PROGRAMMED = 200  # entries of a chain with two states that a program has
FEW = 32  # entries of which the derivative by each is measured
SHORT = 64  # entries up to which programs begin at two profiles
NEGATIVE = 1e-3  # what an entry's target may seem to take from the sum and be as good as nothing
SCALED = 8  # times that a profile is scaled
JUST = 1e-12  # relative: a loss this close below the target just fits
MOST_LOST = 1e300  # stands for an infinite loss


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
    return _spread(translation, target, flat, constant)


def _spread(translation: Translation, target: float, flat: Floats, constant: float) -> Allocation:
    if len(flat) > LONGEST:
        raise UnsoundRequest(
            f"{len(flat):,} entries; at most {LONGEST:,} are levelled one by one",
            field="entries",
            given=len(flat),
            needed=LONGEST,
        )

    losses = _losses(translation)
    best, best_loss = flat, float(translation.to_pufferfish(constant))
    if len(flat) == 1 or not _listed(translation, flat):
        return Allocation(target, frozen(best), best_loss, constant)
    found = levelled(losses, target, flat, target)
    profiles = [found.epsilon]
    if not (found.level and _best(losses, target, found.epsilon)):
        model = _model(translation, losses, len(flat))
        if model is not None:
            starts = [found.epsilon, flat] if len(flat) <= SHORT else [found.epsilon]
            profiles += [improved(losses, model, target, start, target) for start in starts]
        elif not found.level:
            profiles.append(relaxed(losses, target, flat, target))
    for profile in profiles:
        fitted, loss = _fitted(translation, target, profile)
        if loss <= target and fitted.sum() > best.sum():
            best, best_loss = fitted, loss
    return Allocation(target, frozen(best), best_loss, constant)


def _losses(translation: Translation) -> Losses:
    """``[entry]``: the loss of each entry of a profile, for `_listed` ones."""
    transport = translation.transport
    if isinstance(transport, ChainTransport) and not translation.uncertainty:
        return transport.consistent

    def losses(epsilon: Floats) -> Floats:
        found = translation.bound(epsilon, "transport").by_entry
        assert found is not None  # noqa: S101 - `_listed` is true
        return np.minimum(found, MOST_LOST)

    return losses


def _listed(translation: Translation, profile: Floats) -> bool:
    """Whether the loss of each entry is known, and finite."""
    bound = translation.bound(profile, "transport")
    return bound.by_entry is not None and 0 < bound.value < np.inf


def _best(losses: Losses, target: float, epsilon: Floats) -> bool:
    """Whether a level profile is a local maximum; of many entries it is taken to be."""
    if len(epsilon) > FEW:
        return True
    linear = measured(losses)(epsilon, losses(epsilon), target)
    return bool(gains(linear).min() >= -NEGATIVE)


def _model(translation: Translation, losses: Losses, length: int) -> Model | None:
    """How losses change around a profile; None if that takes too long to find out."""
    (prior, *others) = translation.priors.values()
    two = isinstance(translation.transport, BinaryTransport) and not translation.uncertainty
    if two and not others and isinstance(prior, MarkovChain):
        return two_states(prior, length) if length <= PROGRAMMED else None
    return measured(losses) if length <= FEW else None


def _fitted(translation: Translation, target: float, spent: Floats) -> tuple[Floats, float]:
    """The profile scaled until its loss just fits, and that loss; infinite if none does."""
    factor, slope = 1.0, 1.0
    before: tuple[float, float] | None = None
    best: tuple[Floats, float] | None = None
    for _ in range(SCALED):
        profile = np.minimum(spent * factor, target)
        loss = translation.bound(profile, "transport").value
        if not 0 < loss < np.inf:
            break
        if loss <= target and (best is None or profile.sum() > best[0].sum()):
            best = profile, loss
        if target * (1 - JUST) <= loss <= target:
            break
        if before is not None and factor != before[0] and loss != before[1]:
            slope = float(np.log(loss / before[1]) / np.log(factor / before[0]))
        before = factor, loss
        aim = target * (1 - JUST / 2)
        factor *= float(np.clip((aim / loss) ** (1 / np.clip(slope, 0.3, 3.0)), 0.5, 1.5))
    return best or (spent, np.inf)
