"""The baselines reach numbers that their authors printed, or that their own programs gave.

* MQM: S. Song, Y. Wang, K. Chaudhuri, "Pufferfish Privacy Mechanisms for Correlated Data", SIGMOD
  2017 (arXiv 1603.03977): the running example of two chains, and the binary chains of the
  experiments.
* TPL: Y. Cao, M. Yoshikawa, Y. Xiao, L. Xiong, "Quantifying Differential Privacy under Temporal
  Correlations", ICDE 2017 (arXiv 1610.07543): the example of leakage over ten times, and the
  supremum with its closed form; the journal version, TKDE 2019 (arXiv 1711.11436), has the loss
  function of three states and budgets over time.

Only numbers are taken from there. Each is computed here by a second way too, where one is short.
"""

from itertools import product
from math import exp, inf, log, sqrt

import numpy as np
import pytest
from scipy.optimize import brentq

from takifugu._core.numeric import Floats
from takifugu.papers.composition.baselines.chain_laws import stationary
from takifugu.papers.composition.baselines.quilts import mqm_approx, mqm_exact, spectral_gap
from takifugu.papers.composition.baselines.temporal import (
    tpl_path,
    tpl_step,
    tpl_supremum,
    tpl_to_dp,
    tpl_total,
)
from tests.oracles import baselines as oracle

# --- the Markov quilt mechanism ---

FIRST = [[0.9, 0.1], [0.4, 0.6]]  # θ₁ of the running example; its stationary law is (.8, .2)
SECOND = [[0.8, 0.2], [0.3, 0.7]]  # θ₂; (.6, .4)


def test_the_running_example_has_its_stationary_laws_and_its_gap() -> None:
    """π_min = .2, and the gap of P·P* is 0.75 for both."""
    assert stationary(FIRST) == pytest.approx([0.8, 0.2])
    assert stationary(SECOND) == pytest.approx([0.6, 0.4])
    for chain in (FIRST, SECOND):
        square = np.linalg.eigvals(np.linalg.matrix_power(np.array(chain), 2))
        assert 1 - min(np.abs(square)) == pytest.approx(0.75)
        # for a reversible chain the gap that counts is 2(1 − |λ₂|) = 1: half of it is in the bound
        assert spectral_gap(np.array(chain), stationary(chain)) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("chain", "influence", "scores"),
    [
        (FIRST, [0, log(6), log(6), log(36)], [0.3, 0.2437, 0.2437, 0.1558]),
        (SECOND, [0, log(3.5), log(3.5), log(12.25)], [0.3, 0.2286, 0.2286, 0.1334]),
    ],
)
def test_the_running_example_has_its_scores(
    chain: list[list[float]], influence: list[float], scores: list[float]
) -> None:
    """T = 3, ε = 10, the middle entry; quilts ∅, {X₁}, {X₃} and {X₁, X₃}, by enumeration."""
    law = oracle.chain_law(chain, stationary(chain).tolist(), 3)
    quilts, nearby = ((), (0,), (2,), (0, 2)), (3, 2, 2, 1)
    for quilt, near, told, score in zip(quilts, nearby, influence, scores, strict=True):
        found = oracle.influence(law, 1, quilt) if quilt else 0.0
        assert found == pytest.approx(told, abs=1e-12)
        assert near / (10 - found) == pytest.approx(score, abs=5e-5)
    noise = mqm_exact(chain, 3, 10.0)
    assert noise.noise == pytest.approx(scores[-1], abs=5e-5)
    assert (noise.node, noise.left, noise.right) == (1, 1, 1)


@pytest.mark.parametrize(
    ("q", "p", "exact", "approximate"),
    [(0.1, 0.9, 31.738, 49.220), (0.4, 0.6, 3.572, 11.537), (0.3, 0.9, 16.625, 28.276)],
)
def test_the_binary_chains_have_their_published_noise(
    q: float, p: float, exact: float, approximate: float
) -> None:
    """T = 100, ε = 1, for a query of Lipschitz constant 1."""
    chain = [[1 - q, q], [1 - p, p]]
    assert mqm_exact(chain, 100, 1.0).noise == pytest.approx(exact, abs=5e-4)
    assert mqm_approx(chain, 100, 1.0).noise == pytest.approx(approximate, abs=5e-4)


# --- temporal privacy leakage ---

