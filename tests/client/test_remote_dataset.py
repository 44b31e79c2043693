"""A dataset of a server beside the same dataset in a local session: equal plans, equal errors."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import takifugu as tf
from takifugu.client import Connection, RemoteDataset
from takifugu.declarations import InvalidQuery
from takifugu.errors import TakifuguError, UnsoundRequest
from takifugu.project.project import open_project
from takifugu.session import OverBudget, Plan, QueryOptions, Result, SessionClosed, StalePlan
from takifugu.session.asking import Asking
from takifugu.session.plan_documents import public_form
from takifugu.session.release_errors import MostlyNoise
from takifugu.session.session import Session
from tests.client.listening import Listening, listening
from tests.raising import raises
from tests.server.projects import small_project, stays, write_rows


@contextmanager
def local(server: Listening, analyst: str = "ana") -> Iterator[Session]:
    with open_project(server.project).session("stays", analyst) as session:
        yield session


@pytest.fixture
def remote(server: Listening) -> Iterator[RemoteDataset]:
    with tf.connect(server.url, server.tokens["ana"]) as connection:
        yield connection.dataset("stays")


QUERIES: list[dict[str, Any]] = [
    {"kind": "histogram", "by": "zone", "epsilon": 1},
    {"kind": "histogram", "epsilon": Fraction(1, 3), "sum_to_one": True},
    {"kind": "count", "values": "ward", "within": 40},
    {"kind": "histogram", "epsilon": 0.1},  # the float, not one tenth
    {"kind": "counts", "values": ["ward", "clinic"], "epsilon": 0.5, "where": {"zone": ["north"]}},
    {"kind": "top_k", "k": 2, "epsilon": "0.5", "gap": 20.0},
    {"kind": "top_k", "k": 1, "confidence": 0.9, "gap": 60.0},
    {"kind": "proportions", "epsilon": "1/2", "window": ("2026-01-02", "2026-01-20")},
    {"kind": "transitions", "epsilon": "2"},
    {"kind": "histogram", "within": 1},  # over budget: says what would fit
    {"kind": "histogram", "epsilon": 150},
]


def assert_equal(here: Plan, there: Plan) -> None:
    """All that a plan says is the same, however often it is looked at."""
    expected = public_form(here)
    for part in fields(Plan):
        assert getattr(there, part.name) == getattr(expected, part.name), part.name
    assert there == expected and type(there) is Plan
    assert str(there) == str(here) and there._repr_html_() == here._repr_html_()
    assert there.describe() | {"cells": 0} == here.describe() | {"cells": 0}


def shape(result: Result) -> dict[str, Any]:
    """All of a result but what noise, time and the ledger's numbers decide."""
    document = result.document()
    numbers = {"estimate", "low", "high", "probability", "rank", "state"}
    for name in ("rows", "raw", "at", "provenance"):
        del document[name]
    keys = [c for c in result.columns if c not in numbers]
    return document | {
        "keys": [[row[result.columns.index(c)] for c in keys] for row in result.rows]
    }


@pytest.mark.nightly
@pytest.mark.parametrize("query", QUERIES)
def test_plans_are_those_of_a_local_session(
    server: Listening, remote: RemoteDataset, query: dict[str, Any]
) -> None:
    with local(server) as session:
        assert_equal(session.plan(QueryOptions(**query)), remote.plan(QueryOptions(**query)))


def script(asking: Asking, epsilon: str) -> tuple[Plan, Result, Result]:
    """What an analyst does, wherever the data is."""
    plan = asking.plan.histogram(by="zone", epsilon=epsilon)
    result = asking.release(plan)
    again = asking.release(asking.plan.histogram(by="zone", epsilon=epsilon))
    assert asking.about == "state" and asking.columns == ("state",)
    assert asking.spent() > 0
    return plan, result, again


