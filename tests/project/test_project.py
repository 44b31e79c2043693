"""Projects: a strict policy file that is never half-written, and sessions that keep to it."""

import hashlib
import json
import math
import tomllib
from collections import Counter
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.engines import Category, Declaration, FitOptions, Order, Source, open_engine
from takifugu.errors import (
    InvalidFile,
    Malformed,
    NotAccepted,
    NotALedger,
    TakifuguError,
    UnsoundRequest,
)
from takifugu.ledger import open_ledger
from takifugu.priors import MarkovChain, Transitions, write_prior
from takifugu.project import policy_writing as write
from takifugu.project.budgets import standings
from takifugu.project.plan_files import plan_document, read_plan
from takifugu.project.policy import InvalidProject, parse_policy
from takifugu.project.project import Project, init_project, open_project
from takifugu.project.translation_tables import pays, table_path
from takifugu.session import Plan, Session, StalePlan
from takifugu.session.held_out import first_releasable
from takifugu.session.query_options import QueryOptions
from takifugu.translation.accounting.tabled_translation import TabledTranslation
from takifugu.translation.accounting.translation_table import TranslationTable
from takifugu.translation.translation import Translation
from tests.copies import copied
from tests.raising import raises
from tests.session.study import STATES, stays, study, write_data

CHAIN = MarkovChain(np.array([[0.8, 0.2], [0.3, 0.7]]), states=STATES, length=12)


def with_prior(folder: Path, steps: int = 12, **policy: Any) -> Project:
    """A project whose dataset has a prior that was not fitted, and a budget of 2."""
    write_prior(replace(CHAIN, length=steps), folder / "mine.json")
    made = init_project(folder).add_dataset(
        "stays", write_data(folder, steps), priors=[folder / "mine.json"], **policy
    )
    made.set_budget("stays", "2")
    return made


def add_line(project: Project, line: str) -> Project:
    text = project.file.read_text()
    head = "[dataset.stays]\n"
    project.file.write_text(text.replace(head, f"{head}{line}\n"))
    return open_project(project.file)


# --- the file ---


def test_init_makes_a_file_that_can_be_read_and_a_ledger(tmp_path: Path) -> None:
    project = init_project(tmp_path / "new" / "study")
    assert project.policy.datasets == {} and project.policy.ledger == "takifugu.ledger"
    with project.ledger(read_only=True) as ledger:
        assert ledger.head().seq == 1
    assert open_project(project.folder) == open_project(project.file)
    before = project.file.read_bytes()
    with pytest.raises(InvalidProject, match="exists; it must not be there yet"):
        init_project(project.folder)
    assert project.file.read_bytes() == before


@pytest.mark.parametrize(
    "ledger", ["nowhere/x.ledger", "postgresql://u:secret@h/d", "mysql://h/d", "postgresql://u@[/d"]
)
def test_a_ledger_that_cannot_be_used_leaves_nothing_behind(tmp_path: Path, ledger: str) -> None:
    with pytest.raises(TakifuguError) as refused:
        init_project(tmp_path / "study", ledger=ledger)
    assert "secret" not in str(refused.value) and "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


