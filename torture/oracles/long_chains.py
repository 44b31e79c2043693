"""Long chains whose worst mechanism is known: its loss is a sum along the chain in many digits.

* Two states: the mechanism that counts, the value renamed after each step that repels.
* More states in two classes, alike within a class: a step leads to a class by the class alone, and
  within it by fixed shares. Two values of one class are told apart by their own entry alone; two
  classes are a chain of two states. The shares are dyadic, so that this holds exactly.
* A permutation: whoever knows one entry knows all, and T entries lose T·ε.
* Rows that favour larger values after larger ones (every 2×2 minor is at least 0) and the cost of a
  sum: tilting by e^{±Σ f} attains the worst loss.
"""

from collections.abc import Iterator, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

from takifugu.costs.cost import Cost, Distance
from takifugu.priors import MarkovChain
from takifugu.translation import Translation
from tests.oracles.binary_chains import counting_losses, unbounded_counting_losses
from torture.oracles.comparison import Allowance, Compared, Family, Instance, Rng
from torture.oracles.extreme_draws import epsilon, law, length, ordinary_epsilon, rows
from torture.oracles.small_priors import Said, said_by
from torture.oracles.spending import NAMES, NUMBERS

NEAREST = 2e-15  # oracles that end in a float
SHARES: tuple[tuple[float, ...], ...] = ((1.0,), (0.5, 0.5), (0.25, 0.75), (0.125, 0.375, 0.5))
LONGEST = 10_000
LISTED = 400  # entries up to which a profile is drawn


def _draw_binary(rng: Rng) -> Instance:
    size = length(rng, LONGEST if rng.random() < 0.1 else 300)
    start: Any = law(rng, 2) if rng.random() < 0.6 else "stationary"
    drawn = {"rows": rows(rng, 2), "start": start, "length": size, "unit": epsilon(rng)}
    if size <= LISTED and rng.random() < 0.3:
        return {**drawn, "times": rng.choice([0, 1, 1, 2], size).tolist()}
    return {**drawn, "allowance": bool(rng.random() < 0.2)}


def spending(instance: Instance) -> Instance:
    """What the entries have lost, or that an allowance is asked for."""
    if "times" in instance:
        return {"kind": "profile", "times": instance["times"]}
    return {"kind": "allowance" if instance.get("allowance") else "dp"}


def _said(chain: MarkovChain, instance: Instance) -> Said:
    return said_by(Translation(chain), spending(instance), instance["unit"])


def _start(table: Sequence[Sequence[float]], start: Any) -> list[Any]:
    """The law of the first entry of two, as it is or at rest."""
    if start != "stationary":
        return list(start)
    with mpmath.workdps(60):
        (a, b), (c, d) = ([mpmath.mpf(v) for v in row] for row in table)
        leaving, back = b / (a + b), c / (c + d)
        return [back / (leaving + back), leaving / (leaving + back)]


def _spent(instance: Instance, unit: float) -> list[float]:
    times = instance.get("times", [1] * instance["length"])
    return [unit * n for n in times]


def binary_chain(instance: Instance) -> MarkovChain:
    """The chain of two states."""
    start = instance["start"]
    given: Any = start if isinstance(start, str) else np.array(start)
    return MarkovChain(np.array(instance["rows"]), start=given, length=instance["length"])


def _compare_binary(instance: Instance) -> Iterator[Compared | Allowance]:
    table, start = instance["rows"], instance["start"]
    said = _said(binary_chain(instance), instance)
    yield from said.asked()
    if not said.unit:
        return
    spent = _spent(instance, float(said.unit))
    losses = counting_losses([np.array(table)] * (len(spent) - 1), _start(table, start), spent)
    yield from _entries(said, [max(found.values(), default=0.0) for found in losses])


def _entries(said: Said, worst: Sequence[Any]) -> Iterator[Compared]:
    most = max(map(mpmath.mpf, worst))
    yield Compared("the chain", said.upper, most, most, said.lower, said.exact)
    if said.by_entry is not None and len(said.by_entry) == len(worst):
        for entry, (bound, truth) in enumerate(zip(said.by_entry.tolist(), worst, strict=True)):
            truth = mpmath.mpf(truth)
            yield Compared(f"entry {entry}", bound, truth, truth, counted=False)


