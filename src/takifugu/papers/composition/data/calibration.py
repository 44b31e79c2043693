r"""Calibrates the synthetic check-ins to the printed accuracies of Ours-Exp, from that table alone.

``python -m takifugu.papers.composition.data.calibration`` searches again and prints what it finds.

**What is met.** The 18 printed numbers Acc@1, Acc@2 and Acc@3 of Ours-Exp without uncertainty at
six ε (Table 1). Nothing else that is printed is used: the columns of MQM, the hit
rate, NDCG, ℓ1 and Majority are predictions of the world that comes out; the Acc@k of Ours-Exp with
uncertainty follow from those that are met, as uncertainty is a shift of ε. The
worlds of the search have the seeds 1 to `WORLDS`. One world scatters around their average: the
world that is measured (`simulated.WORLD_SEED`) is the one of the 48 `CANDIDATES`, others
than those of the search, that comes closest to the same 18 numbers.

**What is varied**, three numbers of `HabitParameters`:

* ``decline``: how fast countries get smaller. It spreads the gaps between counts over orders of
  magnitude, and so says how slowly accuracy rises with ε.
* ``taste``: how far countries differ in the order of the labels of the head. Accuracy in the third
  place is nearly that in the second (58.5 % and 63.1 % at ε = 0.5). That is so where few labels
  compete for the first places; with many, the gap after the third is the smallest. Without a head
  the best worlds are off by 2 points (root mean square), and by 3 to 5 points in the third place
  at ε ≤ 2.
* the largest ``sticky``: what an entry may lose at a given ε, and so the noise.

Three choices were made by the same 18 numbers. Heads of four to eight labels and tastes that are
normal or Laplace (near ties and clear favourites are both more frequent) were tried in a reduced
model, and six labels and Laplace came closest. How far the head is above all others hardly matters
once it is: with a ``boost`` of 13.9 instead of 7.5 and the others fitted again, the root mean
square is the same to 0.01 points.

**The objective** is the sum of squared differences between printed and expected accuracies, in
points. A world's accuracies are expected over the noise of the mechanism, exactly
(`expected_accuracies`), with what the influence curve allows for the chain that is fitted to that
world; then averaged over the worlds. Its counts are not walked but have the means and variances of
walked ones: a country's size is log-normal around its share of the rows, with the variance that
users of such different activity give it, and a label's count is normal around the stationary law
with the variance of a two-state chain that stays with probability s, (1 + s)/(1 - s) times that of
independent rows. All draws of a world come from its seed in the same order for all parameters, so
that the objective changes smoothly with them; it is minimised by Gauss and Newton's method.

**What it found**: ``taste`` 0.276, ``decline`` 0.0605, ``sticky`` up to 0.238, with a root mean
square of 0.95 points over the 48 worlds of the search and 1.1 over 48 others; a single world
scatters by 1 to 2.5 points in each number and is off by 2 (root mean square). What is left has a
pattern: Acc@1 at ε = 0.5 is too low (76 % for 79 %) and Acc@2 at ε = 5 too high (95 % for 93 %).
The printed accuracies rise more slowly with ε than the noise falls: what the curve allows is convex
in ε and 0 at 0, so it grows at least in proportion to ε (here as :math:`\varepsilon^{1.15}`). The
reduced model would meet all 18 numbers to 0.2 points if it grew as :math:`\varepsilon^{0.93}`.

**Other worlds.** The interval beside a measured number is of the mechanism's noise on one world.
Another world of the same model, of the same size and with the same parameters, has other countries,
and so another expected accuracy. With ``--other-worlds`` this module draws the worlds of `SEEDS`
again, which neither the calibration nor the measurement uses, and writes what Ours-Exp without
uncertainty is expected to get right on each to ``other_worlds.json``.
"""

import argparse
import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from takifugu._core.numeric import Floats
from takifugu.papers.composition.data.simulated import (
    CALIBRATED,
    PAPER_ROWS,
    PRINTED_ACCURACIES,
    WORLD_SEED,
)
from takifugu.papers.composition.experiments.allowances import EPSILONS, curve_allowances
from takifugu.papers.composition.experiments.measurements import printed_number
from takifugu.papers.composition.experiments.metrics import K, expected_accuracies
from takifugu.priors import MarkovChain, Transitions
from takifugu.priors.fitting import TAU
from takifugu.synthetic.check_in_counts import FIT_DAYS, CheckInCounts, draw_check_in_counts
from takifugu.synthetic.check_ins import DAYS
from takifugu.synthetic.habits import HabitParameters, draw_habits

