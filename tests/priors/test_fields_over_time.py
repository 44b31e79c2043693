"""Fields over people and time: entries by name, couplings where they belong, exact small laws."""

from itertools import product
from math import exp, log
from pathlib import Path

import numpy as np
import pytest

from takifugu.errors import InvalidFile, InvalidPrior, TooLarge
from takifugu.priors import (
    Contacts,
    Secrets,
    contagion,
    contagion_over_time,
    field_over_time,
    from_document,
    read_contact_slices,
    read_contacts,
)
from takifugu.translation.bounds import LooserTranslation
from takifugu.translation.models.networks import NetworkTransport
from tests.oracles import cost_programs
from tests.oracles import translation as oracle
from tests.raising import raises
from tests.translation.rising_fields import walk_losses

HOUR = 3600.0


def met(*pairs: tuple[str, str], hours: float = 1.0) -> Contacts:
    return Contacts(("ann", "bob", "cem"), ("", "", ""), pairs, (hours * HOUR,) * len(pairs))


def test_the_law_is_the_product_that_is_stated() -> None:
    slices = (met(("ann", "bob")), met(("bob", "cem"), hours=5.0))
    prior = contagion_over_time(slices, background=0.1, odds_per_hour=2.0, again=7.0, most=4.0)
    assert prior.entries == ("ann: 0", "ann: 1", "bob: 0", "bob: 1", "cem: 0", "cem: 1")
    law = prior.explicit().probability
    weights = []
    for a0, a1, b0, b1, c0, c1 in product((0, 1), repeat=6):
        weight = 0.1 ** (a0 + a1 + b0 + b1 + c0 + c1) * 7.0 ** (a0 * a1 + b0 * b1 + c0 * c1)
        weights.append(weight * 2.0 ** (a0 * b0) * 4.0 ** (b1 * c1))  # 2^5 is cut off at 4
    assert law == pytest.approx(np.array(weights) / sum(weights), rel=1e-12)
    assert from_document(prior.to_document()) == prior


def test_one_position_is_plain_contagion() -> None:
    contacts = met(("ann", "bob"), ("ann", "cem"))
    plain = contagion(contacts, background=0.1, odds_per_hour=2.0)
    timed = contagion_over_time([contacts], background=0.1, odds_per_hour=2.0, again=9.0)
    assert timed.explicit().probability == pytest.approx(plain.explicit().probability)


def test_three_people_at_three_times() -> None:
    """Spins of ±1 with J = .8 in time and .05 between people, written with zeros and ones."""
    people = ("ann", "bob", "cem")
    near = [("ann", "bob"), ("bob", "cem")]
    spins = field_over_time(
        people,
        field=0.0,
        onward=4 * 0.8,
        between=[dict.fromkeys(near, 4 * 0.05)] * 3,
    )
    pulls = dict.fromkeys(spins.entries, 0.0)
    for (one, other), table in zip(spins.edges, spins.weights, strict=True):
        pulls[one] -= log(table[1, 1]) / 2
        pulls[other] -= log(table[1, 1]) / 2
    middle = spins.entries.index("bob: 1")
    weights = {e: [1.0, exp(pulls[e])] for e in spins.entries}
    centred = from_document(
        spins.to_document()
        | {"entries": [{"name": e, "states": [0, 1], "weights": weights[e]} for e in spins.entries]}
    )
    plain = walk_losses(centred, 0.5, depth=0).by_entry[middle]  # type: ignore[arg-type]
    walked = walk_losses(centred, 0.5).by_entry[middle]  # type: ignore[arg-type]
    assert plain == pytest.approx(1.42490, abs=1e-5)
    assert walked == pytest.approx(1.41427, abs=1e-5)
    bound = NetworkTransport(centred, Secrets()).uniform(0.5)  # type: ignore[arg-type]
    assert bound.by_entry is not None
    assert bound.by_entry[middle] == pytest.approx(1.38310, abs=1e-5)


@pytest.mark.parametrize("onward", [0.0, 1.0, 20.0, -1.0, -20.0])
def test_no_mechanism_loses_more_than_the_bound(onward: float) -> None:
    rng = np.random.default_rng(4)
    prior = field_over_time(
        ("ann", "bob"),
        field={"ann": -1.0, "bob": 0.5},
        onward=onward,
        between=[{("ann", "bob"): float(rng.normal())} for _ in range(2)],
    )
    transport = NetworkTransport(prior, Secrets())
    law = prior.explicit().probability.reshape(2, 2, 2, 2)
    for epsilon in (1e-300, 0.3, 2.0):
        found = transport.uniform(epsilon)
        witness = transport.witness(epsilon, found)
        assert epsilon <= found.value <= 4 * epsilon * (1 + 1e-9) + 1e-14
        if epsilon < 1e-6:  # below the rounding of the sums: no leak is shown
            assert 0 <= witness.leak <= found.value
            continue
        assert epsilon * (1 - 1e-9) <= witness.leak <= found.value
        costs = [cost_programs.any_value(2, epsilon)] * 4
        for entry, (x, y) in product(range(4), ((0, 1), (1, 0))):
            assert found.by_entry is not None
            solved = cost_programs.pair_loss(law, costs, entry, x, y)
            assert found.by_entry[entry] >= solved.lower - 1e-9


