"""Edited declarations, edited data and copies: no row loses more than the ledger counts."""

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.declarations import Category, Declaration, InvalidQuery, Order, Source
from takifugu.errors import CellsChanged, SameRows, TakifuguError
from takifugu.ledger import Ledger, open_ledger
from takifugu.priors import write_prior
from takifugu.project.project import Project, open_project
from takifugu.session import Session
from takifugu.session.cells import cells_of
from takifugu.tables import open_engine
from tests.ledger.folders import example_folder
from tests.raising import raises
from tests.session.study import study
from tests.session.world import CHAIN, ROWS, TRANSLATION, declaration

ZONE = Category("zone", ("a", "b"), "refuse")
OTHER = Category("zone", ("b",), "other", "other")


@contextmanager
def session_on(
    declared: Declaration, ledger: Path, dataset: str = "visits", **how: Any
) -> Iterator[tuple[Session, Ledger]]:
    with open_engine(declared, threads=1) as engine, open_ledger(ledger) as opened:
        if not any(p.dataset == dataset for p in opened.positions()):
            opened.set_budget(dataset, 10)
        yield Session(engine, TRANSLATION, ledger=opened, dataset=dataset, **how), opened


def test_rows_that_go_by_another_name_are_not_released_again(tmp_path: Path) -> None:
    """The same rows four times, as `a`, `other`, `rest` and `elsewhere`, counted as one."""
    ledger = tmp_path / "a.ledger"
    with session_on(declaration(tmp_path), ledger) as (session, _):
        plan = session.plan.histogram(where={"zone": ["a"]}, epsilon=1)
        session.release(plan, accept_noise=True)
    for word in ("other", "rest", "elsewhere"):
        edited = declaration(tmp_path, public=(Category("zone", ("b",), "other", word),))
        with session_on(edited, ledger) as (session, opened):
            head = opened.head()
            with pytest.raises(CellsChanged, match="public zone"):
                session.plan.histogram(where={"zone": [word]}, epsilon=1)
            with pytest.raises(TakifuguError):
                session.release(plan, accept_noise=True)
            assert opened.head() == head


@pytest.mark.nightly
@pytest.mark.parametrize(
    "edit",
    [
        {"public": (OTHER,)},
        {"public": (Category("zone", ("a", "b"), "drop"),)},
        {"public": (Category("zone", ("a", "b"), "refuse", labels=(("a", "b"), ("b", "a"))),)},
        {"public": (Category("zone", ("a", "b", "c"), "refuse"),)},
        {"public": (Category("zone", None, "refuse"),)},
        {"public": ()},
        {"order": Order("weight", "number")},
        {"order": Order("step", "number", ties=("zone",))},
        {"order": Order("step", "unix", zone="UTC")},
        {"entity": "zone", "public": ()},
        {"protected": (Category("state", ("home", "ward"), "drop"),)},
    ],
    ids=str,
)
def test_every_edit_that_renames_rows_is_refused(edit: dict[str, Any], tmp_path: Path) -> None:
    ledger = tmp_path / "a.ledger"
    with session_on(declaration(tmp_path), ledger) as (session, _):
        session.release(session.plan.histogram(epsilon=1), accept_noise=True)
    edited = declaration(tmp_path, **edit)
    with session_on(edited, ledger) as (session, _), pytest.raises(CellsChanged):
        session.plan.histogram(epsilon=1)


def test_the_order_of_lists_names_nothing_but_is_another_answer(tmp_path: Path) -> None:
    ledger = tmp_path / "a.ledger"
    with session_on(declaration(tmp_path), ledger) as (session, _):
        asked: dict[str, Any] = {"by": "zone", "epsilon": 1}
        first = session.release(session.plan.histogram(**asked), accept_noise=True)
        assert session.release(session.plan.histogram(**asked), accept_noise=True).free
    swapped = declaration(
        tmp_path, title="another title", public=(replace(ZONE, values=("b", "a")),)
    )
    with session_on(swapped, ledger) as (session, _):
        again = session.release(session.plan.histogram(**asked), accept_noise=True)
        assert not again.free and again.column("zone")[0] == "b" != first.column("zone")[0]


