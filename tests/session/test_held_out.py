"""Rows that a prior was fitted on are not released from, however the prior got here."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from takifugu.declarations import Order
from takifugu.errors import InvalidPrior, UnsoundRequest
from takifugu.fitting import ByEntity, FirstDays, FitOptions, fit
from takifugu.priors import (
    Explicit,
    FittedRows,
    IntervalMarkovChain,
    MarkovChain,
    MarkovRandomField,
    Product,
    from_document,
    read_prior,
    smoothed,
    with_other,
    write_prior,
)
from takifugu.project import open_project
from takifugu.session import Entries, Session, StalePlan
from takifugu.session.held_out import HeldOutEngine, fitted_rows_of, releasable_rows
from takifugu.tables import Scope, Share, open_engine
from takifugu.tables import expressions as ask
from takifugu.translation.translation import Translation
from tests.priors.families import PRIORS
from tests.raising import raises
from tests.session.study import study
from tests.session.world import CHAIN, STATES, declaration, opened, said

PEOPLE = tuple(f"p{i}" for i in range(12))
ROWS = [
    (who, step, "ab"[step % 2], STATES[(i * 5 + step * (i % 3 + 1)) % 4 % 2], 0)
    for i, who in enumerate(PEOPLE)
    for step in range(6)
]
SURE = 1000  # noise is 0 but with a probability below 1e-9


def _names(engine: Any) -> set[str]:
    rows = engine._run(ask.distinct(engine._within(Scope()), "person"))
    return {name for (name,) in rows}


def fitted(folder: Path, split: Any, **how: Any) -> Any:
    with open_engine(declaration(folder, ROWS), threads=1) as engine:
        return fit(engine, "state", split=split, unseen="uniform", length=8, **how)


# --- what may become of a fitted chain on its way to a session ---


def _file(chain: Any, folder: Path) -> Any:
    write_prior(chain, folder / "prior.json")
    return read_prior(folder / "prior.json")


WAYS: dict[str, Callable[[Any, Path], Any]] = {
    "as it is": lambda chain, _: chain,
    "smoothed": lambda chain, _: smoothed(replace(chain, length=7), tau=1e-3),
    "in a file": _file,
    "smoothed, from a file": lambda chain, folder: smoothed(_file(chain, folder), tau=1e-3),
    "as intervals": lambda chain, _: IntervalMarkovChain.around(chain, relative=0.1),
    "intervals in a file": lambda chain, folder: _file(
        IntervalMarkovChain.around(chain, relative=0.1), folder
    ),
    "among others": lambda chain, _: {"mine": replace(CHAIN, length=8), "its": chain},
    "in a list": lambda chain, _: [chain, chain],
    "for each": lambda chain, _: Product(dict.fromkeys(PEOPLE, chain)),
    "for each, in a file": lambda chain, folder: _file(
        Product(dict.fromkeys(PEOPLE, chain)), folder
    ),
}


@pytest.mark.nightly
@pytest.mark.parametrize("way", WAYS)
def test_a_session_keeps_to_the_days_that_the_prior_has_not_seen(tmp_path: Path, way: str) -> None:
    prior = WAYS[way](fitted(tmp_path, FirstDays(4)).chain, tmp_path)
    with opened(tmp_path, budget=2 * SURE, translation=Translation(prior), rows=ROWS) as (
        session, _, _,
    ):  # fmt: skip
        assert session.releasable.start == 4 and session.releasable.warning is None
        for window in ((0, None), (3, 6), (-5, 5)):
            with raises(UnsoundRequest, reason="fitted-rows", needed=4):
                session.plan.histogram(epsilon=1, window=window)
        assert "fitted on the first 4 steps of" in said(session)
        if way == "as it is":
            for kept in (None, (None, 5), (4, 5)):
                plan = session.plan.histogram(epsilon=SURE, window=kept)
                assert plan.query.rows.scope.start == 4
            found = session.release(session.plan.histogram(epsilon=SURE), accept_noise=True).column(
                "estimate"
            )
            late = [row[3] for row in ROWS if row[1] >= 4]
            assert found == [late.count(state) for state in STATES]


def test_a_written_out_table_remembers_too(tmp_path: Path) -> None:
    chain = replace(fitted(tmp_path, FirstDays(4)).chain, length=6, start="stationary")
    table = chain.explicit()
    assert isinstance(table, Explicit) and table.fitted_on == chain.fitted_on
    how: dict[str, Any] = {"over": Entries("sequence")}
    with (
        raises(UnsoundRequest, reason="earlier-rows"),  # what it says given them is not computed
        opened(tmp_path, translation=Translation(table), how=how, rows=ROWS),
    ):
        pass


def test_a_session_keeps_to_the_entities_that_the_prior_has_not_seen(tmp_path: Path) -> None:
    share = Fraction(1, 3)
    made = fitted(tmp_path, ByEntity(share))
    with opened(tmp_path, budget=2 * SURE, translation=Translation(made.chain), rows=ROWS) as (
        session, _, engine,
    ):  # fmt: skip
        others = _names(HeldOutEngine(engine, Share("takifugu", share, Fraction(1))))
        assert 0 < len(others) < len(PEOPLE)
        found = session.release(session.plan.histogram(epsilon=SURE), accept_noise=True).column(
            "estimate"
        )
        kept = [row[3] for row in ROWS if row[0] in others]
        assert found == [kept.count(state) for state in STATES]
        assert engine.count(made.test) == len(kept)
        assert "fitted on about 33% of the entities" in said(session)


def test_the_limits_of_several_priors_hold_together(tmp_path: Path) -> None:
    days = [fitted(tmp_path, FirstDays(n)).chain for n in (2, 4)]
    share = fitted(tmp_path, ByEntity(Fraction(1, 4))).chain
    with opened(tmp_path, translation=Translation([*days, share]), rows=ROWS) as (session, _, _):
        kept = session.releasable
        assert kept.start == 4 and kept.entities == Share("takifugu", Fraction(1, 4), Fraction(1))
        assert len(kept.statements) == 3
    other = fitted(tmp_path, ByEntity(Fraction(1, 4), salt="s")).chain
    with (
        raises(UnsoundRequest, reason="salts-differ"),
        opened(tmp_path, translation=Translation([share, other]), rows=ROWS),
    ):
        pass


@pytest.mark.nightly
@pytest.mark.parametrize("split", [None, FirstDays(4), ByEntity(Fraction(1, 3))])
def test_the_owner_may_release_them_and_every_guarantee_says_so(tmp_path: Path, split: Any) -> None:
    translation = Translation(fitted(tmp_path, split).chain)
    if split is None:
        with (
            raises(UnsoundRequest, reason="fitted-on-all", given="csv visits.csv"),
            opened(tmp_path, translation=translation, rows=ROWS),
        ):
            pass
    how = {"release_fitted_rows": True}
    with opened(tmp_path, translation=translation, how=how, rows=ROWS) as (session, _, _):
        answer = session.release(
            session.plan.histogram(epsilon=1, window=(0, 3)), accept_noise=True
        )
        assert session.releasable.warning is not None
        assert session.releasable.warning in " ".join(answer.guarantee.split())
        assert "was fitted on rows that are released from" in session.releasable.warning


@pytest.mark.nightly
def test_a_plan_for_fitted_rows_is_not_released(tmp_path: Path) -> None:
    translation = Translation(fitted(tmp_path, FirstDays(4)).chain)
    with opened(tmp_path, translation=translation, rows=ROWS) as (session, ledger, engine):
        allowed = Session(
            engine, translation, ledger=ledger, dataset="visits", release_fitted_rows=True
        )
        for window in (None, (None, 5)):  # here it would begin at 4
            with raises(StalePlan, differences=("query", "charge")):
                session.release(allowed.plan.histogram(epsilon=1, window=window), accept_noise=True)
        with raises(UnsoundRequest, field="window", needed=4):
            session.release(allowed.plan.histogram(epsilon=1, window=(2, None)), accept_noise=True)
        assert list(ledger.history(kind="charge")) == []
    share = Translation(fitted(tmp_path, ByEntity(Fraction(1, 3))).chain)
    with opened(tmp_path, translation=share, rows=ROWS) as (session, ledger, engine):
        allowed = Session(engine, share, ledger=ledger, dataset="visits", release_fitted_rows=True)
        with pytest.raises(StalePlan):  # an answer about all is not one about some
            session.release(allowed.plan.histogram(epsilon=1), accept_noise=True)
        assert list(ledger.history(kind="charge")) == []


def test_a_network_over_entities_keeps_to_a_share_of_them(tmp_path: Path) -> None:
    """All entities are entries, and all of them are matched; some are released from."""
    share, how = Fraction(1, 2), {"over": "entities"}
    rows = [row for row in ROWS if row[1] == 0]
    seen = FittedRows("csv visits.csv", "person", "step", share=share, salt="takifugu")
    tie = MarkovRandomField.ising(
        dict.fromkeys(PEOPLE, 0.1), {(PEOPLE[0], PEOPLE[1]): 0.5}
    ).also_fitted_on(seen)
    translation = Translation(replace(tie, states=(STATES,) * len(PEOPLE)))
    with opened(tmp_path, translation=translation, how=how, rows=rows) as (session, _, engine):
        others = _names(HeldOutEngine(engine, Share("takifugu", share, Fraction(1))))
        assert _names(session._open.engine) == others and 0 < len(others) < len(PEOPLE)


# --- where it cannot be told which rows those are ---


@pytest.mark.parametrize(
    "change",
    [
        {"entity": "zone", "public": ()},
        {"order": Order("weight", "number")},
        {"order": Order("step", "unix", "UTC")},
        {"rows": None},
    ],
)
def test_another_table_or_other_columns_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    prior = fitted(tmp_path, FirstDays(4)).chain
    if "rows" in change:
        (rows,) = prior.fitted_on
        prior, change = replace(prior, fitted_on=(replace(rows, source="csv old.csv"),)), {}
    translation = Translation(replace(prior, length=None))
    with (
        raises(UnsoundRequest, reason="fitted-elsewhere"),
        opened(tmp_path, translation=translation, rows=ROWS, **change),
    ):
        pass


def test_rows_of_another_table_are_named_in_the_warning(tmp_path: Path) -> None:
    prior = fitted(tmp_path, None).chain
    (rows,) = prior.fitted_on
    translation = Translation(replace(prior, fitted_on=(replace(rows, source="csv old.csv"),)))
    how = {"release_fitted_rows": True}
    with opened(tmp_path, translation=translation, how=how, rows=ROWS) as (session, _, _):
        assert "rows of 'csv old.csv'; if any of them is among those released from" in said(session)


@pytest.mark.parametrize(
    ("scope", "before", "share"),
    [
        (Scope(end=3), 3, None),
        (Scope(start=1, end=3), 3, None),
        (Scope(start=3), None, None),
        (Scope(where={"zone": ["a"]}), None, None),
        (Scope(entities=Share("s", Fraction(0), Fraction(1, 3))), None, Fraction(1, 3)),
        (Scope(end=3, entities=Share("s", Fraction(0), Fraction(1, 3))), None, Fraction(1, 3)),
        (Scope(end=3, entities=Share("s", Fraction(1, 3), Fraction(1))), 3, None),
        (Scope(entities=Share("s", Fraction(0), Fraction(1))), None, None),
    ],
)
def test_counts_know_which_rows_they_may_be_from(
    tmp_path: Path, scope: Scope, before: Any, share: Any
) -> None:
    """Whatever chain is made of counts, by `fit` or by hand."""
    with open_engine(declaration(tmp_path, ROWS), threads=1) as engine:
        counts = engine.transitions("state", scope)
    (rows,) = counts.chain(unseen="uniform", tau=1e-5).fitted_on
    assert (rows.before, rows.share) == (before, share)
    assert counts.intervals(confidence=0.9).fitted_on == (rows,)


@pytest.mark.parametrize("end", ["2018-11-04", datetime(2018, 11, 4), "2018-11-04T03:00+00:00"])
def test_a_start_that_clocks_skip_is_moved_on(tmp_path: Path, end: Any) -> None:
    at = Order("step", "unix", "America/Sao_Paulo")
    rows = [(w, 1541300000 + 3600 * s, z, x, 0) for w, s, z, x, _ in ROWS]
    with open_engine(declaration(tmp_path, rows, order=at), threads=1) as engine:
        chain = engine.transitions("state", Scope(end=end)).chain(unseen="uniform", tau=1e-5)
        kept = releasable_rows(fitted_rows_of([chain]), engine.declaration, dataset="visits")
    assert kept.start == datetime(2018, 11, 4, 1)  # there was no midnight


# --- provenance is no part of what a prior says ---


def test_the_rows_are_no_part_of_the_identity(tmp_path: Path) -> None:
    chain = fitted(tmp_path, FirstDays(4)).chain
    plain = replace(chain, fitted_on=())
    assert chain == plain and chain.fingerprint == plain.fingerprint
    assert "fitted_on" not in plain.to_document()
    known = MarkovChain(np.array([[0.8, 0.2], [0.3, 0.7]]), states=STATES, length=4)
    assert known.fingerprint == "125b6b868ac181dc8c21281dba25c068a42063b2667ecc3f6f04fabdde4903e0"
    assert Translation(chain).fingerprint == Translation(plain).fingerprint


RULE = FittedRows("csv a.csv", "who", "at")


@pytest.mark.parametrize(
    "rule",
    [
        RULE,
        replace(RULE, before=4),
        replace(RULE, before=4.5, days=4),
        replace(RULE, before=datetime(2012, 5, 8, 1), zone="Asia/Tokyo"),
        replace(RULE, share=Fraction(1, 5), salt="s", words="as told"),
    ],
)
def test_the_rows_survive_a_document(rule: FittedRows) -> None:
    for prior in (*PRIORS, with_other(CHAIN)):
        marked = prior.also_fitted_on(rule, rule)
        again = from_document(json.loads(json.dumps(marked.to_document())))
        assert again.fitted_on == (rule,) and again == prior
    inner = Product({"ann": CHAIN.also_fitted_on(rule)})
    assert fitted_rows_of([from_document(json.loads(json.dumps(inner.to_document())))]) == (rule,)


@pytest.mark.parametrize(
    "wrong",
    [
        3,
        [3],
        [{}],
        [{"source": "a", "entity": "b"}],
        [{"source": "a", "entity": "b", "order": "c", "other": 1}],
        [{"source": 1, "entity": "b", "order": "c"}],
        [{"source": "a", "entity": "b", "order": "c", "before": "soon"}],
        [{"source": "a", "entity": "b", "order": "c", "before": True}],
        [{"source": "a", "entity": "b", "order": "c", "before": "2012-05-08T00:00:00Z"}],
        [{"source": "a", "entity": "b", "order": "c", "share": "1/5"}],
        [{"source": "a", "entity": "b", "order": "c", "share": 0.2, "salt": "s"}],
        [{"source": "a", "entity": "b", "order": "c", "share": "1/0", "salt": "s"}],
        [{"source": "a", "entity": "b", "order": "c", "share": "6/5", "salt": "s"}],
        [{"source": "a", "entity": "b", "order": "c", "days": 3}],
        [{"source": "a", "entity": "b", "order": "c", "words": "two\nlines"}],
    ],
)
def test_rows_that_are_not_understood_are_refused(wrong: Any) -> None:
    with pytest.raises(InvalidPrior) as error:
        from_document(CHAIN.to_document() | {"fitted_on": wrong})
    assert "fitted_on" in str(error.value) and "\n" not in str(error.value)


# --- the same in a project ---


def test_the_file_of_a_fitted_prior_is_enough(tmp_path: Path) -> None:
    """A prior that is entered as one of one's own still knows its rows."""
    project, file, *_ = study(tmp_path).fit("stays", FitOptions(first_days=8))
    text = project.file.read_text()
    head = text.index("[[dataset.stays.prior]]\nfile")
    project.file.write_text(f'{text[:head]}[[dataset.stays.prior]]\nfile = "{file.name}"\n')
    mine = open_project(project.file)
    mine.set_budget("stays", "2")
    mine.accept_prior("stays", mine.change("stays"))  # the owner took the rule out of the policy
    assert (
        mine.dataset("stays").priors[0].fitted is None and mine.load("stays").releasable.start == 8
    )
    with mine.session("stays") as session, raises(UnsoundRequest, reason="fitted-rows", needed=8):
        session.plan.histogram(epsilon=1, window=(2, None))