def test_counting_infections_loses_what_enumeration_says() -> None:
    slices = (met(("ann", "bob")), met(("ann", "cem")), met(("bob", "cem")))
    prior = contagion_over_time(slices, background=0.05, odds_per_hour=3.0, again=12.0)
    law = prior.explicit().probability
    found = NetworkTransport(prior, Secrets()).uniform(0.4)
    assert found.by_entry is not None
    for entry in range(9):
        truth = max(
            float(oracle.attractive_loss(law, (2,) * 9, entry, value, (0.4,) * 9))
            for value in (0, 1)
        )
        assert found.by_entry[entry] == pytest.approx(truth, rel=1e-9)


@pytest.mark.nightly
def test_2250_entries_are_bounded_from_both_sides() -> None:
    rng = np.random.default_rng(6)
    people = tuple(f"p{i}" for i in range(75))
    between = []
    for _ in range(30):
        pairs = rng.choice(75, size=(150, 2))
        between.append(
            {
                (people[min(i, j)], people[max(i, j)]): float(rng.exponential(0.08))
                for i, j in pairs.tolist()
                if i != j
            }
        )
    prior = field_over_time(people, field=log(0.02), onward=log(8.0), between=between)
    assert len(prior.entries) == 2250 and prior.entries[31] == "p1: 1"
    transport = NetworkTransport(prior, Secrets())
    for epsilon in (0.05, 0.3):
        bound = transport.uniform(epsilon)
        leak = transport.witness(epsilon, bound).leak
        assert epsilon < leak <= bound.value <= 1.1 * leak
    repelling = field_over_time(
        people, field=-1.0, onward=0.5, between=[{k: -v for k, v in m.items()} for m in between]
    )
    with pytest.warns(LooserTranslation, match="walks"):
        mixed = NetworkTransport(repelling, Secrets()).uniform(0.1)
    assert 0.1 < mixed.value < 0.2 and mixed.by_entry is not None and len(mixed.by_entry) == 2250


def test_contacts_are_cut_into_days_or_stretches(tmp_path: Path) -> None:
    listed = tmp_path / "contacts.txt"
    day = 86_400
    listed.write_text(f"{day + 60} a b\n{day + 80} a b\n{day + 100} b c\n{3 * day} a c\n")
    days = read_contact_slices(listed)
    assert [one.pairs for one in days] == [(("a", "b"), ("b", "c")), (), (("a", "c"),)]
    assert days[0].seconds == (40.0, 20.0) and all(one.people == ("a", "b", "c") for one in days)
    halves = read_contact_slices(listed, times=2, seconds=30)
    assert [one.pairs for one in halves] == [(("a", "b"), ("b", "c")), (("a", "c"),)]
    whole = read_contact_slices(listed, times=1)[0]
    assert whole == read_contacts(listed)
    listed.write_text("0 a b\n1e15 a b\n")
    with raises(InvalidFile, reason="span"):
        read_contact_slices(listed)
    for times in (0, True, 10**9):
        with raises(InvalidPrior, field="times"):
            read_contact_slices(listed, times=times)


def test_what_is_not_a_field_over_time_is_refused() -> None:
    people = ("ann", "bob")
    pull = {("ann", "bob"): 0.1}
    for given, field in (
        ({"people": ()}, "people"),
        ({"people": ("1", 1)}, "people"),
        ({"between": []}, "between"),
        ({"between": [{("ann", "cem"): 0.1}]}, "between, 0"),
        ({"between": [pull, {("ann", "ann"): 0.1}]}, "between, 1"),
        ({"between": [{**pull, ("bob", "ann"): 0.2}]}, "edges"),
        ({"field": {"ann": 0.0}}, "field"),
        ({"onward": float("nan")}, "coupling"),
    ):
        options = {"people": people, "field": 0.0, "onward": 0.1, "between": [pull, {}]} | given
        with raises(InvalidPrior, field=field):
            field_over_time(options.pop("people"), **options)  # type: ignore[arg-type]
    with raises(TooLarge, field="between"):
        field_over_time(tuple(map(str, range(1000))), field=0.0, onward=0.0, between=[{}] * 101)
    slices = (met(("ann", "bob")),)
    for background, per_hour, again, field in (
        (0.0, 2.0, 2.0, "background"),
        (0.1, 0.9, 2.0, "odds_per_hour"),
        (0.1, 2.0, 0.5, "again"),
        (0.1, 2.0, float("nan"), "again"),
    ):
        with raises(InvalidPrior, field=field):
            contagion_over_time(slices, background=background, odds_per_hour=per_hour, again=again)
    other = Contacts(("ann", "bob"), ("", ""), (), ())
    with raises(InvalidPrior, field="slices", reason="people-differ"):
        contagion_over_time((*slices, other), background=0.1, odds_per_hour=2.0, again=2.0)
