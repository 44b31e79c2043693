"""The experiment of Tables 1 and 2 on prepared data: every mechanism at every ε.

Each mechanism is calibrated by what its proof allows per entry:

* ``Ours-Exp``: the paper's own. Its curve, then three rounds of the exponential mechanism with a
  third of the budget each: Gumbel noise of scale 6/ε.
* ``MQM, split budget``: MQMExact, then one Laplace of scale m/ε on each of the m bars: a budget
  split over the categories, which the printed columns fit.
* ``MQM, vector Laplace``: MQMExact, then one Laplace of scale 2/ε on each bar, as in Song, Wang
  and Chaudhuri's own code: a histogram has the L1-sensitivity 2.
* ``Group DP``: all entries of a person at once. The paper does not say with which mechanism; here
  with the same three rounds as Ours-Exp, so that the two differ by their proofs alone.
* ``takifugu``: the exact translation, and the mechanism that the planner picks for what it allows.
  The planner is given no counts, only how many labels there are and how many are named.

All are real mechanisms of `takifugu.mechanisms`, whose Laplace noise is a whole number.

**Randomness.** All cells of a dataset are drawn from the same stream of random numbers, seeded by
the seed and the data's fingerprint, which hashes the bytes of files or the configuration of a
simulated world and no computed number: the same on every machine. Two mechanisms then differ by
what they are and not by their random numbers, repetition by repetition; the same mechanism with the
same noise answers the same; and a cell does not depend on which others were measured, or when.
Cells are not independent of one another; each interval is valid on its own, and leads are taken
from paired differences.

**Majority** stands beside the mechanisms at every ε. It spends nothing and is deterministic.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType

import numpy as np

from takifugu import __version__
from takifugu._core.fingerprint import fingerprint
from takifugu.costs.losses import Pure
from takifugu.errors import Malformed, UnsoundRequest
from takifugu.mechanisms import plan_top_k
from takifugu.mechanisms.candidates import Selection
from takifugu.mechanisms.planner import noise_of
from takifugu.papers.composition.baselines.rankings import one_per_bar, peeling, split_over_bars
from takifugu.papers.composition.experiments.allowances import EPSILONS, Allowances, allowances
from takifugu.papers.composition.experiments.measurements import (
    Cell,
    Difference,
    Estimate,
    FinishedCells,
    Prepared,
)
from takifugu.papers.composition.experiments.metrics import (
    LESS_IS_BETTER,
    METRICS,
    K,
    Scores,
    checked_counts,
    difference,
    estimate,
    groups_counted,
    known,
    least_mistakes,
    majority,
    scores,
)

TAKIFUGU = "takifugu"
OURS_EXP = "Ours-Exp"
MQM_SPLIT = "MQM, split budget"
MQM_VECTOR = "MQM, vector Laplace"
GROUP_DP = "Group DP"
MAJORITY = "Majority"

Release = Callable[[float, int, int], Selection]


@dataclass(frozen=True)
class Contender:
    """A proof of what may be spent, and a way to spend it.

    Attributes:
        proof: One of `takifugu.papers.composition.experiments.allowances.PROOFS`.
        release: ε per entry, how many labels there are and how many groups, to a mechanism.
    """

    proof: str
    release: Release


@dataclass(frozen=True)
class CalibratedContender:
    """A contender at one ε: what it may spend, its mechanism and the noise of that."""

    epsilon_dp: float
    mechanism: Selection

    @property
    def noise(self) -> float:
        """The standard deviation of the noise on one count."""
        return noise_of(self.mechanism)[2]


def planned(epsilon: float, labels: int, groups: int) -> Selection:
    """What the planner picks, knowing the size of the query and nothing of the counts."""
    return plan_top_k(labels, K, groups, loss=Pure(epsilon)).mechanism


CONTENDERS: Mapping[str, Contender] = MappingProxyType(
    {
        TAKIFUGU: Contender("exact", planned),
        OURS_EXP: Contender("curve", lambda e, labels, _: peeling(e, K, labels)),
        MQM_VECTOR: Contender("quilts", lambda e, labels, _: one_per_bar(e, K, labels)),
        MQM_SPLIT: Contender("quilts", lambda e, labels, _: split_over_bars(e, K, labels)),
        GROUP_DP: Contender("group", lambda e, labels, _: peeling(e, K, labels)),
    }
)


def calibrated(name: str, prepared: Prepared, epsilon_dp: float) -> CalibratedContender:
    """A contender by name that spends ``epsilon_dp`` on every entry."""
    groups, labels = prepared.counts.shape
    return CalibratedContender(epsilon_dp, CONTENDERS[name].release(epsilon_dp, labels, groups))


def calibrated_at(
    name: str, prepared: Prepared, allowed: Allowances, epsilon: float, *, uncertain: bool
) -> CalibratedContender:
    """A contender by name that keeps to a Pufferfish ``epsilon``."""
    spent = allowed.at(CONTENDERS[name].proof, epsilon, uncertain=uncertain)
    return calibrated(name, prepared, spent)


Progress = Callable[[str, int, int], None]  # what is done, how many steps, of how many
FEWEST, DRAWS = 200, 10_000  # repetitions, and draws of noise over all groups
RIVALS = (TAKIFUGU, OURS_EXP)  # whose leads over the others are measured
FORMAT = 3  # of a cell; a new number when a cell may come out differently


def run(
    prepared: Prepared,
    *,
    repetitions: int,
    rng_seed: int,
    folder: Path,
    epsilons: Sequence[float] = EPSILONS,
    progress: Progress | None = None,
) -> tuple[Cell, ...]:
    """Every contender and Majority at every ε, without and with uncertainty.

    What is finished is kept in ``folder``: a run that was interrupted goes on, and ends with the
    same numbers as one that was not.

    Args:
        prepared: The data.
        repetitions: How many times every mechanism is run.
        rng_seed: Where the random numbers begin.
        folder: Where finished cells and allowances are kept.
        epsilons: The Pufferfish ε.
        progress: Called with what is done, the steps done and the steps in all.
    """
    _check(prepared, repetitions, rng_seed)
    places = list(grid(epsilons))

    def step(what: str, done: int, total: int) -> None:
        if progress is not None:
            progress(f"{prepared.key}: {what}", done, total)

    allowed = allowances(
        prepared.chain, epsilons, folder=folder, progress=partial(step, "translations")
    )
    finished = FinishedCells(folder / f"cells-{prepared.key}.jsonl")
    names = {place: identity(prepared, *place, repetitions, rng_seed) for place in places}

    @lru_cache(maxsize=1)
    def rivals(uncertain: bool, epsilon: float) -> Mapping[str, Trial]:
        runners = (
            calibrated_at(rival, prepared, allowed, epsilon, uncertain=uncertain)
            for rival in RIVALS
        )
        trials = (trial(prepared, runner, repetitions, rng_seed) for runner in runners)
        return dict(zip(RIVALS, trials, strict=True))

    for done, (name, uncertain, epsilon) in enumerate(places):
        mark = names[name, uncertain, epsilon]
        if finished.get(mark) is None:
            one = cell(
                prepared,
                allowed,
                name,
                epsilon,
                uncertain=uncertain,
                rivals=rivals(uncertain, epsilon),
                repetitions=repetitions,
                rng_seed=rng_seed,
            )
            finished.add(mark, one)
        step("mechanisms", done + 1, len(places))
    found = [finished.get(names[place]) for place in places]
    return tuple(one for one in found if one is not None)


def enough_repetitions(groups: int) -> int:
    """How many repetitions tell mechanisms apart: fewer groups need more of them."""
    return max(FEWEST, -(-DRAWS // groups))


@dataclass(frozen=True, eq=False)
class Trial:
    """The scores of a mechanism: ``[repetition, group]`` of each metric."""

    calibrated: CalibratedContender
    found: Scores


def trial(
    prepared: Prepared, calibrated: CalibratedContender, repetitions: int, rng_seed: int
) -> Trial:
    """Run a mechanism ``repetitions`` times on the true counts, from the dataset's stream."""
    rng = np.random.default_rng(stream(prepared, rng_seed))
    named = calibrated.mechanism.simulate(prepared.counts, repetitions, rng=rng)
    return Trial(calibrated, scores(prepared.counts, named))


