"""Households against linear programs over every table, whose cells are rows: who, at what time."""

from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.costs.cost import ANY, Column, Cost, Jointly, Membership
from takifugu.costs.losses import Approximate, Metric, Total
from takifugu.errors import TooLarge, UnsoundRequest
from takifugu.ledger.limits import to_pufferfish
from takifugu.priors import MarkovChain, Secrets
from takifugu.priors.households import household_contagion, is_exchangeable
from takifugu.translation.rows.household import Household
from tests.oracles import cost_programs as oracle
from tests.raising import raises

SIS = household_contagion(2, background=0.1, infection=0.2, recovery=0.4, start=0.2, length=4)
HALF = Cost.any("0.5")


def household(*chains: MarkovChain, **secrets: Secrets) -> Household:
    named = {f"prior {k}": chain for k, chain in enumerate(chains)}
    return Household(named, secrets or {"health": Secrets()})


def states(chain: MarkovChain) -> list[tuple[str, ...]]:
    return [tuple(map(str, state)) for state in chain.states if isinstance(state, tuple)]


def by_row(chain: MarkovChain, length: int) -> oracle.Array:
    """``[ann at 0, bob at 0, ann at 1, …]``: the probability of every table, written out."""
    joint = oracle.chain_table(chain.start_law, [chain.kernel(t) for t in range(length - 1)])
    labels = [sorted(set(column)) for column in zip(*states(chain), strict=True)]
    members = [len(each) for each in labels]
    order = list(product(*(range(size) for size in members)))
    place = {state: k for k, state in enumerate(states(chain))}
    at = [place[tuple(labels[m][v] for m, v in enumerate(state))] for state in order]
    for axis in range(length):
        joint = np.take(joint, at, axis=axis)
    return joint.reshape(members * length)


def true_losses(table: oracle.Array, costs: list[oracle.Array], people: int) -> dict[int, float]:
    """What some mechanism leaks about each person, whatever the time."""
    found = dict.fromkeys(range(people), 0.0)
    for (row, _, _), solved in oracle.all_losses(table, costs).items():
        found[row % people] = max(found[row % people], solved.lower)
    return found


def test_two_people_who_infect_each_other_lose_what_the_program_says() -> None:
    truth = (1.14824, 1.32183, 1.35045, 1.16472)
    for time, loss in enumerate(truth):
        found = household(SIS, health=Secrets(entries=(time,))).losses(HALF)["health"]
        assert found == pytest.approx(loss, abs=1e-5)
    table, costs = by_row(SIS, 4), [oracle.any_value(2, 0.5)] * 8
    solved = oracle.all_losses(table, costs)
    for time, loss in enumerate(truth):
        worst = max(solved[2 * time, x, y].upper for x, y in ((0, 1), (1, 0)))
        assert worst == pytest.approx(loss, abs=1e-5)


@pytest.mark.nightly
def test_an_explanation_has_a_mechanism_that_leaks_as_much() -> None:
    study = household(SIS)
    found = study.explain("member 2", HALF)
    assert found.exact and found.pufferfish == study.to_pufferfish(0.5)
    assert study.by_member(HALF) == dict.fromkeys(("member 1", "member 2"), found.pufferfish)
    with raises(UnsoundRequest, field="member", given="ann"):
        study.explain("ann", HALF)


def test_people_of_a_household_are_not_independent() -> None:
    """Alone, a chain of one person with the same law is charged less than what is leaked."""
    pair = household_contagion(2, background=0.1, infection=0.2, recovery=0.4, length=4)
    law, falls = pair.stationary, pair.transition[:, [2, 3]].sum(axis=1)  # the first one is ill
    catches = float(law[:2] @ falls[:2] / law[:2].sum())
    alone = household_contagion(1, background=catches, infection=0.0, recovery=0.4, length=4)
    assert float(law[2:].sum()) == pytest.approx(alone.stationary[1])  # as often ill
    single = household(alone).to_pufferfish(0.5)
    truth = true_losses(by_row(pair, 4), [oracle.any_value(2, 0.5)] * 8, 2)
    assert 1.2 * single < max(truth.values()) <= household(pair).to_pufferfish(0.5)


