"""A dataset that is opened once: sessions of many analysts, and what makes it stale."""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from takifugu.declarations import DatabaseFailed
from takifugu.errors import (
    LedgerSetBack,
    LedgerUnavailable,
    NotAccepted,
    UnknownAnalyst,
    UnsoundRequest,
)
from takifugu.ledger import open_ledger
from takifugu.priors import write_prior
from takifugu.project.opened_dataset import OpenedDataset, open_dataset
from takifugu.project.policy import InvalidProject
from takifugu.project.project import Project, open_project
from takifugu.session.query_options import QueryOptions
from takifugu.session.release_errors import OverBudget, SessionClosed
from tests.raising import raises
from tests.server.projects import CHAIN, small_project, stays, write_rows


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return open_project(small_project(tmp_path / "study"))


@pytest.fixture
def opened(project: Project) -> Iterator[OpenedDataset]:
    with open_dataset(project, "stays") as found:
        yield found


@pytest.mark.nightly
def test_analysts_share_what_is_open_and_nothing_of_each_other(tmp_path: Path) -> None:
    analysts = {"ana": "2", "bo": "1"}
    project = open_project(small_project(tmp_path / "study", analysts=analysts))
    with open_dataset(project, "stays") as opened:
        ana, bo = opened.session("ana", actor="ana"), opened.session("bo", actor="bo")
        first = ana.release(ana.plan.histogram(by="zone", epsilon=1))
        plan = bo.plan.histogram(by="zone", epsilon=1)
        assert not first.free and not plan.stored  # bo has not paid for it
        bo.release(plan)
        with raises(OverBudget):
            bo.release(bo.plan.histogram(by="zone", epsilon="0.5"))
        ana.release(ana.plan.histogram(by="zone", epsilon="0.5"))
        for nobody in ("eve", None):
            with raises(InvalidProject, field="analyst", reason="unlisted"):
                opened.session(nobody)
        actors = [
            (event.body["analyst"], event.body.get("actor"))
            for event in opened.ledger.history("stays")
            if event.kind in ("charge", "reuse")
        ]
        assert actors == [("ana", "ana"), ("bo", "bo"), ("ana", "ana")]
        assert opened.ledger.verify().sound


def test_a_session_ends_with_what_it_reads_and_charges_nothing_after_that(project: Project) -> None:
    with project.session("stays") as session:
        plan = session.plan.histogram(epsilon=1)
    for use in (lambda: session.release(plan), lambda: session.plan.histogram(epsilon=1)):
        with pytest.raises(SessionClosed):
            use()
    assert repr(session).endswith(", closed>")
    with project.ledger() as ledger:
        assert not list(ledger.history(kind="charge"))


@pytest.mark.nightly
def test_a_budget_that_is_set_while_it_is_open_is_whose_it_is(opened: OpenedDataset) -> None:
    opened.session("ana").plan.histogram(epsilon=1)
    opened.project.set_budget("stays", "1", analyst="bo")
    with raises(UnknownAnalyst, analyst="ana"):
        opened.session("ana")
    assert opened.session("bo").plan.histogram(epsilon=1).cost.fits


@pytest.mark.nightly
def test_a_session_of_an_opened_dataset_plans_as_one_of_its_own(
    project: Project, opened: OpenedDataset
) -> None:
    shared = opened.session("ana")
    with project.session("stays", "ana") as own:
        for options in (
            QueryOptions("histogram", by="zone", epsilon=1),
            QueryOptions("count", values=["ward"], within=10),
            QueryOptions("transitions", epsilon=2),
        ):
            assert shared.plan(options).describe() == own.plan(options).describe()
        assert shared.guarantee() == own.guarantee() == opened.shared.guarantee()


def test_another_ledger_is_refused(opened: OpenedDataset, tmp_path: Path) -> None:
    with (
        open_ledger(tmp_path / "other.ledger", witness=False) as other,
        raises(UnsoundRequest, field="ledger"),
    ):
        opened.shared.for_analyst("ana", other)


@pytest.mark.nightly
def test_what_is_spent_and_decided_makes_nothing_stale(opened: OpenedDataset) -> None:
    session = opened.session("ana")
    session.release(session.plan.histogram(by="zone", epsilon=1))
    opened.project.set_budget("stays", "9")
    assert not opened.stale()
    assert session.plan.histogram(epsilon=1).cost.budget == 9


# --- what makes it stale ---


def _rewrite(path: Path) -> None:
    path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["takifugu.toml", "stays.toml", "chain.json", "stays.csv"])
@pytest.mark.parametrize("how", ["written", "replaced", "removed"])
def test_a_file_that_changes_is_noticed(
    project: Project, opened: OpenedDataset, name: str, how: str
) -> None:
    path = project.folder / name
    assert not opened.stale()
    if how == "written":
        _rewrite(path)
    elif how == "replaced":  # by the same content, of the same size and time
        copy = path.with_name("copy")
        shutil.copy2(path, copy)
        copy.replace(path)
    else:
        path.unlink()
    assert opened.stale()


