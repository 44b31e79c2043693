"""Synthetic contact lists: their sizes are those asked for, and the school is translated."""

import numpy as np
import pytest

from takifugu.errors import UnsoundRequest
from takifugu.priors import Secrets, contagion
from takifugu.synthetic import contact_list, school
from takifugu.translation.bounds import LooserTranslation
from takifugu.translation.models.networks import NetworkTransport
from tests.raising import raises


def test_people_pairs_and_contacts_are_as_many_as_asked_for() -> None:
    rng = np.random.default_rng(3)
    for people, pairs, contacts, groups in ((242, 8317, 125_773, 10), (2, 1, 1, 2), (9, 30, 30, 1)):
        made = contact_list(people, pairs, contacts, groups=groups, rng=rng)
        assert (len(made.people), len(made.pairs)) == (people, pairs)
        assert sum(made.seconds) == 20.0 * contacts and min(made.seconds) >= 20.0
        assert len(set(made.roles)) == groups
    within = [a for a, b in made.pairs if a == b]
    assert not within


def test_groups_meet_more_often_and_a_few_pairs_for_hours() -> None:
    made = school(rng=np.random.default_rng(1))
    role = dict(zip(made.people, made.roles, strict=True))
    seconds = np.array(made.seconds)
    same = np.array([role[a] == role[b] for a, b in made.pairs])
    assert same.sum() == 10 * 24 * 23 / 2 + 2 * 24  # all pairs of ten classes, two of them of 25
    assert np.median(seconds[same]) > 3 * np.median(seconds[~same])
    assert np.median(seconds) < 300 and np.sort(seconds)[-10] > 3600


def test_what_cannot_be_is_refused() -> None:
    rng = np.random.default_rng(0)
    for people, pairs, contacts, groups in ((3, 4, 9, 1), (3, 2, 1, 1), (3, 2, 9, 4), (3, 0, 9, 1)):
        with raises(UnsoundRequest, field="pairs"):
            contact_list(people, pairs, contacts, groups=groups, rng=rng)


@pytest.mark.nightly
def test_a_school_is_bounded_from_both_sides() -> None:
    prior = contagion(school(rng=np.random.default_rng(1)), background=0.02, odds_per_hour=1.5)
    transport = NetworkTransport(prior, Secrets())
    for epsilon in (0.01, 0.6):
        bound = transport.uniform(epsilon)
        leak = transport.witness(epsilon, bound).leak
        assert epsilon < leak <= bound.value <= 1.02 * leak
    allowed = transport.largest(1.0)
    assert transport.uniform(allowed).value == pytest.approx(1.0, rel=0.005)


@pytest.mark.nightly
def test_a_school_that_infects_everybody_is_bounded_with_a_word_on_what_was_given_up() -> None:
    made = school(rng=np.random.default_rng(1))
    transport = NetworkTransport(contagion(made, background=0.1, odds_per_hour=4.0), Secrets())
    with pytest.warns(LooserTranslation, match="given up"):
        bound = transport.uniform(0.1)
    leak = transport.witness(0.1, bound).leak
    assert 0.1 <= leak < bound.value / 1.1 and bound.value <= 24.2 * (1 + 1e-12)
