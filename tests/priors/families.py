"""One small prior of every family."""

import numpy as np

from takifugu.priors import (
    AR1,
    BayesianNetwork,
    Gaussian,
    HigherOrderChain,
    IndependentEntries,
    IntervalMarkovChain,
    MarkovChain,
    MarkovRandomField,
    Prior,
    Product,
    Secrets,
    TimeOfDayChain,
    TruncatedGaussian,
)

CHAIN = MarkovChain(np.array([[0.8, 0.2], [0.3, 0.7]]), ("home", "ward"), length=5)
PRIORS: list[Prior] = [
    CHAIN,
    IntervalMarkovChain.around(CHAIN, relative=0.1),
    HigherOrderChain(np.array([[[0.9, 0.1], [0.4, 0.6]], [[0.7, 0.3], [0.2, 0.8]]]), length=4),
    TimeOfDayChain(np.array([[[0.8, 0.2], [0.3, 0.7]], [[0.6, 0.4], [0.1, 0.9]]]), length=4),
    TruncatedGaussian.process(3, length=1, bound=5, width=0.1),
    Gaussian(AR1(0.5), 4, mean=3.0),
    BayesianNetwork(("a",), (("x", "y"),), ((),), (np.array([0.5, 0.5]),)),
    MarkovRandomField.ising({"a": 0.1, "b": 0.2}, {("a", "b"): 0.5}),
    IndependentEntries({"a": {"x": 0.5, "y": 0.5}}),
    CHAIN.explicit(3),
    Product({"ann": CHAIN, "bob": TruncatedGaussian.process(2, length=1, bound=5, width=0.1)}),
]


def secrets_of(prior: Prior) -> Secrets:
    """Secrets that fit a prior: all of them, or numbers at most 1 apart."""
    return Secrets(within=1) if isinstance(prior, Gaussian) else Secrets()
