"""One event after another: what is written, what is remembered, and what is missing or broken."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import LedgerDamaged
from takifugu.ledger import Ledger, open_ledger
from tests.contracts.ledger_people import rewritten
from tests.ledger.charges import DOUBLING, charge
from tests.raising import raises

pytestmark = pytest.mark.nightly

NOON = datetime(2027, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def path(folder: Path) -> str:
    return str(folder / "ward.ledger")


@pytest.fixture
def kept(path: str) -> Iterator[Ledger]:
    hours = count()
    with open_ledger(
        path, witness=False, actor="olga", clock=lambda: NOON + timedelta(hours=next(hours))
    ) as ledger:
        ledger.set_budget("ward", 2, delta="1/8")
        yield ledger


# --- what is missing or broken ---


@pytest.mark.parametrize("totals", [None, "", "0" * 63, "0" * 65])
def test_an_event_that_names_no_totals_releases_nothing(
    kept: Ledger, path: str, totals: str | None
) -> None:
    def without(body: dict[str, Any]) -> None:
        body["totals"] = totals

    rewritten(path, without)
    with raises(LedgerDamaged, reason="totals"):
        kept.charge(charge("0.25"), DOUBLING)


def test_where_the_clock_went_back_answers_keep_the_time_of_their_charge(path: str) -> None:
    minute = [0]
    with open_ledger(path, clock=lambda: NOON + timedelta(minutes=minute[0])) as ledger:
        minute[0] = 10
        ledger.set_budget("ward", 2)
        minute[0] = 20
        first = ledger.charge(charge("0.25"), DOUBLING)
        minute[0] = 5
        ledger.charge(charge("0.125"), DOUBLING)
        minute[0] = 40
        ledger.record_answer(first, 7)
        ledger.set_budget("ward", 3)
        found = [(event.at, event.body.get("clock_behind")) for event in ledger.history()]
    assert [(at - NOON) // timedelta(minutes=1) for at, _ in found] == [0, 10, 20, 5, 20, 40]
    assert [behind for _, behind in found] == [None, None, None, "0:15:00", None, None]
