"""Likelihoods of hidden Markov chains by hmmlearn, which the extra ``nightly`` installs.

What happens to entry t is told by a symbol of its own, so that every entry may have another factor:
the symbol of t has probability ∝ ``factors[t, x]`` in state x, whatever t the chain has reached,
and a last symbol takes the rest. The sequence 0, 1, …, T−1 then has the likelihood of the factors.
"""

import warnings
from typing import Any

import numpy as np
import pytest

from takifugu._core.numeric import Floats, Integers

REASON = "hmmlearn cannot be imported: install takifugu[nightly]"


def _model(start: Floats, transition: Floats, emission: Floats) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hmm = pytest.importorskip("hmmlearn.hmm", reason=REASON, exc_type=ImportError)
    model = hmm.CategoricalHMM(
        n_components=len(start), n_features=emission.shape[1], implementation="log"
    )
    model.startprob_, model.transmat_, model.emissionprob_ = start, transition, emission
    return model


def log_probability(start: Floats, transition: Floats, path: Integers) -> float:
    """Log P(X = path), where every state shows itself."""
    model = _model(start, transition, np.eye(len(start)))
    with np.errstate(divide="ignore"):
        return float(model.score(np.asarray(path)[:, None]))


def log_likelihood(start: Floats, transition: Floats, factors: Floats) -> float:
    """Log E[Π factors[t, X_t]]; factors may be 0, which forbids a state."""
    length = len(factors)
    scale = 1 / (length * factors.max(axis=1))  # so that no state has more than 1 altogether
    emission = (factors * scale[:, None]).T  # [state, symbol]
    rest = 1 - emission.sum(axis=1)
    model = _model(start, transition, np.column_stack([emission, rest]))
    with np.errstate(divide="ignore"):
        found = float(model.score(np.arange(length)[:, None]))
    return found - float(np.log(scale).sum())


def leak(
    start: Floats, transition: Floats, factors: Floats, entry: int, left: int, right: int
) -> float:
    """Log E[Π factors | X_entry = left] − the same of ``right``."""

    def given(state: int) -> float:
        only = np.zeros_like(factors[0])
        only[state] = 1.0
        both, alone = factors.copy(), np.ones_like(factors)
        both[entry] *= only
        alone[entry] = only
        joint = log_likelihood(start, transition, both)
        return joint - log_likelihood(start, transition, alone)

    return given(left) - given(right)
