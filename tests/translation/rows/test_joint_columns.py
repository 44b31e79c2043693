"""``over = "sequence"`` of several columns: a chain on joint states."""

import numpy as np
import pytest

from takifugu.costs.cost import ANY, Column, Cost, Jointly, Membership
from takifugu.errors import InvalidWorld, UnsoundRequest
from takifugu.priors import MarkovChain, Secrets
from takifugu.translation.rows.columns_of_row import JointColumns
from tests.raising import raises

FIVE = 5.1e-6
P = np.array([[70, 10, 15, 5], [20, 55, 5, 20], [15, 5, 60, 20], [5, 10, 25, 60]]) / 100
STATES = (("0", "0"), ("0", "1"), ("1", "0"), ("1", "1"))
START = np.array([0.4, 0.2, 0.1, 0.3])
CHAIN = MarkovChain(P, STATES, start=START, length=4, columns=("a", "b"))
BOTH = {"a": Secrets(), "b": Secrets()}


def read(a: str, b: str) -> Cost:
    return Cost.of({Column("a", ANY): a, Column("b", ANY): b})


@pytest.mark.parametrize(
    ("a", "b", "loss"),
    [
        ("0.5", "0", 1.28734),
        ("0", "0.5", 0.46124),
        ("0.5", "0.5", 1.62675),
        ("1", "1", 2.96634),
    ],
)
def test_secrets_of_one_column_lose_this_much(a: str, b: str, loss: float) -> None:
    found = JointColumns({"prior": CHAIN}, BOTH).losses(read(a, b))
    assert found["a"] <= loss + FIVE
    assert found["a"] >= 0.94 * loss  # the linear programs are tested beside the oracle


def test_a_query_on_one_column_is_charged_for_what_it_tells_about_the_other() -> None:
    found = JointColumns({"prior": CHAIN}, BOTH).losses(read("0.5", "0"))
    assert 0 < found["b"] < found["a"]


def test_a_cross_tabulation_costs_less_than_both_columns() -> None:
    rows = JointColumns({"prior": CHAIN}, BOTH)
    table = Cost.of({Jointly(["a", "b"]): "0.5"})
    assert rows.cost_to_pufferfish(table) < rows.cost_to_pufferfish(read("0.5", "0.5"))
    assert rows.losses(table) == rows.losses(Cost.any("0.5"))  # there is no other column


def test_secrets_of_some_places_only() -> None:
    ends = {"a": Secrets(entries=(0, 3)), "b": Secrets(entries=(0, 3))}
    cost = read("0.5", "0.5")
    few = JointColumns({"prior": CHAIN}, ends).losses(cost)
    many = JointColumns({"prior": CHAIN}, BOTH).losses(cost)
    assert few["a"] < many["a"]
    assert few["b"] < many["b"]


def test_several_priors_may_list_their_states_in_any_order() -> None:
    order = [2, 0, 3, 1]
    other = MarkovChain(
        P[np.ix_(order, order)],
        tuple(STATES[k] for k in order),
        start=START[order],
        length=4,
        columns=("a", "b"),
    )
    turned = MarkovChain(
        P, tuple((b, a) for a, b in STATES), start=START, length=4, columns=("b", "a")
    )
    cost = Cost.of({Column("a", Membership(["1"])): "0.5", Column("b", ANY): "0.2"})
    alone = JointColumns({"prior": CHAIN}, BOTH).losses(cost)
    for priors in ({"one": CHAIN, "two": other}, {"one": turned, "two": CHAIN}):
        found = JointColumns(priors, BOTH).losses(cost)
        assert found == pytest.approx(alone, rel=1e-9)


def test_pairs_of_groups_of_values_of_a_column() -> None:
    states = tuple((x, y) for x in ("p", "q", "r") for y in ("0", "1"))
    rows = np.full((6, 6), 0.04) + 0.76 * np.eye(6)
    chain = MarkovChain(rows, states, length=4, columns=("a", "b"))
    some = Secrets(pairs=((("p",), ("q", "r")),))
    cost = read("0.3", "0.3")
    few = JointColumns({"prior": chain}, {"a": some}).losses(cost)
    many = JointColumns({"prior": chain}, {"a": Secrets()}).losses(cost)
    assert few["a"] < many["a"]


def test_names_are_matched() -> None:
    rows = JointColumns({"prior": CHAIN}, BOTH)
    with raises(UnsoundRequest, field="columns", needed="c"):
        rows.losses(Cost.of({Column("c", ANY): 1}))
    with raises(UnsoundRequest, reason="unknown label", given="7"):
        rows.losses(Cost.of({Column("a", Membership(["7"])): 1}))
    with pytest.raises(UnsoundRequest):
        rows.losses(Cost.of({Membership(["0"]): 1}))
    with raises(InvalidWorld, field="secrets"):
        JointColumns({"prior": CHAIN}, {"c": Secrets()})
    with raises(UnsoundRequest, field="plain"):
        plain = MarkovChain(np.array([[0.9, 0.1], [0.2, 0.8]]), length=4)
        JointColumns({"plain": plain}, {"a": Secrets()})


@pytest.mark.nightly
def test_what_is_allowed_loses_no_more() -> None:
    rows = JointColumns({"prior": CHAIN}, BOTH)
    for target in (0.1, 1.0):
        allowed = rows.to_dp(target)
        assert 0.99 * target < rows.to_pufferfish(allowed) <= target
        factor = rows.to_cost(read("1", "0"), target, spent=(read("0", "0.01"),))
        lost = read("0", "0.01") + read("1", "0") * factor
        assert 0.99 * target < rows.cost_to_pufferfish(lost) <= target
