"""What an owner decides is written in full: every part of every event, and its actor and time."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from takifugu.costs.losses import Total
from takifugu.ledger import Event, Ledger, Terms, open_ledger
from takifugu.ledger.events.decisions import Review
from takifugu.ledger.frontier import ZERO
from tests.ledger.charges import CELLS, DOUBLING, IDENTITY, charge

pytestmark = pytest.mark.nightly

BEGAN = datetime(2027, 1, 1, 12, tzinfo=timezone(timedelta(hours=9)))
OLD, NEW = Terms("prior", "secrets"), Terms("another prior", "other secrets")
MADE = {"v", "seq", "kind", "at", "totals", "witness"}  # parts that every event has


class Clock:
    """An hour further each time it is asked."""

    def __init__(self) -> None:
        self.shown = BEGAN

    def __call__(self) -> datetime:
        """The next hour."""
        self.shown += timedelta(hours=1)
        return self.shown


@pytest.fixture
def kept(folder: Path) -> Iterator[Ledger]:
    """A ledger whose clock stands far from Greenwich."""
    with open_ledger(folder / "ward.ledger", actor="olga", clock=Clock(), witness=False) as ledger:
        yield ledger


def content(event: Event) -> Mapping[str, Any]:
    """What an event says beside its number, kind and time."""
    return {name: part for name, part in event.body.items() if name not in MADE}


def written(ledger: Ledger, event: Event) -> Mapping[str, Any]:
    """The content of the last event, once it is known that it is the one that was returned."""
    (last,) = ledger.history(last=1)
    assert last == event
    assert isinstance(ledger._clock, Clock)
    assert event.at == ledger._clock.shown and event.at.tzinfo is UTC
    return content(event)


def test_budgets_partitions_and_pairs_are_written_as_they_were_decided(kept: Ledger) -> None:
    event = kept.set_budget("ward", "2.5", delta="1e-3")
    told = {"dataset": "ward", "analyst": None, "epsilon": "5/2", "delta": "1/1000"}
    assert event.kind == "budget" and written(kept, event) == told | {"actor": "olga"}
    event = kept.acting("otto").set_budget("ward", 1, analyst="ana")
    told = {"dataset": "ward", "analyst": "ana", "epsilon": "1/1", "delta": "0/1", "actor": "otto"}
    assert event.kind == "budget" and written(kept, event) == told
    event = kept.set_partition("ward", ("zone", "age"))
    told = {"dataset": "ward", "analyst": None, "actor": "olga"}
    assert event.kind == "partition"
    assert written(kept, event) == told | {"columns": ["age", "zone"]}
    event = kept.count_separately("ward", "annex")
    assert event.kind == "separate" and written(kept, event) == told | {"other": "annex"}
    assert kept.counted_separately("annex") == {"ward"}
    assert kept.counted_separately("elsewhere") == frozenset()


def test_the_first_budget_of_a_dataset_is_written_once(kept: Ledger) -> None:
    kept.set_budget("ward", 3, analyst="ana")
    assert kept.begin_budget("ward", "1/3", delta="1/7") == (Fraction(1, 3), Fraction(1, 7))
    (event,) = kept.history(last=1)
    told = {"dataset": "ward", "analyst": None, "epsilon": "1/3", "delta": "1/7", "actor": "olga"}
    assert event.kind == "budget" and written(kept, event) == told
    assert kept.begin_budget("ward", 5) == (Fraction(1, 3), Fraction(1, 7))
    assert kept.begin_budget("annex", 5) == (Fraction(5), Fraction(0))
    found = {(one.dataset, one.analyst): (one.epsilon, one.delta) for one in kept.positions()}
    assert found == {
        ("ward", None): (Fraction(1, 3), Fraction(1, 7)),
        ("ward", "ana"): (Fraction(3), Fraction(0)),
        ("annex", None): (Fraction(5), Fraction(0)),
    }
    assert kept.verify().sound


def test_cells_are_accepted_as_renamed_or_as_unchanged(kept: Ledger) -> None:
    kept.set_budget("ward", 8)
    kept.charge(charge("0.25", (0, 5)), DOUBLING)
    told = {"dataset": "ward", "analyst": None, "naming": CELLS.parts, "actor": "olga"}
    told |= {"cells": CELLS.fingerprint, "before": CELLS.fingerprint}
    event = kept.accept_cells("ward", CELLS, unchanged=True)
    assert event.kind == "cells" and written(kept, event) == told | {"how": "unchanged"}
    event = kept.accept_cells("ward", CELLS)
    everywhere = told | {"how": "everywhere", "costs": "by value"}
    assert event.kind == "cells" and written(kept, event) == everywhere


def test_terms_are_reviewed_accepted_and_entered_in_full(kept: Ledger) -> None:
    kept.set_budget("ward", 8, delta="1/50")
    kept.charge(charge("0.25"), DOUBLING)
    seen = kept.review("ward", IDENTITY, DOUBLING)
    assert seen == Review(
        "ward", OLD, Fraction(8), Fraction(1, 50), (Total(Fraction(1, 4)),), 0.5, 0.25
    )
    event = kept.acting("otto").accept(NEW, seen, fit="new")
    assert event.kind == "accepted"
    assert written(kept, event) == {
        "dataset": "ward",
        "analyst": None,
        "prior": "another prior",
        "secrets": "other secrets",
        "before": {"prior": "prior", "secrets": "secrets"},
        "budget": "8",
        "budget_delta": "1/50",
        "spent_before": "0.5",
        "spent_after": "0.25",
        "details": {"fit": "new"},
        "actor": "otto",
    }
    event = kept.acting("otto").enter_policy("ward", OLD, {"rows": 3})
    assert event.kind == "policy"
    assert written(kept, event) == {
        "dataset": "ward",
        "analyst": None,
        "prior": "prior",
        "secrets": "secrets",
        "details": {"rows": 3},
        "actor": "otto",
    }
    assert kept.review("annex", IDENTITY) == Review(
        "annex", None, None, Fraction(0), (ZERO,), 0.0, 0.0
    )


def test_access_is_written_in_full_and_without_an_end_if_it_has_none(kept: Ledger) -> None:
    told = {"dataset": None, "analyst": None, "actor": "olga"}
    token: dict[str, Any] = {"name": "ana", "role": "analyst", "token": "t1"}
    event = kept.record_access("revoked", **token)
    assert event.kind == "access"
    assert written(kept, event) == told | token | {"how": "revoked", "expires": None}
    event = kept.record_access("made", **token, expires=BEGAN)
    ends = {"how": "made", "expires": "2027-01-01T12:00:00+09:00"}
    assert written(kept, event) == told | token | ends


ASKED: dict[str, Any] = {
    "dataset": "ward",
    "analyst": "ana",
    "question": "which",
    "words": "stays",
    "epsilon": "1/3",
}


@pytest.mark.parametrize("request_", [None, "r1"])
@pytest.mark.parametrize("analyst", [None, "ana"])
def test_a_decision_is_written_in_full(
    kept: Ledger, request_: str | None, analyst: str | None
) -> None:
    accepted = kept.accept(OLD, kept.review("ward", DOUBLING)).seq
    kept.accept(NEW, kept.review("annex", DOUBLING))
    asked = ASKED | {"analyst": analyst}
    named: dict[str, Any] = {} if request_ is None else {"request": request_}
    bound = {} if request_ is None else named | {"bound": True}
    for decide, decision in ((kept.approve, "approved"), (kept.refuse_request, "refused")):
        event = decide(**asked, **named)
        assert event.kind == "approval"
        told = asked | bound | {"decision": decision, "under": accepted, "actor": "olga"}
        assert written(kept, event) == told
    event = kept.approve(**asked | {"dataset": "elsewhere"})
    assert content(event)["under"] is None


def test_a_check_without_a_request_sees_no_decision(kept: Ledger) -> None:
    """A decision on the query alone is none on a request."""
    seen: list[Event | None] = []
    for _ in range(2):
        kept.approve(**ASKED, check=seen.append)
    first = kept.approve(**ASKED, request="r1", check=seen.append)
    kept.approve(**ASKED, check=seen.append)
    kept.approve(**ASKED | {"question": "another"}, request="r1", check=seen.append)
    kept.refuse_request(**ASKED, request="r1", check=seen.append)
    assert seen == [None, None, None, None, None, first]
    with kept.decision_on("another", "r1") as last:
        assert last is not None and last.body["decision"] == "approved"
