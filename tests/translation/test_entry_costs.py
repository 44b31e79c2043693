"""Several priors or people put together, each with a transport bound that is written out."""

from typing import Any

import numpy as np
import pytest

from takifugu._core.numeric import Floats
from takifugu.costs.cost import ANY, Column, Cost, Distance, Membership
from takifugu.errors import UnsoundRequest
from takifugu.priors import (
    IndependentEntries,
    MarkovChain,
    Product,
)
from takifugu.translation.entry_costs import EntryCosts, check_labels, labels_of
from tests.raising import raises

ROWS = np.array([[0.9, 0.1], [0.2, 0.8]])


def numbers(values: Floats | None) -> list[float] | None:
    return None if values is None else values.tolist()


# ---- what each entry has lost

A, B = Cost.of({Membership(["a"]): 1}), Cost.of({Membership(["b"]): 2})


def test_costs_of_every_entry_or_of_each() -> None:
    every, each = EntryCosts((A, B, A)), EntryCosts(by_entry=(A, B, A))
    assert every.uniform and not each.uniform
    assert every.size is None and each.size == 3
    assert every.at(1) == (A, B, A) and each.at(1) == (B,)
    assert every.listed == each.listed == (A, B)
    assert EntryCosts.of(every) is every and EntryCosts.of(A) == EntryCosts((A,))
    assert EntryCosts.of([A, B]) == EntryCosts(by_entry=(A, B))
    assert every.scalar == each.scalar == 2 and EntryCosts(()).scalar == 0
    scalars = each.scalars()
    assert every.scalars() == 2.0 and not isinstance(scalars, float)
    assert scalars.tolist() == [1.0, 2.0, 1.0]
    assert each.part(1, 3) == EntryCosts(by_entry=(B, A)) and every.part(1, 3) is every
    wrong: Any = (A, 0.5)
    for given in ({"anywhere": wrong}, {"by_entry": wrong}, {"anywhere": (A,), "by_entry": (A,)}):
        with raises(UnsoundRequest, field="costs"):
            EntryCosts(**given)


def test_matrices_of_costs() -> None:
    every, each = EntryCosts((A, B)), EntryCosts(by_entry=(A, B, A))
    largest = [[0, 2, 1], [2, 0, 2], [1, 2, 0]]
    values = ("a", "b", "c")
    assert every.matrix(values) == pytest.approx(np.array(largest))
    found, places = every.matrices(values)
    assert len(found) == 1 and found[0] == pytest.approx(np.array(largest)) and places == []
    found, places = each.matrices(values)
    assert places == [0, 1, 0] and len(found) == 2
    assert found[0].tolist() == A.matrix(values).tolist()
    assert found[1].tolist() == B.matrix(values).tolist() == each.matrix(values, entry=1).tolist()
    assert each.matrix(values).tolist() == A.matrix(values).tolist()


def test_labels_that_a_prior_has() -> None:
    chain = MarkovChain(ROWS, states=("in", "out"), length=2)
    assert set(labels_of(chain)) == {(None, "in"), (None, "out")}
    coins = IndependentEntries({"coin": {"head": 0.5, "tail": 0.5}})
    people = Product({"ann": chain, "bob": coins})
    assert set(labels_of(people)) == {(None, name) for name in ("in", "out", "head", "tail")}
    pairs = tuple((x, y) for x in (0, 1) for y in ("p", "q"))
    joint = MarkovChain(np.full((4, 4), 0.25), states=pairs, columns=("x", "y"), length=1)
    assert set(labels_of(joint)) == {("x", 0), ("x", 1), ("y", "p"), ("y", "q")}
    check_labels(EntryCosts((Cost.of({ANY: 1, Distance(0, 1): 1}),)), [])
    check_labels(EntryCosts((A,)), [(None, "a")])
    about = Cost.of({Column("x", Membership(["a"])): 1})
    check_labels(EntryCosts((about,)), [("x", "a")])
    for cost, known in ((A, [(None, "b")]), (about, [(None, "a")]), (about, [("y", "a")])):
        with raises(UnsoundRequest, field="cost", reason="unknown label", given="a"):
            check_labels(EntryCosts((cost,)), known)