@pytest.mark.nightly
def test_the_same_script_runs_here_and_there(server: Listening, remote: RemoteDataset) -> None:
    _, there, there_again = script(remote, "0.71")
    with local(server) as session:
        _, here, here_again = script(session, "0.72")
        assert session.guarantee() == remote.guarantee()
        assert session.spent() == remote.spent() == remote.budget.spent
        assert remote.budget.epsilon == 100
        left, most = remote.budget.left, remote.budget.most
        assert left is not None and most is not None and 0 < left == pytest.approx(float(most))
        own = remote.budget.own
        assert own is not None and own.epsilon is None and own.spent == remote.budget.spent
        # what was released there is free here, and the same
        free = session.release(session.plan.histogram(by="zone", epsilon="0.71"))
        assert free.rows == there.rows == there_again.rows and free.free and there_again.free
        assert here_again.free and here_again.rows == here.rows
    assert type(there) is type(here) and not there.free and not here.free
    one, other = shape(there), shape(here)
    for document in (one, other):
        for part in ("cost", "error", "mechanism", "query", "saving"):
            document.pop(part)
    assert one == other
    assert abs(there.cost.alone - here.cost.alone) < 0.02
    assert there.provenance is not None and there.provenance.analyst == "ana"
    assert [len(r.rows) for r in (there, here)] == [9, 9]


@pytest.mark.nightly
def test_a_result_is_that_of_the_ledger_with_every_digit(
    server: Listening, remote: RemoteDataset
) -> None:
    plan = remote.plan.proportions(epsilon="0.31")
    result = remote.release(plan)
    with local(server) as session:
        stored = session.release(session.plan.proportions(epsilon="0.31"))
    assert stored.free and stored.rows == result.rows and stored.raw == result.raw
    assert stored.provenance == result.provenance
    (latest, *_) = remote.history()
    assert result.provenance is not None and latest.charge == result.provenance.charge.seq
    assert latest.kept and remote.result(latest.charge) == result
    assert result.to_pandas().shape == (3, 4)


@pytest.mark.nightly
def test_a_plan_is_charged_once_however_often_it_is_released(remote: RemoteDataset) -> None:
    plan = remote.plan.histogram(epsilon="0.4")
    before = len(remote.history())
    first = remote.release(plan)
    spent = remote.spent()
    again = [remote.release(plan) for _ in range(3)]
    assert all(one.rows == first.rows for one in again)
    assert remote.spent() == spent and len(remote.history()) == before + 1


def test_threads_have_connections_of_their_own(server: Listening) -> None:
    found: list[Plan] = []
    with tf.connect(server.url, server.tokens["bo"]) as connection:
        dataset = connection.dataset("stays")
        work = [
            threading.Thread(target=lambda: found.append(dataset.plan.histogram(epsilon="0.2")))
            for _ in range(4)
        ]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
        assert len(found) == 4 and all(one == found[0] for one in found)
        assert found[0].charge.analyst == "bo"


# --- the same errors ---


def raised(ask: Any) -> TakifuguError:
    with pytest.raises(TakifuguError) as caught:
        ask()
    return caught.value


REFUSED: list[dict[str, Any]] = [
    {"kind": "histogram", "by": "zoen", "epsilon": 1},
    {"kind": "histogram", "epsilon": 1, "window": ("2031-01-01", None)},
    {"kind": "count", "values": "wrad", "epsilon": 1},
    {"kind": "histogram", "epsilon": 1, "where": {"state": ["ward"]}},
    {"kind": "sum", "epsilon": 1},
    {"kind": "histogram", "epsilon": "0"},
    {"kind": "histogram", "epsilon": 1, "delta": "1e-6"},
    {"kind": "linear", "query": "load", "epsilon": 1},
    {"kind": "histogram", "within": "1e-9"},
]


@pytest.mark.nightly
@pytest.mark.parametrize("query", REFUSED)
def test_what_is_refused_here_is_refused_there_alike(
    server: Listening, remote: RemoteDataset, query: dict[str, Any]
) -> None:
    options = QueryOptions(**query)
    with local(server) as session:
        here = raised(lambda: session.plan(options))
    there = raised(lambda: remote.plan(options))
    assert type(there) is type(here) and str(there) == str(here)
    assert (there.field, there.reason) == (here.field, here.reason)
    own = {key: value for key, value in vars(here).items() if not key.startswith("__")}
    got = {key: value for key, value in vars(there).items() if not key.startswith("__")}
    exact = {k: str(v) if isinstance(v, Fraction) else v for k, v in own.items()}
    assert got in (exact, own)


