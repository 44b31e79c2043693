"""A ledger knows what its cells are: another declaration is refused until its owner decides."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.costs.losses import Concentrated, Pure, Total
from takifugu.errors import (
    BudgetExceeded,
    CellsChanged,
    InvalidCharge,
    LedgerConflict,
    LedgerDamaged,
    NoBudget,
    SameRows,
    UnsoundRequest,
)
from takifugu.ledger import Cells, Charge, Ledger, Terms, begin_witness, open_ledger
from takifugu.translation.protocol import LossTranslation
from tests.contracts.ledger_people import rewritten
from tests.ledger.charges import CELLS, DOUBLING, KNOWN, RICH, charge, count
from tests.raising import raises

OLD = Path(__file__).with_name("before_cells.sql")  # as written before charges named their cells
RENAMED = Path(__file__).with_name("before_scalars.sql")  # by a version that left costs by value
PARTS: dict[str, Any] = {
    "source": {"kind": "csv", "path": "ward.csv"},
    "entity": "person",
    "order": {"column": "at", "kind": "time", "zone": "Asia/Jakarta", "ties": []},
    "public": {"zone": {"values": ["north", "south"], "outside": "refuse"}},
}
NORTH = Cells.of(PARTS)
OTHER = Cells.of(
    PARTS | {"public": {"zone": {"values": ["south"], "outside": "other", "other": "other"}}}
)


def quoted(ledger: Ledger) -> Callable[[Charge, LossTranslation], None]:
    """Refuses as `Ledger.charge` does, without writing."""

    def refuse(charge: Charge, translation: LossTranslation) -> None:
        terms = Terms(charge.prior, charge.secrets)
        ledger.quote(charge, translation).snapshot.refuse(terms, charge.rules)

    return refuse


def test_a_charge_with_other_cells_is_refused_and_says_which_part_differs(ledger: Ledger) -> None:
    ledger.charge(charge("0.5", None, ["north"], cells=NORTH), DOUBLING)
    head = ledger.head()
    for try_ in (ledger.charge, quoted(ledger)):
        with pytest.raises(CellsChanged) as refused:
            try_(charge("0.5", None, ["other"], cells=OTHER), DOUBLING)
        assert refused.value.changes == (
            'public zone outside was "refuse" and is now "other"',
            'public zone values was ["north", "south"] and is now ["south"]',
            'public zone other was not declared and is now "other"',
        )
        assert refused.value.dataset == "ward" and "\n" not in str(refused.value)
    assert ledger.head() == head and ledger.verify().sound
    ledger.charge(charge("0.25", None, ["south"], cells=NORTH), DOUBLING)
    assert ledger.spent("ward", DOUBLING) == 1


def test_reusing_an_answer_is_refused_under_other_cells(ledger: Ledger) -> None:
    first = charge("0.25", cells=NORTH, analyst="ana")
    ledger.record_answer(ledger.charge(first, DOUBLING), [1])
    same = charge("0.25", cells=NORTH, analyst="bob")
    assert ledger.reuse(same, DOUBLING) is not None
    assert ledger.lookup(charge("0.25", cells=OTHER)) is None
    assert ledger.lookup(charge("0.25", cells=NORTH, declared="other order")) is None


def test_an_owner_counts_all_earlier_releases_on_every_row(ledger: Ledger) -> None:
    ledger.charge(charge("0.25", (0, 5), ["north"], cells=NORTH, analyst="ana"), DOUBLING)
    ledger.charge(charge("0.125", (3, 9), None, cells=NORTH), DOUBLING)
    before = ledger.spent("ward", DOUBLING)
    event = ledger.accept_cells("ward", OTHER)
    assert event.kind == "cells" and event.body["how"] == "everywhere" and event.body["actor"]
    assert event.body["before"] == NORTH.fingerprint and event.body["naming"] == OTHER.parts
    assert ledger.spent("ward", DOUBLING) == before == 0.75
    assert ledger.spent("ward", DOUBLING, analyst="ana") == 0.5
    for cells in ((None, None), ((100, 200), None), (None, ["nobody named"])):
        loss = ledger.lost(
            "ward",
            **_touched(charge("0", *cells)),
        )
        assert [total.epsilon for total in loss] == [Fraction(3, 8)]
    with pytest.raises(CellsChanged):
        ledger.charge(charge("0.1", cells=NORTH), DOUBLING)
    with pytest.raises(BudgetExceeded):
        ledger.charge(charge("0.7", (50, 60), ["other"], cells=OTHER), DOUBLING)
    ledger.charge(charge("0.5", (50, 60), ["other"], cells=OTHER), DOUBLING)
    assert ledger.spent("ward", DOUBLING) == 1.75
    assert ledger.verify().sound
    ledger.rebuild()
    assert ledger.spent("ward", DOUBLING) == 1.75 and ledger.verify().sound
    assert [r.epsilon for r in ledger.odometer("ward", DOUBLING)] == [0.5, 0.75, 1.75]


def _touched(one: Charge) -> dict[str, Any]:
    return {"window": one.window, "groups": one.groups}


def test_the_worst_in_every_currency_is_what_every_row_has_lost(ledger: Ledger) -> None:
    ledger.set_budget("ward", 50, delta="0.01")
    ledger.charge(charge(Pure(1), None, ["a"], translation="rich"), RICH)
    ledger.charge(charge(Concentrated("0.5"), None, ["b"], translation="rich"), RICH)
    ledger.accept_cells("ward", OTHER)
    (total,) = ledger.lost("ward", groups=charge("0", None, ["c"]).groups)
    assert total.epsilon == 1 and total.rho == Fraction(1, 2)


def test_groups_and_windows_may_be_chosen_anew_after_that(ledger: Ledger) -> None:
    ledger.set_partition("ward", ("country",))
    ledger.charge(charge("0.1", (0, 5), ["fr"]), DOUBLING)
    ledger.accept_cells("ward", OTHER)
    assert ledger.set_partition("ward", ("floor",)).body["columns"] == ["floor"]
    assert ledger.verify().sound


def test_an_answer_that_is_reused_after_that_fixes_groups_and_windows(ledger: Ledger) -> None:
    first = charge("0.25", (0, 5), ["north"], cells=NORTH, analyst="ana")
    ledger.record_answer(ledger.charge(first, DOUBLING), [1])
    ledger.accept_cells("ward", NORTH)
    again = charge("0.25", (0, 5), ["north"], cells=NORTH, analyst="bob")
    assert ledger.reuse(again, DOUBLING) is not None
    assert ledger.verify().sound
    with raises(LedgerConflict, reason="partition"):  # bob's cells have names already
        ledger.set_partition("ward", ("floor",))
    ledger.charge(charge("0.25", (3, 9), ["south"], cells=NORTH), DOUBLING)
    ledger.rebuild()
    assert ledger.verify().sound and ledger.spent("ward", DOUBLING, analyst="bob") == 0.5


def test_unchanged_is_believed_only_where_nothing_can_be_seen_to_differ(ledger: Ledger) -> None:
    with raises(UnsoundRequest, reason="never charged"):
        ledger.accept_cells("ward", NORTH, unchanged=True)
    ledger.charge(charge("0.1", None, ["north"], cells=NORTH), DOUBLING)
    with raises(
        UnsoundRequest,
        reason="changed",
        given=("public zone outside", "public zone values", "public zone other"),
    ):
        ledger.accept_cells("ward", OTHER, unchanged=True)
    moved = Cells.of(PARTS | {"source": {"kind": "csv", "path": "elsewhere.csv"}})
    with pytest.raises(CellsChanged, match="source path"):
        ledger.charge(charge("0.1", None, ["north"], cells=moved), DOUBLING)
    assert ledger.accept_cells("ward", moved, unchanged=True).body["how"] == "unchanged"
    ledger.charge(charge("0.1", None, ["south"], cells=moved), DOUBLING)
    assert ledger.spent("ward", DOUBLING) == 0.2
    with pytest.raises(NoBudget):
        ledger.accept_cells("nobody", NORTH)


@pytest.mark.parametrize(
    "edit",
    [
        {"entity": "family"},
        {"entity": "perso\u006e\u0301"},
        {"source": {"kind": "parquet", "path": "ward.csv"}},
        {"order": PARTS["order"] | {"zone": "UTC"}},
        {"order": PARTS["order"] | {"column": "seen"}},
        {"order": PARTS["order"] | {"ties": ["row"]}},
        {"public": {}},
        {"public": {"zone": {"values": ["north", "south"], "outside": "drop"}}},
        {"public": {"zone": {"values": ["n\u006frth", "sou\u0442h"], "outside": "refuse"}}},
        {"public": {"zone": {"values": [1, 2], "outside": "refuse"}}},
        {"public": {"zone": {"values": ["1", "2"], "outside": "refuse"}}},
        {"public": {"zone": {"values": ["north", None], "outside": "refuse"}}},
    ],
)
def test_every_part_counts_letter_by_letter(edit: dict[str, Any]) -> None:
    with TemporaryDirectory() as folder, open_ledger(Path(folder) / "a.ledger") as ledger:
        ledger.set_budget("ward", 2)
        ledger.charge(charge("0.1", cells=NORTH), DOUBLING)
        with pytest.raises(CellsChanged) as refused:
            ledger.charge(charge("0.1", cells=Cells.of(PARTS | edit)), DOUBLING)
        assert refused.value.changes


def test_a_charge_must_name_its_cells() -> None:
    with raises(InvalidCharge, field="cells"):
        charge("0.1", cells=None)


# --- ledgers from before ---


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "old.ledger"
    with sqlite3.connect(path) as connection:
        connection.executescript(OLD.read_text(encoding="utf-8"))
    connection.close()
    return path


@pytest.mark.filterwarnings("ignore::takifugu.ledger.LostWitness")  # of its first opening
def test_an_old_ledger_is_migrated_and_waits_for_its_owner(old: Path) -> None:
    with open_ledger(old) as ledger:
        assert ledger.verify().sound and ledger.spent("ward", DOUBLING) == 0.8125
        with raises(CellsChanged, dataset="ward", changes=()):
            ledger.charge(charge("0.1", analyst="ana"), DOUBLING)
        ledger.charge(charge("0.1", dataset="quiet"), DOUBLING)  # nothing was charged to it
        assert (
            ledger.lookup(charge("1/4", (0, 10), ["fr"], analyst="ana")) is None
        )  # charged again, not guessed
        assert ledger.accept_cells("ward", CELLS, unchanged=True).body["before"] is None
        ledger.charge(charge("0.25", (30, 40), ["it"], analyst="ana"), DOUBLING)
        assert ledger.spent("ward", DOUBLING) == 0.8125  # other cells than the worst so far
        assert ledger.verify().sound


@pytest.fixture
def renamed(tmp_path: Path) -> Iterator[Ledger]:
    path = tmp_path / "renamed.ledger"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(RENAMED.read_text(encoding="utf-8"))
    with open_ledger(path, witness=False) as ledger:
        yield ledger


def test_values_that_an_earlier_version_renamed_are_accepted_once_more(renamed: Ledger) -> None:
    """Three labels were counted before a renaming: one raw cell may have been in all three sets."""
    assert renamed.verify().sound
    cells = Cells.of(CELLS.parts | {"protected": {"place": {"values": ["home", "other"]}}})
    again = charge(count("0.25", "home"), cells=cells, translation="places")
    with raises(CellsChanged, dataset="ward"):
        renamed.charge(again, KNOWN)
    with raises(UnsoundRequest, reason="changed", given=("protected",)):
        renamed.accept_cells("ward", cells, unchanged=True)
    assert renamed.spent("ward", KNOWN, cells=cells) == 4.5
    assert renamed.accept_cells("ward", cells).body["costs"] == "sums"
    assert renamed.lost("ward") == (Total(Fraction(3, 4)),)
    assert renamed.spent("ward", KNOWN) == 4.5
    renamed.charge(again, KNOWN)
    assert renamed.verify().sound


def test_sums_of_an_earlier_version_count_as_scalars(renamed: Ledger) -> None:
    """Neither their bounds nor their step were recorded."""
    parts = CELLS.parts | {"protected": {"load": {"missing": "refuse"}}}
    cells = Cells.of(parts, {"load": {"bounds": ["0", "4"], "step": "1"}})
    again = charge("0.25", cells=cells, dataset="loads", translation="places")
    with raises(CellsChanged, dataset="loads"):
        renamed.charge(again, KNOWN)
    with raises(UnsoundRequest, reason="changed"):
        renamed.accept_cells("loads", cells, unchanged=True)
    assert renamed.accept_cells("loads", cells).body["costs"] == "scalars"
    assert renamed.lost("loads") == (Total(Fraction(1, 2)),)
    renamed.charge(again, KNOWN)
    assert renamed.verify().sound


@pytest.mark.filterwarnings("ignore::takifugu.ledger.LostWitness")  # of its first opening
def test_the_owner_of_an_old_ledger_may_count_everything_everywhere(old: Path) -> None:
    with open_ledger(old) as ledger:
        ledger.accept_cells("ward", CELLS)
        ledger.charge(charge("0.25", (30, 40), ["it"], analyst="ana"), DOUBLING)
        assert ledger.spent("ward", DOUBLING) == 0.8125 + 0.5
        assert ledger.verify().sound
        ledger.rebuild()
        assert ledger.spent("ward", DOUBLING) == 0.8125 + 0.5


# --- the same rows under two names ---


def test_the_same_rows_have_one_budget(ledger: Ledger) -> None:
    ledger.set_budget("copy", 2)
    ledger.charge(charge("0.1", sources=("path a", "bytes b"), data="1"), DOUBLING)
    assert ledger.knows_data("ward", "1") and not ledger.knows_data("copy", "1")
    twin = charge("0.1", dataset="copy", sources=("path c", "bytes b"), data="1")
    head = ledger.head()
    for try_ in (ledger.charge, quoted(ledger)):
        with raises(SameRows, other="ward", same="a file with the same bytes"):
            try_(twin, DOUBLING)
        assert ledger.head() == head
    ledger.charge(charge("0.1", dataset="copy", sources=("path c", "bytes d"), data="2"), DOUBLING)
    with pytest.raises(SameRows):  # it became the same later
        ledger.charge(twin, DOUBLING)
    assert ledger.count_separately("ward", "copy").body["actor"]
    assert ledger.counted_separately("copy") == {"ward"}
    ledger.charge(twin, DOUBLING)
    assert ledger.verify().sound
    with pytest.raises(InvalidCharge):
        ledger.count_separately("ward", "ward")


def test_rows_are_filed_once_for_each_state_of_the_data(ledger: Ledger) -> None:
    for data in ("1", "1", "2", "1"):
        ledger.charge(charge("0.1", sources=("path a", f"bytes {data}"), data=data), DOUBLING)
    assert [e.body["marks"] for e in ledger.history(kind="source")] == [
        ["bytes 1", "path a"],
        ["bytes 2", "path a"],
    ]


@pytest.mark.filterwarnings("ignore::takifugu.ledger.LostWitness")  # of its first opening
def test_marks_are_keyed_beside_a_file_and_in_the_state_folder_for_a_server(
    ledger: Ledger, url: str, opened: Callable[..., Ledger], folder: Path,
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> None:  # fmt: skip
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    begin_witness(url)  # in the new state folder
    mark = ledger.mark("data", "rows")
    assert opened(url).mark("data", "rows") == mark != ledger.mark("data", "other rows")
    keys = list(folder.glob("*.key")) or list(tmp_path.rglob("*.key"))
    assert len(keys) == 1 and keys[0].stat().st_mode & 0o777 == 0o600
    given = opened(url, key=tmp_path / "given.key")
    assert given.mark("data", "rows") != mark and (tmp_path / "given.key").exists()


# --- whatever the owner and the analysts do, no row has lost more than is counted ---

ROWS = range(6)
NAMINGS = st.lists(
    st.lists(st.sampled_from("abc"), min_size=len(ROWS), max_size=len(ROWS)), min_size=1, max_size=3
)
STEPS = st.lists(
    st.tuples(
        st.integers(0, 2),  # under which declaration
        st.sampled_from(["charge", "charge", "accept"]),
        st.sets(st.sampled_from("abc"), max_size=2),  # no group: all rows
        st.integers(1, 4),
    ),
    max_size=12,
)


@pytest.mark.nightly
@settings(max_examples=40)
@given(namings=NAMINGS, steps=STEPS)
def test_no_row_has_lost_more_than_the_ledger_counts(
    namings: list[list[str]], steps: list[tuple[int, str, set[str], int]]
) -> None:
    """A declaration is a list of the group of each row; an edit is another list."""
    lost = [Fraction(0)] * len(ROWS)
    with TemporaryDirectory() as folder, open_ledger(Path(folder) / "a.ledger") as ledger:
        ledger.set_budget("ward", 100)
        for which, what, groups, eighths in steps:
            naming = namings[which % len(namings)]
            cells = Cells.of({"public": {"country": naming}})
            if what == "accept":
                ledger.accept_cells("ward", cells)
                continue
            try:
                ledger.charge(
                    charge(Fraction(eighths, 8), None, sorted(groups) or None, cells=cells),
                    DOUBLING,
                )
            except CellsChanged:
                continue
            for row in ROWS:
                if not groups or naming[row] in groups:
                    lost[row] += Fraction(eighths, 8)
        counted = ledger.lost("ward")
        assert max(lost) <= max(total.epsilon for total in counted)
        if steps and ledger.snapshot("ward", cells=cells).changes is None:
            for row in ROWS:
                (total,) = ledger.lost("ward", groups=charge("0", None, [naming[row]]).groups)
                assert lost[row] <= total.epsilon
        assert ledger.verify().sound


FAMILY = Cells.of({"source": {"kind": "csv", "path": "ward.csv"}, "entity": "family"})


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
    kept.accept_cells("ward", FAMILY)
    for dataset, cells in (("ward", FAMILY), ("town", CELLS)):
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
        kept.accept_cells("ward", FAMILY)


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
    kept.accept_cells("town", FAMILY)
    assert kept.knows_data("ward", "data")
    kept.accept_cells("ward", FAMILY)
    assert not kept.knows_data("ward", "data")
    kept.charge(charge("0.25", cells=FAMILY, sources=("path k:7", "bytes k:2")), DOUBLING)
    assert kept.knows_data("ward", "data")
    filed = [event.body["marks"] for event in kept.history(kind="source")]
    assert filed == [["bytes k:2", "path k:1"], ["bytes k:2", "path k:7"]]
