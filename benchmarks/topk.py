"""Top 3 of 78 kinds of places in New York: our plan beside the paper's own mechanism.

Needs the check-ins and the paper, in the folder `shared` beside the repository or where
``TAKIFUGU_SHARED`` says; without them it says so and does nothing. The chain is fitted to all
check-ins with the paper's labels and smoothing; states that nothing followed lead anywhere alike.
"""

import csv
import gzip
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from takifugu.mechanisms import plan_top_k
from takifugu.mechanisms.baselines import BASELINES, Ranking
from takifugu.mechanisms.planner import noise_of
from takifugu.numeric import Floats, Integers, frozen
from takifugu.priors.fitting import TAU, Transitions
from takifugu.priors.markov import MarkovChain
from takifugu.translation import LossTable, differential

SHARED = Path(os.environ.get("TAKIFUGU_SHARED", Path(__file__).resolve().parents[2] / "shared"))
CHECKINS = SHARED / "data" / "checkins_nyc.csv.gz"
PAPER = SHARED / "paper" / "composition-for-pufferfish-privacy.tex"
EPSILONS = (0.5, 1.0, 2.0, 5.0)
LEAST = {0.5: 8.0, 1.0: 8.0, 5.0: 5.0}  # how many times less noise is wanted, at least
K, REPETITIONS = 3, 1_000
NORMAL = 3.89  # two-sided 99.99 %: of 48 cells, all right at once with a chance above 99 %
SLOW = ("scalar TPL",)


@dataclass(frozen=True, eq=False)
class City:
    """A chain, and counts ``[group, category]`` for the whole city and by hour of the week."""

    chain: MarkovChain
    counts: dict[str, Integers]


def run() -> None:
    """Print the noise of every contender, then how much of the ranking ours gets more right."""
    if not (CHECKINS.exists() and PAPER.exists()):
        print(f"skipped: {CHECKINS.name} and {PAPER.name} are not in ../shared")
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
    allowed, proof = differential(chain.kernel(), epsilon)
    seconds = perf_counter() - begin
    assert proof is not None
    exact = LossTable(frozen([allowed]), frozen([proof.loss]))
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
    paper = _metrics(counts, theirs.simulate(counts, REPETITIONS, rng=rng))
    plan = _metrics(counts, ours.simulate(counts, REPETITIONS, rng=rng))
    print(f"  ε = {epsilon:g}")
    for name, before in paper.items():
        better = (plan[name] - before) * (-1 if name == "l1" else 1)
        mean, half = float(better.mean()), NORMAL * float(better.std()) / sqrt(REPETITIONS)
        word = "better" if mean > half else ("WORSE" if mean < -half else "alike")
        print(
            f"    {name:6} {before.mean():12.4f} {plan[name].mean():12.4f}"
            f"   better by {mean:10.4f} ± {half:.4f}   {word}"
        )


def _metrics(counts: Integers, named: Integers) -> dict[str, Floats]:
    """``[repetition]`` of each: means over groups, as Section 7 of the paper defines them."""
    best = np.sort(counts, axis=1)[:, ::-1][:, :K]  # [group, place]
    said = np.take_along_axis(counts[None], named, axis=2)  # [repetition, group, place]
    discount = 1 / np.log2(np.arange(K) + 2)
    right = said == best  # equal counts are as good as one another
    found = {f"acc@{place + 1}": right[:, :, place].mean(axis=1) for place in range(K)}
    found["hits"] = (said >= best[None, :, -1:]).mean(axis=(1, 2))
    found["ndcg"] = ((said @ discount) / (best @ discount)).mean(axis=1)
    found["l1"] = np.abs(said - best).sum(axis=2).mean(axis=1)
    return found


def _city() -> City:
    group = dict(_labels(PAPER.read_text(encoding="utf-8")))
    states = tuple(dict.fromkeys(group.values()))
    number = {state: i for i, state in enumerate(states)}
    paths: dict[str, list[int]] = {}
    hours = np.zeros((7 * 24, len(states)), dtype=np.int64)
    with gzip.open(CHECKINS, "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            place = re.sub(r"\s+", " ", row["cat"].replace("Café", "Cafe"))
            state = number[group.get(place, "other")]
            paths.setdefault(row["user_idx"], []).append(state)
            hours[24 * int(row["dow"]) + int(row["hour"]), state] += 1
    steps = Transitions.of(paths.values(), states=range(len(states)))
    fitted = steps.chain(unseen="uniform", tau=TAU, length=max(map(len, paths.values())))
    chain = MarkovChain(fitted.transition, states, length=fitted.length)
    return City(chain, {"whole city": hours.sum(axis=0)[None], "by hour of the week": hours})


def _labels(paper: str) -> Iterator[tuple[str, str]]:
    """Every label and the common label that it is merged into, from the paper's appendix."""
    listing = paper[paper.index(r"\label{appendix:labelmap}") :].replace(r"\&", "&")
    for common, merged in re.findall(r"\\item\[\\textbf\{(.*?)\}\]\s*(.*)", listing):
        for label in merged.split(","):
            yield label.strip(), common
