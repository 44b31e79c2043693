"""Influence in Bayesian networks is what pgmpy's exact inference says; ALARM and others too."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu._core.numeric import Floats
from takifugu.errors import InvalidPrior
from takifugu.influence import network_curve
from takifugu.priors.bif import read_bif
from takifugu.priors.networks import BayesianNetwork
from tests.influence.strategies import networks
from tests.oracles.pgmpy_inference import Inference
from tests.priors.files import example
from tests.raising import raises

pytestmark = pytest.mark.nightly
EXAMPLES = 300 if os.environ.get("DEEP") else 15


def ours(net: BayesianNetwork, name: str) -> Floats:
    """The law of an entry, all others summed out of what is written out."""
    law = net.explicit().probability.reshape([len(states) for states in net.states])
    found: Floats = law.sum(axis=tuple(k for k, one in enumerate(net.entries) if one != name))
    return found


@settings(max_examples=EXAMPLES)
@given(net=networks())
def test_every_marginal_is_that_of_pgmpy(net: BayesianNetwork) -> None:
    asked = Inference.of(net)
    states = dict(zip(net.entries, net.states, strict=True))
    for entry in net.entries:
        assert ours(net, str(entry)) == pytest.approx(asked.law([entry], states), abs=1e-12)


@settings(max_examples=EXAMPLES)
@given(net=networks(), data=st.data())
def test_influence_is_the_largest_ratio_of_the_conditional_laws_of_pgmpy(
    net: BayesianNetwork, data: st.DataObject
) -> None:
    """For a point of the curve, and the entries that it exposes."""
    asked = Inference.of(net)
    states = dict(zip(net.entries, net.states, strict=True))
    if all(asked.law([entry], states).max() == 1 for entry in net.entries):
        with raises(InvalidPrior, field="secrets"):  # nothing is secret
            network_curve(net)
        return
    curve = network_curve(net, largest=len(net.entries))
    row = data.draw(st.integers(0, len(curve.pairs) - 1))
    point = data.draw(st.integers(0, len(curve.exposed) - 1))
    assert curve.splits is not None
    exposed = curve.splits.describe(row, point)["exposed"]
    (entry, left), (_, right) = (side.split("=") for side in curve.pairs[row].split(" / "))
    shown = asked.leak(net, exposed, entry, left, right)
    assert curve.leak[row, point] == pytest.approx(shown, abs=1e-9)
    assert curve.leak[row, point] >= shown - 1e-12


@pytest.mark.parametrize("name", ["alarm", "asia", "cancer", "child", "insurance", "sachs"])
def test_a_network_file_has_the_laws_that_pgmpy_reads_in_it(name: str) -> None:
    """Every entry given its parents, as rows drawn at random have them: two readers of one file.

    Some rows of these files sum to 1 only within the digits that are printed: pgmpy normalises its
    answers, we the rows. That is why they agree to 1e-3 there, and to 1e-9 in the others.
    """
    path = example(name)
    asked, net = Inference.of_file(path), read_bif(path)
    states = dict(zip(net.entries, net.states, strict=True))
    close = 1e-3 if net.rescaled_rows else 1e-9
    for row in net.sample(3, rng=np.random.default_rng(1)).tolist():
        drawn = dict(zip(net.entries, row, strict=True))
        for entry, above, table in zip(net.entries, net.parents, net.tables, strict=True):
            own = table[tuple(drawn[parent] for parent in above)]
            given_parents = {parent: states[parent][drawn[parent]] for parent in above}
            law = asked.law([entry], states, given_parents)
            assert own == pytest.approx(law, abs=close)
