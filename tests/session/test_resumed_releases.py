"""A release under a key of its own: once charged, once answered, whatever happens in between."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import takifugu
from takifugu.declarations import DatabaseFailed
from takifugu.errors import ApprovalRefused, InvalidCharge, LedgerConflict, LedgerUnavailable
from takifugu.ledger import Ledger
from takifugu.session import Session
from takifugu.session import releases as steps
from takifugu.session.release_errors import OverBudget, ReleaseFailed
from tests.raising import raises
from tests.session.world import TRANSLATION, opened

GONE = DatabaseFailed("duckdb", doing="counting", trouble="gone", advice="")
ROOT = Path(takifugu.__file__).parents[2]
KILLED = """
import os, signal, sys
from pathlib import Path
from takifugu.session import releases as steps
from tests.session.world import opened

def killed(*arguments):
    if sys.argv[2] == "drawn":
        drawing(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)

drawing, steps.draw = steps.draw, killed
with opened(Path(sys.argv[1])) as (session, _, _):
    session.release(session.plan.histogram(epsilon=2), accept_noise=True, key="k")
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[tuple[Session, Ledger]]:
    with opened(tmp_path) as (session, ledger, _):
        yield session, ledger


def kinds(ledger: Ledger) -> list[str]:
    known = ("charge", "reuse", "answer", "abandoned")
    return [event.kind for event in ledger.history() if event.kind in known]


def release(session: Session, key: str | None = "k", **options: Any) -> Any:
    plan = session.plan.histogram(**{"epsilon": 2, **options})
    return session.release(plan, accept_noise=True, key=key)


def test_the_same_key_is_one_charge_and_one_answer(
    world: tuple[Session, Ledger], monkeypatch: pytest.MonkeyPatch
) -> None:
    session, ledger = world
    first = release(session)
    spent = session.spent()
    monkeypatch.setattr(steps, "draw", None)  # nothing is drawn any more
    again = release(session)
    assert (again.rows, again.raw, again.at) == (first.rows, first.raw, first.at)
    assert again.provenance == first.provenance and not first.free and not again.free
    assert again.cost.after == spent == session.spent()
    assert kinds(ledger) == ["charge", "answer"]
    assert release(session, key="another").free  # the same query is free under any key


@pytest.mark.parametrize("fails", [False, True])
def test_nothing_is_recorded_before_the_step_of_time_is_over(
    world: tuple[Session, Ledger], monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    """Neither an answer nor that there is none: and steps are counted from the charge on."""
    session, ledger = world
    held: list[tuple[float, list[str]]] = []
    clock = iter((1000.0, 1012.0))
    monkeypatch.setattr(steps, "monotonic", lambda: next(clock))
    monkeypatch.setattr(steps, "sleep", lambda left: held.append((left, kinds(ledger))))
    session.release_in_steps(5.0)
    if fails:
        monkeypatch.setattr(steps, "draw", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            release(session)
    else:
        release(session)
    assert held == [(3.0, ["charge"])]
    assert kinds(ledger) == ["charge", "abandoned" if fails else "answer"]


@pytest.mark.nightly
@pytest.mark.parametrize("where", ["charged", "drawn"])
def test_a_release_that_was_killed_is_finished_by_the_next(tmp_path: Path, where: str) -> None:
    killed = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, "-c", KILLED, str(tmp_path), where],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    with opened(tmp_path) as (session, ledger, _):
        assert kinds(ledger) == ["charge"]
        spent = session.spent()
        result = release(session)
        assert kinds(ledger) == ["charge", "answer"] and session.spent() == spent
        assert result.cost.after == spent and not result.free
        assert release(session).raw == result.raw
        assert ledger.verify().sound


def test_what_was_charged_without_a_key_is_paid_again(
    world: tuple[Session, Ledger], monkeypatch: pytest.MonkeyPatch
) -> None:
    session, ledger = world

    def failing(*_: Any) -> None:
        raise GONE

    with monkeypatch.context() as patch:
        patch.setattr(steps, "draw", failing)
        with pytest.raises(DatabaseFailed) as failed:
            release(session, key=None)
    assert "the charge stays" in failed.value.__notes__[-1]
    release(session, key=None)
    assert kinds(ledger) == ["charge", "charge", "answer"]


@pytest.mark.parametrize("trouble", [GONE, KeyboardInterrupt()])
def test_trouble_from_outside_is_resumed(
    world: tuple[Session, Ledger], monkeypatch: pytest.MonkeyPatch, trouble: BaseException
) -> None:
    session, ledger = world

    def failing(*_: Any) -> None:
        raise trouble

    with monkeypatch.context() as patch:
        patch.setattr(steps, "draw", failing)
        with pytest.raises(type(trouble)):
            release(session)
    release(session)
    assert kinds(ledger) == ["charge", "answer"]


def test_a_ledger_that_cannot_be_reached_for_the_answer_is_resumed(
    world: tuple[Session, Ledger], monkeypatch: pytest.MonkeyPatch
) -> None:
    session, ledger = world

    def failing(*_: Any) -> None:
        raise LedgerUnavailable("gone")

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "record_answer", failing)
        with pytest.raises(LedgerUnavailable):
            release(session)
    release(session)
    assert kinds(ledger) == ["charge", "answer"]


