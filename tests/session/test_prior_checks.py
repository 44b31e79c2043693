"""Priors of every kind in a session: what one draw is, what fits, and what the guarantee says."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from takifugu.declarations import Category
from takifugu.errors import UnsoundRequest
from takifugu.fitting import FirstDays, fit
from takifugu.priors import (
    AR1,
    Covariance,
    Explicit,
    Gaussian,
    IndependentEntries,
    MarkovChain,
    Secrets,
    TruncatedGaussian,
    Universe,
)
from takifugu.priors.independent import Product
from takifugu.session import Session
from takifugu.translation.translation import Translation
from tests.raising import raises
from tests.session.world import CHAIN, STATES, TRANSLATION, WEIGHT, opened, said

ILL = ("well", "ill")


def ward(people: int) -> dict[str, Any]:
    """One row for each person: who is ill may depend on who else is."""
    rows = [(f"p{i}", 0, "a", ILL[i % 2], 0) for i in range(people)]
    return {"rows": rows, "protected": (Category("state", ILL, "refuse"),)}


def test_values_of_every_entry_must_be_the_labels(tmp_path: Path) -> None:
    for states in (("well", "sick"), ("well", "ill", "dead")):
        wrong = IndependentEntries({"x": dict.fromkeys(states, 1 / len(states))})
        with (
            raises(UnsoundRequest, reason="states-differ", given=states, needed=("well", "ill")),
            opened(tmp_path, translation=Translation(wrong), **ward(1)),
        ):
            pass
    coin = IndependentEntries({"x": {"well": 0.5, "ill": 0.5}})
    with opened(tmp_path, translation=Translation(coin), **ward(9)) as (session, _, _):
        assert "independent entries of 1 entries" in said(session)  # people are independent anyway
        assert "independent of every other one" in said(session)


def test_text_and_whole_numbers_are_told_apart_in_the_refusal(tmp_path: Path) -> None:
    texts = MarkovChain(np.array([[0.8, 0.2], [0.3, 0.7]]), states=("1", "2"), length=4)
    numbered = (Category("state", (1, 2), "refuse"),)
    rows = [("ann", step, "a", 1 + step % 2, 0) for step in range(4)]
    with (
        raises(UnsoundRequest, reason="types-differ", given=("1", "2"), needed=(1, 2)) as caught,
        opened(tmp_path, rows=rows, translation=Translation(texts), protected=numbered),
    ):
        pass
    assert "Prior: '1', '2'; labels: 1, 2;" in str(caught.value)


def test_a_state_may_stand_for_what_is_dropped(tmp_path: Path) -> None:
    three = MarkovChain(np.array([[0.5, 0.3, 0.2]] * 3), states=(*STATES, "away"), length=4)
    dropping = (Category("state", STATES, "drop"),)
    with opened(tmp_path, translation=Translation(three), protected=dropping):
        pass
    with opened(tmp_path, translation=TRANSLATION, protected=dropping):
        pass
    with (
        raises(UnsoundRequest, reason="states-differ", needed=STATES),
        opened(tmp_path, translation=Translation(three)),
    ):
        pass


def test_numbers_may_follow_a_gaussian_or_ranges(tmp_path: Path) -> None:
    wave = TruncatedGaussian(np.eye(4) + 0.1, bound=4.0, width=1.0)
    how = {"over": "sequence"}
    with opened(tmp_path, translation=Translation(wave), how=how, protected=(WEIGHT,)) as (
        session, _, _,
    ):  # fmt: skip
        assert "a truncated Gaussian of 4 entries" in said(session) and "ranges" not in said(
            session
        )
    far = replace(WEIGHT, high=Fraction(5))
    for protected in ((far,), (Category("state", STATES, "refuse"),)):
        with (
            raises(UnsoundRequest, reason="bounds", given=4.0),
            opened(tmp_path, translation=Translation(wave), how=how, protected=protected),
        ):
            pass
    levels = Translation(MarkovChain(np.array([[0.8, 0.2], [0.3, 0.7]]), length=4))
    with opened(tmp_path, translation=levels, protected=(WEIGHT,)) as (session, _, _):
        assert "stand for ranges of `weight`" in said(session)


@pytest.mark.nightly
def test_numbers_may_follow_a_process(tmp_path: Path) -> None:
    near, counted = Secrets(within="0.5"), replace(WEIGHT, missing="refuse")
    process = Translation(Gaussian(AR1(0.5), 4, mean=2.0), near)
    written = Translation(Gaussian(Covariance(np.eye(4) + 0.1)), near)
    with (
        raises(UnsoundRequest, reason="over-missing"),
        opened(tmp_path, translation=written, protected=(counted,)),
    ):
        pass
    with opened(tmp_path, translation=written, protected=(counted,), how={"over": "sequence"}):
        pass
    people = Translation(Product({"Ann": Gaussian(AR1(0.5)), "Bea": Gaussian(AR1(0.2), 2)}), near)
    with opened(tmp_path, translation=people, protected=(counted,)) as (session, _, _):
        assert "jointly normal" in said(session) and "ranges" not in said(session)
    with opened(tmp_path, translation=process, protected=(counted,)) as (session, _, _):
        assert "a Gaussian process of 4 entries" in said(session) and "ranges" not in said(session)
        assert "which of two numbers it is that are at most 0.5 apart" in said(session)
        assert "jointly normal" in said(session)
        assert session.release(session.plan.sum(epsilon=1), accept_noise=True).cost.alone <= 1
        assert session.release(session.plan.mean(epsilon=1), accept_noise=True).cost.alone <= 1


def test_a_process_is_about_a_sequence_of_numbers_without_gaps(tmp_path: Path) -> None:
    process = Translation(Gaussian(AR1(0.5), 4), Secrets(within=1))
    for protected in (WEIGHT, replace(WEIGHT, missing="drop"), Category("state", STATES, "refuse")):
        with (
            raises(UnsoundRequest, reason="numbers"),
            opened(tmp_path, translation=process, protected=(protected,)),
        ):
            pass
    counted = replace(WEIGHT, missing="refuse")
    with (
        raises(UnsoundRequest, reason="over", needed="sequence"),
        opened(tmp_path, translation=process, protected=(counted,), how={"over": "entities"}),
    ):
        pass
    short = Translation(Gaussian(AR1(0.5), 3), Secrets(within=1))
    with (
        raises(UnsoundRequest, reason="too-short", given=3, needed=4),
        opened(tmp_path, translation=short, protected=(counted,)),
    ):
        pass


def test_a_prior_over_whole_datasets_is_refused(tmp_path: Path) -> None:
    weather = Explicit(Universe(("rain", "shine")), np.array([0.25, 0.75]))
    with (
        raises(UnsoundRequest, reason="no-entries"),
        opened(tmp_path, translation=Translation(weather)),
    ):
        pass


def test_priors_of_different_lengths_are_refused_by_name(tmp_path: Path) -> None:
    other = MarkovChain(np.array([[0.5, 0.5]] * 2), states=STATES)
    both = Translation({"one": CHAIN, "other": other})
    with (
        raises(UnsoundRequest, reason="sizes-differ", given={"one": 4, "other": None}),
        opened(tmp_path, translation=both),
    ):
        pass


@pytest.mark.nightly
def test_how_a_prior_was_fitted_is_part_of_the_guarantee(tmp_path: Path) -> None:
    with opened(tmp_path) as (session, ledger, engine):
        assert "published policy" not in said(session)
        fitted = fit(engine, "state", split=FirstDays(2), unseen="uniform", length=4)
        told = Session(
            engine,
            Translation(fitted.chain),
            ledger=ledger,
            dataset="visits",
            statement=fitted.statement,
        )
        assert said(told).count(" ".join(fitted.statement.split())) == 1
        found = told.release(told.plan.histogram(window=(2, None), epsilon=1), accept_noise=True)
        assert "fitted on the first 2 steps of" in " ".join(found.guarantee.split())
