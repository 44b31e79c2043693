"""Tables in memory: a ledger recognises their rows and cells as it does those of files."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from takifugu.declarations import InvalidDeclaration
from takifugu.drafting import Table, draft_of, table
from takifugu.errors import CellsChanged, SameRows, UnsoundRequest
from takifugu.fitting import fit_markov
from takifugu.ledger import open_ledger
from takifugu.session import Session
from takifugu.translation.translation import Translation
from tests.ledger.folders import forget_rows
from tests.raising import raises
from tests.session.world import ROWS, STATES, TRANSLATION

pyarrow = pytest.importorskip("pyarrow", reason="tables in memory need PyArrow")

COLUMNS = ("person", "step", "zone", "state", "weight")
MORE = (*ROWS, ("Bea", 2, "a", "ward", 1.0))
DECLARED: dict[str, Any] = {
    "entity": "person",
    "order": "step",
    "order_kind": "number",
    "protected": {"state": ["home", "ward"]},
    "public": {"zone": ["a", "b"]},
}


def frame(package: str = "pyarrow", rows: Sequence[tuple[Any, ...]] = ROWS) -> Any:
    found = pyarrow.table(dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True)))
    if package == "pandas":
        pytest.importorskip("pandas")
        return found.to_pandas()
    return found if package == "pyarrow" else pytest.importorskip("polars").from_arrow(found)


def in_file(folder: Path, rows: Sequence[tuple[Any, ...]] = ROWS) -> Table:
    path = folder / "visits.csv"
    lines = [",".join(COLUMNS), *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return table(path, **DECLARED)


@contextmanager
def session_on(
    visits: Table, folder: Path, dataset: str = "visits", translation: Translation = TRANSLATION
) -> Iterator[Session]:
    with visits.open(threads=1) as engine, open_ledger(folder / "a.ledger") as ledger:
        if not any(account.dataset == dataset for account in ledger.positions()):
            ledger.set_budget(dataset, 10)
        yield Session(engine, translation, ledger=ledger, dataset=dataset)


def released(visits: Table, folder: Path, dataset: str = "visits") -> Any:
    with session_on(visits, folder, dataset) as session:
        return session.release(session.plan.histogram(epsilon=1), accept_noise=True)


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_the_same_rows_are_answered_for_free_whichever_package_has_them(
    package: str, tmp_path: Path
) -> None:
    first = released(table(frame(), **DECLARED, name="visits"), tmp_path)
    again = released(table(frame(package, ROWS[::-1]), **DECLARED, name="visits"), tmp_path)
    assert again.rows == first.rows and again.free


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("changes", "part"),
    [
        (
            {"protected": {"state": {"values": STATES, "outside": "other", "other": "ward"}}},
            "protected state other",
        ),
        ({"protected": {"state": {"values": STATES, "outside": "drop"}}}, "outside"),
        ({"order": "weight", "order_kind": "number"}, "order column"),
        ({"order_kind": "unix"}, "order kind"),
        ({"order_kind": "unix", "zone": "Asia/Jakarta"}, "order zone"),
        ({"public": ["zone"]}, "public zone values"),
        ({"name": "stays"}, "source table"),
    ],
)
def test_another_declaration_of_the_same_frame_is_refused(
    changes: dict[str, Any], part: str, tmp_path: Path
) -> None:
    released(table(frame(), **DECLARED, name="visits"), tmp_path)
    edited = table(frame(), **(DECLARED | {"name": "visits"} | changes))
    with session_on(edited, tmp_path) as session, pytest.raises(CellsChanged) as refused:
        session.plan.histogram(epsilon=1)
    assert any(part in difference for difference in refused.value.changes)


def test_the_same_rows_in_a_file_and_a_frame_are_not_two_tables(tmp_path: Path) -> None:
    """In one account the source has changed; in two accounts the rows are the same."""
    stored, loaded = in_file(tmp_path), table(frame(), **DECLARED, name="visits")
    released(stored, tmp_path)
    with session_on(loaded, tmp_path) as session, pytest.raises(CellsChanged) as refused:
        session.plan.histogram(epsilon=1)
    assert any("source kind" in difference for difference in refused.value.changes)
    with session_on(loaded, tmp_path, "loaded") as session, pytest.raises(SameRows):
        session.release(session.plan.histogram(epsilon=1), accept_noise=True)


def test_the_same_frame_under_two_names_is_not_two_tables(tmp_path: Path) -> None:
    released(table(frame(), **DECLARED, name="visits"), tmp_path)
    renamed = table(frame("polars"), **DECLARED, name="stays")
    with session_on(renamed, tmp_path, "stays") as session, pytest.raises(SameRows):
        session.release(session.plan.histogram(epsilon=1), accept_noise=True)


def test_another_frame_under_the_same_name_is_noticed_and_paid_for_as_another_file_is(
    tmp_path: Path,
) -> None:
    found = {}
    for kind in ("memory", "file"):
        folder = tmp_path / kind
        folder.mkdir()
        forget_rows()
        for rows in (ROWS, MORE):
            visits = (
                in_file(folder, rows)
                if kind == "file"
                else table(frame(rows=rows), **DECLARED, name="visits")
            )
            with session_on(visits, folder) as session:
                plan = session.plan.histogram(epsilon=1)
                result = session.release(plan, accept_noise=True)
                found[kind, len(rows)] = bool(plan.notes), result.free, session.spent()
    for rows in (ROWS, MORE):
        assert found["memory", len(rows)] == found["file", len(rows)]
    assert found["memory", len(MORE)][:2] == (True, False)


def test_a_prior_fitted_on_a_frame_keeps_to_that_table(tmp_path: Path) -> None:
    visits = table(frame(rows=MORE), **DECLARED, name="visits")
    early = Translation(fit_markov(visits, "state", first_days=2, length=4))
    with session_on(visits, tmp_path, translation=early) as session:
        assert session.releasable.start == 2
    for other in (in_file(tmp_path, MORE), table(frame(), **DECLARED, name="stays")):
        with pytest.raises(UnsoundRequest), session_on(other, tmp_path, "other", translation=early):
            pass


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_what_is_changed_in_a_frame_later_changes_no_row(package: str) -> None:
    numpy = pytest.importorskip("numpy")
    steps = numpy.array([row[1] for row in ROWS])
    given = frame(package)
    if package == "pyarrow":  # zero-copy: the array's memory is the column's
        given = given.set_column(1, "step", pyarrow.array(steps))
    visits = table(given, **DECLARED, name="visits")
    with visits.open(threads=1) as engine:
        before = engine.fingerprint()
    if package == "pandas":
        given["step"] += 10
    elif package == "polars":
        given[0, "step"] = 10
    else:
        steps += 10
    with visits.open(threads=1) as engine:
        assert engine.fingerprint() == before and engine.span()[0] == min(row[1] for row in ROWS)


def test_the_index_of_a_frame_is_named_with_what_to_do(tmp_path: Path) -> None:
    rows = frame("pandas")
    with raises(InvalidDeclaration, field="person", reason="index") as caught:
        table(rows.set_index("person"), name="visits", **DECLARED).open(threads=1)
    assert "reset_index()" in str(caught.value)
    rows.to_csv(tmp_path / "written.csv")
    with raises(InvalidDeclaration, field="source, path", reason="header") as caught:
        draft_of(tmp_path / "written.csv")
    assert "column 1" in str(caught.value) and "reset_index(drop=True)" in str(caught.value)
