r"""Noise of one count at a Pufferfish loss of 1: what the translation asks for, and what is needed.

``python -m benchmarks.count_noise [--labels N]``. Laplace noise of scale b on the number of entries
that have label a, T = 100 entries of a stationary chain: all 78 kinds of places in New York, and
all stages of sleep.

*Needed* is the least b at which this mechanism's own loss is 1, by a dynamic program that shares
nothing with the translation: the law of the count given X_i = x, for every entry and state, then

.. math:: \max_{i,x,y,o} \log \frac{E[e^{-|N-o|/b} | X_i=x]}{E[e^{-|N-o|/b} | X_i=y]}

over every output o. Below 0 and above T the ratio no longer changes; between two whole numbers it
is a mediant of its values there, so whole numbers suffice, and noise on whole numbers needs as
much. More noise is a post-processing of less, so the loss falls with b.

*Asked* is 1/`Translation.to_cost`. It holds for every mechanism with the cost of such a count,
[u=a]≠[v=a] times 1/b, and for adaptive sequences of them. *Leaks* is what one of them leaks for
sure at the scale that is asked for: the witness of the translation. Where asked/needed is large and
this is close to 1, other mechanisms with that cost leak more than the count, and no bound would
ask for less.

Needs the data, in the folder that ``TAKIFUGU_DATA`` names or in `../shared/data`.
"""

import argparse
import csv
import gzip
import itertools
from statistics import median
from time import perf_counter

import numpy as np

from benchmarks._data import CHECKINS, DATA
from takifugu._core.numeric import Floats
from takifugu.costs.cost import Cost, Membership
from takifugu.priors.fitting import TAU, Transitions
from takifugu.priors.labels import foursquare_labels
from takifugu.priors.markov import MarkovChain
from takifugu.translation import Translation

LENGTH, LOSS = 100, 1.0
LIMIT = 1.05
NIGHTS = DATA / "sleep_hypnograms.csv.gz"
STAGES = ("Wake", "N1", "N2", "N3", "REM")


def run(labels: int | None = None) -> None:
    """Print every label's scales, then the worst and the median ratio."""
    for name, path, fit in (("sleep", NIGHTS, sleep), ("New York", CHECKINS, new_york)):
        if path.exists():
            _report(name, fit(), labels)
        else:
            print(f"skipped: {path.name} is not in {path.parent}")


def _report(name: str, chain: MarkovChain, labels: int | None) -> None:
    translation = Translation(chain)
    scalar = 1 / float(translation.to_dp(LOSS))
    shares = np.asarray(chain.stationary)
    print(f"{name}: {len(chain.states)} labels, any mechanism needs {scalar:.3f}")
    print(f"  {'label':34s} share   needed    asked  asked/needed  leaks")
    ratios = []
    for k in np.argsort(-shares)[:labels].tolist():
        began = perf_counter()
        unit = Cost.of({Membership([chain.states[k]]): 1})
        factor = translation.to_cost(unit, LOSS)
        seconds = perf_counter() - began
        exact = needed(np.asarray(chain.transition), k, LENGTH, LOSS)
        ratios.append(float(1 / factor) / exact)
        leaks = translation.explain_cost(unit * factor).lower
        print(
            f"  {chain.states[k]!s:34.34s} {shares[k]:.4f} {exact:7.3f} {float(1 / factor):8.3f}"
            f" {ratios[-1]:13.4f} {leaks:6.4f}   {seconds:.1f} s",
            flush=True,
        )
    above = sum(ratio > LIMIT for ratio in ratios)
    print(
        f"{name}: asked/needed median {median(ratios):.4f}, largest {max(ratios):.4f},"
        f" {above} of {len(ratios)} above {LIMIT}"
    )


def needed(transition: Floats, label: int, length: int, loss: float) -> float:
    """The least scale of Laplace noise on a count of ``label`` whose own loss is ``loss``."""
    laws = count_laws(transition, label, length)
    below, above = 1e-3, 1.0
    while exact_loss(laws, above) > loss:
        below, above = above, 2 * above
    while above - below > 1e-6 * above:
        middle = (below + above) / 2
        below, above = (middle, above) if exact_loss(laws, middle) > loss else (below, middle)
    return above


def count_laws(transition: Floats, label: int, length: int) -> Floats:
    """``[entry, state, n]``: the probability of n entries with ``label``, given an entry's state.

    Entries after i and before i are independent given X_i; those before follow the reversed chain.
    """
    size = len(transition)
    law = stationary(transition)
    reversed_chain = transition.T * law[None, :] / law[:, None]
    sides = []
    for matrix in (transition, reversed_chain):
        told = np.zeros((length, size, length + 1))  # [steps, state, n]
        told[0, :, 0] = 1.0
        for step in range(1, length):
            here = told[step - 1].copy()
            here[label, 1:] = told[step - 1, label, :-1]
            here[label, 0] = 0.0
            told[step] = matrix @ here
        sides.append(told)
    after, before = sides
    laws = np.zeros((length, size, length + 1))
    for i in range(length):
        for x in range(size):
            both = np.convolve(after[length - 1 - i, x], before[i, x])[: length + 1]
            own = int(x == label)
            laws[i, x, own:] = both[: length + 1 - own]
    return laws


def exact_loss(laws: Floats, scale: float) -> float:
    """The largest loss of any two states at any entry and output."""
    counts = np.arange(laws.shape[2])
    kernel = np.exp(-np.abs(counts[:, None] - counts[None]) / scale)  # [n, o]
    told = np.log(laws.reshape(-1, len(counts)) @ kernel).reshape(*laws.shape[:2], len(counts))
    return float((told.max(axis=1) - told.min(axis=1)).max())


def stationary(transition: Floats) -> Floats:
    """The stationary law, by a linear system."""
    size = len(transition)
    system = np.vstack([transition.T - np.eye(size), np.ones(size)])
    return np.asarray(np.linalg.lstsq(system, np.r_[np.zeros(size), 1.0], rcond=None)[0])


def new_york() -> MarkovChain:
    """The paper's 78 labels, fitted to all check-ins with the paper's smoothing."""
    labels = foursquare_labels()
    number = {label: k for k, label in enumerate(labels.labels)}
    paths: dict[str, list[int]] = {}
    with gzip.open(CHECKINS, "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            paths.setdefault(row["user_idx"], []).append(
                number[labels.common(row["cat"], other="other")]
            )
    steps = Transitions.of(paths.values(), states=range(len(number)))
    fitted = steps.chain(unseen="uniform", tau=TAU, length=LENGTH)
    return MarkovChain(fitted.transition, labels.labels, length=LENGTH)


def sleep() -> MarkovChain:
    """Five stages, an entry an epoch of 30 seconds: what every scorer saw one after another."""
    counts = np.zeros((len(STAGES), len(STAGES)))
    with gzip.open(NIGHTS, "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            night = [int(stage) for stage in row["stages_30s"].split()]
            for one, other in itertools.pairwise(night):
                if one >= 0 and other >= 0:
                    counts[one, other] += 1
    return MarkovChain(counts / counts.sum(axis=1, keepdims=True), STAGES, length=LENGTH)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--labels", type=int, default=None, help="The commonest so many only.")
    run(parser.parse_args().labels)