def test_a_folder_may_be_moved_and_a_path_may_not_become_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    path = "visits.csv"
    made = declaration(tmp_path / "one")
    declared = replace(made, source=Source("csv", path=path), folder=tmp_path / "one")
    with session_on(declared, tmp_path / "one" / "a.ledger") as (session, _):
        session.release(session.plan.histogram(epsilon=1), accept_noise=True)
    (tmp_path / "one").rename(tmp_path / "two")
    moved = replace(declared, folder=tmp_path / "two")
    ledger = tmp_path / "two" / "a.ledger"
    with session_on(moved, ledger) as (session, _):
        assert session.plan.histogram(epsilon=1).stored
    glob = replace(moved, source=Source("csv", path="v*.csv"))
    refused = pytest.raises(CellsChanged, match="source path")
    with session_on(glob, ledger) as (session, _), refused:
        session.plan.histogram(epsilon=1)


def test_local_times_and_instants_are_not_the_same_clock(tmp_path: Path) -> None:
    declared = timed(tmp_path, [datetime(2026, 3, 1, 1) + timedelta(hours=i) for i in range(4)])
    with open_engine(declared, threads=1) as engine:
        local = cells_of(engine, ("state",), tmp_path)
    (tmp_path / "timed.csv").write_text(
        "person,at,state\nAnn,2026-03-01 01:00:00+00,home\nAnn,2026-03-01 02:00:00+00,ward\n"
    )
    with open_engine(declared, threads=1) as engine:
        assert engine.clock == "instants" and cells_of(engine, ("state",), tmp_path) != local


def timed(folder: Path, times: Sequence[datetime], zone: str = "UTC") -> Declaration:
    lines = [f"Ann,{at:%Y-%m-%d %H:%M:%S},home" for at in times]
    (folder / "timed.csv").write_text("\n".join(["person,at,state", *lines]) + "\n")
    return Declaration(
        Source("csv", path="timed.csv"),
        "person",
        Order("at", "time", zone=zone),
        (Category("state", ("home", "ward"), "refuse"),),
        folder=folder,
    )


def test_the_hours_of_another_zone_are_other_cells(tmp_path: Path) -> None:
    times = [datetime(2026, 3, 1) + timedelta(hours=6 * i) for i in range(4)]
    ledger = tmp_path / "a.ledger"
    with session_on(timed(tmp_path, times), ledger) as (session, _):
        session.release(
            session.plan.histogram(window=("2026-03-01", "2026-03-02"), epsilon=1),
            accept_noise=True,
        )
    edited = timed(tmp_path, times, "Pacific/Kiritimati")
    refused = pytest.raises(CellsChanged, match='zone was "UTC" and is now "Pacific/Kiritimati"')
    with session_on(edited, ledger) as (session, _), refused:
        session.plan.histogram(window=("2026-03-01", "2026-03-02"), epsilon=1)


# --- a model: losses added up row by row ---

PUBLIC = st.sampled_from(
    [
        ZONE,
        OTHER,
        Category("zone", ("a",), "other", "b"),
        Category("zone", ("a", "b"), "refuse", labels=(("a", "b"), ("b", "a"))),
        Category("zone", ("b", "a"), "refuse"),
        Category("zone", ("a",), "drop"),
    ]
)
ORDER = st.sampled_from([Order("step", "number"), Order("weight", "number")])
EDITED = st.tuples(PUBLIC, ORDER)
ASKED = st.tuples(
    st.integers(0, 1),
    st.sampled_from([None, (0, 2), (2, None)]),
    st.integers(-1, 1),  # which key of the zone; -1 for no choice
    st.sampled_from(["release", "release", "accept and release"]),
)


