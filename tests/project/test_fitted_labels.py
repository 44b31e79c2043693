"""A dataset whose labels are those of the rows that its prior is fitted on, from end to end."""

from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import takifugu as tf
from takifugu.costs.losses import Metric
from takifugu.declarations import InvalidDeclaration, InvalidQuery
from takifugu.errors import CellsChanged, TooLarge, UnsoundRequest
from takifugu.fitting import FitOptions
from takifugu.priors import MarkovChain, write_prior
from takifugu.project.policy import InvalidProject
from takifugu.project.project import Project, init_project, open_project
from tests.raising import raises

HEAD = """\
[source]
kind = "csv"
path = "visits.csv"
[entity]
column = "who"
[order]
column = "step"
kind = "number"
ties = "refuse"
"""
FITTED = '[protected.{}]\nvalues = "from the fitted rows"\n'
STEPS = 40


def rows() -> list[tuple[str, int, str, str]]:
    """Everybody is at home or out; who is at the clinic is there in the second half only."""
    found = []
    for person in range(30):
        for step in range(STEPS):
            place = ("home", "out", "home", "out", "out")[(person + step * step) % 5]
            if step >= STEPS // 2 and (person + step) % 7 == 0:
                place = "clinic"
            mood = ("good", "bad")[(person * step + step // 3) % 2]
            found.append((f"p{person}", step, place, mood))
    return found


def study(folder: Path, *columns: str) -> Project:
    lines = ["who,step,place,mood", *(",".join(map(str, row)) for row in rows())]
    (folder / "visits.csv").write_text("\n".join(lines) + "\n")
    (folder / "visits.toml").write_text(HEAD + "".join(map(FITTED.format, columns)))
    project = init_project(folder).add_dataset("visits", folder / "visits.toml")
    project.set_budget("visits", "400")
    return project


@pytest.mark.nightly
def test_labels_are_found_by_the_fit_and_pinned_by_the_ledger(tmp_path: Path) -> None:
    project = study(tmp_path, "place")
    with raises(InvalidProject, reason="missing"), project.session("visits"):
        pass
    project, _, prior, found = project.fit("visits", FitOptions(first_days=STEPS // 2))
    assert prior.states == ("home", "out", "other")
    assert "2 labels of 'place'" in found.statement
    assert "clinic" not in project.file.read_text()
    with project.session("visits") as session:
        result = session.release(session.plan.histogram(epsilon=40), accept_noise=True)
        assert "2 labels of 'place'" in session.guarantee().replace("\n", " ")
    later = Counter(place for _, step, place, _ in rows() if step >= STEPS // 2)
    exact = {"home": later["home"], "out": later["out"], "other": later["clinic"]}
    for place, estimate, *_ in result.rows:
        assert abs(estimate - exact[place]) < 30
    # other rows to fit on have another label: another reading of every cell
    given_up = "before 30"  # which the release above protected
    again, *_ = project.fit(
        "visits", FitOptions(first_days=30), replace=True, publish_rows=given_up
    )
    assert again.load("visits").declaration.category("place").keys == (
        "clinic",
        "home",
        "out",
        "other",
    )
    again.accept_prior("visits", again.change("visits"))
    with again.session("visits") as session, raises(CellsChanged):
        session.plan.histogram(epsilon=1)
    pending = again.pending("visits")
    assert pending.charged and pending.changes
    again.accept(pending)
    with again.session("visits") as session:
        assert len(session.release(session.plan.histogram(epsilon=1), accept_noise=True).rows) == 4


@pytest.mark.nightly
def test_a_count_of_other_costs_its_scalar_once_labels_are_found_anew(tmp_path: Path) -> None:
    """What was `other` is partly a label of its own now: the owner is told, at each acceptance."""
    project, *_ = study(tmp_path, "place").fit("visits", FitOptions(first_days=STEPS // 2))
    with project.session("visits") as session:
        plan = session.plan.count(["other"], epsilon=1)
        assert isinstance(plan.charge.loss, Metric)
        session.release(plan, accept_noise=True)
    given_up = "before 30"  # which the release above protected
    again, *_ = project.fit(
        "visits", FitOptions(first_days=30), replace=True, publish_rows=given_up
    )
    scalar = again.load("visits").translation.to_pufferfish(float(plan.charge.loss.epsilon))
    change = again.change("visits")
    assert change.seen.after == pytest.approx(scalar, rel=1e-6) and scalar > 1.5
    again.accept_prior("visits", change)
    pending = again.pending("visits")
    assert pending.after == pytest.approx(scalar, rel=1e-6)
    again.accept(pending)
    with again.session("visits") as session:
        assert session.spent() == pending.after


@pytest.mark.nightly
def test_a_prior_that_is_added_has_the_labels_of_the_first_and_counts_its_rows(
    tmp_path: Path,
) -> None:
    project = study(tmp_path, "place")
    project, *_ = project.fit("visits", FitOptions(first_days=30))
    project, _, second, _ = project.fit("visits", FitOptions(first_days=10), keep=True)
    assert second.states == ("clinic", "home", "out", "other")
    assert {rule.before for rule in second.fitted_on} == {10, 30}
    with raises(InvalidQuery, field="at least"):
        project.fit("visits", FitOptions(first_days=10, at_least=2), keep=True)
    # with the second prior alone, its labels still come from the first 30 steps
    (mine,) = [one.file for one in project.dataset("visits").priors[1:]]
    head, _, last = project.file.read_text().split("\n[[dataset.visits.prior]]\n")
    project.file.write_text(f"{head}\n[[dataset.visits.prior]]\n{last}")
    alone = open_project(project.file)
    assert [one.file for one in alone.dataset("visits").priors] == [mine]
    assert alone.load("visits").releasable.start == 30


def test_a_prior_of_ones_own_says_the_labels_if_it_names_them(tmp_path: Path) -> None:
    project = study(tmp_path, "place")
    matrix = np.full((3, 3), 1 / 3)
    for states, reason in (
        (("home", "out", "other"), None),
        (("home", "out", "clinic"), "no-other"),
        ((0, 1, 2), "no-other"),
    ):
        file = tmp_path / "mine.json"
        file.unlink(missing_ok=True)
        write_prior(MarkovChain(matrix, states=states), file)
        text = project.file.read_text()
        project.file.write_text(text + '[[dataset.visits.prior]]\nfile = "mine.json"\n')
        made = open_project(project.file)
        if reason is None:
            with made.session("visits") as session:
                assert session.plan.histogram(epsilon=1).cost.fits
        else:
            with raises(UnsoundRequest, reason=reason), made.session("visits"):
                pass
        project.file.write_text(text)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["network", "markov", "higher-order"])
def test_every_kind_of_fit_finds_them(tmp_path: Path, kind: str) -> None:
    columns = ("place", "mood") if kind in ("network", "markov") else ("place",)
    project = study(tmp_path, *columns)
    named = columns if len(columns) > 1 else ()
    options = FitOptions(share=Fraction(1, 3), kind=kind, columns=named)
    project, *_ = project.fit("visits", options)
    declaration = project.load("visits").declaration
    assert declaration.category("place").keys == ("clinic", "home", "out", "other")
    if len(columns) > 1:
        assert declaration.category("mood").keys == ("bad", "good", "other")
    with project.session("visits") as session:
        plan = session.plan.histogram("place", epsilon=0.5)
        assert len(session.release(plan, accept_noise=True).rows) == 4


@pytest.mark.nightly
def test_a_session_of_a_program_takes_the_labels_from_its_prior(tmp_path: Path) -> None:
    study(tmp_path, "place")
    visits = tf.table(tmp_path / "visits.toml")
    prior = tf.fit_markov(visits, "place", first_days=STEPS // 2)
    ledger = tmp_path / "mine.ledger"
    with tf.Session(visits, prior, ledger=ledger, budget=9) as session:
        result = session.release(session.plan.histogram(epsilon=1), accept_noise=True)
    assert [row[0] for row in result.rows] == ["home", "out", "other"]
    listed = tf.table(
        tmp_path / "visits.csv",
        entity="who",
        order="step",
        order_kind="number",
        protected={"place": {"values": ["home", "out"], "outside": "other"}},
    )
    with tf.Session(listed, prior, ledger=ledger) as session:  # the same cells, the same answer
        assert session.release(session.plan.histogram(epsilon=1), accept_noise=True).free
    wider = tf.fit_markov(visits, "place", first_days=30)
    with (
        raises(UnsoundRequest, reason="publishes-protected-rows"),
        tf.Session(visits, wider, ledger=ledger),
    ):
        pass
    with visits.open() as engine, raises(InvalidDeclaration, reason="labels-not-fitted"):
        engine.histogram(["place"])


def test_too_many_declared_labels_are_refused_when_the_dataset_is_added(tmp_path: Path) -> None:
    study(tmp_path, "place")
    for many, pairs, limit in ((600, None, 500), (2_400, [(("l0",), ("l1",))], 2_000)):
        listed = ", ".join(f'"l{k}"' for k in range(many))
        column = f'[protected.mood]\nvalues = [{listed}]\noutside = "other"\n'
        (tmp_path / "many.toml").write_text(HEAD + column)
        project = open_project(tmp_path)
        with raises(TooLarge, field="mood", reason="labels", size=many, limit=limit):
            project.add_dataset("many", tmp_path / "many.toml", pairs=pairs)
        assert "many" not in open_project(tmp_path).policy.datasets


@pytest.mark.nightly
def test_a_refit_keeps_how_many_entities_a_label_needs(tmp_path: Path) -> None:
    """One person alone is ever at the ministry: no refit may publish that without being told."""
    project = study(tmp_path, "place")
    data = tmp_path / "visits.csv"
    data.write_text(data.read_text().replace("p3,0,out", "p3,0,ministry"))
    assert "ministry" in data.read_text()
    first = FitOptions(first_days=STEPS // 2, at_least=5)
    project, _, prior, _ = project.fit("visits", first)
    assert "ministry" not in prior.states
    (entered,) = project.dataset("visits").priors
    assert entered.at_least == 5

    again, _, prior, found = project.fit("visits", FitOptions(first_days=25), replace=True)
    assert "ministry" not in prior.states
    assert "each of at least 5 entities" in found.statement
    assert [each.at_least for each in found.labels] == [5]
    assert again.dataset("visits").priors[0].at_least == 5
    # a prior that is added has the labels of the first, and the rule stays with both
    both, *_ = again.fit("visits", FitOptions(first_days=10), keep=True)
    assert [one.at_least for one in both.dataset("visits").priors] == [5, 5]
    third, _, prior, _ = both.fit("visits", FitOptions(share=Fraction(1, 2)), replace=True)
    assert "ministry" not in prior.states
    assert third.dataset("visits").priors[0].at_least == 5
    # fewer by an explicit number only, and the statement says so
    fewer = FitOptions(first_days=STEPS // 2, at_least=1)
    told, _, prior, found = third.fit("visits", fewer, replace=True)
    assert "ministry" in prior.states
    assert "also those of one entity alone" in found.statement
    assert told.dataset("visits").priors[0].at_least == 1


@pytest.mark.parametrize("given", ["0", "-1", "true", "2.5", '"5"'])
def test_how_many_entities_a_label_needs_is_a_whole_number(tmp_path: Path, given: str) -> None:
    project = study(tmp_path, "place")
    section = f'[[dataset.visits.prior]]\nfile = "mine.json"\nat_least = {given}\n'
    project.file.write_text(project.file.read_text() + section)
    with raises(InvalidProject, reason="kind"):
        open_project(project.file)