@pytest.mark.nightly
def test_what_is_over_budget_says_what_would_fit(server: Listening, remote: RemoteDataset) -> None:
    options = QueryOptions("histogram", epsilon=500)
    with local(server) as session:
        here = raised(lambda: session.release(session.plan(options)))
    there = raised(lambda: remote.release(remote.plan(options)))
    assert isinstance(here, OverBudget) and isinstance(there, OverBudget)
    for name in ("query", "dataset", "analyst", "currency", "needs", "left", "alone", "most"):
        assert getattr(there, name) == getattr(here, name), name
    assert str(there) == str(here) and there.whose == here.whose


@pytest.mark.nightly
def test_what_is_mostly_noise_is_confirmed_first(server: Listening, remote: RemoteDataset) -> None:
    plan = remote.plan.transitions(epsilon="0.002")
    assert plan.needs_confirmation
    there = raised(lambda: remote.release(plan))
    with local(server) as session:
        here = raised(lambda: session.release(session.plan.transitions(epsilon="0.002")))
    assert isinstance(there, MostlyNoise) and isinstance(here, MostlyNoise)
    assert vars(there) == vars(here) and str(there) == str(here)
    assert remote.release(plan, accept_noise=True).cost.alone <= 0.002


@pytest.mark.nightly
def test_a_plan_of_rows_that_changed_is_stale(tmp_path: Path) -> None:
    project = small_project(tmp_path / "changing")
    with listening(project) as server, tf.connect(server.url, server.tokens["ana"]) as connection:
        dataset = connection.dataset("stays")
        plan = dataset.plan.histogram(epsilon="0.5")
        rows = stays()
        write_rows(project.parent, [*rows[:-1], (*rows[-1][:3], "home"), ("new", *rows[-1][1:])])
        with raises(StalePlan, differences=("plan",)):
            dataset.release(plan)
        assert dataset.spent() == 0
        assert dataset.release(dataset.plan.histogram(epsilon="0.5")).rows_read == len(rows) + 1


@pytest.mark.nightly
def test_a_plan_that_is_stale_is_refused_and_not_charged(
    server: Listening, remote: RemoteDataset
) -> None:
    plan = remote.plan.histogram(epsilon="0.9")
    before = remote.spent()
    forged = replace(plan, charge=replace(plan.charge, data=plan.charge.data[:-1] + "0"))
    if forged.charge.data == plan.charge.data:
        forged = replace(plan, charge=replace(plan.charge, data=plan.charge.data[:-1] + "1"))
    with raises(StalePlan, differences=("plan",)):
        remote.release(forged)
    with raises(StalePlan, differences=("plan",)):  # of another query
        remote.release(replace(plan, options=replace(plan.options, epsilon="0.8")))
    with local(server) as session:
        own = session.plan.histogram(epsilon="0.9")
        with raises(StalePlan, differences=("charge",)):
            remote.release(own)
        with pytest.raises(StalePlan):
            session.release(plan)
    with raises(UnsoundRequest, field="plan"):
        remote.release("plan")  # type: ignore[arg-type]
    with raises(UnsoundRequest, field="accept_noise"):
        remote.release(plan, accept_noise="yes")  # type: ignore[arg-type]
    with raises(UnsoundRequest, field="options"):
        remote.plan({"kind": "histogram"})  # type: ignore[arg-type]
    with raises(InvalidQuery, field="epsilon"):
        remote.plan.histogram()
    assert remote.spent() == before


@pytest.mark.nightly
def test_what_is_closed_asks_nothing(server: Listening) -> None:
    with tf.connect(server.url, server.tokens["ana"]) as connection:
        assert connection.datasets() == ("stays",)
        with connection.dataset("stays") as dataset:
            plan = dataset.plan.histogram(epsilon=1)
        assert repr(dataset).endswith(", closed>")
        with pytest.raises(SessionClosed):
            dataset.release(plan)
        other = connection.dataset("stays")
    assert isinstance(connection, Connection) and connection.closed
    for use in (other.spent, other.guarantee, connection.datasets, other.history):
        with pytest.raises(SessionClosed):
            use()
    assert server.tokens["ana"] not in repr(connection) + repr(vars(connection))