GOOD = """
[ledger]
place = "x.ledger"
id = "ab"
[dataset.a]
declaration = "a.toml"
"""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "`ledger` is missing"),
        ("[ledger", "is not TOML"),
        (GOOD + "[other]\n", "`other` is not a key here"),
        (GOOD + "budget = 2\n", "`dataset, a, budget` is not a key here"),
        (GOOD + "aboot = 'x'\n", "the nearest to that is 'about'"),
        (GOOD.replace('"ab"', "3"), "`ledger, id` is not printable text"),
        (GOOD.replace("x.ledger", "postgresql://u:pw@h/d"), "`ledger, place` holds a password"),
        (GOOD.replace("x.ledger", "postgresql://h/d?password=pw"), "holds a password"),
        (GOOD.replace("dataset.a", 'dataset."a b"'), "`dataset` is called 'a b'"),
        (GOOD.replace('"a.toml"', "''"), "`dataset, a, declaration` is not printable text"),
        (GOOD + "uncertainty = 1\n", "be at least 0 and below 1"),
        (GOOD + "uncertainty = nan\n", "be at least 0 and below 1"),
        (GOOD + "pairs = 'a/b'\n", "is no list of pairs"),
        (GOOD + "pairs = [['a', 'b', 'c']]\n", "is no list of pairs"),
        (GOOD + "pairs = [['a', []]]\n", "is no list of pairs"),
        (GOOD + "pairs = []\n", "is no list of pairs"),
        (GOOD + "entries = 3\n", "list text or whole numbers"),
        (GOOD + "analysts = [3]\n", "`dataset, a, analysts` hold a number"),
        (GOOD + "release_fitted_rows = 'yes'\n", "be true or false"),
        (GOOD + "table = 1\n", "be true or false"),
        (GOOD + "prior = 'a.json'\n", "the line [[dataset.a.prior]], and below it the line file"),
        (GOOD + "[[dataset.a.prior]]\n", "`dataset, a, prior, file` is missing"),
        (GOOD + "[[dataset.a.prior]]\nfile = 'p'\nfitted = 'half'\n", "be one of first-days"),
        (
            GOOD + "[[dataset.a.prior]]\nfile = 'p'\nfitted = 'all-rows'\n",
            "`dataset, a, prior, fing",
        ),
        (
            GOOD + "[[dataset.a.prior]]\nfile = 'p'\nfingerprint='f'\nfitted = 'first-days'\n",
            "released_from` is missing",
        ),
        (GOOD + "[[dataset.a.prior]]\nfile = 'p'\nreleased_from = 3\n", "released_from` is given"),
        (
            GOOD + "[[dataset.a.prior]]\nfile='p'\nfingerprint='f'\nfitted='first-days'\n"
            "released_from = 2012-01-01T00:00:00Z\n",
            "be a local time",
        ),
        (
            GOOD + "[[dataset.a.prior]]\nfile='p'\nfingerprint='f'\nfitted='share'\n"
            "salt='s'\nshare = '6/5'\n",
            "be between 0 and 1",
        ),
    ],
)
def test_a_policy_that_is_not_understood_is_refused_in_one_line(text: str, says: str) -> None:
    with pytest.raises(Malformed) as refused:
        parse_policy(text)
    assert says in str(refused.value) and "\n" not in str(refused.value)


def test_a_file_that_is_not_there_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="takifugu init"):
        open_project(tmp_path)


NAMES = st.text(
    st.characters(codec="utf-8", categories=("L", "N", "P", "S")), min_size=1, max_size=9
)
SIDES = st.lists(NAMES | st.integers(-9, 9), min_size=1, max_size=3)


@settings(max_examples=20)
@given(
    pairs=st.lists(st.tuples(SIDES, SIDES), min_size=1, max_size=3),
    analysts=st.lists(NAMES, max_size=3, unique=True),
    uncertainty=st.floats(0, 0.999),
    comment=st.sampled_from(["", "# mine\n", "\n\n#x", "[dataset.other]\ndeclaration = 'o.toml'"]),
)
def test_what_is_entered_is_what_is_read_and_the_rest_stays_as_it_was(
    tmp_path_factory: pytest.TempPathFactory,
    pairs: list[tuple[list[Any], list[Any]]],
    analysts: list[str],
    uncertainty: float,
    comment: str,
) -> None:
    file = tmp_path_factory.mktemp("p") / "takifugu.toml"
    text = write.head("takifugu.ledger", "ab") + comment
    file.write_text(text, encoding="utf-8")
    values = {
        "declaration": "stays.toml",
        "pairs": [[left, right] for left, right in pairs],
        "uncertainty": uncertainty,
        "prior": [{"file": "a.json"}, {"file": "b.json"}],
    } | ({"analysts": analysts} if analysts else {})
    write.add_dataset(file, "stays", values)
    now = file.read_text(encoding="utf-8")
    assert now.startswith(text)
    policy = parse_policy(now).datasets["stays"]
    assert policy.pairs == tuple((tuple(left), tuple(right)) for left, right in pairs)
    assert policy.analysts == tuple(analysts) and policy.uncertainty == uncertainty
    assert [prior.file for prior in policy.priors] == ["a.json", "b.json"]
    write.add_prior(file, "stays", {"file": "c.json"}, replace=False)
    write.add_prior(file, "stays", {"file": "d.json"}, replace=True)
    now = file.read_text(encoding="utf-8")
    assert [p.file for p in parse_policy(now).datasets["stays"].priors] == ["d.json"]
    assert now.startswith(text) and list(file.parent.iterdir()) == [file]


