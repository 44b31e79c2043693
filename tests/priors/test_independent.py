"""Priors without correlation."""

import numpy as np
import pytest

from takifugu.errors import InvalidPrior, InvalidWorld
from takifugu.finite import World
from takifugu.influence.explicit_curves import explicit_curve
from takifugu.priors import Explicit, Tables, Universe, entry_pairs
from takifugu.priors.independent import IndependentEntries, Product
from tests.raising import raises

PRIOR = IndependentEntries({"sex": {"f": 0.5, "m": 0.5}, "age": {"young": 0.2, "old": 0.8}})


def test_written_out_it_is_the_product_of_its_laws() -> None:
    explicit = PRIOR.explicit()
    assert explicit.universe.datasets[1] == ("f", "old")
    assert explicit.probability == pytest.approx([0.1, 0.4, 0.1, 0.4])
    assert isinstance(explicit.universe, Tables)
    world = World(explicit.universe, (explicit,), entry_pairs(explicit.universe))
    assert explicit_curve(world).pooled() == pytest.approx([0, 0], abs=1e-12)


def test_documents_keep_the_prior() -> None:
    assert IndependentEntries.from_document(PRIOR.to_document()) == PRIOR
    explicit = PRIOR.explicit()
    assert Explicit.from_document(explicit.to_document()) == explicit


@pytest.mark.parametrize(
    ("marginals", "field"),
    [
        ({}, "marginals"),
        ({"a": {}}, "marginals"),
        ({"a": {"x": 0.5, "y": 0.6}}, "marginals of 'a'"),
        ({"a": {"x": float("nan")}}, "marginals of 'a'"),
        ({"a": {"x": -1.0, "y": 2.0}}, "marginals of 'a'"),
    ],
)
def test_malformed_marginals_are_refused(
    marginals: dict[str | int, dict[str | int, float]], field: str
) -> None:
    with raises(InvalidPrior, field=field):
        IndependentEntries(marginals)


@pytest.mark.parametrize(
    "document",
    [
        {"entries": [["a", [0, 1]]]},
        {"entries": "a", "probability": [1.0]},
        {"entries": [["a", [0, 1]]], "probability": [0.5, 0.5], "colour": 1},
        {"entries": [["a", [0, 1]]], "probability": ["x", 0.5]},
        {"entries": [["a", [0, 0]]], "probability": [0.5, 0.5]},
    ],
)
def test_malformed_documents_are_refused(document: dict[str, object]) -> None:
    with pytest.raises((InvalidPrior, InvalidWorld)):
        Explicit.from_document({"kind": "explicit", **document})


def test_only_tables_have_a_document() -> None:
    with raises(InvalidPrior, field="universe"):
        Explicit(Universe(("a",)), np.array([1.0])).to_document()


def test_a_product_is_made_of_priors() -> None:
    both = Product({"ann": PRIOR, "bob": PRIOR})
    assert both.to_document()["parts"]["bob"]["kind"] == "independent-entries"
    assert both == Product({"ann": PRIOR, "bob": PRIOR}) != Product({"ann": PRIOR})
    with raises(InvalidPrior, field="parts"):
        Product({"ann": 3})  # type: ignore[dict-item]
    with raises(InvalidPrior, field="parts"):
        Product({})
