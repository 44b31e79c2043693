"""Priors that are fitted on rows of a dataset, and the rows that are left to release from."""

import hashlib
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from takifugu.declarations import Category, Declaration, Order, Source
from takifugu.errors import Malformed, NotAccepted, UnsoundRequest
from takifugu.fitting import FitOptions
from takifugu.priors import Transitions, write_prior
from takifugu.project.policy import InvalidProject
from takifugu.project.project import open_project
from takifugu.session.held_out import first_releasable
from takifugu.tables import open_engine
from tests.project.studies import CHAIN, add_line
from tests.raising import raises
from tests.session.study import STATES, stays, study


def recounted(people: set[str], steps: range) -> Transitions:
    """The transitions of some rows, counted in Python."""
    sequences = [
        [state for who, step, _, _, state in stays() if who == person and step in steps]
        for person in sorted(people)
    ]
    return Transitions.of(sequences, states=STATES)


EVERYBODY = {row[0] for row in stays()}


@pytest.mark.nightly
def test_a_prior_fitted_on_the_first_days_has_seen_those_only(tmp_path: Path) -> None:
    project, file, prior, found = study(tmp_path).fit("stays", FitOptions(first_days=8))
    expected = recounted(EVERYBODY, range(8))
    assert prior == expected.chain(tau=1e-5).against(start="unknown")
    assert found.estimate.counted == expected.counts.sum() > 0
    assert project.load("stays").priors == {"prior": prior} and file.exists()
    assert project.dataset("stays").priors[0].released_from == 8
    project.set_budget("stays", "5")
    with project.session("stays") as session:
        plans = [
            session.plan.histogram(epsilon=1),
            session.plan.histogram(epsilon=1, window=(None, 11)),
            session.plan.histogram(epsilon=1, window=(8, 11)),
        ]
        assert [plan.query.rows.scope.start for plan in plans] == [8, 8, 8]
        assert [plan.query.rows.scope.end for plan in plans] == [None, 11, 11]
        with raises(UnsoundRequest, reason="fitted-rows", needed=8):
            session.plan.histogram(epsilon=1, window=(7, 11))
        assert "fitted on the first 8 steps of" in session.guarantee()
        assert session.releasable.warning is None


@pytest.mark.nightly
def test_the_owner_may_release_fitted_rows_and_every_guarantee_says_so(tmp_path: Path) -> None:
    project, *_ = study(tmp_path).fit("stays", FitOptions(first_days=8))
    project.set_budget("stays", "5")
    project = add_line(project, "release_fitted_rows = true")
    with (
        raises(NotAccepted, changed=("rules",), keys=("release_fitted_rows",)),
        project.session("stays"),
    ):
        pass
    assert project.needs_acceptance("stays")
    project.accept_prior("stays", project.change("stays"))
    with project.session("stays") as session:
        assert session.plan.histogram(epsilon=1, window=(0, 5)).cost.fits
        assert session.releasable.warning is not None
        assert session.releasable.warning in " ".join(session.guarantee().split())


def test_a_share_that_was_edited_is_named(tmp_path: Path) -> None:
    project, *_ = study(tmp_path).fit("stays", FitOptions(share=Fraction(1, 3)))
    project.set_budget("stays", "5")
    text = project.file.read_text()
    project.file.write_text(text.replace('share = "1/3"', 'share = "1/4"'))
    edited = open_project(project.file)
    with raises(NotAccepted, changed=("rules",), keys=("share",)), edited.session("stays"):
        pass


def test_a_prior_fitted_on_all_rows_comes_with_a_warning(tmp_path: Path) -> None:
    project, *_ = study(tmp_path).fit("stays", FitOptions())
    kept = project.load("stays").releasable
    assert kept.start is None and kept.warning is not None
    assert "on the very rows" in kept.statements[0]


def outside(share: Fraction, salt: str = "takifugu") -> set[str]:
    """The people whose hash lies outside the share, by the definition of `Share`."""
    marks = {who: int(hashlib.md5(f"{salt}{who}".encode()).hexdigest(), 16) for who in EVERYBODY}  # noqa: S324
    return {who for who, mark in marks.items() if Fraction(mark, 16**32) >= share}


