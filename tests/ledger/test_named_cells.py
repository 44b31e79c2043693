"""What names cells and rows: in which words it differs, whose it is, and which rows are twins."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import LedgerDamaged
from takifugu.ledger import Cells, Ledger, open_ledger
from tests.contracts.ledger_people import rewritten
from tests.ledger.charges import CELLS, DOUBLING, charge
from tests.raising import raises

pytestmark = pytest.mark.nightly

OTHER = Cells.of({"source": {"kind": "csv", "path": "ward.csv"}, "entity": "family"})


@pytest.fixture
def kept(folder: Path) -> Iterator[Ledger]:
    with open_ledger(folder / "ward.ledger", witness=False) as ledger:
        for dataset in ("ward", "town"):
            ledger.set_budget(dataset, 8)
        yield ledger


# --- which event names them ---


def test_cells_of_one_dataset_are_counted_everywhere_and_those_of_others_are_not(
    kept: Ledger,
) -> None:
    for dataset in ("ward", "town"):
        kept.charge(charge("0.25", (0, 5), dataset=dataset), DOUBLING)
        kept.charge(charge("0.5", (5, 9), dataset=dataset), DOUBLING)
    kept.accept_cells("ward", OTHER)
    for dataset, cells in (("ward", OTHER), ("town", CELLS)):
        kept.charge(charge("1", (20, 30), dataset=dataset, cells=cells), DOUBLING)
    assert kept.spent("ward", DOUBLING) == 3 and kept.spent("town", DOUBLING) == 2
    assert kept.verify().sound


def test_cells_are_not_merged_where_events_do_not_add_up(kept: Ledger) -> None:
    kept.charge(charge("0.25"), DOUBLING)

    def less(body: dict[str, Any]) -> None:
        if body["kind"] == "charge":
            body["loss"]["epsilon"] = "1/8"

    rewritten(kept.name, less)
    with raises(LedgerDamaged, reason="totals"):
        kept.accept_cells("ward", OTHER)


@pytest.mark.parametrize("totals", [None, "", "0" * 63, "0" * 65])
def test_an_event_that_names_no_totals_releases_nothing(kept: Ledger, totals: str | None) -> None:
    def without(body: dict[str, Any]) -> None:
        body["totals"] = totals

    rewritten(kept.name, without)
    with raises(LedgerDamaged, reason="totals"):
        kept.charge(charge("0.25"), DOUBLING)


# --- twins ---


def test_a_state_of_the_data_is_compared_again_once_its_cells_have_other_names(
    kept: Ledger,
) -> None:
    assert not kept.knows_data("ward", "data")
    kept.charge(charge("0.25", sources=("path k:1", "bytes k:2")), DOUBLING)
    assert kept.knows_data("ward", "data")
    assert not kept.knows_data("ward", "other") and not kept.knows_data("town", "data")
    kept.accept_cells("town", OTHER)
    assert kept.knows_data("ward", "data")
    kept.accept_cells("ward", OTHER)
    assert not kept.knows_data("ward", "data")
    kept.charge(charge("0.25", cells=OTHER, sources=("path k:7", "bytes k:2")), DOUBLING)
    assert kept.knows_data("ward", "data")
    filed = [event.body["marks"] for event in kept.history(kind="source")]
    assert filed == [["bytes k:2", "path k:1"], ["bytes k:2", "path k:7"]]
