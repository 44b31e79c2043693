"""Errors as problem documents: the fields of the error, and nothing that the role may not see."""

import inspect
import json
import pkgutil
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from importlib import import_module

import pytest

import takifugu
from takifugu.declarations import InvalidQuery
from takifugu.declarations.table_errors import DatabaseFailed
from takifugu.errors import (
    BudgetExceeded,
    CellsChanged,
    InvalidFile,
    LedgerConflict,
    LedgerUnavailable,
    TakifuguError,
    UnknownAnalyst,
    UnsoundRequest,
)
from takifugu.project.policy import InvalidProject
from takifugu.server.api.problems import ERRORS, TYPE, Problem, problem_of
from takifugu.session.release_errors import MostlyNoise, OverBudget

HIDDEN = "/srv/study/visits.csv"


def over_budget() -> OverBudget:
    refused = BudgetExceeded(
        *("histogram",),
        dataset="stays",
        analyst=None,
        currency="epsilon",
        needs=Fraction(2, 3),
        left=Fraction(1, 7),
    )
    return OverBudget(refused, alone=3.5, most=Decimal("0.25"))


def test_a_problem_has_the_fields_of_the_error() -> None:
    error = over_budget()
    found = problem_of(error, "analyst")
    assert found["type"] == TYPE + "OverBudget" and found["status"] == 409
    assert found["detail"] == str(error) and found["field"] == error.field
    assert (found["needs"], found["left"]) == ("2/3", "1/7")
    assert (found["alone"], found["most"]) == (3.5, "0.25")
    assert found["dataset"] == "stays" and found["analyst"] is None
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_infinite_fields_are_text() -> None:
    error = MostlyNoise(
        "noise",
        half_width=float("inf"),
        range=(0.0, float("inf")),
        size=1.0,
        epsilon_needed=None,
        rows_factor=None,
    )
    found = problem_of(error, "analyst")
    assert found["half_width"] == "inf" and found["range"] == [0.0, "inf"]
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidFile("path", given=f"is {HIDDEN}", needed="exist"), 503),
        (InvalidProject("dataset", given=f"is not in {HIDDEN}", needed="be"), 503),
        (DatabaseFailed(HIDDEN, doing="read", trouble="OSError", advice="look"), 503),
        (LedgerUnavailable(f"{HIDDEN} is locked", reason="locked"), 503),
        (CellsChanged("stays", (f"source {HIDDEN}",)), 503),
        (TakifuguError(HIDDEN), 503),
        (RuntimeError(HIDDEN), 500),
        (OSError(2, "no such file", HIDDEN), 500),
    ],
)
def test_what_is_not_about_the_request_is_hidden(
    error: Exception, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    found = problem_of(error, "analyst")
    assert HIDDEN not in json.dumps(found) and found["status"] == status
    assert found["type"] == TYPE + "server"
    assert found["reference"] in caplog.text  # the owner finds it
    if isinstance(error, TakifuguError):
        assert HIDDEN in caplog.text
        assert HIDDEN in problem_of(error, "owner")["detail"]
    else:  # not a message of ours: it may hold anything
        assert HIDDEN not in caplog.text
        assert HIDDEN not in json.dumps(problem_of(error, "owner"))


def test_other_analysts_are_not_named() -> None:
    error = UnknownAnalyst("stays", "ana", ("bob", "carol"), ("bob",))
    found = problem_of(error, "analyst")
    assert found["type"] == TYPE + "UnknownAnalyst" and found["status"] == 403
    assert "bob" not in json.dumps(found)
    assert "bob" in json.dumps(problem_of(error, "owner"))


def test_a_new_class_below_a_shown_one_is_hidden_until_it_is_listed() -> None:
    class Newer(InvalidQuery):
        pass

    assert problem_of(Newer("x", given=HIDDEN, needed="y"), "analyst")["type"] == TYPE + "server"


def test_a_problem_comes_back_from_its_document() -> None:
    problem = Problem(409, "x", "because", field="f", reason="r", extra={"size": 3})
    assert Problem.from_document(problem.document()).document() == problem.document()
    found = problem_of(LedgerConflict("used", reason="key", event=3), "analyst")
    assert Problem.from_document(found).document() == found


def errors() -> Iterator[type[TakifuguError]]:
    skipped = ("takifugu.papers", "takifugu.cli", "takifugu.__main__")
    for module in pkgutil.walk_packages(takifugu.__path__, "takifugu."):
        has_errors = "error" in module.name or module.name.endswith(".state_store")
        if not module.name.startswith(skipped) and has_errors:
            found = vars(import_module(module.name)).values()
            yield from (
                one for one in found if inspect.isclass(one) and issubclass(one, TakifuguError)
            )


def test_every_listed_error_exists() -> None:
    known = {kind.__name__ for kind in errors()}
    assert set(ERRORS) <= known


def test_unsound_requests_tell_what_was_given() -> None:
    found = problem_of(UnsoundRequest("no", field="epsilon", given=Fraction(1, 3)), "analyst")
    assert found["given"] == "1/3" and found["needed"] is None and found["status"] == 422


def test_words_are_those_of_a_request() -> None:
    noise = MostlyNoise(
        *("mostly noise",),
        half_width=3.0,
        range=(0.0, 1.0),
        size=1.0,
        epsilon_needed=None,
        rows_factor=None,
    )
    detail = problem_of(noise, "analyst")["detail"]
    assert '"accept_noise": true' in detail and "--yes" not in detail and "Python" not in detail
    used = LedgerConflict("key 'request 12ab' was used", reason="key", event=7)
    detail = problem_of(used, "analyst", key="monday")["detail"]
    assert "`Idempotency-Key` 'monday'" in detail and "12ab" not in detail
    low = UnsoundRequest(
        "ask for more, or --no-table", reason="below-table", given=0.01, needed=0.05
    )
    detail = problem_of(low, "analyst")["detail"]
    assert "0.01" in detail and "0.05" in detail and "--no-table" not in detail
    window = InvalidQuery("window", given="is 3", needed="be (start, end), None for an open side")
    found = problem_of(window, "analyst")
    assert "[start, end]" in found["needed"] and "null for an open side" in found["needed"]
    assert found["needed"] in found["detail"]
