"""Top 3 of 78 kinds of places in New York: our plan beside the paper's own mechanism.

Needs the check-ins, in the folder that ``TAKIFUGU_DATA`` names or in `../shared/data`; without them
it says so and does nothing. The chain is fitted to all check-ins with the paper's labels and
smoothing; states that nothing followed lead anywhere alike. How right a ranking is, and what ties
mean, is as in the reproduction: `takifugu.papers.composition.experiments.metrics`.
"""

import csv
import gzip
from dataclasses import dataclass
from math import sqrt
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks._data import CHECKINS
from takifugu._core.numeric import Integers, frozen
from takifugu.mechanisms import plan_top_k
from takifugu.mechanisms.planner import noise_of
from takifugu.papers.composition.baselines.rankings import BASELINES, Ranking
from takifugu.papers.composition.experiments.metrics import LESS_IS_BETTER, K, scores
from takifugu.priors.fitting import TAU, Transitions
from takifugu.priors.labels import foursquare_labels
from takifugu.priors.markov import MarkovChain
from takifugu.translation import Translation, TranslationTable

OTHER = "other"  # what the paper calls a place that is none of its common ones
EPSILONS = (0.5, 1.0, 2.0, 5.0)
LEAST = {0.5: 8.0, 1.0: 8.0, 5.0: 5.0}  # how many times less noise is wanted, at least
REPETITIONS = 1_000
NORMAL = 3.89  # two-sided 99.99 %: of 48 cells, all right at once with a chance above 99 %
SLOW = ("scalar TPL",)


@dataclass(frozen=True, eq=False)
class City:
    """A chain, and counts ``[group, category]`` for the whole city and by hour of the week."""

    chain: MarkovChain
    counts: dict[str, Integers]


def run() -> None:
    """Print the noise of every contender, then how much of the ranking ours gets more right."""
    if not CHECKINS.exists():
        print(f"skipped: {CHECKINS.name} is not in {CHECKINS.parent}")
        return
    city = _city()
    rows = city.chain.length or 0
    print(f"{len(city.chain.states)} states, longest sequence {rows}, smoothing {TAU:g}")
    pairs = {}
    for epsilon in EPSILONS:
        pairs[epsilon] = _noise(city.chain, epsilon)
    for name, counts in city.counts.items():
        print(f"\ntop {K}, {name} ({len(counts)} groups), {REPETITIONS:,} repetitions:", end=" ")
        print("Ours-Exp, our plan, and the difference with its 99.99 % interval")
        for epsilon in EPSILONS:
            _ranking(counts, epsilon, *pairs[epsilon])


def _noise(chain: MarkovChain, epsilon: float) -> tuple[Ranking, Any]:
    begin = perf_counter()
    translation = Translation(MarkovChain(chain.kernel()))
    allowed = translation.to_dp(epsilon)
    losses = frozen([translation.to_pufferfish(allowed)])
    seconds = perf_counter() - begin
    exact = TranslationTable("exact", frozen([allowed]), losses)
    plan = plan_top_k(chain.states, K, translation=exact, epsilon=epsilon)
    ours = noise_of(plan.mechanism)[2]
    print(f"\nε = {epsilon:g}: exact translation ε_DP = {allowed:.5f} ({seconds:.1f} s)")
    print(f"  plan: {plan.reason}")
    contenders = {
        name: baseline.top_k(chain, epsilon, K)
        for name, baseline in BASELINES.items()
        if name not in SLOW
    }
    for name, mechanism in contenders.items():
        deviation = noise_of(mechanism)[2]
        print(
            f"  {name:32} noise {noise_of(mechanism)[1]:12.2f} wide, deviation {deviation:12.2f},"
            f" {deviation / ours:8.2f} times ours ({ours:.2f})"
        )
    theirs = contenders["Ours-Exp"]
    times = noise_of(theirs)[2] / ours
    if epsilon in LEAST:
        word = "met" if times >= LEAST[epsilon] else "MISSED"
        print(f"  wanted: at least {LEAST[epsilon]:g} times less noise than Ours-Exp: {word}")
    return theirs, plan.mechanism


def _ranking(counts: Integers, epsilon: float, theirs: Any, ours: Any) -> None:
    rng = np.random.default_rng(int(1000 * epsilon))
    paper = scores(counts, theirs.simulate(counts, REPETITIONS, rng=rng))
    plan = scores(counts, ours.simulate(counts, REPETITIONS, rng=rng))
    print(f"  ε = {epsilon:g}")
    for name, before in paper.items():
        better = (plan[name] - before).mean(axis=1) * (-1 if name in LESS_IS_BETTER else 1)
        mean, half = float(better.mean()), NORMAL * float(better.std()) / sqrt(REPETITIONS)
        word = "better" if mean > half else ("WORSE" if mean < -half else "alike")
        print(
            f"    {name:6} {before.mean():12.4f} {plan[name].mean():12.4f}"
            f"   better by {mean:10.4f} ± {half:.4f}   {word}"
        )


def _city() -> City:
    labels = foursquare_labels()
    states = labels.labels
    number = {state: i for i, state in enumerate(states)}
    paths: dict[str, list[int]] = {}
    hours = np.zeros((7 * 24, len(states)), dtype=np.int64)
    with gzip.open(CHECKINS, "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            state = number[labels.common(row["cat"], other=OTHER)]
            paths.setdefault(row["user_idx"], []).append(state)
            hours[24 * int(row["dow"]) + int(row["hour"]), state] += 1
    steps = Transitions.of(paths.values(), states=range(len(states)))
    fitted = steps.chain(unseen="uniform", tau=TAU, length=max(map(len, paths.values())))
    chain = MarkovChain(fitted.transition, states, length=fitted.length)
    return City(chain, {"whole city": hours.sum(axis=0)[None], "by hour of the week": hours})
