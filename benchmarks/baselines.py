"""Baselines against their published algorithms, a budget over time, and what allowances leave.

``python -m benchmarks baselines``. Every figure stands beside its reference, measured in the same
run: quilts against a loop over all of them, a step of temporal leakage against Algorithm 1 of Cao
et al. (2017), and a profile against their closed form. Times are those of the processor. Each is
the first call in a process that has imported everything.
"""

from collections.abc import Callable
from time import process_time
from typing import ParamSpec, TypeVar

import numpy as np

from takifugu._core.numeric import Floats
from takifugu.papers.composition.baselines.chain_laws import stationary
from takifugu.papers.composition.baselines.quilts import mqm_approx, mqm_exact, spectral_gap
from takifugu.papers.composition.baselines.temporal import (
    tpl_step,
    tpl_supremum,
    tpl_to_dp,
    tpl_total,
)
from takifugu.priors import HigherOrderChain, IntervalMarkovChain, MarkovChain, TimeOfDayChain
from takifugu.priors.prior import Prior
from takifugu.translation import Translation
from takifugu.translation.accounting.allocation import allocate
from tests.oracles.allocation import published_profile
from tests.oracles.baselines import approximate_quilt_noise

P = ParamSpec("P")
T = TypeVar("T")
STATES, LENGTH = 78, 100
STICKY = np.array([[0.9, 0.1], [0.1, 0.9]])


def run() -> None:
    """Print every figure beside its reference."""
    quilts()
    leakage()
    profiles()
    allowances()


def quilts() -> None:
    """MQMApprox and MQMExact of chains that mix fast and slowly."""
    for stay in (0.0, 0.9, 0.99):
        chain = example_rows(stay)
        law = stationary(chain)
        seconds, found = timed(mqm_approx, chain, LENGTH, 1.0)
        gap, least = spectral_gap(chain, law), float(law.min())
        slow, noise = timed(approximate_quilt_noise, gap, least, LENGTH, 1.0)
        long, _ = timed(mqm_approx, chain, 5_000, 1.0)
        exactly, exact = timed(mqm_exact, chain, LENGTH, 1.0)
        print(
            f"{STATES} states that stay with {stay}: MQMApprox {shown(seconds)} for {LENGTH}"
            f" entries, {shown(long)} for 5,000; every quilt in turn {shown(slow)} for {LENGTH}"
            f" (noise {found.noise:.6g}, {noise:.6g}); MQMExact {shown(exactly)} (noise"
            f" {exact.noise:.6g})",
            flush=True,
        )


def leakage() -> None:
    """One step of temporal leakage, and what is made of steps."""
    chain = example_rows(0.0)
    seconds, found = timed(tpl_step, chain, 1.0)
    slow, value = timed(published_step, chain, 1.0)
    print(
        f"leakage, one step of {STATES} states: {shown(seconds)}; Algorithm 1, in arrays"
        f" {shown(slow)}, {slow / seconds:.1f} times ({float(found):.9g}, {value:.9g})",
        flush=True,
    )
    total, _ = timed(tpl_total, chain, [0.1] * LENGTH)
    allowed, _ = timed(tpl_to_dp, chain, LENGTH, 1.0)
    supremum, _ = timed(tpl_supremum, chain, 1.0)
    print(
        f"leakage over {LENGTH} entries: a total {shown(total)}, the loss that is allowed"
        f" {shown(allowed)}, the supremum {shown(supremum)}",
        flush=True,
    )


def profiles() -> None:
    """A budget over time against the closed form, and for chains that have none."""
    for length in (30, 2_000):
        translation = Translation(MarkovChain(STICKY, length=length))
        seconds, found = timed(allocate, translation, 1.0, objective="total")
        closed = sum(published_profile(0.9, length, 1.0))
        print(
            f"budget over {length:,} entries, p = q = .9: Σε = {found.total:.10g} in"
            f" {shown(seconds)}; closed form {closed:.10g}; the constant"
            f" {length * found.constant:.6g}",
            flush=True,
        )
    for name, rows in {
        "alternating": np.array([[0.01, 0.99], [0.8, 0.2]]),
        "three states": np.array([[0.62, 0.28, 0.10], [0.05, 0.75, 0.20], [0.33, 0.07, 0.60]]),
    }.items():
        translation = Translation(MarkovChain(rows, length=30))
        translation.to_dp(1.0)
        seconds, found = timed(allocate, translation, 1.0, objective="total")
        print(
            f"budget over 30 entries, {name}: Σε = {found.total:.6g} in {shown(seconds)}; the"
            f" constant {30 * found.constant:.6g}",
            flush=True,
        )


def allowances() -> None:
    """The share of a budget that `to_dp` leaves unused, and its time."""
    rng = np.random.default_rng(0)
    three, eight = rng.dirichlet(np.ones(3), 3), rng.dirichlet(np.ones(8), 8)
    priors: dict[str, Prior] = {
        "two states": MarkovChain(STICKY, length=30),
        "eight states": MarkovChain(eight, length=40),
        "eight states, unbounded": MarkovChain(eight),
        "eight states, given start": MarkovChain(eight, start=eight[0], length=40),
        "three states, unknown start": MarkovChain(three, start="unknown", length=20),
        "three states, entries known": MarkovChain(three, known="any", length=20),
        "intervals": IntervalMarkovChain.around(MarkovChain(three, length=20), relative=0.05),
        "second order": HigherOrderChain(rng.dirichlet(np.ones(2), (2, 2)), length=20),
        "by hour": TimeOfDayChain(rng.dirichlet(np.ones(3), (4, 3)), length=20),
    }
    for name, prior in priors.items():
        unused, seconds = 0.0, 0.0
        for target in (0.1, 1.0, 4.0):
            translation = Translation(prior)
            translation.to_pufferfish(0.01)
            took, allowed = timed(translation.to_dp, target)
            seconds += took / 3
            unused = max(unused, 1 - float(translation.to_pufferfish(allowed)) / target)
        print(f"allowance, {name}: {unused:.1e} unused at most, {shown(seconds)}", flush=True)


def published_step(rows: Floats, alpha: float) -> float:
    """Algorithm 1 of Cao et al. (2017), one pair of rows after the other, sets as masks."""
    grown = np.expm1(alpha)
    worst = 0.0
    for first in rows:
        for second in rows:
            chosen = first > second
            while True:
                ratio = (1 + grown * first[chosen].sum()) / (1 + grown * second[chosen].sum())
                left = chosen & (first > ratio * second)
                if (left == chosen).all():
                    break
                chosen = left
            worst = max(worst, float(np.log(ratio)))
    return worst


def example_rows(stay: float) -> Floats:
    """A transition matrix with unequal entries, all of them positive."""
    rng = np.random.default_rng(0)
    rows = rng.gamma(0.3, size=(STATES, STATES)) + 0.01
    rows /= rows.sum(axis=1, keepdims=True)
    return np.asarray(stay * np.eye(STATES) + (1 - stay) * (0.7 * rows + 0.3 / STATES))


def timed(call: Callable[P, T], *given: P.args, **named: P.kwargs) -> tuple[float, T]:
    """Seconds of the processor, and the result."""
    began = process_time()
    found = call(*given, **named)
    return process_time() - began, found


def shown(seconds: float) -> str:
    """Milliseconds with three digits."""
    return f"{1e3 * seconds:.3g} ms"


if __name__ == "__main__":
    run()
