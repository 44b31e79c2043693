"""The stationary law of a chain, accurate in every single entry."""

import numpy as np

from takifugu._core.numeric import Booleans, Floats, Integers
from takifugu._core.rounding import UNIT
from takifugu.errors import InvalidPrior

SMALLEST = 2.0**-900  # below this a sum of products may have lost terms to underflow


def reachable(possible: Booleans) -> Booleans:
    """``[x, y]``: whether y can be reached from x in any number of steps, 0 included."""
    reach = possible | np.eye(len(possible), dtype=bool)
    while True:
        further = (reach.astype(np.float64) @ reach.astype(np.float64)) > 0
        if (further == reach).all():
            return reach
        reach = further


def closed_class(transition: Floats) -> Integers:
    """The one closed class: states that are never left once reached; an error if there are two.

    A chain has exactly one stationary law if and only if it has exactly one such set. The chain
    may still be periodic: the law exists all the same.
    """
    reach = reachable(transition > 0)
    final = ~(reach & ~reach.T).any(axis=1)  # every state reached from here leads back here
    members = np.flatnonzero(final)
    if not reach[np.ix_(members, members)].all():
        raise InvalidPrior(
            "start",
            given="is stationary, but the chain has several closed classes",
            needed="be given as a law, as there is more than one stationary law",
        )
    return members


def stationary_law(transition: Floats, *, entry_error: float) -> tuple[Floats, float]:
    r"""The stationary law, and a bound on the relative error of every positive entry.

    Elimination after Grassmann, Taksar & Heyman (1985): states are censored one by one, and no
    two numbers are ever subtracted. By the Markov chain tree theorem :math:`\pi_x` is
    proportional to a sum of products of k − 1 off-diagonal entries, so an entrywise relative
    change η of a k-state matrix moves the law by a factor of at most
    :math:`((1+\eta)/(1-\eta))^{k-1}` (O'Cinneide, 1993). Censoring the state j rounds the entries
    that are left by at most γ(j + 3); summed over all states and with the substitution back this
    is at most k²(k + 4)·u, to which 2k·``entry_error`` is added for the entries as they came in.
    """
    members = closed_class(transition)
    k = len(members)
    work = transition[np.ix_(members, members)].copy()
    law = np.ones(k)
    try:
        with np.errstate(under="raise", over="raise"):
            for j in range(k - 1, 0, -1):
                work[:j, j] /= work[j, :j].sum()
                work[:j, :j] += np.multiply.outer(work[:j, j], work[j, :j])
            for j in range(1, k):
                law[j] = (law[:j] * work[:j, j]).sum()
            law /= law.sum()
        fits = bool(law.min() >= SMALLEST)
    except FloatingPointError:
        fits = False
    if not fits:
        raise InvalidPrior(
            "transition",
            given="has a stationary law whose entries differ by more than float64 can hold",
            needed="have less extreme probabilities, or `start` be given as a law",
        )
    full = np.zeros(len(transition))
    full[members] = law
    return full, k * k * (k + 4) * UNIT + 2 * k * entry_error