@pytest.mark.parametrize("step", ["draw", "answer_record", "software"])
def test_trouble_that_may_depend_on_the_draw_ends_the_charge(
    world: tuple[Session, Ledger], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    session, ledger = world

    def failing(*_: Any) -> None:
        raise ReleaseFailed("OverflowError")

    with monkeypatch.context() as patch:
        patch.setattr(steps, step, failing)
        with pytest.raises(ReleaseFailed):
            release(session)
    assert kinds(ledger) == ["charge", "abandoned"]
    with raises(LedgerConflict, reason="lost", dataset="visits"):
        release(session)
    release(session, key="new")
    assert kinds(ledger) == ["charge", "abandoned", "charge", "answer"]
    assert ledger.verify().sound


def test_another_release_under_the_same_key_is_refused(world: tuple[Session, Ledger]) -> None:
    session, ledger = world
    release(session)
    for options in ({"epsilon": 1}, {"epsilon": 2, "by": "zone"}):
        with raises(LedgerConflict, reason="key"):
            release(session, **options)
    for wrong in ("", "x" * 501):
        with raises(InvalidCharge, field="key"):
            release(session, key=wrong)
    assert kinds(ledger) == ["charge", "answer"]


def test_a_refusal_under_a_key_leaves_nothing(world: tuple[Session, Ledger]) -> None:
    session, ledger = world
    plan = session.plan.histogram(epsilon=100)
    with pytest.raises(OverBudget):
        session.release(plan, accept_noise=True, key="k")
    release(session)
    assert kinds(ledger) == ["charge", "answer"]


def test_two_analysts_may_choose_the_same_key(tmp_path: Path) -> None:
    with opened(tmp_path) as (_, ledger, engine):
        for who in ("ana", "bob"):
            ledger.set_budget("visits", 5, analyst=who)
        ana, bob = (
            Session(engine, TRANSLATION, ledger=ledger.acting(who), dataset="visits", analyst=who)
            for who in ("ana", "bob")
        )
        hers = release(ana)
        his = release(bob)
        assert his.raw == hers.raw and kinds(ledger) == ["charge", "answer", "reuse"]
        assert release(bob).raw == his.raw and kinds(ledger) == ["charge", "answer", "reuse"]
        assert [e.body["actor"] for e in ledger.history(analyst="bob", kind="reuse")] == ["bob"]


def test_an_approval_is_charged_with_the_release(world: tuple[Session, Ledger]) -> None:
    session, ledger = world
    plan = session.plan.histogram(epsilon=2)
    body = plan.charge.body()
    with raises(ApprovalRefused, reason="missing"):
        session.release(plan, accept_noise=True, key="k", approval=1)
    event = ledger.acting("olga").approve(
        dataset="visits",
        analyst=None,
        question=body["question"],
        words="a histogram",
        epsilon=plan.cost.alone,
    )
    result = session.release(plan, accept_noise=True, key="k", approval=event.seq)
    (charge,) = ledger.history(kind="charge")
    assert charge.body["approval"] == event.seq
    again = session.release(plan, accept_noise=True, key="k", approval=event.seq)
    assert again.raw == result.raw
    with raises(LedgerConflict, reason="key"):
        session.release(plan, accept_noise=True, key="k")
    assert ledger.verify().sound