def cell(
    prepared: Prepared,
    allowed: Allowances,
    name: str,
    epsilon: float,
    *,
    uncertain: bool,
    rivals: Mapping[str, Trial],
    repetitions: int,
    rng_seed: int,
) -> Cell:
    """One cell; ``rivals`` are takifugu and Ours-Exp at the same ε and uncertainty."""
    ours = rivals[TAKIFUGU]
    if name == MAJORITY:
        majority_scores = scores(prepared.counts, majority(prepared.train, len(prepared.counts)))
        measured = {metric: known(majority_scores[metric]) for metric in METRICS}
        lead = leads(prepared, ours.found, majority_scores)
        return Cell(prepared.key, name, uncertain, epsilon, 0.0, 0.0, measured, lead, {})
    if name in rivals:
        there = rivals[name]
    else:
        runner = calibrated_at(name, prepared, allowed, epsilon, uncertain=uncertain)
        there = trial(prepared, runner, repetitions, rng_seed)
    return Cell(
        prepared.key,
        name,
        uncertain,
        epsilon,
        there.calibrated.epsilon_dp,
        there.calibrated.noise,
        measures(prepared, there.found),
        {} if name == TAKIFUGU else _lead(prepared, ours, there),
        {} if name in rivals else _lead(prepared, rivals[OURS_EXP], there),
    )


