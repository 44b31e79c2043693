"""What workers tell of a dataset, and that they notice when it changes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import NoBudget, NotAccepted
from takifugu.project.project import open_project
from takifugu.server.access_rules import Actor
from takifugu.server.api.problems import Problem
from takifugu.server.work import dataset_tasks  # noqa: F401 - it registers tasks
from takifugu.server.work.tasks import TASKS, packed
from takifugu.server.work.worker_host import WorkerHost
from tests.raising import raises
from tests.server.projects import (
    BUDGET,
    DECLARATION,
    STATES,
    ZONES,
    small_project,
    stays,
    write_rows,
)
from tests.server.work.pools import ANA, BO, OWNER, asked

AUDITOR = Actor("al", "auditor", "l")
HISTOGRAM = {"kind": "histogram", "by": ["zone"], "epsilon": "1"}


@pytest.fixture
def host(study: Path) -> Iterator[WorkerHost]:
    found = WorkerHost(study, lambda _: None)
    yield found
    found.close()


def does(host: WorkerHost, name: str, actor: Actor = ANA, **options: Any) -> Any:
    """What a worker sends for a task."""
    found = TASKS[name](host, asked(name, actor, "stays", **options))
    packed(found)
    json.dumps(found)
    return found


def released(host: WorkerHost, actor: Actor = ANA, **query: Any) -> Any:
    return does(host, "release", actor, query=HISTOGRAM | query, key=f"{actor.name} {query}")


@pytest.mark.nightly
@pytest.mark.parametrize("actor", [ANA, OWNER, AUDITOR])
def test_a_description_has_what_is_public_and_names_no_file(host: WorkerHost, actor: Actor) -> None:
    found = does(host, "describe", actor)
    assert (found["dataset"], found["rows"], found["entities"]) == ("stays", 3600, 120)
    assert found["order"]["column"] == "day" and found["order"]["first"] == "2026-01-01T00:00:00"
    (state,), (zone,) = found["protected"], found["public"]
    assert (state["column"], state["labels"]) == ("state", list(STATES))
    assert (zone["column"], zone["keys"]) == ("zone", list(ZONES))
    kinds = {kind["kind"]: kind for kind in found["queries"]}
    assert "k" in kinds["top_k"]["required"] and "within" not in kinds["top_k"]["optional"]
    text = json.dumps(found)
    for secret in ("csv", "toml", "json", str(host.project_file.parent), "person 1"):
        assert secret not in text


@pytest.mark.nightly
def test_the_guarantee_is_that_of_a_session(host: WorkerHost, study: Path) -> None:
    with open_project(study).session("stays", "ana") as session:
        assert does(host, "guarantee")["guarantee"] == session.guarantee()


@pytest.mark.nightly
def test_analysts_see_the_budget_of_the_dataset_and_their_own(tmp_path: Path) -> None:
    study = small_project(tmp_path / "study", analysts={"ana": "3", "bo": "2"})
    host = WorkerHost(study, lambda _: None)
    released(host, ANA)
    released(host, BO, epsilon="0.5")

    def seen(actor: Actor) -> dict[str | None, Any]:
        return {one["analyst"]: one for one in does(host, "budget", actor)["budgets"]}

    assert set(seen(ANA)) == {None, "ana"} and set(seen(BO)) == {None, "bo"}
    assert set(seen(OWNER)) == set(seen(AUDITOR)) == {None, "ana", "bo"}
    whole, own = seen(ANA)[None], seen(ANA)["ana"]
    assert (whole["epsilon"], own["epsilon"]) == (BUDGET, "3")
    assert len(whole["history"]) == 2 and len(own["history"]) == 1
    assert 0 < own["spent"] < whole["spent"] == whole["history"][-1]["spent"]
    assert own["left"] == pytest.approx(float(own["most"]))
    host.close()


def _second(study: Path) -> None:
    """A second dataset, ``visits``, of other rows, without a budget."""
    folder = study.parent
    rows = [(f"visitor {row[0]}", *row[1:]) for row in stays(people=20)]
    lines = ["person,day,zone,state", *(",".join(row) for row in rows)]
    (folder / "visits.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    text = DECLARATION.replace("stays.csv", "visits.csv")
    (folder / "visits.toml").write_text(text, encoding="utf-8")
    project = open_project(study)
    project.add_dataset("visits", folder / "visits.toml", priors=[folder / "chain.json"])


@pytest.mark.nightly
def test_a_dataset_without_a_budget_says_so(host: WorkerHost, study: Path) -> None:
    _second(study)
    with raises(NoBudget, dataset="visits"):
        TASKS["budget"](host, asked("budget", ANA, "visits"))


@pytest.mark.nightly
def test_nobody_learns_of_a_dataset_that_is_not_theirs(tmp_path: Path) -> None:
    host = WorkerHost(small_project(tmp_path / "study", analysts={"bo": "2"}), lambda _: None)
    for name in ("describe", "guarantee", "budget", "plan", "release"):
        problems = []
        for dataset in ("stays", "nothing"):
            with pytest.raises(Problem) as refused:
                TASKS[name](host, asked(name, ANA, dataset, query=HISTOGRAM, key="k"))
            problems.append(refused.value.document())
        assert problems[0] == problems[1] and problems[0]["status"] == 404
    assert does(host, "plan", OWNER, query=HISTOGRAM, analyst="bo")
    host.close()


# --- what changes while it is open ---


@pytest.mark.nightly
def test_a_dataset_stays_open_until_something_changes(host: WorkerHost, study: Path) -> None:
    first = host.opened("stays")
    released(host)
    assert host.opened("stays") is first and host.datasets() == ["stays"]
    write_rows(study.parent, stays(people=119))
    found = does(host, "describe")
    assert host.opened("stays") is not first and found["rows"] == 3570


@pytest.mark.nightly
def test_rows_that_changed_are_charged_again_and_the_plan_says_so(
    host: WorkerHost, study: Path
) -> None:
    before = released(host)
    write_rows(study.parent, stays(people=119))
    plan = does(host, "plan", query=HISTOGRAM)
    text = json.dumps(plan)
    assert "the data changed since the last release" in text
    after = does(host, "release", query=HISTOGRAM, key="another")
    assert not after["result"]["free"] and after["charge"] != before["charge"]


@pytest.mark.nightly
@pytest.mark.parametrize(
    "line", ["uncertainty = 0.001", 'pairs = [[["home"], ["ward"]]]', "entries = [0]"]
)
def test_a_policy_that_was_edited_must_be_accepted(
    host: WorkerHost, study: Path, line: str
) -> None:
    released(host)
    head = "[dataset.stays]\n"
    text = study.read_text(encoding="utf-8")
    study.write_text(text.replace(head, f"{head}{line}\n"), encoding="utf-8")
    for name in ("plan", "release"):
        with pytest.raises(NotAccepted):
            does(host, name, query=HISTOGRAM | {"epsilon": "0.5"}, key="k")
    study.write_text(text, encoding="utf-8")
    assert does(host, "plan", query=HISTOGRAM)


@pytest.mark.nightly
def test_analysts_that_a_policy_lists_meanwhile_are_the_only_ones(
    host: WorkerHost, study: Path
) -> None:
    does(host, "plan", ANA, query=HISTOGRAM)
    text = study.read_text(encoding="utf-8")
    head = "[dataset.stays]\n"
    study.write_text(text.replace(head, f'{head}analysts = ["bo"]\n'), encoding="utf-8")
    with pytest.raises(Problem):
        does(host, "plan", ANA, query=HISTOGRAM)
    assert does(host, "plan", BO, query=HISTOGRAM)


@pytest.mark.nightly
def test_a_budget_that_is_raised_counts_at_once(host: WorkerHost, study: Path) -> None:
    query = HISTOGRAM | {"epsilon": "20"}
    text = json.dumps(does(host, "plan", query=query))
    assert "too much" in text
    open_project(study).set_budget("stays", "30")
    assert "too much" not in json.dumps(does(host, "plan", query=query))


@pytest.mark.nightly
def test_a_worker_closes_the_dataset_that_was_not_used_for_longest(
    host: WorkerHost, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("takifugu.server.work.worker_host.OPEN", 1)
    _second(study)
    first = host.opened("stays")
    assert host.opened("visits").engine.count() == 600
    assert host.datasets() == ["visits"]
    assert host.opened("stays") is not first
