"""Requests whose approval was lost with the ledger's history: its number is used again."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from takifugu.errors import ApprovalRefused
from takifugu.ledger import restore_ledger
from takifugu.ledger.witnesses.lost_history import LossTerms
from takifugu.project.project import Project, open_project
from takifugu.server.state.server_state import open_state
from tests.raising import raises
from tests.server.projects import small_project
from tests.server.test_approvals import QUERY, Study, told, with_rule


@contextmanager
def opened(project: Project) -> Iterator[Study]:
    with project.ledger() as ledger, open_state(project) as state:
        yield Study(project, ledger, state)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("hashed", "reason"), [(True, "lost"), (False, "request")], ids=["now", "earlier version"]
)
def test_a_number_that_is_used_again_serves_no_earlier_request(
    tmp_path: Path, hashed: bool, reason: str
) -> None:
    project = open_project(with_rule(small_project(tmp_path / "a study")))
    path, copy = project.folder / "takifugu.ledger", tmp_path / "backup"
    with opened(project) as study:
        study.release(QUERY)
        study.ledger.backup(copy)
        for budget in ("7", "8"):
            study.ledger.acting("olga").set_budget("stays", budget)
        lost, place = study.decide(1), Path(study.state.name)
    terms = LossTerms(columns={"stays": ("state",)})
    restore_ledger(copy, path, lossy=True, actor="olga", terms=terms)
    if not hashed:
        with sqlite3.connect(place) as raw:
            raw.execute("UPDATE takifugu_server_approvals SET event_hash = NULL")
        raw.close()
    with opened(project) as study:
        study.ledger.acting("olga").set_budget("stays", "100")
        study.release(QUERY, "k2")
        again = study.decide(2)
        assert again.event == lost.event and again.event_hash != lost.event_hash
        with told("ApprovalRefused", reason):
            study.release(QUERY)
        assert study.approval(1).state == "failed" and not study.events("charge")
        assert "result" in study.release(QUERY, "k2")
        assert study.approval(2).state == "released" and study.ledger.verify().sound


@pytest.mark.nightly
def test_a_session_beside_the_server_cannot_use_the_approval_of_a_request(tmp_path: Path) -> None:
    project = open_project(with_rule(small_project(tmp_path / "a study")))
    with opened(project) as study:
        study.release(QUERY)
        event = study.decide(1).event
        with raises(ApprovalRefused, reason="request", approval=event), study.session() as session:
            session.release(session.plan.histogram(by="zone", epsilon="1"), approval=event)
        assert "result" in study.release(QUERY)
        assert len(study.events("charge")) == 1 and study.ledger.verify().sound
