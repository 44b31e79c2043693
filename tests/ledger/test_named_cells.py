"""What names cells and rows: in which words it differs, whose it is, and which rows are twins."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import CellsChanged, LedgerDamaged, SameRows
from takifugu.ledger import Cells, Ledger, open_ledger
from takifugu.ledger.events import cell_naming
from tests.contracts.ledger_people import rewritten
from tests.ledger.charges import CELLS, DOUBLING, charge
from tests.raising import raises

pytestmark = pytest.mark.nightly

MOVED = Cells.of({"source": {"kind": "csv", "path": "moved.csv"}, "entity": "person"})
OTHER = Cells.of({"source": {"kind": "csv", "path": "ward.csv"}, "entity": "family"})


@pytest.fixture
def kept(folder: Path) -> Iterator[Ledger]:
    with open_ledger(folder / "ward.ledger", witness=False) as ledger:
        for dataset in ("ward", "town"):
            ledger.set_budget(dataset, 8)
        yield ledger


# --- words ---


def told(before: Any, now: Any) -> tuple[str, str]:
    (one,) = cell_naming.differences({"part": before}, {"part": now})
    assert one.part == "part" and str(one) == f"part was {one.before} and is now {one.now}"
    return one.before, one.now


def test_letters_that_look_the_same_are_told_apart() -> None:
    assert told("caf\u00e9", "cafe\u0301") == ('"caf\\u00e9"', '"cafe\\u0301"')


# --- which event names them ---


def compared(ledger: Ledger, cells: Cells) -> tuple[bool, tuple[str, ...] | None]:
    with ledger._store.reading() as connection:
        return cell_naming.compare(connection, "ward", cells)


def test_charges_that_do_not_name_their_cells_are_not_the_first(kept: Ledger) -> None:
    kept.charge(charge("0.25"), DOUBLING)

    def earlier(body: dict[str, Any]) -> None:
        body.pop("cells", None)  # as an earlier version wrote it

    rewritten(kept.name, earlier)
    assert compared(kept, CELLS) == (False, ())


def test_a_decision_on_cells_says_what_was_decided(kept: Ledger) -> None:
    kept.charge(charge("0.25"), DOUBLING)
    body = kept.accept_cells("ward", MOVED, unchanged=True).body
    names = ("dataset", "analyst", "cells", "naming", "how", "before")
    assert {name: body[name] for name in names} == {
        "dataset": "ward",
        "analyst": None,
        "cells": MOVED.fingerprint,
        "naming": MOVED.parts,
        "how": "unchanged",
        "before": CELLS.fingerprint,
    }
    first = kept.accept_cells("town", OTHER).body  # before anything was charged to it
    assert (first["how"], first["before"]) == ("everywhere", None)
    kept.charge(charge("0.25", dataset="town", cells=OTHER), DOUBLING)
    with pytest.raises(CellsChanged):
        kept.charge(charge("0.25", dataset="town"), DOUBLING)


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


# --- twins ---

MARKS = ("path k:1", "bytes k:2", "table k:3", "content k:4", "rows k:5")


@pytest.mark.parametrize(
    ("marks", "same"),
    [
        (["path k:1"], "the same file"),
        (["bytes k:2"], "a file with the same bytes"),
        (["table k:3"], "the same table"),
        (["content k:4"], "rows of the same entities at the same places in the order"),
        (["rows k:5"], "the same rows"),
        (["rows k:5", "content k:4", "table k:9"],
         "rows of the same entities at the same places in the order"),
        (["bytes k:2", "path k:1"], "the same file"),
    ],
)  # fmt: skip
def test_what_two_datasets_share_is_told(kept: Ledger, marks: list[str], same: str) -> None:
    kept.charge(charge("0.25", sources=MARKS), DOUBLING)
    with kept._store.reading() as connection:
        with raises(SameRows, other="ward", same=same):
            cell_naming.refuse_twins(connection, "town", marks)
        cell_naming.refuse_twins(connection, "ward", marks)  # itself
        cell_naming.refuse_twins(connection, "town", ["path k:8"])
        cell_naming.refuse_twins(connection, "town", [])


def test_a_twin_is_named_before_one_that_cannot_be_compared(kept: Ledger) -> None:
    for place, (dataset, marks) in enumerate(
        {"a": ("path z:1",), "b": ("path y:1",), "ward": ("path k:1", "bytes z:9")}.items()
    ):
        kept.set_budget(dataset, 8)
        if place:
            kept.count_separately(dataset, "a")
        if place > 1:
            kept.count_separately("b", dataset)
        kept.charge(charge("0.25", dataset=dataset, sources=marks), DOUBLING)
    with kept._store.reading() as connection:
        with raises(SameRows, other="ward", same="the same file"):
            cell_naming.refuse_twins(connection, "town", ["path k:1"])
        with raises(SameRows, other="a", same=None):
            cell_naming.refuse_twins(connection, "town", ["path k:8"])
        with raises(SameRows, other="b", same=None):
            cell_naming.refuse_twins(connection, "town", ["path z:8"])
        cell_naming.refuse_twins(connection, "town", ["path z:8", "bytes y:8"])
        apart = [cell_naming.separated(connection, name) for name in ("a", "b", "ward", "town")]
    assert apart == [{"b", "ward"}, {"a", "ward"}, {"a", "b"}, set()]


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
