r"""How to spread a Pufferfish budget over time.

Two objectives. ``least`` makes the smallest ε of any entry as large as it can be: since the loss
rises with every ε, a constant profile is best, so it is the largest constant. ``total`` aims at a
large sum: entries near the ends, which have fewer neighbours, get more.

For ``total`` the losses of all entries are brought to the target
(`levelled`). Such a profile is a local maximum of the sum if the
sum rises with the target of every single entry: then lowering a loss anywhere lowers it, and all
directions that stay within the target do. For chains that rather stay, that is the closed form of
Cao, Yoshikawa, Xiao and Xiong (ICDE 2017), the ends more and the rest the same. Where it is not so,
or some ε would have to be negative, as in chains that alternate, linear programs go on from there
(`improved`): for chains with two states, and for others of
few entries. The result is proven to be within the target, and its sum is at least that of the
constant; that no other profile has a larger sum is not proven.

**Levelling.**
Let :math:`ℓ(ε)` be the losses of all entries. In a Markov chain what an entry reveals of another
passes through those in between, so that :math:`∂ℓ_t/∂ε_s` is a product of a factor for each step
from s to t: about :math:`ρ^{|t-s|}`, with ρ from how fast the largest loss rises if all ε do. The
inverse of that matrix is tridiagonal. It takes the place of the inverse Jacobian in Newton's
method for ℓ(ε) = target, and the differences of ε and of ℓ between the steps before correct it
(Anderson's method; Walker and Ni, 2011): about ten evaluations make all losses level to ten digits.

**Programs.**
Losses rise with every ε, but they are neither convex nor concave in them. Around a profile they are
linear up to second order: a program over all changes up to a certain size says where the sum rises
most, the losses there are computed, and the size is halved if the sum did not rise. A profile at
which no program gains anything is a local maximum to first order. None is proven to be a global
one.

Two models of the losses:

* `measured`: the derivative by each ε, from one more evaluation each; for few entries.
* `two_states`: the recursion of a chain with two states. With :math:`c = ε_{t+1} + F_{t+1}` and A
  the state that the first of two rows P, Q prefers, what the entries after t reveal is
  :math:`F_t = \log[(1 + (e^c - 1)P(A))/(1 + (e^c - 1)Q(A))]`, for each of the two ordered pairs of
  values. The changes of all F, and of all B for the entries before, are variables of the program,
  and each is tied to the next by a derivative: four equations with three terms for each entry.

Nothing here is a proof: the loss of every profile that is returned was evaluated.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from takifugu._core.exact import require_finite
from takifugu._core.numeric import Floats, frozen
from takifugu.errors import UnsoundRequest
from takifugu.priors.markov import MarkovChain
from takifugu.translation.certify.laws import Law
from takifugu.translation.models.chain_transport import ChainTransport
from takifugu.translation.models.two_state_transport import BinaryTransport
from takifugu.translation.translation import Translation

Objective = Literal["least", "total"]
Losses = Callable[[Floats], Floats]  # [entry]: ε of each -> the loss of each
MAX_LEVELLED_ENTRIES = 5_000  # that are levelled one by one
MAX_PROGRAM_ENTRIES = 200  # of a chain with two states that a program has
MAX_MEASURED_ENTRIES = 32  # of which the derivative by each is measured
MAX_TWICE_STARTED_ENTRIES = 64  # up to which programs begin at two profiles
NEGLIGIBLE_GAIN = 1e-3  # what an entry's target may seem to take from the sum
MAX_SCALINGS = 8  # of a profile
FITTING_SHARE = 1e-12  # relative: a loss this close below the target just fits
MAX_LOST = 1e300  # stands for an infinite loss
MAX_LEVELLING_ROUNDS = 40
LEVEL = 1e-10  # relative: losses this close to the target are level
EVEN = 1e-14  # and closer than this they need not be
PROBE = 1e-4  # by how much of itself every ε is changed to see what that does
ANDERSON_MEMORY = 12  # steps that correct the next one
MAX_ROUNDS_WITHOUT_GAIN = 6
MAX_STEP_RATE = 0.999  # the largest ρ
MAX_PROGRAMS = 60
DERIVATIVE_STEP = 1e-6  # by how much of the mean an ε is changed for a derivative
FIRST_REACH = 0.5  # how far an ε may move in the first program, relative to itself or the mean
LAST_REACH = 1e-9  # and in the last one
LEAST_GAIN = 1e-10  # relative: a smaller gain that a program foresees is none


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
    require_finite(target, "target", positive=True)
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
    if len(flat) > MAX_LEVELLED_ENTRIES:
        raise UnsoundRequest(
            f"{len(flat):,} entries; at most {MAX_LEVELLED_ENTRIES:,} are levelled one by one",
            field="entries",
            given=len(flat),
            needed=MAX_LEVELLED_ENTRIES,
        )

    losses = _losses(translation)
    best, best_loss = flat, float(translation.to_pufferfish(constant))
    if len(flat) == 1 or not _listed(translation, flat):
        return Allocation(target, frozen(best), best_loss, constant)
    level = levelled(losses, target, flat, target)
    profiles = [level.epsilon]
    if not (level.level and _best(losses, target, level.epsilon)):
        model = _model(translation, losses, len(flat))
        if model is not None:
            starts = (
                [level.epsilon, flat] if len(flat) <= MAX_TWICE_STARTED_ENTRIES else [level.epsilon]
            )
            profiles += [improved(losses, model, target, start, target) for start in starts]
        elif not level.level:
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
        by_entry = translation.bound(epsilon, "transport").by_entry
        assert by_entry is not None  # noqa: S101 - `_listed` is true
        return np.minimum(by_entry, MAX_LOST)

    return losses


def _listed(translation: Translation, profile: Floats) -> bool:
    """Whether the loss of each entry is known, and finite."""
    bound = translation.bound(profile, "transport")
    return bound.by_entry is not None and 0 < bound.value < np.inf


def _best(losses: Losses, target: float, epsilon: Floats) -> bool:
    """Whether a level profile is a local maximum; of many entries it is taken to be."""
    if len(epsilon) > MAX_MEASURED_ENTRIES:
        return True
    linear = measured(losses)(epsilon, losses(epsilon), target)
    return bool(gains(linear).min() >= -NEGLIGIBLE_GAIN)


def _model(translation: Translation, losses: Losses, length: int) -> "Model | None":
    """How losses change around a profile; None if that takes too long to find out."""
    (prior, *others) = translation.priors.values()
    two = isinstance(translation.transport, BinaryTransport) and not translation.uncertainty
    if two and not others and isinstance(prior, MarkovChain):
        return two_states(prior, length) if length <= MAX_PROGRAM_ENTRIES else None
    return measured(losses) if length <= MAX_MEASURED_ENTRIES else None


def _fitted(translation: Translation, target: float, spent: Floats) -> tuple[Floats, float]:
    """The profile scaled until its loss just fits, and that loss; infinite if none does."""
    factor, slope = 1.0, 1.0
    before: tuple[float, float] | None = None
    best: tuple[Floats, float] | None = None
    for _ in range(MAX_SCALINGS):
        profile = np.minimum(spent * factor, target)
        loss = translation.bound(profile, "transport").value
        if not 0 < loss < np.inf:
            break
        if loss <= target and (best is None or profile.sum() > best[0].sum()):
            best = profile, loss
        if target * (1 - FITTING_SHARE) <= loss <= target:
            break
        if before is not None and factor != before[0] and loss != before[1]:
            slope = float(np.log(loss / before[1]) / np.log(factor / before[0]))
        before = factor, loss
        aim = target * (1 - FITTING_SHARE / 2)
        factor *= float(np.clip((aim / loss) ** (1 / np.clip(slope, 0.3, 3.0)), 0.5, 1.5))
    return best or (spent, np.inf)


@dataclass(frozen=True, eq=False)
class Levelled:
    """A profile and whether it is level.

    Attributes:
        epsilon: ``[entry]``: ε of each, scaled to the target if a loss is above it.
        level: Whether every loss is at the target, except where ε is at an end of its range.
    """

    epsilon: Floats
    level: bool


def levelled(losses: Losses, target: float, first: Floats, most: float) -> Levelled:
    """The best profile on the way from ``first`` to level losses; every ε from 0 to ``most``."""
    epsilon, now = first, losses(first)
    rises = (losses(first * (1 + PROBE)) - now) / (PROBE * first)
    rate = float(np.clip((rises.max() - 1) / (rises.max() + 1), 0.0, MAX_STEP_RATE))
    moves: list[Floats] = []
    changes: list[Floats] = []
    best, best_sum, waited = first, 0.0, 0
    furthest = np.inf
    for _ in range(MAX_LEVELLING_ROUNDS):
        share = fitting_share(now, target)
        waited += 1
        if share * epsilon.sum() > best_sum:
            best, best_sum, waited = share * epsilon, share * float(epsilon.sum()), 0
        missing = _missing(epsilon, now, target, most)
        before, furthest = furthest, float(np.abs(missing).max())
        if furthest <= EVEN * target or (before <= LEVEL * target and furthest > before / 2):
            return Levelled(best, level=True)
        if waited > MAX_ROUNDS_WITHOUT_GAIN:
            break
        step = _corrected(rate, missing, moves, changes)
        low = np.where(epsilon < 1e-3 * first, 0.0, 0.2 * epsilon)
        then = np.clip(epsilon + step, low, np.minimum(5 * epsilon + 0.1 * first, most))
        later = losses(then)
        moves, changes = (
            [*moves, then - epsilon][-ANDERSON_MEMORY:],
            [*changes, later - now][-ANDERSON_MEMORY:],
        )
        epsilon, now = then, later
    return Levelled(best, level=furthest <= LEVEL * target)


def relaxed(losses: Losses, target: float, first: Floats, most: float) -> Floats:
    """A profile closer to level losses, by small steps alone: each ε by its own loss."""
    epsilon = best = first
    best_sum, waited = 0.0, 0
    for _ in range(MAX_LEVELLING_ROUNDS):
        now = losses(epsilon)
        share = fitting_share(now, target)
        waited += 1
        if share * epsilon.sum() > best_sum * (1 + 1e-6):
            best, best_sum, waited = share * epsilon, share * float(epsilon.sum()), 0
        if waited > MAX_ROUNDS_WITHOUT_GAIN:
            break
        factor = (target / np.maximum(now, 1e-3 * target)) ** 0.7
        epsilon = np.minimum(epsilon * np.clip(factor, 0.5, 2.0), most)
    return best


def fitting_share(now: Floats, target: float) -> float:
    """What part of a profile with these losses is about within the target; all of it if it is."""
    largest = float(now.max())
    return target / largest if largest > target else 1.0


def _missing(epsilon: Floats, now: Floats, target: float, most: float) -> Floats:
    """``[entry]``: what each loss is short of the target; 0 where ε cannot move that way."""
    missing = target - now
    held = ((epsilon >= most) & (missing > 0)) | ((epsilon <= 0) & (missing < 0))
    return np.where(held, 0.0, missing)


def _corrected(rate: float, missing: Floats, moves: list[Floats], changes: list[Floats]) -> Floats:
    """The step that ρ says, with what earlier steps did in place of what ρ says of them."""
    step = _inverse(rate, missing)
    if moves:
        weights = np.linalg.lstsq(np.array(changes).T, missing, rcond=1e-8)[0]
        foreseen = np.array([_inverse(rate, change) for change in changes]).T
        step = step + (np.array(moves).T - foreseen) @ weights
    return step


def _inverse(rate: float, vector: Floats) -> Floats:
    """The inverse of the matrix ρ^|t−s|, times a vector."""
    padded = np.pad(vector, 1)
    inner = np.full(len(vector), 1 + rate**2)
    inner[[0, -1]] = 1.0
    product: Floats = (inner * vector - rate * (padded[:-2] + padded[2:])) / (1 - rate**2)
    return product


@dataclass(frozen=True, eq=False)
class LinearLosses:
    """Losses around a profile: ``within @ (change, others)`` is at most ``room``.

    Attributes:
        within: A matrix with a column for each entry, and for each of some other variables.
        room: What each of its rows may be.
        tied: A matrix whose product with the same variables is 0; None if there are no others.
    """

    within: Any
    room: Floats
    tied: Any = None


Model = Callable[[Floats, Floats, float], LinearLosses]  # a profile, its losses, the target


def gains(linear: LinearLosses) -> Floats:
    """``[entry]``: by how much the sum rises with the target of each entry, if all are at it."""
    rises: Floats = np.linalg.lstsq(linear.within.T, np.ones(linear.within.shape[1]))[0]
    return rises


def improved(losses: Losses, model: Model, target: float, first: Floats, most: float) -> Floats:
    """A profile whose sum, scaled to the target, is at least that of ``first``."""
    from scipy.optimize import linprog

    now = losses(first)
    epsilon, linear, reach = first, model(first, now, target), FIRST_REACH
    best, best_sum = _scaled(first, now, target)
    for _ in range(MAX_PROGRAMS):
        if reach < LAST_REACH:
            break
        span = reach * np.maximum(epsilon, epsilon.mean())
        columns = linear.within.shape[1]
        limits = np.full((columns, 2), [-np.inf, np.inf])
        limits[: len(span), 0] = -np.minimum(span, epsilon)
        limits[: len(span), 1] = np.minimum(span, most - epsilon)
        falls = np.where(np.arange(columns) < len(span), -1.0, 0.0)
        nothing = None if linear.tied is None else np.zeros(linear.tied.shape[0])
        solved = linprog(
            *(falls, linear.within, linear.room, linear.tied, nothing),
            bounds=limits,
            method="highs",
        )
        if solved.x is None:  # no change of that size brings the losses down to the target
            epsilon, reach = best, reach / 4
            now = losses(epsilon)
            linear = model(epsilon, now, target)
            continue
        then = np.clip(epsilon + solved.x[: len(span)], 0.0, most)
        later = losses(then)
        scaled, scaled_sum = _scaled(then, later, target)
        gained = scaled_sum - best_sum
        if gained > 0:
            foreseen = float(then.sum()) - best_sum
            reach = min(2 * reach, FIRST_REACH) if gained > 0.5 * foreseen else reach / 2
            best, best_sum = scaled, scaled_sum
            epsilon, now = then, later
            linear = model(epsilon, now, target)
            if gained <= LEAST_GAIN * best_sum:
                break
        else:
            reach /= 4
    return best


def _scaled(epsilon: Floats, now: Floats, target: float) -> tuple[Floats, float]:
    """The profile scaled to the target if a loss is above it, and its sum."""
    share = fitting_share(now, target)
    return share * epsilon, share * float(epsilon.sum())


def measured(losses: Losses) -> Model:
    """The derivative of every loss by every ε, from an evaluation each."""

    def model(epsilon: Floats, now: Floats, target: float) -> LinearLosses:
        size = DERIVATIVE_STEP * max(float(epsilon.mean()), 1e-300)
        columns = []
        for entry in range(len(epsilon)):
            then = epsilon.copy()
            then[entry] += size
            columns.append((losses(then) - now) / size)
        return LinearLosses(np.array(columns).T, target - now)

    return model


def two_states(chain: MarkovChain, length: int) -> Model:
    """The recursion of a chain with two states; an entry without secrets has a loss of 0."""
    from scipy.sparse import coo_array

    ahead = [chain.kernel(t) for t in range(length - 1)]
    law = Law.from_floats(
        np.asarray(chain.stationary if chain.stationary_start else chain.start_law)
    )
    back = []
    for rows in ahead:
        behind, law = law.back(rows)
        back.append(behind)

    def model(epsilon: Floats, now: Floats, target: float) -> LinearLosses:
        places: list[tuple[int, int]] = []
        values: list[float] = []
        rows = 0

        def tie(variable: int, cause: int, spent: int, slope: float) -> None:
            nonlocal rows
            for column, value in ((variable, 1.0), (cause, -slope), (spent, -slope)):
                if column >= 0:
                    places.append((rows, column))
                    values.append(value)
            rows += 1

        def column(side: int, pair: int, entry: int) -> int:
            return length * (1 + 2 * side + pair) + entry

        revealed = np.zeros((2, 2, length))  # [side, pair, entry]
        for side, kernels in enumerate((ahead, back)):
            for step in range(length - 1):
                # the entry whose F or B it is, and the one next to it, further out
                entry, beyond = (
                    (length - 2 - step, length - 1 - step) if side == 0 else (step + 1, step)
                )
                kernel = kernels[min(entry, beyond)]
                for pair, (x, y) in enumerate(((0, 1), (1, 0))):
                    state = 0 if kernel[x, 0] > kernel[y, 0] else 1
                    cost = epsilon[beyond] + revealed[side, state, beyond]
                    value, slope = _step(cost, float(kernel[x, state]), float(kernel[y, state]))
                    revealed[side, pair, entry] = value
                    tie(
                        column(side, pair, entry),
                        column(side, state, beyond) if step else -1,
                        beyond,
                        slope,
                    )
        columns = 5 * length
        tied = coo_array((values, np.array(places).T), shape=(rows, columns))
        limited = [(pair, t) for pair in (0, 1) for t in range(length) if now[t] > 0]
        own = [
            (row, place)
            for row, (pair, t) in enumerate(limited)
            for place in (
                t,
                *(column(side, pair, t) for side in (0, 1) if 0 < t + 1 - side < length),
            )
        ]
        within = coo_array((np.ones(len(own)), np.array(own).T), shape=(len(limited), columns))
        room = [target - epsilon[t] - revealed[:, pair, t].sum() for pair, t in limited]
        return LinearLosses(within.tocsr(), np.array(room), tied.tocsr())

    return model


def _step(cost: float, first: float, second: float) -> tuple[float, float]:
    """What a cost on the next entry reveals of this one, and its derivative."""
    small = np.exp(-cost)
    upper, lower = first + (1 - first) * small, second + (1 - second) * small
    with np.errstate(divide="ignore"):
        value = float(np.log(upper) - np.log(lower)) if lower > 0 else cost
    return value, float(first / upper - (second / lower if lower > 0 else 0.0))