def read_by(declared: Declaration, window: Any, key: Any) -> list[int]:
    """The rows of a query, by a plain loop over the file."""
    zone = declared.public[0]
    found = []
    for i, (_, step, raw, _, weight) in enumerate(ROWS):
        place = step if declared.order.column == "step" else weight
        start, end = window or (None, None)
        label: Any = dict(zone.labels).get(raw, raw)
        if label not in (zone.values or ()):
            label = zone.other if zone.outside == "other" else None
        inside = (start is None or place >= start) and (end is None or place < end)
        if inside and (key is None or label == key):
            found.append(i)
    return found


@pytest.mark.nightly
@settings(max_examples=6)
@given(
    declared=st.lists(EDITED, min_size=2, max_size=2), asked=st.lists(ASKED, min_size=2, max_size=4)
)
def test_no_row_loses_more_than_the_ledger_counts_under_edits(
    declared: list[tuple[Category, Order]], asked: list[tuple[int, Any, int, str]]
) -> None:
    lost = [Fraction(0)] * len(ROWS)
    counted: Sequence[Any] = ()
    with example_folder() as name:
        folder = Path(name)
        for which, window, place, what in asked:
            public, order = declared[which]
            made = declaration(folder, public=(public,), order=order)
            key = None if place < 0 else public.keys[place % len(public.keys)]
            with session_on(made, folder / "a.ledger") as (session, ledger):
                if what != "release":
                    ledger.accept_cells("visits", session.cells)
                where = None if key is None else {"zone": [key]}
                try:
                    plan = session.plan.count(["ward"], window=window, where=where, epsilon="0.5")
                except CellsChanged:
                    continue
                except InvalidQuery:
                    assert not read_by(made, window, key)
                    continue
                if not session.release(plan, accept_noise=True).free:
                    for row in read_by(made, window, key):
                        lost[row] += plan.cost.per_entry
                counted = ledger.lost("visits")
        most = max((total.epsilon for total in counted), default=Fraction(0))
        assert max(lost, default=Fraction(0)) <= most


# --- data that was edited ---


def test_that_the_data_changed_is_said_before_it_is_charged_again(tmp_path: Path) -> None:
    ledger = tmp_path / "a.ledger"
    with session_on(declaration(tmp_path), ledger) as (session, _):
        assert session.plan.histogram(epsilon=1).notes == ()
        session.release(session.plan.histogram(epsilon=1), accept_noise=True)
        assert session.plan.histogram(epsilon=1).notes == ()
    rows = [*ROWS, ("Bea", 2, "a", "ward", 1.0)]
    with session_on(declaration(tmp_path, rows), ledger) as (session, _):
        plan = session.plan.histogram(epsilon=1)
        assert not plan.stored and "the data changed since the last release" in str(plan)
        assert plan.describe()["notes"] == list(plan.notes) != []
        session.release(plan, accept_noise=True)
        assert session.plan.histogram(epsilon=1).notes == ()


def test_a_lost_key_costs_budget_and_is_said(tmp_path: Path) -> None:
    ledger = tmp_path / "a.ledger"
    with session_on(declaration(tmp_path), ledger) as (session, _):
        session.release(session.plan.histogram(epsilon=1), accept_noise=True)
    (tmp_path / "a.key").unlink()
    with session_on(declaration(tmp_path), ledger) as (session, opened):
        plan = session.plan.histogram(epsilon=1)
        assert not plan.stored and "another key" in str(plan)
        before = session.spent()
        session.release(plan, accept_noise=True)
        assert session.spent() > before and opened.verify().sound


# --- hashes over protected bytes ---