def test_a_file_that_a_pattern_names_since_is_noticed(project: Project) -> None:
    (project.folder / "stays.csv").rename(project.folder / "stays-1.csv")
    declaration = project.folder / "stays.toml"
    text = declaration.read_text(encoding="utf-8")
    declaration.write_text(text.replace('"stays.csv"', '"stays-*.csv"'), encoding="utf-8")
    with open_dataset(project, "stays") as opened:
        assert not opened.stale()
        shutil.copy(project.folder / "stays-1.csv", project.folder / "stays-2.csv")
        assert opened.stale()


def test_a_codebook_that_changes_is_noticed(project: Project) -> None:
    (project.folder / "zones.txt").write_text("north\nsouth\neast\n", encoding="utf-8")
    declaration = project.folder / "stays.toml"
    text = declaration.read_text(encoding="utf-8")
    named = text.replace(
        'values = ["north", "south", "east"]', 'values = { codebook = "zones.txt" }'
    )
    assert named != text
    declaration.write_text(named, encoding="utf-8")
    with open_dataset(project, "stays") as opened:
        assert not opened.stale()
        _rewrite(project.folder / "zones.txt")
        assert opened.stale()


@pytest.mark.nightly
def test_budgets_make_a_table_stale_and_nothing_else(project: Project) -> None:
    text = project.file.read_text(encoding="utf-8")
    head = "[dataset.stays]\n"
    project.file.write_text(text.replace(head, f"{head}table = true\n"), encoding="utf-8")
    with open_dataset(open_project(project.file), "stays") as opened:
        assert not opened.stale()
        project.set_budget("stays", "9")
        assert opened.stale()


def test_a_project_file_that_was_replaced_after_it_was_read_is_stale_at_once(
    project: Project,
) -> None:
    project.file.write_text(
        project.file.read_text(encoding="utf-8").replace(
            "[dataset.stays]\n", "[dataset.stays]\nuncertainty = 0.001\n"
        ),
        encoding="utf-8",
    )
    with open_dataset(project, "stays") as opened:
        assert opened.stale()


# --- the seams: what changes between a plan and its release ---


@pytest.mark.nightly
def test_rows_that_change_after_a_plan_are_not_released(
    project: Project, opened: OpenedDataset
) -> None:
    session = opened.session("ana")
    plan = session.plan.histogram(by="zone", epsilon=1)
    write_rows(project.folder, stays()[:-1])
    with raises(DatabaseFailed, reason="changed"):
        session.release(plan)
    assert not list(opened.ledger.history("stays", kind="charge"))


@pytest.mark.nightly
def test_a_budget_that_is_raised_is_seen_by_the_next_plan(opened: OpenedDataset) -> None:
    session = opened.session("ana")
    for _ in range(2):
        plan = session.plan.histogram(by="zone", epsilon=10)
        assert not plan.cost.fits
        with raises(OverBudget):
            session.release(plan)
    opened.project.set_budget("stays", "11")
    assert session.release(session.plan.histogram(by="zone", epsilon=10)).cost.fits


def _older_copy(project: Project) -> Path:
    """A copy of the ledger as it is now, whole."""
    copy = project.folder / "older"
    with sqlite3.connect(project.ledger_place) as here, sqlite3.connect(copy) as there:
        here.backup(there)
    here.close()
    there.close()
    return copy


@pytest.mark.nightly
def test_a_ledger_that_is_replaced_by_an_older_copy_is_refused(
    project: Project, opened: OpenedDataset
) -> None:
    older = _older_copy(project)
    session = opened.session("ana")
    session.release(session.plan.histogram(by="zone", epsilon=1))
    opened.ledger.head()
    older.replace(project.ledger_place)
    for rest in ("-wal", "-shm"):
        Path(f"{project.ledger_place}{rest}").unlink(missing_ok=True)
    assert opened.stale()  # what it would write to has no name any more
    with raises(LedgerUnavailable, reason="replaced"):
        session.release(session.plan.histogram(by="zone", epsilon=2))
    with raises(LedgerSetBack, reason="older"):
        open_dataset(project, "stays")


@pytest.mark.nightly
def test_a_ledger_that_is_overwritten_by_an_older_copy_is_refused(project: Project) -> None:
    older = _older_copy(project)
    with open_dataset(project, "stays") as opened:
        session = opened.session("ana")
        session.release(session.plan.histogram(by="zone", epsilon=1))
    content = older.read_bytes()
    with open_dataset(project, "stays") as opened:
        with Path(project.ledger_place).open("r+b") as file:
            file.write(content)
            file.truncate()
            os.fsync(file.fileno())
        for rest in ("-wal", "-shm"):
            Path(f"{project.ledger_place}{rest}").unlink(missing_ok=True)
        with raises(LedgerSetBack, reason="older"):
            open_dataset(project, "stays")


@pytest.mark.nightly
def test_a_prior_that_is_replaced_must_be_accepted_first(project: Project) -> None:
    with open_dataset(project, "stays") as opened:
        session = opened.session("ana")
        session.release(session.plan.histogram(by="zone", epsilon=1))
        (project.folder / "chain.json").unlink()
        other = replace(CHAIN, transition=np.full((3, 3), 1 / 3))
        write_prior(other, project.folder / "chain.json")
        assert opened.stale()
    with raises(NotAccepted, changed=("prior",)):
        open_dataset(project, "stays")