def test_replacing_a_prior_keeps_the_comments_around_it(tmp_path: Path) -> None:
    file = tmp_path / "takifugu.toml"
    file.write_text(
        GOOD + "[[dataset.a.prior]]  # first\nfile = 'p.json'\n\n# about b\n[dataset.b] # b\n"
        "declaration = 'b.toml'\n[[ dataset.a.prior ]]\n# gone with it\nfile = 'q.json'\n# end\n"
    )
    write.add_prior(file, "a", {"file": "new.json"}, replace=True)
    text = file.read_text()
    assert "# about b\n[dataset.b] # b" in text and "# end\n" in text and "p.json" not in text
    assert [p.file for p in parse_policy(text).datasets["a"].priors] == ["new.json"]


@pytest.mark.parametrize(
    "text",
    [
        GOOD + "prior = [{file = 'p.json'}]\n",
        GOOD.replace("[dataset.a]\ndeclaration", "[dataset]\na = {declaration").rstrip() + "}\n",
    ],
)
def test_a_file_that_cannot_be_added_to_is_left_as_it_was(tmp_path: Path, text: str) -> None:
    file = tmp_path / "takifugu.toml"
    file.write_text(text)
    with pytest.raises(InvalidProject, match="edited by hand"):
        write.add_prior(file, "a", {"file": "new.json"}, replace=True)
    assert file.read_text() == text and list(tmp_path.iterdir()) == [file]


def test_an_edit_by_somebody_else_meanwhile_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "takifugu.toml"
    file.write_text(GOOD)
    true_loads = tomllib.loads

    def meanwhile(text: str, **how: Any) -> dict[str, Any]:
        file.write_text(GOOD + "# theirs\n")
        return true_loads(text, **how)

    monkeypatch.setattr(tomllib, "loads", meanwhile)
    with pytest.raises(InvalidProject, match="changed by somebody else"):
        write.add_dataset(file, "b", {"declaration": "b.toml"})
    assert file.read_text() == GOOD + "# theirs\n"


# --- the ledger ---


def test_another_ledger_in_its_place_is_refused(tmp_path: Path) -> None:
    project = study(tmp_path)
    for left in tmp_path.glob("takifugu.ledger*"):
        left.unlink()
    with pytest.raises(NotALedger, match="there is no ledger"), project.ledger():
        pass  # none is made: it would have nothing spent
    init_project(tmp_path / "other", ledger="../takifugu.ledger")
    with pytest.raises(NotALedger, match="is not the ledger"), project.ledger():
        pass


def test_the_same_cells_get_one_budget_only(tmp_path: Path) -> None:
    project = study(tmp_path)
    copy = tmp_path / "sub" / "copy.toml"
    copy.parent.mkdir()
    text = (tmp_path / "stays.toml").read_text().replace("Stays", "Other")
    copy.write_text(text.replace("stays.csv", "../stays.csv"))
    before = project.file.read_bytes()
    with pytest.raises(InvalidProject, match="'stays' is about the same column"):
        project.add_dataset("again", copy)
    assert project.file.read_bytes() == before
    (tmp_path / "sub" / "stays.csv").write_bytes((tmp_path / "stays.csv").read_bytes())
    copy.write_text(text)
    assert project.add_dataset("again", copy).dataset("again").declaration == "sub/copy.toml"


def test_listed_analysts_alone_may_ask(tmp_path: Path) -> None:
    project = with_prior(tmp_path, analysts=["ana"])
    for who in (None, "anna"):
        with pytest.raises(InvalidProject, match="be one of ana"), project.session("stays", who):
            pass
    with pytest.raises(InvalidProject, match="be one of ana"):
        project.set_budget("stays", "1", analyst="anna")
    project.set_budget("stays", "1/2", analyst="ana")
    assert project.budget("stays", "ana") == Fraction(1, 2)
    with project.session("stays", "ana") as session:
        assert session.plan.histogram(epsilon=1).cost.fits is False