def test_an_old_file_is_held_to_its_policy_and_a_moved_table_as_well(tmp_path: Path) -> None:
    project, file, prior, _ = study(tmp_path).fit("stays", FitOptions(first_days=8))
    (tmp_path / "stays.csv").rename(tmp_path / "moved.csv")
    toml = tmp_path / "stays.toml"
    toml.write_text(toml.read_text().replace("stays.csv", "moved.csv"))
    assert project.load("stays").releasable.start == 8
    write_prior(replace(prior, fitted_on=()), file)
    assert project.load("stays").releasable.start == 8
    (rows,) = prior.fitted_on
    write_prior(replace(prior, fitted_on=(replace(rows, before=10, source="csv moved.csv"),)), file)
    assert project.load("stays").releasable.start == 10  # all limits together


def test_one_prior_from_two_fits_keeps_both_limits(tmp_path: Path) -> None:
    project, _, prior, _ = study(tmp_path).fit("stays", FitOptions(first_days=8))
    (rows,) = prior.fitted_on
    write_prior(replace(prior, fitted_on=(replace(rows, before=10),)), tmp_path / "later.json")
    more = '\n[[dataset.stays.prior]]\nfile = "later.json"\n'
    project.file.write_text(project.file.read_text() + more)
    found = open_project(project.file)
    assert len(found.load("stays").priors) == 1 and found.load("stays").releasable.start == 10
