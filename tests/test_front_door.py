"""``import takifugu as tf``: what it offers, how quickly, and the example that it is shown by."""

import inspect
import json
import re
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import takifugu
from takifugu.declarations import InvalidQuery
from takifugu.errors import UnsoundRequest
from takifugu.ledger import Ledger, open_ledger
from takifugu.session import BudgetConflict, OverBudget, Session, SessionClosed
from tests.raising import raises
from tests.readme_example import example
from tests.session.world import CHAIN, ROWS, TRANSLATION, opened
from tests.visits import COUNTRIES, LABELS, write_visits

ROOT = Path(__file__).parents[1]


def listed() -> list[str]:
    """The names in the first column of the table on the reference page."""
    page = (ROOT / "docs" / "reference" / "front-door.md").read_text(encoding="utf-8")
    return re.findall(r"^\| `(?:tf\.)?(\w+)", page, re.MULTILINE)


def test_the_front_door_is_what_the_reference_page_lists() -> None:
    assert sorted(takifugu.__all__) == sorted(listed())
    assert len(takifugu.__all__) <= 17


@pytest.mark.parametrize("name", takifugu.__all__)
def test_every_name_is_imported_when_it_is_used_and_is_documented(name: str) -> None:
    value = getattr(takifugu, name)
    assert name in dir(takifugu)
    assert name == "__version__" or (inspect.getdoc(value) or "").strip()


def test_dir_lists_the_front_door_and_nothing_else() -> None:
    names = {name for name in dir(takifugu) if not name.startswith("__")}
    assert names == set(takifugu.__all__) - {"__version__"}


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="histogram"):
        _ = takifugu.histogram


def test_importing_takifugu_imports_no_other_package_of_it() -> None:
    code = (
        "import sys, takifugu\n"
        "print([m for m in sys.modules if m.startswith('takifugu.') or m == 'numpy'])\n"
        "print(sorted(set(takifugu.__all__) - set(dir(takifugu))))"
    )
    done = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["[]", "[]"], done.stdout


def test_the_example_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas", reason="pandas is an extra: install takifugu[tables]")
    write_visits(tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"labels": LABELS}
    exec(compile(example(), "README.md", "exec"), names)  # noqa: S102 - our own code
    assert len([line for line in example().splitlines() if line.strip()]) <= 10
    plan, result = names["plan"], names["result"]
    assert plan.cost.alone <= 0.5 and plan.cost.budget == 1 and not result.free
    assert result.columns[:3] == ("country", "rank", "place")
    assert {row[0] for row in result.rows} == set(COUNTRIES) and len(result.rows) == 6
    assert names["session"].releasable.start.isoformat() == "2013-05-08T00:00:00"
    for shown in (plan, result):
        assert isinstance(shown._repr_html_(), str)
    with open_ledger("visits.ledger") as ledger:
        assert ledger.spent("visits", takifugu.Translation(names["prior"])) == plan.cost.after


# --- what a session opens, and the budget that it is given ---


def declared(folder: Path) -> Any:
    lines = ["person,step,zone,state", *(",".join(map(str, row[:4])) for row in ROWS)]
    (folder / "visits.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return takifugu.table(
        folder / "visits.csv",
        entity="person",
        order="step",
        order_kind="number",
        protected={"state": ["home", "ward"]},
        public={"zone": ["a", "b"]},
    )


def test_a_session_closes_what_it_opened(tmp_path: Path) -> None:
    visits, path = declared(tmp_path), tmp_path / "visits.ledger"
    with Session(visits, CHAIN, ledger=path, budget=2) as session:
        plan = session.plan.histogram(epsilon=1)
    for use in (lambda: session.release(plan, accept_noise=True), session.spent, session.guarantee):
        with pytest.raises(SessionClosed):
            use()
    assert repr(session) == "<Session on 'state' of dataset 'visits', closed>"
    with visits.open(threads=1) as engine, open_ledger(path) as ledger:
        with Session(engine, TRANSLATION, ledger=ledger, dataset="visits") as session:
            plan = session.plan.histogram(epsilon=1)
        session.release(
            plan, accept_noise=True
        )  # the engine and the ledger are the caller's and stay open
        assert ledger.positions()[0].dataset == visits.name == "visits"


def test_what_was_opened_is_closed_if_the_session_is_refused(tmp_path: Path) -> None:
    visits, path = declared(tmp_path), tmp_path / "visits.ledger"
    with pytest.raises(UnsoundRequest):
        Session(visits, replace(CHAIN, length=1), ledger=path, budget=1)
    with open_ledger(path) as ledger:
        assert ledger.positions() == ()  # no budget is set for a session that is refused


@pytest.mark.nightly
def test_a_budget_is_set_once_and_another_one_is_refused(tmp_path: Path) -> None:
    visits, path = declared(tmp_path), tmp_path / "visits.ledger"
    with Session(visits, CHAIN, ledger=path, budget="0.1") as session:
        assert session.plan.histogram(epsilon="0.05").cost.budget * 10 == 1
    for same in ("0.1", 0.1, Fraction(1, 10)):
        Session(visits, CHAIN, ledger=path, budget=same).close()
    Session(visits, CHAIN, ledger=path).close()
    with open_ledger(path) as ledger:
        head = ledger.head()
    for given in ({"budget": 2}, {"budget": "0.1", "budget_delta": "1e-6"}, {"budget": 0.11}):
        with raises(BudgetConflict, dataset="visits"):
            Session(visits, CHAIN, ledger=path, **given)
    with open_ledger(path) as ledger:
        assert ledger.head() == head