# --- fitted priors ---


def recounted(people: set[str], steps: range) -> Transitions:
    """The transitions of some rows, counted in Python."""
    sequences = [
        [state for who, step, _, _, state in stays() if who == person and step in steps]
        for person in sorted(people)
    ]
    return Transitions.of(sequences, states=STATES)


EVERYBODY = {row[0] for row in stays()}


def test_a_prior_fitted_on_the_first_days_has_seen_those_only(tmp_path: Path) -> None:
    project, file, prior, found = study(tmp_path).fit("stays", FitOptions(first_days=8))
    expected = recounted(EVERYBODY, range(8))
    assert prior == expected.chain(tau=1e-5) and found.counts == expected
    assert project.load("stays").priors == {"prior": prior} and file.exists()
    assert project.dataset("stays").priors[0].released_from == 8
    project.set_budget("stays", "5")
    with project.session("stays") as session:
        asked = [
            session.plan.histogram(epsilon=1),
            session.plan.histogram(epsilon=1, window=(None, 11)),
            session.plan.histogram(epsilon=1, window=(8, 11)),
        ]
        assert [plan.query.rows.scope.start for plan in asked] == [8, 8, 8]
        assert [plan.query.rows.scope.end for plan in asked] == [None, 11, 11]
        with pytest.raises(UnsoundRequest, match="begins before 8"):
            session.plan.histogram(epsilon=1, window=(7, 11))
        assert "fitted on the first 8 steps of" in session.guarantee()
        assert session.releasable.warning is None


def test_a_plan_of_a_session_without_the_policy_is_not_released(tmp_path: Path) -> None:
    project, *_ = study(tmp_path).fit("stays", FitOptions(first_days=8))
    project.set_budget("stays", "5")
    belief = project.load("stays").translation
    with project.engine("stays") as engine, open_ledger(tmp_path / "other.ledger") as ledger:
        ledger.set_budget("stays", 5)
        allowed = Session(engine, belief, ledger=ledger, dataset="stays", release_fitted_rows=True)
        loose = allowed.plan.histogram(epsilon=1)
    with project.session("stays") as session, pytest.raises(StalePlan):
        session.release(loose)
    with project.ledger() as ledger:
        assert list(ledger.history(kind="charge")) == []


def test_the_owner_may_release_fitted_rows_and_every_guarantee_says_so(tmp_path: Path) -> None:
    project, *_ = study(tmp_path).fit("stays", FitOptions(first_days=8))
    project.set_budget("stays", "5")
    project = add_line(project, "release_fitted_rows = true")
    with pytest.raises(NotAccepted, match="takifugu prior accept stays"), project.session("stays"):
        pass
    assert project.awaits("stays")
    project.accept_prior("stays", project.change("stays"))
    with project.session("stays") as session:
        assert session.plan.histogram(epsilon=1, window=(0, 5)).cost.fits
        assert session.releasable.warning is not None
        assert session.releasable.warning in " ".join(session.guarantee().split())


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
    with pytest.raises(UnsoundRequest, match="different salts"):
        _ = open_project(project.file).load("stays").releasable


def test_a_second_fit_replaces_or_keeps_but_never_by_accident(tmp_path: Path) -> None:
    project, *_ = study(tmp_path).fit("stays", FitOptions(first_days=4))
    before = project.file.read_bytes()
    with pytest.raises(InvalidProject, match="--replace"):
        project.fit("stays", FitOptions(first_days=6))
    assert project.file.read_bytes() == before
    project, *_ = project.fit("stays", FitOptions(first_days=6), replace=True)
    assert [prior.released_from for prior in project.dataset("stays").priors] == [6]


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
    assert prior == recounted(EVERYBODY, range(8)).intervals(confidence=0.9)
    assert project.load("stays").priors == {"prior": prior}


def test_a_prior_that_was_changed_since_is_refused(tmp_path: Path) -> None:
    project, file, *_ = study(tmp_path).fit("stays", FitOptions(first_days=8))
    write_prior(CHAIN, file)
    with pytest.raises(InvalidProject, match="was changed after"):
        _ = project.load("stays").priors


