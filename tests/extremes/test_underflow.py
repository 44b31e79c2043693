"""Single places where a float that underflows used to decide what can happen."""

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from takifugu._core.numeric import distribution, multiplied
from takifugu.errors import InvalidPrior, Malformed, TooLarge, UnsoundRequest
from takifugu.finite import FiniteMechanism, World, leakage
from takifugu.influence import InfluenceCurve, interval_chain_curve, network_curve
from takifugu.influence.gaussian_curves import split_leak
from takifugu.papers.composition.baselines.temporal import (
    tpl_total,
)
from takifugu.priors import (
    Between,
    Explicit,
    Knowledge,
    MarkovChain,
    OneOf,
    TruncatedGaussian,
    Universe,
)
from takifugu.priors.independent import IndependentEntries, Product
from takifugu.priors.interval_chain import IntervalMarkovChain
from takifugu.priors.networks import BayesianNetwork, MarkovRandomField
from takifugu.priors.secrets import SecretPair, both_ways
from takifugu.translation import Translation, approximate, network_losses, zcdp_epsilon
from tests.extremes import test_soundness as checks
from tests.oracles import extremes as oracle
from tests.raising import raises
from tests.translation.rising_fields import attractive_losses

RARE = np.array([1 - 1e-100, 1e-100])


@pytest.mark.parametrize(
    ("check", "seed"),
    [
        (checks.network_translations, 5),  # 1e-14 where .02 leaks
        (checks.network_translations, 35),  # 1e-14 where 3 leaks
        (checks.network_translations, 42),
        (checks.network_curves, 79),  # an overflow
        (checks.attractive_fields, 57),
        (checks.short_chains, 75),  # 64 where everything leaks: groups of values
        (checks.interval_chains, 6),  # a pair without a number was left out
        (checks.interval_chains, 10),
        (checks.written_out, 42),
    ],
)
def test_what_once_broke_holds(check: Any, seed: int) -> None:
    try:
        check(np.random.default_rng([seed, checks.CHECKS.index(check)]))
    except TooLarge:
        assert check is not checks.short_chains


def test_a_rare_separator_still_tells() -> None:
    """C happens with A and B together only, 1e-200 of all cases; D is a noisy copy of C."""
    copy = np.array([[0.9, 0.1], [0.1, 0.9]])
    model = BayesianNetwork(
        ("a", "b", "c", "d"),
        ((0, 1),) * 4,
        ((), (), ("a", "b"), ("c",)),
        (RARE, RARE, np.array([[[1.0, 0.0], [1, 0]], [[1, 0], [0, 1]]]), copy),
    )
    checks.check_losses(model, network_losses(model, 0.5), 0.5)


def test_a_law_that_cannot_be_written_out_is_refused_not_rounded_to_0() -> None:
    rare = BayesianNetwork(("a", "b", "c", "d"), ((0, 1),) * 4, ((),) * 4, (RARE,) * 4)
    for prior in (
        rare,
        IndependentEntries({name: {"x": 1 - 1e-100, "y": 1e-100} for name in "abcd"}),
    ):
        with pytest.raises(TooLarge, match="nothing was rounded to 0"):
            prior.explicit()
    with pytest.raises(TooLarge, match="nothing was rounded to 0"):
        MarkovChain(np.array([RARE, RARE]), start=RARE).explicit(4)


def test_weights_beyond_all_floats_cancel() -> None:
    big, small = 1e150, 1e-150
    table = [[big, small], [small, big]]
    field = MarkovRandomField(
        ("a", "b", "c"),
        ((0, 1),) * 3,
        (np.ones(2),) * 3,
        (("a", "b"), ("b", "c"), ("c", "a")),
        (np.array([[big, 0], [0, big]]),) * 3,
    )
    assert field.explicit().probability[[0, 7]] == pytest.approx([0.5, 0.5])
    curve = network_curve(field, largest=1)
    assert np.isinf(curve.leak[:, 0]).all()
    assert multiplied([np.array(table)] * 9)[2].all()


