r"""The largest sum of ε within a target, by linear programs around a profile.

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
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from takifugu.numeric import Floats
from takifugu.priors.markov import MarkovChain
from takifugu.translation.accounting.levelling import Losses, fitting_share
from takifugu.translation.chain.entry_laws import Law

ROUNDS = 60
MEASURED = 1e-6  # by how much of the mean an ε is changed for a derivative
FIRST = 0.5  # how far an ε may move in the first program, relative to itself or the mean
LEAST = 1e-9  # and in the last one
GAINED = 1e-10  # relative: a smaller gain that a program foresees is none


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
    found: Floats = np.linalg.lstsq(linear.within.T, np.ones(linear.within.shape[1]))[0]
    return found


def improved(losses: Losses, model: Model, target: float, first: Floats, most: float) -> Floats:
    """A profile whose sum, scaled to the target, is at least that of ``first``."""
    from scipy.optimize import linprog

    now = losses(first)
    epsilon, linear, reach = first, model(first, now, target), FIRST
    best, best_sum = _scaled(first, now, target)
    for _ in range(ROUNDS):
        if reach < LEAST:
            break
        span = reach * np.maximum(epsilon, epsilon.mean())
        columns = linear.within.shape[1]
        limits = np.full((columns, 2), [-np.inf, np.inf])
        limits[: len(span), 0] = -np.minimum(span, epsilon)
        limits[: len(span), 1] = np.minimum(span, most - epsilon)
        falls = np.where(np.arange(columns) < len(span), -1.0, 0.0)
        nothing = None if linear.tied is None else np.zeros(linear.tied.shape[0])
        found = linprog(
            *(falls, linear.within, linear.room, linear.tied, nothing),
            bounds=limits,
            method="highs",
        )
        if found.x is None:  # no change of that size brings the losses down to the target
            epsilon, reach = best, reach / 4
            now = losses(epsilon)
            linear = model(epsilon, now, target)
            continue
        then = np.clip(epsilon + found.x[: len(span)], 0.0, most)
        later = losses(then)
        scaled, scaled_sum = _scaled(then, later, target)
        gained = scaled_sum - best_sum
        if gained > 0:
            foreseen = float(then.sum()) - best_sum
            reach = min(2 * reach, FIRST) if gained > 0.5 * foreseen else reach / 2
            best, best_sum = scaled, scaled_sum
            epsilon, now = then, later
            linear = model(epsilon, now, target)
            if gained <= GAINED * best_sum:
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
        size = MEASURED * max(float(epsilon.mean()), 1e-300)
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
    law = Law.of(np.asarray(chain.stationary if chain.stationary_start else chain.start_law))
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