def test_the_first_kept_moment_is_one_that_a_window_can_begin_with() -> None:
    declaration = Declaration(
        Source("csv", path="x.csv"),
        entity="who",
        order=Order("at", "time", "America/Sao_Paulo"),
        protected=(Category("state", STATES, "refuse"),),
    )
    midnight = datetime(2018, 11, 4)  # clocks went forward then: this midnight never was
    assert first_releasable(midnight, declaration) == datetime(2018, 11, 4, 1)
    assert first_releasable(datetime(2018, 11, 5), declaration) == datetime(2018, 11, 5)


@pytest.mark.parametrize("cut", [7.0, 6.2])
def test_the_first_kept_number_is_not_below_the_cut(cut: float) -> None:
    declaration = Declaration(
        Source("csv", path="x.csv"),
        entity="who",
        order=Order("at", "number"),
        protected=(Category("state", STATES, "refuse"),),
    )
    assert first_releasable(cut, declaration) == 7


# --- tables ---


def forged(path: Path, share: float, *, upto: float = math.inf) -> None:
    """A table whose losses are too small, with a fingerprint that is right."""
    kept = json.loads(path.read_text())
    grid, losses = np.array(kept["epsilon"]), np.array(kept["loss"], dtype=float)
    low = np.where(losses <= upto, np.maximum(losses * share, grid), losses)
    TranslationTable(kept["about"], grid, np.maximum.accumulate(low)).save(path)


@pytest.fixture(scope="module")
def tabulated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Plan]:
    """A project with a table that is sound, and a plan that was made with it."""
    project = add_line(with_prior(tmp_path_factory.mktemp("sound"), steps=2), "table = true")
    with project.session("stays") as session:
        return project.folder, session.plan.histogram(epsilon=1)


