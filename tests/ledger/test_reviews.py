"""What an owner sees before new terms are accepted, and in which words cells differ."""

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from takifugu.errors import LedgerConflict, UnsoundRequest
from takifugu.ledger import Ledger, open_ledger
from takifugu.ledger.events.decisions import Terms, decimal_up
from tests.ledger.charges import DOUBLING, IDENTITY, charge
from tests.raising import raises

pytestmark = pytest.mark.nightly

OLD, NEW = Terms("prior", "secrets"), Terms("other", "secrets")


@pytest.fixture
def kept(folder: Path) -> Iterator[Ledger]:
    with open_ledger(folder / "ward.ledger", actor="olga") as ledger:
        yield ledger


@pytest.mark.parametrize("meanwhile", ["charged", "budget", "delta", "accepted", "nothing"])
def test_what_changed_since_it_was_seen_is_not_accepted(kept: Ledger, meanwhile: str) -> None:
    kept.set_budget("ward", 2)
    kept.charge(charge("0.25"), DOUBLING)
    seen = kept.review("ward", IDENTITY, DOUBLING)
    match meanwhile:
        case "charged":
            kept.charge(charge("0.25"), DOUBLING)
        case "budget":
            kept.set_budget("ward", 3)
        case "delta":
            kept.set_budget("ward", 2, delta="1e-6")
        case "accepted":
            kept.accept(NEW, seen)
    if meanwhile == "nothing":
        kept.accept(NEW, seen)
        return
    head = kept.head()
    with raises(LedgerConflict, reason="review", dataset="ward"):
        kept.accept(NEW, seen)
    assert kept.head() == head


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (0.0, "0"),
        (0.5, "0.5"),
        (1e-9, "0.000001"),
        (math.nextafter(0.5, 1), "0.500001"),
        (math.inf, "infinity"),
        (math.nan, "infinity"),
        (-1.0, "infinity"),
        (100.0, "100"),
    ],
)
def test_a_loss_is_written_in_millionths_rounded_up(value: float | None, text: str | None) -> None:
    assert decimal_up(value) == text


def test_there_is_nothing_to_accept_where_nothing_was_charged(kept: Ledger) -> None:
    from tests.ledger.charges import CELLS

    kept.set_budget("ward", 2)
    with raises(UnsoundRequest, field="dataset", reason="never charged"):
        kept.accept_cells("ward", CELLS, unchanged=True)