WORLDS = 48
CANDIDATES = range(101, 149)  # seeds of worlds that may be measured
FITTED = ("taste", "decline", "sticky")
STEP = 0.04  # of a logarithm, between which the objective is differentiated
LENGTH = 2_700  # about the longest sequence released from; the curve ends long before
PEELING = 2.0 * K  # Gumbel noise of scale 2K/ε: K rounds with ε/K each


def printed_accuracies() -> Floats:
    """``[place, ε]``: the printed numbers that are met, in points."""
    found = [
        [
            printed_number(
                "foursquare",
                column.mechanism,
                uncertain=column.uncertain,
                epsilon=epsilon,
                metric=column.metric,
            )
            for epsilon in EPSILONS
        ]
        for column in CALIBRATED
    ]
    return np.array([[100 * one.value for one in row if one is not None] for row in found])


def accuracies(chain: MarkovChain, counts: Floats) -> Floats:
    """``[place, ε]``: what Ours-Exp is expected to get right on a world, in points."""
    allowed = np.array(curve_allowances(chain, EPSILONS))
    return 100 * expected_accuracies(counts, PEELING / allowed)


def drawn_accuracies(drawn: CheckInCounts) -> Floats:
    """``[place, ε]`` of a world whose counts were walked."""
    chain = Transitions(drawn.steps, drawn.labels).chain(
        unseen="uniform", tau=TAU, length=drawn.longest
    )
    released = drawn.released[drawn.released.sum(axis=1) > 0]
    return accuracies(chain, released.astype(np.float64))


def world_accuracies(parameters: HabitParameters, *, rng: np.random.Generator) -> Floats:
    """``[place, ε]`` of one world with counts of the right means and variances."""
    habits = draw_habits(rng=rng, parameters=parameters)
    by_country, by_label = (
        rng.standard_normal(len(habits.shares)),
        rng.standard_normal(habits.rest.shape),
    )
    users = PAPER_ROWS / parameters.rows_per_user * habits.shares
    spread = np.sqrt(np.log1p(np.exp(parameters.activity**2) / users))
    size = PAPER_ROWS * habits.shares * np.exp(spread * by_country - spread**2 / 2)
    rows = size[:, None] * habits.rest
    steps = np.einsum("cx,cxy->xy", rows, habits.transition) * FIT_DAYS / DAYS
    counts = rows * (1 - FIT_DAYS / DAYS)
    varied = counts * (1 - habits.rest) * (1 + habits.sticky) / (1 - habits.sticky)
    counts = np.maximum(counts + np.sqrt(varied) * by_label, 0.0)
    chain = Transitions(np.rint(steps).astype(np.int64), habits.labels).chain(
        unseen="uniform", tau=TAU, length=LENGTH
    )
    return accuracies(chain, counts)


def walked_accuracies(seed: int) -> Floats:
    """``[place, ε]`` of the world of the paper's size that a seed gives."""
    rng = np.random.default_rng(seed)
    drawn = draw_check_in_counts(rows=PAPER_ROWS, rng=rng, parameters=PRINTED_ACCURACIES)
    return drawn_accuracies(drawn)


def closest_world(seeds: Iterable[int] = CANDIDATES) -> tuple[int, float]:
    """The seed whose world is closest to the printed numbers, and how far off it is (RMS)."""
    printed = printed_accuracies()
    off = {
        seed: float(np.sqrt(np.mean((walked_accuracies(seed) - printed) ** 2))) for seed in seeds
    }
    closest = min(off, key=lambda seed: off[seed])
    return closest, off[closest]


def mean_accuracies(parameters: HabitParameters, worlds: int = WORLDS) -> Floats:
    """``[place, ε]``, averaged over the worlds of the search."""
    found = [
        world_accuracies(parameters, rng=np.random.default_rng(seed))
        for seed in range(1, worlds + 1)
    ]
    averaged: Floats = np.mean(found, axis=0)
    return averaged


def at(logarithms: Floats) -> HabitParameters:
    """The parameters whose fitted numbers have these logarithms."""
    taste, decline, sticky = (float(np.exp(one)) for one in logarithms)
    low, _ = PRINTED_ACCURACIES.sticky
    return replace(PRINTED_ACCURACIES, taste=taste, decline=decline, sticky=(low, sticky))