probabilities = st.one_of(
    st.sampled_from([0.0, 1e-150, 1e-9, 1.0]), st.floats(0.01, 1.0, allow_subnormal=False)
)
coefficients = st.sampled_from(["0.01", "0.3", "1", "4"])


@st.composite
def chains(draw: st.DrawFn, length: int = 3) -> MarkovChain:
    names = tuple(product(("a", "b"), repeat=2))
    rows = []
    for _ in range(5):
        row = np.array(draw(st.lists(probabilities, min_size=4, max_size=4)))
        rows.append(row / row.sum() if row.sum() > 1e-3 else np.full(4, 0.25))
    return MarkovChain(
        np.array(rows[:4]), states=names, columns=("ann", "bob"), start=rows[4], length=length
    )


costs_of_a_row = st.builds(
    lambda whole, some: Cost.any(whole) + Cost.of({Membership({"a"}): some}),
    st.sampled_from([0, "0.01", "0.3", "1", "4"]),
    coefficients,
)


@pytest.mark.nightly
@settings(max_examples=40, deadline=None)
@given(
    chain=chains(),
    frontier=st.lists(costs_of_a_row, min_size=1, max_size=3),
    data=st.data(),
)
def test_no_mechanism_leaks_more_whichever_row_lost_which_cost(
    chain: MarkovChain, frontier: list[Cost], data: st.DataObject
) -> None:
    study = household(chain)
    assigned = data.draw(st.lists(st.sampled_from([*frontier, Cost()]), min_size=6, max_size=6))
    matrices = [
        oracle.any_value(2, float(sum((v for _, v in cost.terms), Fraction(0))))
        for cost in assigned  # of two labels a count of one of them tells as much as the whole
    ]
    truth = true_losses(by_row(chain, 3), matrices, 2)
    found = study.by_member(*frontier)
    for person, member in enumerate(("ann", "bob")):
        assert truth[person] <= found[member] * (1 + 1e-9) + 1e-12
    assert study.losses(*frontier) == {"health": max(found.values())}
    assert max(found.values()) <= 6 * max(float(c.scalar) for c in frontier) * (1 + 1e-9)


@pytest.mark.nightly
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_costs_by_value_of_three_labels_are_never_understated(data: st.DataObject) -> None:
    rows = [np.array(data.draw(st.lists(st.floats(0.01, 1), min_size=9, max_size=9))) for _ in "ab"]
    labels, names = ("a", "b", "c"), tuple(product(("a", "b", "c"), repeat=2))
    turning = np.array([[rows[0][(j + i) % 9] for j in range(9)] for i in range(9)])
    chain = MarkovChain(
        turning / turning.sum(axis=1, keepdims=True),
        states=names,
        columns=("ann", "bob"),
        start=rows[1] / rows[1].sum(),
        length=2,
    )
    frontier = [Cost.of({Membership({label}): "0.5"}) for label in ("a", "b")]
    assigned = [data.draw(st.sampled_from([0, 1])) for _ in range(4)]
    matrices = [
        oracle.difference([float(label == ("a", "b")[which]) for label in labels], 0.5)
        for which in assigned
    ]
    truth = true_losses(by_row(chain, 2), matrices, 2)
    found = household(chain).by_member(*frontier)
    assert truth[0] <= found["ann"] + 1e-9 and truth[1] <= found["bob"] + 1e-9
    joined = household(chain).by_member(frontier[0].joined(frontier[1]))
    assert all(found[m] <= joined[m] + 1e-9 for m in found)  # no more than the sum of maxima


