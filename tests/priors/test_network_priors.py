"""Networks, fields and contact lists as values."""

import json
from math import log, sqrt
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from takifugu.errors import InvalidFile, InvalidPrior, TooLarge
from takifugu.priors import Tables
from takifugu.priors.contacts import contagion, read_contacts
from takifugu.priors.networks import BayesianNetwork, MarkovRandomField
from tests.influence.strategies import fields, network, networks
from tests.raising import raises
from tests.real_data import real

FALSE_ALARM = 1e-9
_RAIN_SHAPE = (("rain", "wet"), (("n", "y"),) * 2, ((), ("rain",)))
RAIN = network(*_RAIN_SHAPE, [0.75, 0.25], [[1.0, 0.0], [0.5, 0.5]])


@settings(max_examples=30)
@given(net=networks(), field=fields())
def test_documents_read_back_the_same(net: BayesianNetwork, field: MarkovRandomField) -> None:
    assert BayesianNetwork.from_document(json.loads(json.dumps(net.to_document()))) == net
    assert MarkovRandomField.from_document(json.loads(json.dumps(field.to_document()))) == field


@settings(max_examples=30)
@given(net=networks())
def test_written_out_law_is_the_product_of_the_tables(net: BayesianNetwork) -> None:
    law = net.explicit()
    assert isinstance(law.universe, Tables)
    number = {entry: i for i, entry in enumerate(net.entries)}
    for row, p in zip(law.universe.codes, law.probability, strict=True):
        product = 1.0
        for v, (above, table) in enumerate(zip(net.parents, net.tables, strict=True)):
            product *= table[(*(row[number[q]] for q in above), row[v])]
        assert p == pytest.approx(product, abs=1e-9)


@pytest.mark.statistical
def test_samples_follow_the_law() -> None:
    draws = 200_000
    slack = sqrt(log(2 * 4 / FALSE_ALARM) / (2 * draws))  # Hoeffding, four cells
    drawn = RAIN.sample(draws, rng=np.random.default_rng(1))
    share = np.bincount(drawn[:, 0] * 2 + drawn[:, 1], minlength=4) / draws
    assert np.abs(share - RAIN.explicit().probability).max() <= slack


def test_the_test_above_would_catch_a_law_that_is_off_by_a_hundredth() -> None:
    slack = sqrt(log(2 * 4 / FALSE_ALARM) / (2 * 200_000))
    assert slack < 0.01 / 1.2
    drawn = network(*_RAIN_SHAPE, [0.73, 0.27], [[1.0, 0.0], [0.5, 0.5]]).sample(
        200_000, rng=np.random.default_rng(2)
    )
    share = np.bincount(drawn[:, 0] * 2 + drawn[:, 1], minlength=4) / 200_000
    assert np.abs(share - RAIN.explicit().probability).max() > slack


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"parents": (("wet",), ("rain",)), "tables": ([[1, 0], [0, 1]],) * 2}, "parents"),
        ({"parents": ((), ("snow",))}, "parents"),
        ({"tables": ([0.75, 0.25], [0.5, 0.5])}, "tables['wet']"),
        ({"tables": ([0.75, 0.2], [[1, 0], [0.5, 0.5]])}, "tables['rain']"),
        ({"entries": ("a", "a")}, "entries"),
        ({"states": (("n", "y"),)}, "states"),
    ],
)
def test_networks_that_make_no_sense_are_refused(change: dict[str, object], field: str) -> None:
    given = {k: getattr(RAIN, k) for k in ("entries", "states", "parents", "tables")} | change
    with raises(InvalidPrior, field=field):
        BayesianNetwork(**given)


def test_fields_that_make_no_sense_are_refused() -> None:
    good = MarkovRandomField.ising({"a": 0.0, "b": 0.0}, {("a", "b"): 1.0})
    states = good.states
    for unary, edges, weights, field in (
        (([1, -1], [1, 1]), (), (), "unary['a']"),
        (([0, 0], [1, 1]), (), (), "unary['a']"),
        (([1, 1], [1, 1]), (("a", "a"),), ([[1, 1], [1, 1]],), "edges"),
        (([1, 1], [1, 1]), (("a", "b"), ("b", "a")), ([[1, 1], [1, 1]],) * 2, "edges"),
        (([1, 1],), (), (), "unary"),
    ):
        with raises(InvalidPrior, field=field):
            MarkovRandomField(("a", "b"), states, unary, edges, weights)  # type: ignore[arg-type]
    with raises(InvalidPrior, field="field"):
        MarkovRandomField.ising({"a": float("nan")}, {})
    with raises(InvalidPrior, field="document"):
        MarkovRandomField.from_document({"kind": "markov-random-field"})
    with raises(InvalidPrior, field="kind"):
        BayesianNetwork.from_document({"kind": "x", "name": "x", "entries": []})
    with raises(TooLarge, size=2**30, limit=2**20):
        MarkovRandomField.ising(dict.fromkeys(range(30), 0.0), {}).explicit()


def test_contacts_become_couplings(tmp_path: Path) -> None:
    listed = tmp_path / "contacts.txt"
    listed.write_text("0 a b\n20\tb\ta\n20 a b\n3600 b c\n")
    contacts = read_contacts(listed, seconds=1800)
    assert contacts.pairs == (("a", "b"), ("b", "c")) and contacts.seconds == (3600.0, 1800.0)
    field = contagion(contacts, background=0.5, odds_per_hour=9.0, most=4.0)
    assert field.weights[0][1, 1] == pytest.approx(4) and field.weights[1][1, 1] == pytest.approx(3)
    law = field.explicit().probability.reshape(2, 2, 2)
    assert law[1, 1, 0] / law[0, 1, 0] == pytest.approx(0.5 * 4)
    for text, place in (
        ("0 a a\n", "contacts.txt, line 1"),
        ("0 a\n", "contacts.txt, line 1"),
        ("", "contacts.txt"),
    ):
        listed.write_text(text)
        with raises(InvalidFile, field=place):
            read_contacts(listed)
    listed.write_text("0 a b NUR PAT\n1 a c MED PAT\n")
    with raises(InvalidFile, field="contacts.txt, line 2"):
        read_contacts(listed)
    with raises(InvalidPrior, field="odds_per_hour"):
        contagion(contacts, background=0.1, odds_per_hour=0.5)


@pytest.mark.real_data
def test_the_ward_has_75_people() -> None:
    contacts = read_contacts(real("hospital_contacts.csv.gz"))
    assert len(contacts.people) == 75 and len(contacts.pairs) == 1139
    assert sum(contacts.seconds) == 20.0 * 32_424