def _draw_classes(rng: Rng) -> Instance:
    shares = [SHARES[int(rng.integers(len(SHARES)))] for _ in range(2)]
    if sum(map(len, shares)) == 2:
        shares[0] = (0.5, 0.5)
    size = length(rng, 500 if rng.random() < 0.1 else 60)
    return {
        "shares": [list(part) for part in shares],
        "rows": rows(rng, 2),
        "start": law(rng, 2),
        "length": size,
        "unit": epsilon(rng),
        "allowance": bool(rng.random() < 0.15),
    }


def classes_chain(instance: Instance, size: int | None) -> MarkovChain:
    """The chain on all states: a class by the class, and within it by its shares."""
    shares = instance["shares"]
    table = [
        [instance["rows"][c][d] * share for d in (0, 1) for share in shares[d]]
        for c in (0, 1)
        for _ in shares[c]
    ]
    if size is None or instance.get("start") is None:
        return MarkovChain(np.array(table), length=size)
    start = [instance["start"][d] * share for d in (0, 1) for share in shares[d]]
    return MarkovChain(np.array(table), start=np.array(start), length=size)


def _compare_classes(instance: Instance) -> Iterator[Compared | Allowance]:
    said = _said(classes_chain(instance, instance["length"]), instance)
    yield from said.asked()
    if not said.unit:
        return
    unit = float(said.unit)
    spent = [unit] * instance["length"]
    table = np.array(instance["rows"])
    losses = counting_losses([table] * (len(spent) - 1), instance["start"], spent)
    possible = _possible(instance["rows"], instance["start"], len(spent))
    several = [len(part) > 1 for part in instance["shares"]]
    worst = [
        max(
            max(found.values(), default=0.0),
            unit if any(s and able for s, able in zip(several, there, strict=True)) else 0.0,
        )
        for found, there in zip(losses, possible, strict=True)
    ]
    yield from _entries(said, worst)


def _possible(table: Any, start: Sequence[float], size: int) -> list[list[bool]]:
    """``[entry][class]``: whether it can happen."""
    found = [[p > 0 for p in start]]
    while len(found) < size:
        found.append([any(found[-1][c] and table[c][d] > 0 for c in (0, 1)) for d in (0, 1)])
    return found


def _draw_unbounded(rng: Rng) -> Instance:
    shares: list[tuple[float, ...]] = [SHARES[0], SHARES[0]]
    if rng.random() < 0.3:
        shares = [SHARES[int(rng.integers(3))] for _ in range(2)]
    drawn = {"rows": rows(rng, 2, zeros=False), "shares": [list(part) for part in shares]}
    return {**drawn, "unit": epsilon(rng), "allowance": bool(rng.random() < 0.2)}


def _compare_unbounded(instance: Instance) -> Iterator[Compared | Allowance]:
    said = _said(classes_chain(instance, None), instance)
    yield from said.asked()
    if not said.unit:
        return
    unit = float(said.unit)
    found = unbounded_counting_losses(np.array(instance["rows"]), unit)
    truth = max(mpmath.mpf(loss) for loss in (*found.values(), unit))
    yield Compared("unbounded", said.upper, truth, truth, said.lower, said.exact, bounded=False)


def _draw_turning(rng: Rng) -> Instance:
    states = int(rng.integers(2, 6))
    return {
        "turn": rng.permutation(states).tolist(),
        "start": law(rng, states, zeros=False),
        "length": length(rng, LONGEST if states < 4 and rng.random() < 0.1 else 100),
        "unit": epsilon(rng),
        "allowance": bool(rng.random() < 0.2),
    }


def turning_chain(instance: Instance) -> MarkovChain:
    """The chain that permutes its states."""
    table = np.eye(len(instance["turn"]))[instance["turn"]]
    return MarkovChain(table, start=np.array(instance["start"]), length=instance["length"])


def _compare_turning(instance: Instance) -> Iterator[Compared | Allowance]:
    size = instance["length"]
    said = _said(turning_chain(instance), instance)
    yield from said.asked()
    if not said.unit:
        return
    with mpmath.workdps(60):
        truth = size * mpmath.mpf(said.unit.numerator) / said.unit.denominator
    yield from _entries(said, [truth] * size)