def test_no_plain_hash_of_the_data_is_stored_or_printed(tmp_path: Path) -> None:
    from takifugu.tables import check
    from takifugu.tables.backends.opened_files import file_hash

    ledger = tmp_path / "a.ledger"
    made = declaration(tmp_path)
    with session_on(made, ledger) as (session, opened), open_engine(made) as engine:
        plan = session.plan.histogram(epsilon=1)
        result = session.release(plan, accept_noise=True)
        mark = engine.fingerprint().fingerprint
        plain = {mark, mark[:16], file_hash(tmp_path / "visits.csv")}
        told = [repr(plan), repr(plan.charge), str(result), result.to_json(), repr(check(engine))]
        told += [json.dumps(dict(event.body)) for event in opened.history()]
    for path in tmp_path.iterdir():
        if path.suffix != ".csv":
            told.append(path.read_bytes().decode("latin-1"))
    assert len(told) > 8
    assert not [text for text in told for one in plain if one in text]


# --- the same rows under a second name ---


def copies(folder: Path) -> dict[str, Declaration]:
    """A table by all the names that it can have."""
    import duckdb

    made = declaration(folder)
    csv = folder / "visits.csv"
    os.link(csv, folder / "linked.csv")
    shutil.copy(csv, folder / "copied.csv")
    (folder / "seen").symlink_to(folder)
    lines = csv.read_text().splitlines()
    (folder / "turned.csv").write_text("\n".join([lines[0], *lines[:0:-1]]) + "\n")
    target = str(folder / "visits.parquet").replace("'", "''")
    source = str(csv).replace("'", "''")
    duckdb.connect().execute(f"COPY (FROM read_csv('{source}')) TO '{target}'")
    sources = {
        "linked": Source("csv", path=str(folder / "linked.csv")),
        "copied": Source("csv", path=str(folder / "copied.csv")),
        "pattern": Source("csv", path=str(folder / "visit?.csv")),
        "symlink": Source("csv", path=str(folder / "seen" / "visits.csv")),
        "parquet": Source("parquet", path=str(folder / "visits.parquet")),
        "turned": Source("csv", path=str(folder / "turned.csv")),
    }
    return {name: replace(made, source=source) for name, source in sources.items()}


def test_a_copy_of_a_table_has_no_budget_of_its_own(tmp_path: Path) -> None:
    others = copies(tmp_path)
    ledger = tmp_path / "a.ledger"
    first = replace(others["copied"], source=Source("csv", path=str(tmp_path / "visits.csv")))
    with session_on(first, ledger) as (session, _):
        session.release(session.plan.histogram(epsilon=1), accept_noise=True)
    for name, declared in others.items():
        with session_on(declared, ledger, dataset=name) as (session, opened):
            with raises(SameRows, dataset=name, other="visits"):
                session.plan.histogram(epsilon=1)
            assert not opened.events(kind="charge", dataset=name)
            if name == "parquet":
                opened.count_separately(name, "visits")
                session.release(session.plan.histogram(epsilon=1), accept_noise=True)
    rows = [*ROWS[:-1], ("Cem", 0, "a", "home", 0.0)]
    (tmp_path / "new").mkdir()
    with session_on(declaration(tmp_path / "new", rows), ledger, dataset="new") as (session, _):
        session.release(session.plan.histogram(epsilon=1), accept_noise=True)  # other rows


@pytest.mark.nightly
def test_a_second_ledger_of_the_same_user_has_no_budget_of_its_own_for_the_same_rows(
    tmp_path: Path,
) -> None:
    others = copies(tmp_path)
    first = replace(others["copied"], source=Source("csv", path=str(tmp_path / "visits.csv")))
    with session_on(first, tmp_path / "a.ledger") as (session, opened):
        session.release(session.plan.histogram(epsilon=1), accept_noise=True)
        identity = next(iter(opened.history())).body["ledger"]
    for number, declared in enumerate((first, *others.values())):
        with session_on(declared, tmp_path / f"{number}.ledger") as (session, opened):
            with raises(SameRows, dataset="visits", other=f"ledger {identity}") as told:
                session.plan.histogram(epsilon=1)
            assert str(tmp_path / "a.ledger") in str(told.value)
            assert [event.kind for event in opened.history()] == ["created", "budget", "state"]
    (tmp_path / "a.ledger").unlink()  # what was released from it is not undone by that
    with session_on(first, tmp_path / "b.ledger") as (session, opened):
        with raises(SameRows, dataset="visits") as told:
            session.plan.histogram(epsilon=1)
        assert "restore it" in str(told.value)
        opened.count_separately("visits", f"ledger {identity}")
        session.release(session.plan.histogram(epsilon=1), accept_noise=True)
        session.release(session.plan.histogram(epsilon=2), accept_noise=True)
    with (  # by choice without that record, and every event says so
        open_engine(first, threads=1) as engine,
        open_ledger(tmp_path / "c.ledger", witness=False) as ledger,
    ):
        made = Session(engine, TRANSLATION, ledger=ledger, dataset="visits", budget=2)
        made.release(made.plan.histogram(epsilon=1), accept_noise=True)