def test_a_prior_a_mapping_of_them_or_a_translation(tmp_path: Path) -> None:
    secrets = takifugu.Secrets(entries=(0,))
    with opened(tmp_path) as (plain, ledger, engine):
        by_prior = Session(engine, CHAIN, ledger=ledger, dataset="visits")
        named = Session(engine, {"prior": CHAIN}, ledger=ledger, dataset="visits")
        assert by_prior.guarantee() == named.guarantee() == plain.guarantee()
        for given in ({"secrets": secrets}, {"uncertainty": 0.1}):
            with pytest.raises(UnsoundRequest):
                Session(engine, TRANSLATION, ledger=ledger, dataset="visits", **given)
        kept = Session(engine, CHAIN, ledger=ledger, dataset="visits", secrets=secrets)
        assert kept.guarantee() != plain.guarantee()
        with pytest.raises(UnsoundRequest):
            Session(engine, CHAIN, ledger=ledger)  # an engine has no name


def test_two_sessions_that_begin_at_once_agree_on_one_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visits, path = declared(tmp_path), tmp_path / "visits.ledger"
    begin = Ledger.begin_budget

    def late(self: Ledger, *given: Any, **more: Any) -> Any:
        monkeypatch.setattr(Ledger, "begin_budget", begin)
        Session(visits, CHAIN, ledger=path, budget=1).close()  # another process, in between
        return begin(self, *given, **more)

    monkeypatch.setattr(Ledger, "begin_budget", late)
    with raises(BudgetConflict, given=(50, 0), current=(1, 0)):
        Session(visits, CHAIN, ledger=path, budget=50)
    with open_ledger(path) as ledger:
        assert [event.kind for event in ledger.history()].count("budget") == 1


def test_the_advice_of_a_refusal_counts_what_others_spent_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visits, path = declared(tmp_path), tmp_path / "visits.ledger"
    charge = Ledger.charge
    with (
        Session(visits, CHAIN, ledger=path, budget=1) as session,
        Session(visits, CHAIN, ledger=path) as other,
    ):

        def late(self: Ledger, *given: Any, **more: Any) -> Any:
            monkeypatch.setattr(Ledger, "charge", charge)
            other.release(other.plan.histogram(epsilon="0.9"), accept_noise=True)
            return charge(self, *given, **more)

        plan = session.plan.histogram(epsilon="0.5")
        monkeypatch.setattr(Ledger, "charge", late)
        with pytest.raises(OverBudget) as refused:
            session.release(plan, accept_noise=True)
        assert 0 < refused.value.most < 0.2
        session.release(session.plan.histogram(epsilon=refused.value.most), accept_noise=True)
        assert session.spent() <= 1


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("budget", {"budget": True}),
        ("budget", {"budget_delta": "1e-6"}),
        ("release_fitted_rows", {"release_fitted_rows": "no"}),
        ("statement", {"statement": 5}),
        ("translation_table", {"translation_table": 5}),
        ("uncertainty", {"uncertainty": "0.1"}),
        ("secrets", {"secrets": "home"}),
        ("prior", {"prior": None}),
        ("prior", {"prior": "prior.json"}),
        ("prior 0", {"prior": [[0.8, 0.2], [0.3, 0.7]]}),
        ("table", {"table": "visits.csv"}),
        ("ledger", {"ledger": None}),
    ],
)
def test_an_argument_of_another_type_is_named(
    tmp_path: Path, field: str, given: dict[str, Any]
) -> None:
    path = tmp_path / "visits.ledger"
    arguments = {"table": declared(tmp_path), "prior": CHAIN, "ledger": path} | given
    with raises(takifugu.TakifuguError, field=field):
        Session(**arguments)


def test_only_a_plan_is_released_and_only_options_are_planned(tmp_path: Path) -> None:
    with opened(tmp_path) as (session, ledger, _):
        plan = session.plan.histogram(epsilon=1)
        for wrong in (None, plan.options):
            with raises(UnsoundRequest, field="plan"):
                session.release(wrong, accept_noise=True)  # type: ignore[arg-type]
        with raises(UnsoundRequest, field="options"):
            session.plan(None)  # type: ignore[arg-type]
        assert ledger.spent("visits", TRANSLATION) == 0


@pytest.mark.parametrize("days", [10**7, 10**10])
def test_days_beyond_the_calendar_are_refused(tmp_path: Path, days: int) -> None:
    (tmp_path / "visits.csv").write_text("user,at,place\nAnn,2012-04-03,home\n", encoding="utf-8")
    visits = takifugu.table(
        tmp_path / "visits.csv", entity="user", order="at", protected={"place": LABELS}
    )
    with raises(InvalidQuery, field="days"):
        takifugu.fit_markov(visits, "place", first_days=days)


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), "1/3"])
def test_a_fraction_is_planned_as_it_is_after_json_too(
    tmp_path: Path, epsilon: Fraction | str
) -> None:
    with opened(tmp_path) as (session, _, _):
        plan = session.plan.histogram(epsilon=epsilon)
        read = takifugu.QueryOptions.from_document(json.loads(json.dumps(plan.options.document())))
        again = session.plan(read)
        assert again.charge == plan.charge and again.mechanism == plan.mechanism
        assert 0.333 < plan.cost.alone <= Fraction(1, 3)
