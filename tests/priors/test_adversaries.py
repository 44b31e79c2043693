"""Chains against adversaries who know more: documents, fingerprints, what they refuse."""

from typing import Any

import numpy as np
import pytest

from takifugu.errors import InvalidPrior, UnsoundRequest
from takifugu.influence import chain_curve
from takifugu.papers.composition.baselines.quilts import quilt_allowances
from takifugu.priors import (
    IndependentEntries,
    IntervalMarkovChain,
    MarkovChain,
    Product,
    from_document,
    smoothed,
    with_other,
)
from takifugu.priors.adversaries import adversaries, against, chains_of
from tests.raising import raises

ROWS = np.array([[0.9, 0.1], [0.2, 0.8]])
PLAIN = MarkovChain(ROWS, ("home", "ward"), length=6)
STRONGER: list[dict[str, Any]] = [
    {"start": "unknown"},
    {"known": "any"},
    {"start": "unknown", "known": "any"},
]


def test_a_plain_chain_has_the_fingerprint_and_the_document_that_it_had() -> None:
    chain = MarkovChain(np.array([[0.9, 0.1], [0.3, 0.7]]), ("home", "ward"), length=7)
    assert chain.fingerprint == (
        "b72b91ff46fab4415a730a0e5626fd60bf61ea54a2e14d98d41dc46043bcc27c"
    )  # as written by the release before these keys
    assert set(chain.to_document()) == {"kind", "states", "transition", "start", "length"}


@pytest.mark.parametrize("adversary", STRONGER)
def test_an_adversary_is_part_of_the_prior(adversary: dict[str, Any]) -> None:
    chain = PLAIN.against(**adversary)
    assert chain != PLAIN and chain.fingerprint != PLAIN.fingerprint
    assert from_document(chain.to_document()) == chain
    assert chain.facts()["start"] == adversary.get("start", "stationary")
    assert smoothed(chain).known == with_other(chain).known == chain.known
    assert chain.against(start="stationary", known="none") == PLAIN


@pytest.mark.parametrize("adversary", STRONGER)
def test_what_needs_one_law_refuses_it(adversary: dict[str, Any]) -> None:
    chain = PLAIN.against(**adversary)
    assert not chain.one_law
    field = "start" if "start" in adversary else "known"
    for use in (chain.explicit, lambda: chain_curve(chain), lambda: quilt_allowances(chain, [1])):
        with raises(UnsoundRequest, field=field):
            use()
    if "start" in adversary:
        for use in (lambda: chain.start_law, chain.marginals):
            with raises(UnsoundRequest, field="start"):
                use()


def test_a_wide_chain_takes_any_start_and_no_known_entries() -> None:
    unknown = IntervalMarkovChain.around(PLAIN.against(start="unknown"), relative=0.1)
    assert unknown.start == "any"
    with raises(UnsoundRequest, field="known"):
        IntervalMarkovChain.around(PLAIN.against(known="any"), relative=0.1)


def test_a_chain_without_one_stationary_law_may_start_anywhere() -> None:
    chain = MarkovChain(np.eye(2), start="unknown", length=3)
    assert list(adversaries(chain)) == ["unknown_start", "both"]
    assert list(adversaries(PLAIN)) == ["plain", "unknown_start", "known_entries", "both"]


@pytest.mark.parametrize(
    ("key", "value"), [("start", "anywhere"), ("known", "all"), ("known", "none ")]
)
def test_other_words_are_refused(key: str, value: str) -> None:
    with raises(InvalidPrior, field=key):
        against(PLAIN, **{key: value})
    with raises(InvalidPrior, field=key):
        from_document(PLAIN.to_document() | {key: value})


def test_everybody_of_a_product_is_widened_and_other_priors_are_refused() -> None:
    people = against(Product({"ann": PLAIN, "bob": PLAIN}), known="any")
    assert {chain.known for chain in chains_of(people)} == {"any"}
    independent = IndependentEntries({"a": {"x": 0.5, "y": 0.5}})
    assert against(independent) is independent and adversaries(independent) == {}
    with raises(InvalidPrior, field="known", reason="kind"):
        against(independent, known="any")