def test_another_column_of_the_same_file_has_a_budget_of_its_own(tmp_path: Path) -> None:
    from tests.session.world import PLAIN, WEIGHT

    ledger = tmp_path / "a.ledger"
    with session_on(declaration(tmp_path), ledger) as (session, _):
        session.release(session.plan.histogram(epsilon=1), accept_noise=True)
    made = declaration(tmp_path, protected=(WEIGHT,))
    with open_engine(made, threads=1) as engine, open_ledger(ledger) as opened:
        opened.set_budget("weights", 10)
        Session(engine, PLAIN, ledger=opened, dataset="weights").release(
            Session(engine, PLAIN, ledger=opened, dataset="weights").plan.sum(epsilon=1),
            accept_noise=True,
        )


# --- projects ---


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = study(tmp_path)
    write_prior(replace(CHAIN, length=None), tmp_path / "chain.prior.json")
    text = made.file.read_text()
    made.file.write_text(f'{text}\n[[dataset.stays.prior]]\nfile = "chain.prior.json"\n')
    made = open_project(made.file)
    made.set_budget("stays", "2")
    return made


def edit(project: Project, before: str, now: str) -> None:
    path = project.folder / "stays.toml"
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, now))


@pytest.mark.nightly
def test_a_project_waits_for_its_owner_after_an_edit(project: Project) -> None:
    with project.session("stays") as session:
        session.release(
            session.plan.histogram(where={"zone": ["north"]}, epsilon="0.5"), accept_noise=True
        )
        spent = session.spent()
    edit(project, '["north", "south"]', '["south"]\noutside = "other"')
    with project.session("stays") as session, pytest.raises(CellsChanged):
        session.plan.histogram(where={"zone": ["other"]}, epsilon="0.5")
    found = project.pending("stays")
    assert found.charged and found.recorded and found.before == found.after == spent
    assert any("public zone values" in change for change in found.changes)
    project.accept(found)
    with project.session("stays") as session:
        plan = session.plan.histogram(where={"zone": ["south"]}, epsilon="0.5")
        assert plan.cost.marginal is not None and plan.cost.marginal > 0.4
        session.release(plan, accept_noise=True)
        assert session.spent() >= 0.9
    with project.ledger() as ledger:
        assert ledger.verify().sound


def test_a_hard_link_in_a_project_is_the_same_file(project: Project, tmp_path: Path) -> None:
    with project.session("stays") as session:
        session.release(session.plan.histogram(epsilon="0.5"), accept_noise=True)
    os.link(tmp_path / "stays.csv", tmp_path / "linked.csv")
    text = (tmp_path / "stays.toml").read_text()
    (tmp_path / "linked.toml").write_text(text.replace("stays.csv", "linked.csv"))
    with pytest.raises(TakifuguError, match="same rows"):
        project.add_dataset("linked", tmp_path / "linked.toml")
    (tmp_path / "pattern.toml").write_text(text.replace("stays.csv", "stay*.csv"))
    with pytest.raises(TakifuguError, match="same rows"):
        project.add_dataset("pattern", tmp_path / "pattern.toml")
