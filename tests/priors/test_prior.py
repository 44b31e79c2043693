"""The protocol of all priors: every family has its line in every registry."""

from collections.abc import Iterator
from inspect import isabstract

import numpy as np
import pytest

import takifugu.priors
from takifugu.influence.families import influence_curve
from takifugu.priors import IndependentEntries, MarkovChain, Prior, Product
from takifugu.priors.documents import KINDS
from takifugu.translation.translation import Translation
from tests.priors.families import CHAIN, PRIORS, secrets_of


def families(above: type[Prior] = Prior) -> Iterator[type[Prior]]:
    """All families of priors: a translation may have models of its own that subclass one."""
    for family in above.__subclasses__():
        yield from families(family)
        if not isabstract(family) and family.__module__.startswith("takifugu.priors."):
            yield family


def test_every_family_has_its_lines() -> None:
    found = {family.kind: family for family in families()}
    assert {kind: family.__name__ for kind, family in found.items()} == {
        kind: name for kind, (_, name) in KINDS.items()
    }
    assert {type(prior) for prior in PRIORS} == set(found.values()), "tests/priors/families.py"
    for family in found.values():
        assert family.__name__ in dir(takifugu.priors), "takifugu/priors/__init__.py"
        assert f"`{family.__name__}`" in (Prior.__doc__ or ""), "takifugu/priors/prior.py"


@pytest.mark.parametrize("prior", PRIORS, ids=lambda prior: prior.kind)
def test_every_family_has_a_curve_and_a_translation(prior: Prior) -> None:
    assert influence_curve(prior, secrets_of(prior)).entries == prior.size
    translation = Translation(prior, secrets_of(prior))
    assert 0 < float(translation.to_pufferfish(0.1)) <= 0.1 * (prior.person_size or 0) + 1e-9
    assert 0 < float(translation.to_dp(1.0)) <= 1


@pytest.mark.parametrize("prior", PRIORS, ids=lambda prior: prior.kind)
def test_names_and_values_agree_with_the_size(prior: Prior) -> None:
    assert prior.entry_names is not None and len(prior.entry_names) == prior.size
    assert len(prior.entry_values) in (0, 1, prior.size) or isinstance(prior, Product)
    assert prior.facts() and prior.breadth >= 0


def test_a_product_adds_up_its_people() -> None:
    alone = IndependentEntries({"a": {"x": 0.5, "y": 0.5}})
    both = Product({"ann": CHAIN, "bob": alone})
    assert both.size == 6 and both.person_size == 5
    assert both.entry_names is not None and both.entry_names[-2:] == ("ann: 4", "bob: a")
    unbounded = Product({"ann": CHAIN, "bob": MarkovChain(np.full((2, 2), 0.5))})
    assert unbounded.size is None and unbounded.person_size is None
    assert unbounded.entry_names is None


def test_a_very_long_chain_does_not_list_its_entries() -> None:
    long = MarkovChain(np.full((2, 2), 0.5), length=2**52)
    assert long.size == 2**52 == Translation(long).size