def _draw_sums(rng: Rng) -> Instance:
    states = int(rng.integers(2, 5))
    favour = float(rng.choice([0.0, 0.3, 1.0, 3.0]))
    weight = np.exp(favour * np.outer(np.arange(states), np.arange(states)) / states)
    table = weight * rng.dirichlet(np.ones(states)) + 1e-12
    return {
        "rows": (table / table.sum(axis=1, keepdims=True)).tolist(),
        "start": rng.dirichlet(np.ones(states)).tolist(),
        "length": length(rng, 60),
        "bounds": [[0, 1], [0, 3], [1, 10]][int(rng.integers(3))],
        "unit": ordinary_epsilon(rng),
    }


def ordered_chain(instance: Instance) -> MarkovChain:
    """The chain whose states are ordered."""
    return MarkovChain(
        np.array(instance["rows"]),
        NAMES[: len(instance["rows"])],
        start=np.array(instance["start"]),
        length=instance["length"],
    )


def sum_cost(instance: Instance) -> Cost:
    """What the noisy sum costs each entry."""
    return Cost.of({Distance(*instance["bounds"]): Fraction(instance["unit"])})


def _compare_sums(instance: Instance) -> Iterator[Compared]:
    states, (low, high) = len(instance["rows"]), instance["bounds"]
    unit = Fraction(instance["unit"])
    found = Translation(ordered_chain(instance)).explain_cost(sum_cost(instance))
    levels = [Fraction(min(max(n, low), high) - low, high - low) * unit for n in NUMBERS[:states]]
    worst = _tilted_losses(instance, levels)
    off = mpmath.mpf("1e-40")  # of 50 digits: where all values count the same, nothing is lost
    least, most = max(max(worst) - off, mpmath.mpf(0)), max(worst) + off
    # what rounding of the rows may have taken from their order is a share of 1e-9 at most
    yield Compared(
        *("the sum", found.pufferfish, least, most * (1 + mpmath.mpf("1e-9"))),
        found.witness.leak,
        found.exact,
    )


def _tilted_losses(instance: Instance, levels: Sequence[Fraction]) -> list[Any]:
    """``[entry]``: the largest loss of the mechanisms e^{Σ f} and e^{−Σ f}, in 50 digits."""
    states, size = len(levels), instance["length"]
    with localcontext() as context, mpmath.workdps(50):
        context.prec, context.Emax, context.Emin = 50, MAX_EMAX, MIN_EMIN
        steps = [[Decimal(v) for v in row] for row in instance["rows"]]
        steps = [[v / sum(row) for v in row] for row in steps]
        first = [Decimal(v) for v in instance["start"]]
        worst = [Decimal(0)] * size
        for sign in (1, -1):
            tilt = [(sign * Decimal(v.numerator) / v.denominator).exp() for v in levels]
            plain, left = [first], [first]
            for _ in range(size - 1):
                plain.append(_pushed(plain[-1], steps))
                left.append(_pushed([a * t for a, t in zip(left[-1], tilt, strict=True)], steps))
            right = [[Decimal(1)] * states]
            for _ in range(size - 1):
                here = [a * t for a, t in zip(right[-1], tilt, strict=True)]
                right.append([_dot(row, here) for row in steps])
            right.reverse()
            for i in range(size):
                told = [
                    left[i][x] * tilt[x] * right[i][x] / plain[i][x] if plain[i][x] else None
                    for x in range(states)
                ]
                able = [value for value in told if value is not None]
                worst[i] = max(worst[i], (max(able) / min(able)).ln())
        return [mpmath.mpf(str(loss)) for loss in worst]


def _dot(a: Sequence[Decimal], b: Sequence[Decimal]) -> Decimal:
    return sum((p * q for p, q in zip(a, b, strict=True)), Decimal(0))


def _pushed(law_: Sequence[Decimal], steps: Sequence[Sequence[Decimal]]) -> list[Decimal]:
    return [_dot(law_, column) for column in zip(*steps, strict=True)]


COUNTS = "the worst mechanism counts: transfer matrices in many digits"
FAMILIES = (
    Family("two states, up to 10,000 entries", COUNTS, _draw_binary, _compare_binary, NEAREST),
    Family("classes of states, long", COUNTS, _draw_classes, _compare_classes, NEAREST),
    Family("unbounded chain", COUNTS, _draw_unbounded, _compare_unbounded, NEAREST),
    Family("permutation, up to 10,000 entries", "T·ε", _draw_turning, _compare_turning),
    Family("ordered states, noisy sum", "tilting, in 50 digits", _draw_sums, _compare_sums, 1e-14),
)
