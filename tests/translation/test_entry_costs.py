"""Several priors or people put together, each with a transport bound that is written out."""

import numpy as np

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

A = Cost.of({Membership(["a"]): 1})


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