def test_rows_may_have_lost_any_of_several_costs() -> None:
    """The largest of both, value by value: not their sum, and not the larger one alone."""
    study = household(SIS)
    count, any_change = Cost.of({Membership({"ill"}): "0.5"}), Cost.any("0.3")
    assert study.losses(count, any_change) == study.losses(count)  # of two labels it covers it
    assert study.losses(count, Cost()) == study.losses(count)
    assert study.losses(Cost()) == {"health": 0.0} == study.losses()
    assert study.by_member(Cost()) == {"member 1": 0.0, "member 2": 0.0}
    assert study.losses(Cost.of({Column("health", ANY): "0.5"})) == study.losses(HALF)
    with raises(UnsoundRequest, field="cost", reason="unknown label"):
        study.losses(Cost.of({Membership({"dead"}): 1}), any_change)
    with raises(UnsoundRequest, field="cost", reason="unknown label"):
        study.losses(Cost.of({Membership({"dead"}): 1}))


@pytest.mark.parametrize("shape", [Column("place", ANY), Jointly(("place", "health"))])
def test_what_was_told_of_another_column_does_not_count_as_nothing(shape: Column | Jointly) -> None:
    """A ledger may have it from before the owner changed what the priors are over."""
    cost = Cost.of({shape: "0.5"})
    with raises(UnsoundRequest, field="columns", given=("place",), needed="health"):
        household(SIS).cost_to_pufferfish(cost)
    spent = to_pufferfish(household(SIS), (Total().plus(Metric(cost)),), Fraction(0))
    assert spent == household(SIS).to_pufferfish(0.5)


@pytest.mark.nightly
def test_what_a_budget_allows_is_confirmed_by_what_it_loses() -> None:
    study = household(SIS)
    for target in (1e-3, 1.0, 5.0):
        allowed = study.to_dp(target)
        assert allowed > 0 and study.to_pufferfish(allowed) <= target
        assert study.to_pufferfish(allowed * 1.01) > target
        spent = Cost.any(Fraction(allowed) / 2)
        more = study.to_cost(Cost.any(1), target, spent=(spent,), beside=(Cost(),))
        assert study.cost_to_pufferfish(spent + Cost.any(more)) <= target


def test_a_loss_with_delta_counts_rows() -> None:
    """Per-row (ε, δ): at least what the worst pure mechanism leaks, at most all eight rows."""
    study = household(SIS)
    total = Total.of([Approximate(Fraction("0.5"), Fraction(1, 10**9))])
    found = study.total_to_pufferfish(total, Fraction(1, 10**6))
    assert study.to_pufferfish(0.5) <= found < 4


def test_members_are_alike_only_if_the_chain_is() -> None:
    assert is_exchangeable(SIS)
    for members in (1, 3, 4):
        made = household_contagion(members, background=0.1, infection=0.3, recovery=0.5)
        assert is_exchangeable(made)
        shifted = np.array(made.transition)
        if members > 1:
            shifted[1, 0] += 1e-12
            other = MarkovChain(shifted, states=made.states, columns=made.columns)
            assert not is_exchangeable(other)
    start = np.array([0.5, 0.3, 0.1, 0.1])
    begun = MarkovChain(
        SIS.transition, states=SIS.states, columns=SIS.columns, start=start, length=4
    )
    assert not is_exchangeable(begun)
    assert is_exchangeable(begun.against(start="unknown"))
    found = household(begun).by_member(HALF)
    truth = true_losses(by_row_of(begun), [oracle.any_value(2, 0.5)] * 8, 2)
    assert found["member 1"] != found["member 2"]
    assert list(found.values()) == pytest.approx(list(truth.values()), rel=1e-4)


def by_row_of(chain: MarkovChain) -> oracle.Array:
    return by_row(chain, chain.length or 0)


