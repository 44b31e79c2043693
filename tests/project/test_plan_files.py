"""Plan files: planned anew, at the same price, or refused."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from takifugu.declarations import InvalidQuery
from takifugu.errors import InvalidFile, Malformed
from takifugu.session import StalePlan
from takifugu.session.plan_documents import plan_document, read_plan
from takifugu.session.query_options import QueryOptions
from tests.project.studies import with_prior
from tests.raising import raises


def test_a_plan_file_is_planned_anew_and_must_cost_the_same(tmp_path: Path) -> None:
    project = with_prior(tmp_path)
    options = QueryOptions("count", values=["ward"], where={"floor": ["1"]}, epsilon="1")
    with project.session("stays") as session:
        plan = session.plan(session.resolved(options))
        assert plan.query.rows.scope.where == {"floor": (1,)}  # a key may be given as text
        document = plan_document("stays", None, plan, session.guarantee())
        path = tmp_path / "plan.json"
        path.write_text(json.dumps(document))
        file = read_plan(path)
        file = replace(file, options=session.resolved(file.options))
        assert (file.dataset, file.analyst, file.options) == ("stays", None, plan.options)
        assert session.replan(file) == replace(plan, charge=session.replan(file).charge)
        for key, wrong, differs in (
            ("mechanism", {}, ("mechanism",)),
            ("window", {"start": 3}, ("window",)),
            ("cost", None, ("currency", "per_entry", "delta")),
            ("dataset", "others", ("dataset",)),
        ):
            with raises(StalePlan, differences=differs):
                session.replan(replace(file, document={**file.document, key: wrong}))


def test_a_plan_file_of_an_earlier_version_is_released(tmp_path: Path) -> None:
    """Its keys are text, and the confidence was called chance."""
    project = with_prior(tmp_path)
    how = {"where": {"floor": ["1"]}, "within": 50, "chance": 0.9, "window": ["2", None]}
    asked = {"dataset": "stays", "kind": "histogram", "analyst": None, "how": how}
    project.set_budget("stays", "10")
    with project.session("stays") as session:
        plan = session.plan.histogram(
            window=(2, None), where={"floor": [1]}, within=50, confidence=0.9
        )
        path = tmp_path / "plan.json"
        path.write_text(json.dumps({"form": "takifugu-plan-1", "asked": asked, **plan.describe()}))
        file = read_plan(path)
        file = replace(file, options=session.resolved(file.options))
        assert file.options == plan.options
        assert not session.release(session.replan(file), accept_noise=True).free


@pytest.mark.parametrize(
    ("text", "kind", "field", "reason"),
    [
        ("{}", InvalidFile, None, "not-a-plan"),
        ("[]", InvalidFile, None, "not-a-plan"),
        ('{"form": "takifugu-plan-1"}', InvalidFile, None, "changed"),
        (
            '{"form": "takifugu-plan-1", "asked": {"dataset": 3, "kind": "sum", "how": {}}}',
            InvalidFile,
            None,
            "changed",
        ),
        (
            '{"form": "takifugu-plan-1", "asked": {"dataset": "a", "kind": "all", "how": {},'
            ' "analyst": null}}',
            InvalidQuery,
            "kind",
            "",
        ),
        (
            '{"form": "takifugu-plan-1", "asked": {"dataset": "a", "kind": "sum", "how": {"x": 1},'
            ' "analyst": null}}',
            InvalidQuery,
            "x",
            "",
        ),
    ],
)
def test_a_file_that_is_no_plan_is_refused(
    tmp_path: Path, text: str, kind: type[Malformed], field: str | None, reason: str
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with raises(kind, field=str(path) if field is None else field, reason=reason):
        read_plan(path)