@pytest.mark.parametrize("harm", ["edited", "forged", "stale", "cut", "gone"])
def test_a_table_that_is_not_what_it_was_is_made_anew(
    tabulated: tuple[Path, Plan], tmp_path: Path, harm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound, honest = tabulated
    project = open_project(copied(sound, tmp_path / "study", monkeypatch))
    path = table_path(project.folder, "stays", project.load("stays").translation, 2)
    before = path.read_bytes()
    if harm == "edited":
        path.write_text(path.read_text().replace('"loss": [0.0', '"loss": [0.1', 1))
        assert path.read_bytes() != before
    elif harm == "forged":
        forged(path, 0.5)
    elif harm == "stale":
        other = Translation(MarkovChain(np.full((2, 2), 0.5), STATES, length=2))
        TranslationTable(other.fingerprint, np.array([0.1, 0.2]), np.array([0.1, 0.2])).save(path)
    elif harm == "cut":
        path.write_bytes(before[:100])
    else:
        path.unlink()
    with project.session("stays") as session:
        again = session.plan.histogram(epsilon=1)
    assert again.charge == honest.charge and again.cost == honest.cost
    assert path.read_bytes() == before


def test_a_table_that_is_what_it_was_is_used(
    tabulated: tuple[Path, Plan], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound, honest = tabulated
    project = open_project(copied(sound, tmp_path / "study", monkeypatch))
    said: list[str] = []
    with project.session("stays", progress=said.append) as session:
        assert session.plan.histogram(epsilon=1).charge == honest.charge
    assert said == ["confirming the table"]


def test_a_price_is_never_below_what_the_translation_says(
    tabulated: tuple[Path, Plan], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = open_project(copied(tabulated[0], tmp_path / "study", monkeypatch))
    belief = project.load("stays").translation
    path = table_path(project.folder, "stays", belief, 2)
    forged(path, 0.3, upto=1.8)  # right where the budget is, too small below
    lie = path.read_bytes()
    with project.session("stays") as session:
        plan = session.plan.histogram(epsilon=1)
        result = session.release(plan)
    assert path.read_bytes() == lie  # it was used
    true = float(belief.to_pufferfish(float(plan.cost.per_entry)))
    assert true > 1.2  # the forger got more than was asked for, and everybody is told
    assert plan.cost.alone >= true and result.cost.alone >= true
    with project.ledger(read_only=True) as ledger:
        assert ledger.spent("stays", belief) <= 2


def test_the_budget_holds_by_the_translation_with_a_table_and_without(
    tabulated: tuple[Path, Plan], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = open_project(copied(tabulated[0], tmp_path / "study", monkeypatch))
    belief = project.load("stays").translation
    for table in (True, False):
        with project.session("stays", table=table) as session:
            most = session.plan.histogram(epsilon=1).cost.most
            if most > 0:
                session.release(session.plan.histogram(epsilon=str(most)))
    with project.ledger(read_only=True) as ledger:
        assert 1.9 < ledger.spent("stays", belief) <= 2


def test_a_budget_beyond_the_table_is_translated(
    tabulated: tuple[Path, Plan], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = open_project(copied(tabulated[0], tmp_path / "study", monkeypatch))
    project.set_budget("stays", "20")
    belief = project.load("stays").translation
    with project.session("stays") as session:
        assert session.plan.histogram(epsilon=15).cost.alone > 14
    with project.ledger(read_only=True) as ledger:
        assert project.table("stays", belief, ledger) is None
        table = TranslationTable.load(table_path(project.folder, "stays", belief, 2), belief)
        (whole,) = standings(ledger, "stays", TabledTranslation(belief, table, least=0), last=3)
    assert whole.spent == 0 and whole.left == 20 and whole.most is not None
    tabled = TabledTranslation(belief, table, least=0)
    for loss in (0.01, 0.3):  # below the table, and in it
        assert 0 < tabled.to_dp(loss) <= float(belief.to_dp(loss))
    for epsilon in (0.2, 50.0):
        assert tabled.to_pufferfish(epsilon) >= float(belief.to_pufferfish(epsilon)) * (1 - 1e-6)


def test_tables_are_for_priors_of_many_states() -> None:
    many = MarkovChain(np.full((20, 20), 1 / 20))
    assert pays(Translation(many)) and not pays(Translation(CHAIN))


# --- queries as JSON ---


def test_a_plan_file_is_planned_anew_and_must_cost_the_same(tmp_path: Path) -> None:
    project = with_prior(tmp_path)
    options = QueryOptions("count", values=["ward"], where={"floor": ["1"]}, epsilon="1")
    with project.session("stays") as session:
        plan = session.plan(session.resolved(options))
        assert plan.query.rows.scope.where == {"floor": (1,)}  # a key may be given as text
        document = plan_document("stays", None, plan, session.guarantee())
        path = tmp_path / "plan.json"
        path.write_text(json.dumps(document))
        file = read_plan(path).resolved(session)
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
    """Its keys are text, and the confidence was called probability."""
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
        file = read_plan(path).resolved(session)
        assert file.options == plan.options
        assert not session.release(session.replan(file)).free


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{}", "is no plan"),
        ("[]", "is no plan"),
        ('{"form": "takifugu-plan-1"}', "was changed"),
        (
            '{"form": "takifugu-plan-1", "asked": {"dataset": 3, "kind": "sum", "how": {}}}',
            "changed",
        ),
        (
            '{"form": "takifugu-plan-1", "asked": {"dataset": "a", "kind": "all", "how": {},'
            ' "analyst": null}}',
            "be one of histogram",
        ),
        (
            '{"form": "takifugu-plan-1", "asked": {"dataset": "a", "kind": "sum", "how": {"x": 1},'
            ' "analyst": null}}',
            "`x` is no option",
        ),
    ],
)
def test_a_file_that_is_no_plan_is_refused(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(Malformed, match=says):
        read_plan(path)


@pytest.mark.parametrize(
    "given", ["'b.json'", "{ file = 'b.json' }", "3", "'it\\'s \\\\ \"b\".json'"]
)
def test_the_advice_for_a_prior_works_when_pasted(given: str) -> None:
    given = given.replace("\\'", "") if given.startswith("'it") else given
    with pytest.raises(InvalidProject) as refused:
        parse_policy(GOOD + f"prior = {given}\nabout = 'x'\n")
    words = str(refused.value)
    header = words[words.index("[[") : words.index("]]") + 2]
    line = words[words.index("file = ") :].removesuffix(" in a project file")
    policy = parse_policy(GOOD + f"about = 'x'\n{header}\n{line}\n").datasets["a"]
    assert len(policy.priors) == 1 and policy.about == "x"
    assert given != "'b.json'" or policy.priors[0].file == "b.json"
