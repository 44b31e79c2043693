"""Cached translation tables: verified when they are loaded, confirmed by the translation."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import takifugu
from takifugu._core.keys import Key
from takifugu.priors import MarkovChain
from takifugu.project.budgets import budget_standings
from takifugu.project.project import open_project
from takifugu.project.project_cache import pays, table_path
from takifugu.session import Plan
from takifugu.translation.accounting.tables import TabledTranslation, TranslationTable
from takifugu.translation.translation import Translation
from tests.copies import copied
from tests.project.studies import CHAIN, add_line, with_prior
from tests.session.study import STATES


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


@pytest.mark.nightly
@pytest.mark.parametrize("harm", ["edited", "forged", "stale", "cut", "gone"])
def test_a_table_that_is_not_what_it_was_is_made_anew(
    tabulated: tuple[Path, Plan], tmp_path: Path, harm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound, honest = tabulated
    project = open_project(copied(sound, tmp_path / "study", monkeypatch))
    path = table_path(project.folder, "stays", project.load("stays").entry_translation, 2)
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
    messages: list[str] = []
    with project.session("stays", progress=messages.append) as session:
        assert session.plan.histogram(epsilon=1).charge == honest.charge
    assert messages == []


@pytest.mark.parametrize(
    "harm", ["gone", "empty", "edited", "another key", "another table", "bytes"]
)
def test_a_table_whose_mark_does_not_fit_is_confirmed_by_the_translation(
    tabulated: tuple[Path, Plan], tmp_path: Path, harm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound, honest = tabulated
    project = open_project(copied(sound, tmp_path / "study", monkeypatch))
    (mark,) = (project.folder / ".takifugu").glob("*.table.mark")
    own = mark.read_text()
    if harm == "gone":
        mark.unlink()
    elif harm == "bytes":
        mark.write_bytes(b"\xff\xfe")
    else:
        other = Key(b"0" * 32).mark("computed table", takifugu.__version__, "0" * 64)
        forgeries = {"empty": "", "edited": own.replace(own[-2], "0f"[own[-2] == "0"])}
        forgeries |= {"another key": other, "another table": own[:9] + other[9:]}
        mark.write_text(forgeries[harm])
    messages: list[str] = []
    with project.session("stays", progress=messages.append) as session:
        plan = session.plan.histogram(epsilon=1)
    assert plan.charge == honest.charge and plan.cost == honest.cost
    assert messages == ["confirming the table"]


def test_a_marked_table_is_used_without_the_translation(
    tabulated: tuple[Path, Plan], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = open_project(copied(tabulated[0], tmp_path / "study", monkeypatch))

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("computed")

    with monkeypatch.context() as patch:
        patch.setattr(Translation, "bound", refused)
        with project.session("stays") as session:
            plans = [session.plan.histogram(epsilon=e) for e in ("1", "0.7", "1.9")]
    for plan in plans:  # and yet it charges no less than the translation finds
        translation = project.load("stays").entry_translation
        assert plan.cost.alone >= float(translation.to_pufferfish(float(plan.cost.per_entry)))


def test_a_price_is_never_below_what_the_translation_says(
    tabulated: tuple[Path, Plan], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = open_project(copied(tabulated[0], tmp_path / "study", monkeypatch))
    translation = project.load("stays").entry_translation
    path = table_path(project.folder, "stays", translation, 2)
    forged(path, 0.3, upto=1.8)  # right where the budget is, too small below
    false = path.read_bytes()
    with project.session("stays") as session:
        plan = session.plan.histogram(epsilon=1)
        result = session.release(plan, accept_noise=True)
    assert path.read_bytes() == false  # it was used
    true = float(translation.to_pufferfish(float(plan.cost.per_entry)))
    assert true > 1.2  # the forger got more than the ε of the query, and the price shows it
    assert plan.cost.alone >= true and result.cost.alone >= true
    with project.ledger(read_only=True) as ledger:
        assert ledger.spent("stays", translation) <= 2


def test_the_budget_holds_by_the_translation_with_a_table_and_without(
    tabulated: tuple[Path, Plan], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = open_project(copied(tabulated[0], tmp_path / "study", monkeypatch))
    translation = project.load("stays").entry_translation
    for table in (True, False):
        with project.session("stays", table=table) as session:
            most = session.plan.histogram(epsilon=1).cost.most
            if most > 0:
                session.release(session.plan.histogram(epsilon=str(most)), accept_noise=True)
    with project.ledger(read_only=True) as ledger:
        assert 1.9 < ledger.spent("stays", translation) <= 2


def test_a_budget_beyond_the_table_is_translated(
    tabulated: tuple[Path, Plan], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = open_project(copied(tabulated[0], tmp_path / "study", monkeypatch))
    project.set_budget("stays", "20")
    translation = project.load("stays").entry_translation
    with project.session("stays") as session:
        assert session.plan.histogram(epsilon=15).cost.alone > 14
    with project.ledger(read_only=True) as ledger:
        assert project.table("stays", translation, ledger) is None
        table = TranslationTable.load(
            table_path(project.folder, "stays", translation, 2), translation
        )
        (whole,) = budget_standings(
            ledger, "stays", TabledTranslation(translation, table, least=0), last=3
        )
    assert (
        whole.spent == 0
        and whole.most is not None
        and whole.left == pytest.approx(float(whole.most))
    )
    tabled = TabledTranslation(translation, table, least=0)
    for loss in (0.01, 0.3):  # below the table, and in it
        assert 0 < tabled.to_dp(loss) <= float(translation.to_dp(loss))
    for epsilon in (0.2, 50.0):
        assert tabled.to_pufferfish(epsilon) >= float(translation.to_pufferfish(epsilon)) * (
            1 - 1e-6
        )


def test_tables_are_for_priors_of_many_states() -> None:
    many = MarkovChain(np.full((20, 20), 1 / 20))
    assert pays(Translation(many)) and not pays(Translation(CHAIN))