MODERATE, STRONGEST, NONE = [[0.8, 0.2], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5]] * 2
THREE = [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2]]
TEN = [0.1] * 10


@pytest.mark.parametrize(
    ("chain", "backward", "both"),
    [
        (
            MODERATE,
            [0.10, 0.18, 0.25, 0.30, 0.35, 0.39, 0.42, 0.45, 0.48, 0.50],
            [0.50, 0.56, 0.60, 0.62, 0.64, 0.64, 0.62, 0.60, 0.56, 0.50],
        ),
        (STRONGEST, [0.1 * t for t in range(1, 11)], [1.0] * 10),
        (NONE, TEN, TEN),
    ],
    ids=["moderate", "strongest", "none"],
)
def test_leakage_over_ten_steps(
    chain: list[list[float]], backward: list[float], both: list[float]
) -> None:
    """ε = .1 at each of ten times; the same matrix is known backwards and forwards."""
    path = tpl_path(chain, TEN)
    assert path == pytest.approx(backward, abs=5.1e-3)
    assert path + path[::-1] - 0.1 == pytest.approx(both, abs=5.1e-3)


def test_the_loss_function_of_three_states() -> None:
    """The matrix of the journal version's figure of L(α)."""
    printed = {0.1: 0.05022, 0.5: 0.25240, 1.0: 0.49433, 2.0: 0.93975, 3.0: 1.28778}
    found = tpl_step(THREE, list(printed))
    assert found == pytest.approx(list(printed.values()), abs=5e-6)


def supremum(q: float, d: float, epsilon: float) -> float:
    """The closed form of Cao et al., for the pair of sums q, d that attains the loss."""
    if d == 0:
        grown = q * exp(epsilon)
        return log((1 - q) * exp(epsilon) / (1 - grown)) if q < 1 and grown < 1 else inf
    shift = d + q * exp(epsilon) - 1
    return log((sqrt(4 * d * exp(epsilon) * (1 - q) + shift**2) + shift) / (2 * d))


@pytest.mark.parametrize(
    ("chain", "q", "d", "epsilon", "printed"),
    [
        ([[0.8, 0.2], [0.1, 0.9]], 0.8, 0.1, 0.23, 0.792),
        (STRONGEST, 1.0, 0.0, 0.23, inf),
        (MODERATE, 0.8, 0.0, 0.23, inf),  # .23 > log 1/.8
        (MODERATE, 0.8, 0.0, 0.15, 1.192),
        (MODERATE, 0.8, 0.0, 0.1, 0.646),
    ],
)
def test_the_supremum_of_the_leakage(
    chain: list[list[float]], q: float, d: float, epsilon: float, printed: float
) -> None:
    found = tpl_supremum(chain, epsilon)
    assert found == pytest.approx(printed, abs=5e-4)
    assert found == pytest.approx(supremum(q, d, epsilon), abs=1e-9)


def test_budgets_over_time_spread_what_the_closed_form_says() -> None:
    """Σε = 4.3563 for p = q = .9, T = 30 and a leakage of 1 at every time.

    The first and the last ε are a, the others a − L(a), where 2a − (a − L(a)) = 1: then the
    leakage backwards is a from the first step on, forwards too, and their sum is 1 everywhere.
    """
    chain: Floats = np.array([[0.9, 0.1], [0.1, 0.9]])
    a = float(brentq(lambda a: a + float(tpl_step(chain, a)) - 1, 0.1, 1, xtol=1e-14))
    budgets = [a, *[a - float(tpl_step(chain, a))] * 28, a]
    assert sum(budgets) == pytest.approx(4.3563, abs=5e-5)
    assert tpl_total(chain, budgets) == pytest.approx([1.0] * 30, abs=1e-9)
    assert 30 * tpl_to_dp(chain, 30, 1.0) < sum(budgets)  # the same ε at each time spreads less


@pytest.mark.parametrize(("epsilon", "size"), list(product([0.1, 1.0], [2, 5, 10])))
def test_the_loss_function_at_its_two_ends(epsilon: float, size: int) -> None:
    """L(α) = 0 where the past says nothing, and α where it says everything."""
    assert float(tpl_step(np.full((size, size), 1 / size), epsilon)) == pytest.approx(0, abs=1e-12)
    assert float(tpl_step(np.eye(size), epsilon)) == pytest.approx(epsilon, abs=1e-12)