def logarithms(parameters: HabitParameters) -> Floats:
    """The logarithms of the numbers that are fitted."""
    return np.log([parameters.taste, parameters.decline, parameters.sticky[1]])


def rounded(parameters: HabitParameters) -> HabitParameters:
    """The fitted numbers with three digits, as they are kept."""

    def three(value: float) -> float:
        return float(f"{value:.3g}")

    low, high = parameters.sticky
    return replace(
        parameters,
        taste=three(parameters.taste),
        decline=three(parameters.decline),
        sticky=(low, three(high)),
    )


def search(begin: HabitParameters, *, worlds: int = WORLDS, rounds: int = 6) -> HabitParameters:
    """Gauss and Newton's method with steps that are damped until they help."""
    printed = printed_accuracies()
    place, damping = logarithms(begin), 0.1
    off = (mean_accuracies(at(place), worlds) - printed).ravel()
    for _ in range(rounds):
        moved = [place + STEP * axis for axis in np.eye(len(place))]
        slopes = np.stack(
            [((mean_accuracies(at(one), worlds) - printed).ravel() - off) / STEP for one in moved],
            axis=1,
        )
        squared = slopes.T @ slopes
        for _ in range(4):
            damped = squared + damping * np.diag(np.diag(squared))
            change = np.clip(-np.linalg.solve(damped, slopes.T @ off), -0.3, 0.3)
            there = (mean_accuracies(at(place + change), worlds) - printed).ravel()
            if there @ there < off @ off:
                break
            damping *= 4
        else:
            break
        gained = off @ off - there @ there
        place, off, damping = place + change, there, damping / 4
        print(f"{describe(at(place))}: {np.sqrt(np.mean(off**2)):.3f} points", flush=True)
        if gained < 0.01 * (off @ off):
            break
    return at(place)


def describe(parameters: HabitParameters) -> str:
    """The fitted numbers, for people."""
    values = np.exp(logarithms(parameters))
    return ", ".join(f"{name} {value:.4g}" for name, value in zip(FITTED, values, strict=True))


def main() -> None:
    """Search from the numbers that are kept, and print what is found beside the printed table."""
    parser = argparse.ArgumentParser(description="Calibrate the synthetic check-ins.")
    parser.add_argument("--other-worlds", action="store_true", help="draw other seeds instead")
    if parser.parse_args().other_worlds:
        redraw_other_worlds()
        return
    found = search(PRINTED_ACCURACIES)
    print("found:", describe(found))
    print("kept: ", describe(PRINTED_ACCURACIES))
    kept, printed = mean_accuracies(PRINTED_ACCURACIES), printed_accuracies()
    print("with what is kept (as printed), in points; difference:")
    for place in range(K):
        cells = [f"{a:.1f} ({b:.1f})" for a, b in zip(kept[place], printed[place], strict=True)]
        print(f"Acc@{place + 1}:", "  ".join(cells))
    print(f"root mean square: {np.sqrt(np.mean((kept - printed) ** 2)):.2f}")
    seed, off = closest_world()
    print(f"closest world of {len(CANDIDATES)}: seed {seed}, {off:.2f}; kept: {WORLD_SEED}")


STORED = Path(__file__).with_name("other_worlds.json")
SEEDS = tuple(range(10_001, 10_025))


@cache
def stored_worlds() -> Floats:
    """``[world, place, ε]`` of the worlds that were drawn, in points with two digits."""
    document = json.loads(STORED.read_text(encoding="utf-8"))
    return np.array([document[str(seed)] for seed in SEEDS], dtype=np.float64)


def between_worlds() -> Floats:
    """``[place, ε]``: the standard deviation from world to world, in points."""
    deviation: Floats = np.std(stored_worlds(), axis=0, ddof=1)
    return deviation


def redraw_other_worlds() -> None:
    """Draw every world and store what was found."""
    lines = []
    for seed in SEEDS:
        found = np.round(walked_accuracies(seed), 2).tolist()
        lines.append(f' "{seed}": {json.dumps(found)}')
        print(lines[-1].strip(), flush=True)
    STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    stored_worlds.cache_clear()
    print("standard deviation from world to world:", np.round(between_worlds(), 1).tolist())


if __name__ == "__main__":
    main()