@pytest.mark.nightly
@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_members_may_be_listed_in_any_order(order: tuple[int, ...]) -> None:
    base = household_contagion(("a", "b", "c"), background=0.1, infection=0.2, recovery=0.4)
    weights = np.array(base.transition) + np.arange(64).reshape(8, 8) / 1000
    chain = MarkovChain(
        weights / weights.sum(axis=1, keepdims=True),
        states=base.states,
        columns=base.columns,
        start=np.full(8, 0.125),
        length=3,
    )
    moved = tuple(tuple(state[m] for m in order) for state in states(chain))
    again = MarkovChain(
        chain.transition,
        states=moved,
        columns=tuple("abc"[m] for m in order),
        start=chain.start,
        length=3,
    )
    first, second = household(chain).by_member(HALF), household(again).by_member(HALF)
    assert {m: pytest.approx(first[m]) for m in "abc"} == dict(second)


def test_several_priors_count_together() -> None:
    milder = household_contagion(
        2, background=0.1, infection=0.05, recovery=0.4, start=0.2, length=4
    )
    both = household(SIS, milder).to_pufferfish(0.5)
    assert both == max(household(c).to_pufferfish(0.5) for c in (SIS, milder))
    unsure = Household({"sis": SIS}, {"health": Secrets()}, uncertainty=0.2)
    assert unsure.to_pufferfish(0.5) == pytest.approx(
        household(SIS).to_pufferfish(0.5) + np.log(1.5), rel=1e-9
    )
    assert unsure.fingerprint != household(SIS).fingerprint


def test_what_is_no_household_is_refused() -> None:
    plain = MarkovChain(np.array([[0.9, 0.1], [0.1, 0.9]]))
    with raises(UnsoundRequest, field="prior 0", reason="no-members"):
        household(plain).losses(HALF)
    with raises(UnsoundRequest, field="prior 0", reason="known"):
        household(SIS.against(known="any")).losses(HALF)
    part = MarkovChain(np.full((3, 3), 1 / 3), states=SIS.states[:3], columns=SIS.columns, length=4)
    with raises(UnsoundRequest, field="prior 0", reason="states-missing", given=1):
        household(part).losses(HALF)
    uneven = MarkovChain(
        np.full((4, 4), 0.25),
        states=(("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")),
        columns=("ann", "bob"),
    )
    with raises(UnsoundRequest, field="prior 0", reason="states-differ"):
        household(uneven).losses(HALF)
    three = household_contagion(3, background=0.1, infection=0.2, recovery=0.4, length=4)
    with raises(UnsoundRequest, field="prior 1"):
        household(SIS, three).losses(HALF)
    with raises(UnsoundRequest, field="about"):
        household(SIS, health=Secrets(), place=Secrets()).losses(HALF)
    with raises(TooLarge, field="members", size=9, limit=8):
        household_contagion(9, background=0.1, infection=0.2, recovery=0.4)


def test_a_start_may_be_unknown_and_steps_may_differ() -> None:
    unknown = household_contagion(
        2, background=0.1, infection=0.2, recovery=0.4, start="unknown", length=3
    )
    bound = household(unknown).to_pufferfish(0.5)
    costs = [oracle.any_value(2, 0.5)] * 6
    for share in (0.02, 0.1, 0.3):
        start = np.array([1 - share, 0.0, 0.0, share])
        table = oracle.chain_table(start, [unknown.kernel()] * 2).reshape((2,) * 6)
        assert max(true_losses(table, costs, 2).values()) <= bound
    other = household_contagion(2, background=0.3, infection=0.1, recovery=0.6)
    changing = MarkovChain(
        np.stack([unknown.transition, other.transition]),
        states=SIS.states,
        columns=SIS.columns,
        start=SIS.start_law,
    )
    assert is_exchangeable(changing)
    matrices = [changing.kernel(0), changing.kernel(1)]
    table = oracle.chain_table(SIS.start_law, matrices).reshape((2,) * 6)
    truth = max(true_losses(table, costs, 2).values())
    assert truth <= household(changing).to_pufferfish(0.5) <= truth * 1.0001