def measures(prepared: Prepared, found: Scores) -> dict[str, Estimate]:
    """The mean of each metric with its interval."""
    least = least_mistakes(prepared.counts)
    return {metric: estimate(found[metric], least=least[metric]) for metric in METRICS}


def leads(prepared: Prepared, ours: Scores, theirs: Scores) -> dict[str, Difference]:
    """By how much ours is better, run by run; positive is better for every metric."""
    least = least_mistakes(prepared.counts)
    return {
        metric: difference(
            (theirs[metric] - ours[metric])
            if metric in LESS_IS_BETTER
            else (ours[metric] - theirs[metric]),
            least=least[metric],
        )
        for metric in METRICS
    }


def grid(epsilons: Sequence[float] = EPSILONS) -> Iterator[tuple[str, bool, float]]:
    """Every (mechanism, uncertain, ε), takifugu first at each ε."""
    for uncertain in (False, True):
        for epsilon in epsilons:
            for name in (*CONTENDERS, MAJORITY):
                yield name, uncertain, float(epsilon)


def stream(prepared: Prepared, rng_seed: int) -> np.random.SeedSequence:
    """Where the random numbers of a dataset begin."""
    digest = fingerprint(("composition", prepared.fingerprint))
    return np.random.SeedSequence(rng_seed, spawn_key=(int(digest[:32], 16),))


def identity(
    prepared: Prepared, name: str, uncertain: bool, epsilon: float, repetitions: int, rng_seed: int
) -> str:
    """What a finished cell is about: all that its numbers depend on.

    It only says whether a cell was measured here before and seeds nothing, so the chain may count
    to the last bit: in a folder from a processor with other last bits, cells are measured again.
    """
    return fingerprint(
        {
            "format": FORMAT,
            "version": __version__,
            "data": prepared.fingerprint,
            "key": prepared.key,
            "counts": prepared.counts,
            "train": prepared.train,
            "chain": prepared.chain.fingerprint,
            "mechanism": name,
            "uncertain": uncertain,
            "epsilon": float(epsilon),
            "repetitions": repetitions,
            "seed": rng_seed,
        }
    )


def _lead(prepared: Prepared, ours: Trial, theirs: Trial) -> dict[str, Difference]:
    if ours.calibrated.mechanism == theirs.calibrated.mechanism:  # one law, so no lead at all
        repetitions = len(ours.found[METRICS[0]])
        return dict.fromkeys(METRICS, Difference(0.0, 0.0, 0.0, repetitions))
    return leads(prepared, ours.found, theirs.found)


def _check(prepared: Prepared, repetitions: int, rng_seed: int) -> None:
    counts = checked_counts(prepared.counts)
    labels = len(prepared.chain.states)
    if counts.shape != (len(prepared.groups), labels) or prepared.train.shape != (labels,):
        raise Malformed(
            "counts",
            given=f"have shape {counts.shape}, and train {prepared.train.shape}",
            needed=f"count the {labels} states of the chain in each of"
            f" {len(prepared.groups)} groups",
        )
    groups_counted(counts)
    if not isinstance(repetitions, int) or repetitions < 2:
        raise UnsoundRequest(
            f"repetitions is {repetitions}; an interval needs 2 or more",
            field="repetitions",
            given=repetitions,
        )
    if not isinstance(rng_seed, int) or rng_seed < 0:
        raise UnsoundRequest(
            f"the seed is {rng_seed}; it must be a whole number, 0 or more",
            field="rng_seed",
            given=rng_seed,
        )
