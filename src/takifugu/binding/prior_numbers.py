"""The main numbers of a prior in one sentence: how much one value says about another.

A guarantee holds against the priors that are stated, and "a Markov chain" states little: what a
release costs depends on how long values stay as they are, and on how improbable its least probable
step is. Whoever reads a guarantee should see these.
"""

from collections.abc import Mapping

import numpy as np

from takifugu._core.numeric import Floats
from takifugu.priors.bayesian_network import BayesianNetwork
from takifugu.priors.gaussian import Gaussian
from takifugu.priors.higher_order import HigherOrderChain
from takifugu.priors.independent import Product
from takifugu.priors.interval_chain import IntervalMarkovChain
from takifugu.priors.kernels import Covariance
from takifugu.priors.markov import MarkovChain
from takifugu.priors.prior import Prior
from takifugu.priors.random_field import MarkovRandomField
from takifugu.priors.time_of_day import TimeOfDayChain
from takifugu.visible import four_digits


def main_numbers(priors: Mapping[str, Prior]) -> str:
    """The main numbers of some priors, as a sentence; empty if none has any."""
    found = {name: numbers for name, prior in priors.items() if (numbers := _numbers(prior))}
    if not found:
        return ""
    if len(priors) == 1:
        return f"The prior in numbers: {next(iter(found.values()))}."
    each = "; ".join(f"{name}, {numbers}" for name, numbers in found.items())
    return f"The priors in numbers: {each}."


def _numbers(prior: Prior) -> str:
    match prior:
        case Product():
            each = {_numbers(part) for part in prior.parts.values()}
            return each.pop() if len(each) == 1 else ""
        case MarkovChain() | TimeOfDayChain():
            matrices = prior.transition.reshape(-1, *prior.transition.shape[-2:])
            return _steps(matrices, matrices)
        case IntervalMarkovChain():
            return _steps(prior.lower[None], prior.upper[None])
        case HigherOrderChain():
            least = four_digits(float(prior.transition.min()), "down")
            return (
                f"{len(prior.states)} states, each step by the last {prior.order}; the least"
                f" probable step has the probability {least}"
            )
        case Gaussian():
            if isinstance(prior.kernel, Covariance):
                return ""
            rule = ", ".join(f"{name} {value}" for name, value in prior.kernel.parameters().items())
            return (
                f"covariance {prior.kernel.word} ({rule}), variance {four_digits(prior.variance)}"
            )
        case MarkovRandomField():
            return f"{len(prior.entries):,} entries and {len(prior.edges):,} pairs that depend"
        case BayesianNetwork():
            arrows = sum(map(len, prior.parents))
            return f"{len(prior.entries):,} entries and {arrows:,} arrows"
    return ""


def _steps(lower: Floats, upper: Floats) -> str:
    """How often values stay, and the least probable step, of matrices ``[t, x, y]``."""
    stays = [np.diagonal(each, axis1=-2, axis2=-1) for each in (lower, upper)]
    low, high = four_digits(float(stays[0].min()), "down"), four_digits(float(stays[1].max()), "up")
    often = low if low == high else f"{low} to {high}"
    least = four_digits(float(lower.min()), "down")
    return (
        f"{lower.shape[-1]} states; a value is followed by itself with probability {often}, and the"
        f" least probable step has the probability {least}"
    )