def test_a_prior_fitted_on_a_share_leaves_the_others_to_release(tmp_path: Path) -> None:
    share = Fraction(1, 3)
    others = outside(share)
    assert 0 < len(others) < len(EVERYBODY)
    project, _, prior, _ = study(tmp_path).fit("stays", FitOptions(share=share))
    assert prior == recounted(EVERYBODY - others, range(12)).chain(tau=1e-5)
    rows = [row for row in stays() if row[0] in others]
    with project.engine("stays") as engine, open_engine(tmp_path / "stays.toml") as whole:
        assert engine.count() == len(rows) < whole.count()
        counts = Counter((row[2], row[4]) for row in rows)
        found = engine.histogram(["zone", "state"])
        assert {key: found.at(*key) for key in counts} == counts
        assert engine.transitions("state") == recounted(others, range(12))
        assert engine.lengths().rows == len(rows)
        assert engine.fingerprint().fingerprint != whole.fingerprint().fingerprint
        assert engine.fingerprint() == engine.fingerprint()


def test_the_limits_of_several_fitted_priors_add_up(tmp_path: Path) -> None:
    project, *_ = study(tmp_path).fit("stays", FitOptions(first_days=4))
    project, *_ = project.fit("stays", FitOptions(first_days=6), keep=True)
    project, *_ = project.fit("stays", FitOptions(share=Fraction(1, 4)), keep=True)
    kept = project.load("stays").releasable
    assert kept.start == 6 and kept.entities is not None and kept.entities.low == Fraction(1, 4)
    assert len(project.load("stays").priors) == 3
    text = project.file.read_text()
    project.file.write_text(
        text + text[text.rindex("[[dataset") :].replace('salt = "takifugu"', 'salt = "other"')
    )
    with raises(UnsoundRequest, reason="salts-differ"):
        _ = open_project(project.file).load("stays").releasable


def test_a_second_fit_replaces_or_keeps_but_never_by_accident(tmp_path: Path) -> None:
    project, *_ = study(tmp_path).fit("stays", FitOptions(first_days=4))
    before = project.file.read_bytes()
    with raises(InvalidProject, field="dataset, stays, prior", reason="exists"):
        project.fit("stays", FitOptions(first_days=6))
    assert project.file.read_bytes() == before
    project, *_ = project.fit("stays", FitOptions(first_days=6), replace=True)
    assert [prior.released_from for prior in project.dataset("stays").priors] == [6]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"first_days": 12}, "split"),
        ({"first_days": 0}, "days"),
        ({"first_days": 3, "share": Fraction(1, 2)}, "first days"),
        ({"first_days": 3, "other": "elsewhere"}, "other"),
        ({"first_days": 3, "confidence": 0.9, "tau": 0.1}, "confidence"),
        ({"first_days": 3, "tau": -1.0}, "tau"),
    ],
)
def test_a_fit_that_makes_no_sense_writes_nothing(
    tmp_path: Path, options: dict[str, Any], field: str
) -> None:
    project = study(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    with pytest.raises(Malformed) as refused:
        project.fit("stays", FitOptions(**options))
    assert refused.value.field == field
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert after == before


def test_intervals_can_be_fitted_too(tmp_path: Path) -> None:
    project, _, prior, _ = study(tmp_path).fit("stays", FitOptions(first_days=8, confidence=0.9))
    expected = recounted(EVERYBODY, range(8)).intervals(confidence=0.9)
    assert prior == replace(expected, start="any")
    assert project.load("stays").priors == {"prior": prior}


def test_a_prior_that_was_changed_since_is_refused(tmp_path: Path) -> None:
    project, file, *_ = study(tmp_path).fit("stays", FitOptions(first_days=8))
    write_prior(CHAIN, file)
    with raises(InvalidProject, field=file.name, reason="changed"):
        _ = project.load("stays").priors


@pytest.mark.parametrize("cut", [7.0, 6.2])
def test_the_first_kept_number_is_not_below_the_cut(cut: float) -> None:
    declaration = Declaration(
        Source("csv", path="x.csv"),
        entity="who",
        order=Order("at", "number"),
        protected=(Category("state", STATES, "refuse"),),
    )
    assert first_releasable(cut, declaration) == 7
