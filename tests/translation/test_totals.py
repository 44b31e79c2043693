"""Totals of ε, δ and ρ: never below what finite worlds show, also for adaptive queries."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu._core.rounding import float_up
from takifugu.costs.losses import Approximate, Concentrated, Pure, Total
from takifugu.errors import UnsoundRequest
from takifugu.priors import MarkovChain
from takifugu.translation import Translation, tabulate
from takifugu.translation.certify.closed import Filter, needed_epsilon
from takifugu.translation.protocol import rho_within, total_to_pufferfish
from tests.oracles import totals as oracle
from tests.oracles import translation as programs
from tests.raising import raises

MICRO = Fraction(1, 10**6)
CHAIN = MarkovChain(np.array([[0.8, 0.2], [0.3, 0.7]]), length=4)
HOME = Translation(CHAIN)
STATES = CHAIN.explicit().universe.codes  # type: ignore[attr-defined]  # [dataset, entry]
PROBABILITIES = CHAIN.explicit().probability
SIDES = STATES.T == 1  # [entry, dataset]


def test_a_pure_total_is_the_pure_loss() -> None:
    for delta in (Fraction(0), MICRO):
        assert HOME.total_to_pufferfish(Total(Fraction(1, 2)), delta) == HOME.to_pufferfish(0.5)
    assert HOME.total_to_pufferfish(Total(), MICRO) == 0


@pytest.mark.parametrize(
    "total", [Total(rho=MICRO), Total(delta=MICRO), Total(MICRO, MICRO, MICRO)]
)
def test_without_a_delta_nothing_but_epsilon_is_private(total: Total) -> None:
    assert HOME.total_to_pufferfish(total, Fraction(0)) == np.inf
    assert HOME.total_to_pufferfish(Total(delta=Fraction(1)), Fraction(1, 2)) == np.inf


@pytest.mark.costly
@settings(max_examples=15)
@given(
    seed=st.integers(0, 10**6),
    epsilon=st.sampled_from([0.0, 0.1, 0.7]),
    delta=st.sampled_from([1e-4, 0.004]),
)
def test_no_event_of_an_approximate_mechanism_exceeds_the_reading(
    seed: int, epsilon: float, delta: float
) -> None:
    rng = np.random.default_rng(seed)
    chain = MarkovChain(rng.dirichlet(np.ones(2), 2), length=3)
    total = Total(Fraction(epsilon), Fraction(delta))
    found = Translation(chain).total_to_pufferfish(total, Fraction(1, 20))
    assert found < np.inf
    written = chain.explicit()
    states = written.universe.codes[:, 1]  # type: ignore[attr-defined]
    for value in (0, 1):
        worst = programs.largest_delta(
            written.probability, states == value, states != value, (2, 2, 2), epsilon, delta, found
        )  # fmt: skip
        assert worst <= 0.05 + 1e-9


@pytest.mark.costly
@settings(max_examples=25)
@given(
    scale=st.floats(0.8, 12),
    also=st.sampled_from([None, 1.0, 4.0]),
    delta=st.sampled_from([1e-6, 1e-3, 0.05]),
)
def test_noise_on_a_count_of_correlated_entries_stays_within_the_reading(
    scale: float, also: float | None, delta: float
) -> None:
    """Gaussian noise on how many entries are 1, beside Laplace noise if ``also`` is given."""
    count = STATES.sum(axis=1).tolist()
    outputs = oracle.channel(count, oracle.gaussian(scale))
    total = Total(rho=Fraction(1) / (2 * Fraction(scale) ** 2))
    if also is not None:
        outputs = oracle.both(outputs, oracle.channel(count, oracle.laplace(also)))
        total = total.plus(Pure(1 / Fraction(also)))
    found = HOME.total_to_pufferfish(total, Fraction(delta))
    assert found < np.inf
    assert oracle.worst_delta(outputs, PROBABILITIES, SIDES, found) <= delta + oracle.MISSED


def test_the_test_above_would_see_a_reading_of_half_the_loss() -> None:
    outputs = oracle.channel(STATES.sum(axis=1).tolist(), oracle.gaussian(2.0))
    found = HOME.total_to_pufferfish(Total(rho=Fraction(1, 8)), MICRO)
    assert oracle.worst_delta(outputs, PROBABILITIES, SIDES, found) <= 1e-6
    assert oracle.worst_delta(outputs, PROBABILITIES, SIDES, found / 2) > 1e-6


@settings(max_examples=20)
@given(
    first=st.sampled_from([8.0, 15.0, 40.0]),
    allowed=st.sampled_from(["1.25", "2.5"]),
    delta=st.sampled_from([1e-4, 0.02]),
    turn=st.integers(-2, 2),
)
def test_a_filter_holds_for_questions_that_depend_on_answers(
    first: float, allowed: str, delta: float, turn: int
) -> None:
    """One entry, 0 or 1: Gaussian noise on it, then the noise that fits, by the first answer."""
    kept, spent = Filter(Fraction(allowed), Fraction(delta)), Total(rho=half_square(first))
    room, rho = kept.room(spent, Pure(0)), kept.room(spent, Concentrated(0))
    assert kept.admits(spent) and room > 0 and rho > 0
    assert kept.admits(spent.plus(Pure(room))) and kept.admits(spent.plus(Concentrated(rho)))
    assert not kept.admits(spent.plus(Pure(room + MICRO)))
    one = oracle.channel([0, 1], oracle.gaussian(first))
    pure = oracle.channel([0, 1], oracle.laplace(float(1 / room)))
    smooth = oracle.channel([0, 1], oracle.gaussian(float(1 / (2 * rho)) ** 0.5))
    early = one.shape[1] // 2 + turn
    laws = [
        np.concatenate([np.outer(row[:early], p).ravel(), np.outer(row[early:], g).ravel()])
        for row, p, g in zip(one, pure, smooth, strict=True)
    ]
    for left, right in (laws, laws[::-1]):
        assert oracle.delta(left, right, float(allowed)) <= delta + oracle.MISSED


def half_square(scale: float) -> Fraction:
    """The ρ of Gaussian noise on a number that moves by 1."""
    return 1 / (2 * Fraction(scale) ** 2)


def test_the_conversion_is_that_of_canonne_kamath_and_steinke() -> None:
    """At the best order Proposition 12 for δ = s/2K is what the filter needs."""
    from takifugu.translation.accounting.composition import zcdp_epsilon
    from takifugu.translation.certify.closed import ORDERS

    for rho in (1e-5, 1e-3, 0.1):
        part = 1e-7
        found = needed_epsilon([Total(rho=Fraction(rho))], Fraction(part) * 2 * len(ORDERS))
        assert found is not None
        best = zcdp_epsilon(rho, part)
        assert best <= float(found) <= 1.07 * best  # fixed orders are never better, hardly worse


@pytest.mark.costly
@settings(max_examples=30)
@given(
    epsilon=st.fractions(0, 1, max_denominator=50),
    rho=st.fractions(0, Fraction(1, 20), max_denominator=500),
    more=st.fractions(0, Fraction(1, 50), max_denominator=500),
)
def test_more_is_never_less(epsilon: Fraction, rho: Fraction, more: Fraction) -> None:
    delta = Fraction(1, 1000)
    one = HOME.total_to_pufferfish(Total(epsilon, rho=rho), delta)
    assert one <= HOME.total_to_pufferfish(Total(epsilon + more, rho=rho), delta) * (1 + 1e-3)
    assert one <= HOME.total_to_pufferfish(Total(epsilon, rho=rho + more), delta) * (1 + 1e-3)
    assert one >= HOME.total_to_pufferfish(Total(epsilon, rho=rho), 10 * delta) * (1 - 1e-3)


@pytest.mark.nightly
def test_a_table_reads_totals_too_and_never_less() -> None:
    table = tabulate(HOME, losses=(0.05, 8.0), share=0.02)
    for total in (
        Total(rho=Fraction(1, 1000)),
        Total(Fraction(1, 10), rho=Fraction(1, 100)),
        Total(Fraction(1, 2), delta=Fraction(1, 10**9)),
    ):
        exact, looked_up = (
            HOME.total_to_pufferfish(total, MICRO),
            table.total_to_pufferfish(total, MICRO),
        )
        assert exact * (1 - 1e-3) <= looked_up <= 1.05 * exact
    assert table.total_to_pufferfish(Total(rho=Fraction(100)), MICRO) == np.inf  # beyond the table
    assert table.total_to_pufferfish(Total(), MICRO) == 0


@pytest.mark.nightly
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_an_allowance_in_rho_is_nearly_all_that_fits(epsilon: float) -> None:
    rho = rho_within(HOME, epsilon, MICRO)
    assert 0 < HOME.total_to_pufferfish(Total(rho=rho), MICRO) <= epsilon
    assert HOME.total_to_pufferfish(Total(rho=rho * Fraction(101, 100)), MICRO) > epsilon
    table = tabulate(HOME, losses=(0.01, 8.0), share=0.02)
    assert table.total_to_pufferfish(Total(rho=rho_within(table, epsilon, MICRO)), MICRO) <= epsilon


def test_an_allowance_that_does_not_exist_is_refused() -> None:
    with raises(UnsoundRequest, field="epsilon", reason="allowance"):
        rho_within(HOME, 0.001, Fraction(1, 10**300))


def test_a_filter_counts_delta_and_its_own_share() -> None:
    kept = Filter.from_budget(Fraction(1, 2), Fraction(1), Fraction(1, 1000))
    assert 0 < kept.delta < Fraction(1, 1000)
    assert kept.admits(Total(Fraction(1, 2))) and not kept.admits(Total(Fraction(1, 2) + MICRO))
    most = kept.delta / 2
    assert kept.admits(Total(Fraction(1, 2), most))
    assert not kept.admits(Total(Fraction(1, 2), most * Fraction(1001, 1000)))
    assert kept.room(Total(Fraction(1, 4)), Approximate(0, most)) == Fraction(1, 4)
    assert kept.room(Total(delta=2 * most), Pure(0)) == 0
    nothing = Filter.from_budget(Fraction(1, 2), Fraction(1), Fraction(0))
    assert (
        nothing.room(Total(), Concentrated(1)) == 0 == nothing.room(Total(), Approximate(1, most))
    )
    assert not nothing.admits(Total(rho=MICRO)) and nothing.admits(Total(Fraction(1, 2)))
    assert Filter.from_budget(Fraction(1), Fraction(10**4), MICRO).delta == 0  # beyond all floats


@pytest.mark.parametrize("exact", [Fraction(1, 3), Fraction(1, 10), Fraction(10**20 + 1, 10**20)])
def test_an_epsilon_between_two_floats_is_translated_as_the_next_one_above(exact: Fraction) -> None:
    asked: list[float] = []

    def loss_at(epsilon: float) -> tuple[float, float]:
        asked.append(epsilon)
        return epsilon, 2 * epsilon

    found = total_to_pufferfish(loss_at, Total(exact), Fraction(0))
    assert asked == [float_up(exact)] and exact < Fraction(asked[0])
    assert found == 2 * asked[0]
    assert total_to_pufferfish(loss_at, Total(), Fraction(0)) == 0.0
