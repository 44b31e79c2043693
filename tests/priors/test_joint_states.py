"""Chains on joint states of several columns: costs and secrets about one of them."""

from typing import Literal

import numpy as np
import pytest

from takifugu.costs.cost import AnyValue, Column, Cost, Membership
from takifugu.errors import InvalidPrior, InvalidWorld, UnsoundRequest
from takifugu.priors import MarkovChain
from takifugu.priors.documents import from_document
from takifugu.priors.secrets import Secrets
from takifugu.translation import Translation
from takifugu.translation.entry_costs import labels_of
from tests.raising import raises

KERNEL = np.array(
    [[0.7, 0.1, 0.15, 0.05], [0.2, 0.55, 0.05, 0.2], [0.15, 0.05, 0.6, 0.2], [0.05, 0.1, 0.25, 0.6]]
)
START = np.array([0.4, 0.2, 0.1, 0.3])
JOINT = (("no", 0), ("no", 1), ("yes", 0), ("yes", 1))
COLUMNS = ("a", "b")


def joint(length: int | None = 4) -> MarkovChain:
    return MarkovChain(KERNEL, JOINT, columns=COLUMNS, start=START, length=length)


@pytest.mark.parametrize(
    ("of_a", "of_b", "exact"),
    [(0.5, 0.0, 1.28734), (0.0, 0.5, 0.43615), (0.5, 0.5, 1.61006), (1.0, 1.0, 2.90360)],
)
def test_a_query_on_one_column_costs_that_column_only(
    of_a: float, of_b: float, exact: float
) -> None:
    cost = Cost.of({Column("a", AnyValue()): of_a, Column("b", Membership([1])): of_b})
    secrets = Secrets.of_column("a", COLUMNS, JOINT)
    found = Translation(joint(), secrets).explain_cost(cost)
    assert found.pufferfish == pytest.approx(exact, abs=6e-6)
    assert found.binding is not None
    assert {found.binding.left, found.binding.right} == {"(no, 0)|(no, 1)", "(yes, 0)|(yes, 1)"}


def test_the_document_is_read_back() -> None:
    chain = joint()
    document = chain.to_document()
    assert document["columns"] == ["a", "b"]
    assert document["states"][1] == ["no", 1]
    again = from_document(document)
    assert again == chain and again.fingerprint == chain.fingerprint
    assert isinstance(again, MarkovChain) and again.states == JOINT


def test_a_chain_of_one_column_is_written_as_before() -> None:
    chain = MarkovChain(KERNEL, start=START, length=4)
    assert set(chain.to_document()) == {"kind", "states", "transition", "start", "length"}
    assert from_document(chain.to_document()).fingerprint == chain.fingerprint
    assert chain.fingerprint != joint().fingerprint


def test_values_are_matched_by_column_and_name() -> None:
    assert set(labels_of(joint())) == {("a", "no"), ("a", "yes"), ("b", 0), ("b", 1)}
    translation = Translation(joint())
    for unknown in (
        Cost.of({Column("a", Membership([1])): 1}),  # a value of the other column
        Cost.of({Column("b", Membership(["1"])): 1}),  # text, where there are numbers
    ):
        with raises(UnsoundRequest, field="cost", reason="unknown label"):
            translation.cost_bound(unknown)
    with raises(UnsoundRequest, field="cost"):
        translation.cost_bound(Cost.of({Membership(["yes"]): 1}))  # of which column?
    with raises(UnsoundRequest, field="columns"):
        translation.cost_bound(Cost.of({Column("c", AnyValue()): 1}))


def test_any_change_of_a_joint_state_needs_no_column() -> None:
    plain = Translation(MarkovChain(KERNEL, start=START, length=4))
    assert Translation(joint()).cost_bound(Cost.any("1/2")).value == pytest.approx(
        plain.bound(0.5).value, rel=1e-12
    )
    assert Translation(joint()).bound(0.5).value == pytest.approx(plain.bound(0.5).value)


def test_two_joint_states_have_the_closed_form_too() -> None:
    chain = MarkovChain(
        np.array([[0.9, 0.1], [0.1, 0.9]]), (("x", 0), ("y", 0)), columns=COLUMNS, length=7
    )
    translation = Translation(chain)
    assert translation.cost_to_pufferfish(
        Cost.of({Column("a", AnyValue()): "1/5"})
    ) == pytest.approx(0.97324, abs=6e-6)
    assert translation.cost_to_pufferfish(Cost.of({Column("b", AnyValue()): "1/5"})) < 1e-12


@pytest.mark.parametrize(
    ("states", "columns", "field"),
    [
        (JOINT[:3], COLUMNS, "states"),
        (JOINT, ("a",), "states"),
        (("no", "yes", "x", "y"), COLUMNS, "states"),
        ((*JOINT[:3], JOINT[0]), COLUMNS, "states"),
        ((*JOINT[:3], ("yes", True)), COLUMNS, "states"),
        (JOINT, ("a", "a"), "columns"),
        (JOINT, ("a", ""), "columns"),
        (JOINT, "ab", "columns"),
        (JOINT, (), "columns"),
        (JOINT, None, "states"),
    ],
)
def test_states_and_columns_must_fit(states: object, columns: object, field: str) -> None:
    with raises(InvalidPrior, field=field):
        MarkovChain(KERNEL, states, columns=columns, length=4)  # type: ignore[arg-type]


def test_secrets_of_a_column_are_groups_of_joint_states() -> None:
    chosen = Secrets.of_column("b", COLUMNS, JOINT, pairs=[((0,), (1,))], entries=(2,))
    assert chosen.entries == (2,)
    assert chosen.sides(JOINT) == (((0, 2), (1, 3)), ((1, 3), (0, 2)))
    with raises(InvalidWorld):
        Secrets.of_column("c", COLUMNS, JOINT)
    with raises(InvalidWorld):
        Secrets.of_column("b", COLUMNS, JOINT, pairs=[((0,), (7,))])
    with raises(InvalidWorld):
        Secrets.of_column("b", COLUMNS, ("no", "yes"))


def test_joint_states_of_a_file_are_lists() -> None:
    read = Secrets(pairs=(([["no", 0], ["no", 1]], [["yes", 0]]),))  # type: ignore[arg-type]
    assert read.sides(JOINT) == (((0, 1), (2,)), ((2,), (0, 1)))


@pytest.mark.parametrize("known", ["none", "any"])
def test_stronger_adversaries_know_joint_states_too(known: Literal["none", "any"]) -> None:
    cost = Cost.of({Column("b", AnyValue()): "1/2"})
    secrets = Secrets.of_column("a", COLUMNS, JOINT)
    plain = Translation(joint(), secrets).explain_cost(cost)
    against = Translation(joint().against(start="unknown", known=known), secrets)
    found = against.explain_cost(cost)
    assert plain.pufferfish <= found.pufferfish + 1e-9
    assert 0 < found.lower <= found.pufferfish
