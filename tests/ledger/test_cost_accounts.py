"""Costs by cell against a plain sum over all charges, for every cell and every change of value."""

from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.costs.cost import Cost, Distance, Matrix, Membership, Shape
from takifugu.costs.losses import Concentrated, Loss, Metric, Pure, Total
from takifugu.ledger import Groups, Window, frontier
from takifugu.ledger.account import Account
from takifugu.ledger.account import Shape as Named
from takifugu.ledger.charge_values import groups_body, window_body
from takifugu.ledger.limits import Limit, costs_of, to_pufferfish
from tests.ledger.charges import KNOWN, PLACES, count

VALUES = (*PLACES, "gym", 3, "7.5")
SHAPES: tuple[Shape, ...] = (
    Membership(["home"]),
    Membership(["ward"]),
    Membership(["home", "work"]),
    Distance(0, 10),
    Matrix(["home", "ward"], [[0, "1/3"], ["1/2", 0]]),
)
parts = st.sampled_from(["1/10", "1/3", "0.07", "1/1000003"]).map(Fraction)
costs = st.dictionaries(st.sampled_from(SHAPES), parts, min_size=1, max_size=2).map(Cost.of)
losses: st.SearchStrategy[Loss] = st.one_of(
    costs.map(Metric), costs.map(Metric), parts.map(Pure), parts.map(Concentrated)
)
ends = st.integers(0, 6)
cells = st.none() | st.frozensets(st.sampled_from(["de", "fr", "nl"]), min_size=1)


@st.composite
def charges(draw: st.DrawFn) -> tuple[Loss, tuple[int, int] | None, frozenset[str] | None]:
    start, end = draw(ends), draw(ends)
    return draw(losses), (start, end) if start < end else None, draw(cells)


def plain(loss: Loss, u: object, v: object) -> Fraction:
    """What a loss costs for one change of value, by hand; a loss in ρ costs none of that."""
    match loss:
        case Pure(epsilon=epsilon):
            return epsilon
        case Metric(cost=cost):
            return sum((w * shape.between(u, v) for shape, w in cost.terms), Fraction(0))
    return Fraction(0)


@pytest.mark.nightly
@settings(max_examples=60)
@given(paid=st.lists(charges(), max_size=25))
def test_no_cell_has_lost_more_than_some_total_of_the_frontier(
    paid: list[tuple[Loss, tuple[int, int] | None, frozenset[str] | None]],
) -> None:
    account, named = Account(), Named(partition=("country",))
    for loss, window, groups in paid:
        read = None if groups is None else Groups(["country"], [(g,) for g in groups])
        touch = named.touch(
            window_body(None if window is None else Window(*window)), groups_body(read)
        )
        account.apply(touch, loss)
        assert len(account.worst) <= frontier.MAX_TOTALS
        assert frontier.read(frontier.write(account.worst)) == account.worst
    for step in range(7):
        for group in ("de", "fr", "it"):
            touched = [
                loss
                for loss, window, groups in paid
                if (window is None or window[0] <= step < window[1])
                and (groups is None or group in groups)
            ]
            true = Total.of(touched)
            one = Groups(["country"], [(group,)])
            here = named.touch(window_body(Window(step, step + 1)), groups_body(one))
            assert account.on(here) == (true,)
            assert any(
                total.rho >= true.rho
                and all(
                    total.cost.between(u, v) >= sum(plain(loss, u, v) for loss in touched)
                    for u, v in permutations(VALUES, 2)
                )
                for total in account.worst
            )


@given(first=costs, second=costs, more=parts)
def test_domination_means_that_no_change_of_value_costs_less(
    first: Cost, second: Cost, more: Fraction
) -> None:
    one, other = Total(3 * more, costs=first), Total(more, costs=second)
    for big, small in ((one, other), (other, one), (one, one), (one, Total(more / 2))):
        larger = all(
            big.cost.between(u, v) >= small.cost.between(u, v) for u, v in permutations(VALUES, 2)
        )
        assert larger or not frontier.dominates(big, small)
    assert frontier.dominates(Total(second.scalar + 10), other)
    cover = frontier.covering((one, other))
    assert frontier.dominates(cover, one) and frontier.dominates(cover, other)


def test_many_labels_in_many_windows_stay_few_totals() -> None:
    totals = [Total(costs=Cost.of({Membership([f"label {n};"]): 1})) for n in range(100)]
    kept = frontier.worst(totals)
    assert len(kept) == frontier.MAX_TOTALS
    assert all(any(frontier.dominates(k, total) for k in kept) for total in totals)
    assert sum(len(total.costs.terms) for total in kept) == 100  # none is counted twice
    assert frontier.read(frontier.write(kept)) == kept


def test_a_coefficient_stays_short_and_is_rounded_up() -> None:
    shape, total, true = Membership(["home"]), Total(), Fraction(0)
    for number in range(3, 1200, 2):
        total = frontier.add(total, count(Fraction(1, number), "home"))
        true += Fraction(1, number)
    found = total.costs.coefficients[shape]
    assert found.denominator.bit_length() <= frontier.MAX_TOTAL_BITS < true.denominator.bit_length()
    assert true <= found < true + Fraction(1, 2**1100)
    tiny = frontier.add(Total(), Metric(Cost.of({shape: 5e-324})))
    assert frontier.read_one(frontier.write((tiny,))) == tiny and tiny.costs.scalar > 0


@pytest.mark.costly
@given(
    spent=st.lists(costs, min_size=1, max_size=3),
    unit=costs | parts.map(Cost.any),
    budget=st.sampled_from(["1/2", "2", "7"]).map(Fraction),
)
def test_the_largest_factor_is_admitted_and_hardly_more_is(
    spent: list[Cost], unit: Cost, budget: Fraction
) -> None:
    limit = Limit(KNOWN, budget, Fraction(0))
    totals = frontier.worst(Total().plus(Metric(cost)) for cost in spent)
    factor = limit.room(totals, Metric(unit), totals)
    fresh = Limit(KNOWN, budget, Fraction(0))  # which remembers nothing

    def admitted(times: Fraction) -> bool:
        after = frontier.worst(frontier.add(total, Metric(unit * times)) for total in totals)
        return fresh.admits(after)

    if factor > 0 or fresh.admits(totals):
        assert admitted(factor) and not admitted(factor * (1 + Fraction(1, 10**6)) + TINY)
    else:
        assert not fresh.admits(totals)


TINY = Fraction(1, 10**9)


def test_a_frontier_is_translated_together_and_not_one_by_one() -> None:
    home, ward = (Total().plus(count(1, name)) for name in ("home", "ward"))  # type: ignore[arg-type]
    assert to_pufferfish(KNOWN, (home,), Fraction(0)) == 4
    assert to_pufferfish(KNOWN, (home, ward), Fraction(0)) == 6
    assert costs_of((home, Total(Fraction(1)))) == (home.cost, Cost.any(1))
    assert costs_of((home, Total(rho=Fraction(1)))) is None and costs_of((Total(),)) is None


def test_a_total_that_covers_several_is_below_none_of_them_in_any_currency() -> None:
    totals = [
        Total(Fraction(epsilon), Fraction(delta), Fraction(rho))
        for epsilon, delta, rho in permutations(("1/2", "1/3", "0"))
    ]
    found = frontier.covering(totals)
    assert (found.epsilon, found.delta, found.rho) == (Fraction(1, 2),) * 3
    assert all(frontier.dominates(found, total) for total in totals)