def test_steps_of_an_interval_chain_may_get_as_rare_as_they_like() -> None:
    """From 0 to 4 in four steps of 1e-150 each: 1e-600, and possible."""
    rare, size = 1e-150, 5
    kernel = np.eye(size) * (1 - rare) + np.eye(size, k=1) * rare
    kernel[-1] = 0
    kernel[-1, 0] = 1.0
    box = IntervalMarkovChain(kernel, kernel)
    curve = interval_chain_curve(box, max_exposed=9)
    laws = oracle.chain_laws([1, 0, 0, 0, 0], kernel, 12)
    steps = oracle.powers(kernel, 10)
    rows = dict(zip(curve.pairs, curve.leak, strict=True))
    for x, y in ((4, 0), (0, 4), (3, 4), (4, 3), (2, 0)):
        best = oracle.mp.inf
        for b in range(1, 10):
            found = [
                oracle.chain_leak(steps, laws, 11, (x,), (y,), before, b + 1 - before)
                for before in range(1, b + 1)
            ]
            best = min([best, *found])
            checks.at_least(rows[f"{x} / {y}"][b - 1], best)


@pytest.mark.parametrize("width", [1.0, 1e-3, 1e-6, 1e-9, 1e-12, 1e-15, 1e-100])
def test_narrow_regions_of_a_gaussian_lose_no_digits(width: float) -> None:
    """The mass of a narrow window is a difference that cancels; the leak was off by up to 100 %."""
    prior = TruncatedGaussian.process(2, length=1, bound=5, width=width)
    with mpmath.workdps(150):
        gamma, delta = mpmath.mpf(5), mpmath.mpf(width)
        rho = mpmath.mpf(float(prior.covariance[0, 1]))
        mean, deviation = gamma * rho, mpmath.sqrt(1 - rho**2)

        def mass(start: Any, mu: Any, sigma: Any) -> Any:
            a, b = (start - mu) / sigma, (start + delta - mu) / sigma
            return mpmath.log((mpmath.erf(b / mpmath.sqrt(2)) - mpmath.erf(a / mpmath.sqrt(2))) / 2)

        def term(start: Any) -> Any:
            return mass(start, mean, deviation) - mass(start, 0, 1)

        top = mean / (1 - deviation**2)
        assert top >= gamma  # so the worst windows are the two at the ends
        truth = term(gamma - delta) - term(-gamma)
        found = split_leak(prior, 0, [0], law="printed")
        assert truth <= found <= truth + mpmath.mpf("1e-5") * (1 + truth)


def test_temporal_leakage_counts_states_that_are_rare() -> None:
    """P(still well) is 2^−1500 after 1,500 steps: rare, and who still is was so all along."""
    length, at, epsilon = 1600, 1500, 0.001
    kernel = [[0.5, 0.5], [0.0, 1.0]]
    found = tpl_total(kernel, [epsilon] * length, start=[1.0, 0.0])
    gain = oracle.mp.exp(oracle.mp.mpf(epsilon))  # for each entry that is well
    rows, now = oracle.exact_rows(kernel), [gain, oracle.mp.mpf(0)]
    plain = [oracle.mp.mpf(1), oracle.mp.mpf(0)]
    for _ in range(at):
        plain = oracle.times([plain], rows)[0]
        now = oracle.times([now], rows)[0]
        now[0] *= gain
    truth = oracle.mp.log(now[0] / plain[0]) - oracle.mp.log(now[1] / plain[1])
    checks.at_least(found[at], truth)


def test_a_delta_is_never_rounded_to_0() -> None:
    prior = IndependentEntries({"a": {"x": 0.5, "y": 0.5}, "b": {"x": 0.5, "y": 0.5}})
    loss = approximate(Translation(prior), [0.1, 800.0], [0.0, 1e-9])
    assert loss.delta > 0


@pytest.mark.parametrize("rho", [1e-320, 1e-30, 1.0, 1e20, 1e40, 1e300])
@pytest.mark.parametrize("delta", [1e-320, 1e-9, 1 - 1e-16])
def test_concentrated_losses_of_any_size_are_converted(rho: float, delta: float) -> None:
    found = zcdp_epsilon(rho, delta)
    with mpmath.workdps(60):
        r, digits = mpmath.mpf(rho), -mpmath.log(mpmath.mpf(delta))
        best = min(
            r + k * r + (digits - mpmath.log1p(k)) / k + mpmath.log(k) - mpmath.log1p(k)
            for k in (mpmath.sqrt(max(digits, mpmath.mpf("1e-3")) / r) * f for f in (0.5, 1, 2))
        )
    assert 0 <= found < np.inf
    assert found <= max(float(best), 0.0) * (1 + 1e-9) + 1e-9


