"""What is read from a ledger at its edges: pages, numbers of events, accounts that are missing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import LedgerDamaged, UnsoundRequest
from takifugu.ledger import Ledger, open_ledger
from takifugu.ledger.event_documents import export_part
from takifugu.ledger.ledger import MAX_EVENTS
from tests.ledger.charges import DOUBLING, charge
from tests.raising import raises

pytestmark = pytest.mark.nightly


@pytest.fixture
def kept(folder: Path) -> Iterator[Ledger]:
    """A ledger with a budget of "ward" and of "ana" in it, and three charges."""
    with open_ledger(folder / "ward.ledger") as ledger:
        ledger.set_budget("ward", 8)
        ledger.set_budget("ward", 4, analyst="ana")
        ledger.charge(charge("0.25", (0, 5), ["fr"], analyst="ana"), DOUBLING)
        ledger.charge(charge("0.5", (0, 5), ["de"], analyst="ana"), DOUBLING)
        ledger.charge(charge("0.125", (7, 9), analyst="ana"), DOUBLING)
        yield ledger


@pytest.mark.parametrize(
    "wrong",
    [
        {"after": -1},
        {"after": 2**63},
        {"limit": 0},
        {"limit": MAX_EVENTS + 1},
        {"before": -1},
        {"before": 2**63},
    ],
)
def test_a_page_has_bounds(kept: Ledger, wrong: dict[str, Any]) -> None:
    with raises(UnsoundRequest, field="limit", needed=MAX_EVENTS):
        kept.events(**wrong)


def test_parts_of_an_export_make_the_whole_and_go_no_further(kept: Ledger, folder: Path) -> None:
    kept.export(folder / "events")
    whole = (folder / "events").read_bytes()
    for most in (1, 2, 5, 100):
        parts, after = b"", 0
        while after < 6:
            part, after = export_part(kept, after, 6, most)
            parts += part
        assert parts == whole
    part, after = export_part(kept, 2, 4, 100)  # none after the one that was last
    assert after == 4 and part.count(b"\n") == 2 and part in whole
    with raises(LedgerDamaged, reason="missing", event=7):
        export_part(kept, 6, 9, 100)
