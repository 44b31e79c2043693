"""Influence in Bayesian networks is what pgmpy's exact inference says; ALARM and others too."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.errors import InvalidPrior
from takifugu.influence.network.elimination import Elimination
from takifugu.influence.network.network_curves import network_curve
from takifugu.numeric import Floats
from takifugu.priors.bayesian_network import BayesianNetwork
from takifugu.priors.bif import read_bif
from tests.influence.strategies import networks
from tests.oracles.pgmpy_inference import Inference
from tests.priors.files import example
from tests.raising import raises

pytestmark = pytest.mark.nightly
EXAMPLES = 300 if os.environ.get("DEEP") else 15


def ours(net: BayesianNetwork, *names: str) -> Floats:
    """The law of some entries by our elimination, axes as asked for."""
    full = Elimination(net)
    places = [net.entries.index(name) for name in names]
    keep = sum(1 << place for place in places)
    whole = full.part((1 << len(net.entries)) - 1, places[0])
    assert keep & ~whole == 0
    weight, _ = full.marginal(whole, keep)
    order = np.argsort(np.argsort(places))  # the axes of a marginal are in the order of entries
    found: Floats = np.transpose(weight, order) / weight.sum()
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
    """Every entry by itself, and beside its first parent, from two readers of one file.

    Some rows of these files sum to 1 only within the digits that are printed: pgmpy normalises its
    answers, we the rows. That is why they agree to 1e-3 there, and to 1e-9 in the others.
    """
    path = example(name)
    asked, net = Inference.of_file(path), read_bif(path)
    states = dict(zip(net.entries, net.states, strict=True))
    close = 1e-3 if net.rescaled_rows else 1e-9
    for entry, above in zip(net.entries, net.parents, strict=True):
        assert ours(net, str(entry)) == pytest.approx(asked.law([entry], states), abs=close)
        if above:
            both = [str(entry), str(above[0])]
            assert ours(net, *both) == pytest.approx(asked.law(both, states), abs=close)


def test_alarm_given_what_a_monitor_shows() -> None:
    """P(cause | two readings), from joint laws of ours, on the tables that we read."""
    net = read_bif(example("alarm"))
    asked = Inference.of(net)
    states = dict(zip(net.entries, net.states, strict=True))
    for cause in ("HYPOVOLEMIA", "LVFAILURE", "ANAPHYLAXIS", "KINKEDTUBE"):
        joint = ours(net, cause, "BP", "HRBP")
        for i, pressure in enumerate(states["BP"]):
            for j, rate in enumerate(states["HRBP"]):
                law = asked.law([cause], states, {"BP": pressure, "HRBP": rate})
                assert joint[:, i, j] / joint[:, i, j].sum() == pytest.approx(law, abs=1e-12)