def test_pinning_ends_where_floats_do() -> None:
    field = MarkovRandomField.ising(
        dict.fromkeys(range(4), 1.0), {(i, j): 2.0 for i in range(4) for j in range(i)}
    )
    losses = attractive_losses(field, 1e300, largest=1)
    assert 1e300 <= losses.loss < np.inf


@pytest.mark.parametrize(("size", "bound"), [(1e-320, 5e-321), (1e300, 1e-20), (1e-300, 1e300)])
def test_knowledge_with_numbers_of_any_size_is_not_tightened(size: float, bound: float) -> None:
    universe = Universe(("a", "b", "c"))
    secrets = OneOf("ab", ("a", "b")), OneOf("c", ("c",))
    line = Between(np.array([size, 0.0, 0.0]), 0.0, bound)
    known = Knowledge(universe, ((secrets[0], (line,)),))
    world = World(universe, known, both_ways([SecretPair(*secrets)]))
    most = min(
        Fraction(bound) / Fraction(size), Fraction(1)
    )  # P(a | ab), the largest that is allowed
    found = leakage(world, FiniteMechanism(universe, np.array([[1, 0], [0.25, 0.75], [0.5, 0.5]])))
    truth = (most + (1 - most) / 4) / Fraction(1, 2)
    top, base = (oracle.mp.mpf(part) for part in (truth.numerator, truth.denominator))
    checks.at_least(found.epsilon, oracle.mp.log(top / base))


def test_a_number_that_is_not_0_does_not_read_0() -> None:
    tiny = Fraction(1, 10**400)
    with raises(Malformed, reason="tiny"):
        distribution([1 - tiny, tiny], "p", InvalidPrior)  # type: ignore[arg-type]
    with pytest.raises(Malformed, match="not 0 but too small"):
        MarkovRandomField(("a",), ((0, 1),), ([1, tiny],), (), ())  # type: ignore[arg-type]


def huge() -> Any:
    return InfluenceCurve([1, 2**64], [[1.0, 0.0]], None)  # type: ignore[arg-type]


def nested() -> Any:
    prior: Any = IndependentEntries({"a": {"x": 1.0}})
    for _ in range(400):
        prior = Product({"a": prior})
    return prior


@pytest.mark.parametrize(
    "slip",
    [
        huge,
        nested,
        lambda: InfluenceCurve(["a"], [[1.0]], None),  # type: ignore[arg-type]
        lambda: InfluenceCurve([1], [["x"]], None),  # type: ignore[arg-type]
        lambda: InfluenceCurve([1, 2], [[1.0], [1.0, 2.0]], None),  # type: ignore[arg-type]
        lambda: MarkovChain(np.full((2, 2), 0.5), length=10**30),
        lambda: TruncatedGaussian([[1, 0], [0]], 1, 1),  # type: ignore[arg-type]
        lambda: TruncatedGaussian(np.eye(2), 10**400, 1),
        lambda: TruncatedGaussian.from_document(
            {"bound": 10**400, "width": 1, "covariance": [[1]]}
        ),
        lambda: TruncatedGaussian.from_document({"bound": "5", "width": 1, "covariance": [[1]]}),
        lambda: TruncatedGaussian.process(10**9, length=1, bound=1, width=1),
        lambda: BayesianNetwork(("a",), ((["x"], "y"),), ((),), ([0.5, 0.5],)),  # type: ignore[arg-type]
        lambda: BayesianNetwork(("a",), ("xy",), ((),), ([0.5, 0.5],)),  # type: ignore[arg-type]
        lambda: BayesianNetwork(("a",), ((0, 1),), (([],),), ([0.5, 0.5],)),  # type: ignore[arg-type]
        lambda: MarkovRandomField(("a",), ((0, 1),), ([1, 10**400],), (), ()),  # type: ignore[arg-type]
        lambda: MarkovRandomField(("a",), ((0, 1),), ([1, 1],), (("a", []),), ([[1]],)),  # type: ignore[arg-type]
        lambda: IntervalMarkovChain([[10**400]], [[1]]),  # type: ignore[arg-type]
        lambda: Explicit.from_document(
            {"entries": [["a", [0, 1]], ["a", [0, 1]]], "probability": [1, 0]}
        ),
        lambda: Explicit.from_document({"entries": [[["a"], [0, 1]]], "probability": [1, 0]}),
    ],
)
def test_what_is_no_prior_is_one_clear_line(slip: Any) -> None:
    with pytest.raises((Malformed, UnsoundRequest)) as caught:
        slip()
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400
