"""A fit on rows that earlier releases protected: refused until the owner names them."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import takifugu as tf
from takifugu.binding.prior_reading import terms_of
from takifugu.drafting import Table
from takifugu.errors import SameRows, UnsoundRequest
from takifugu.fitting import FitOptions
from takifugu.project import Project, init_project
from tests.declared import declared

DECLARATION = declared("stays.csv", "person", "day", {"place": ["home", "ward"]})


def stays() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    people = np.repeat([f"p{k}" for k in range(40)], 12)
    places = np.where(rng.random(40 * 12) < 0.5, "home", "ward")
    return pd.DataFrame({"person": people, "day": np.tile(np.arange(12), 40), "place": places})


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Fitted on the first 3 days, and released from the others once."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    stays().to_csv(tmp_path / "stays.csv", index=False)
    (tmp_path / "stays.toml").write_text(DECLARATION)
    made = init_project(tmp_path)
    made = made.add_dataset("stays", tmp_path / "stays.toml")
    made = made.fit("stays", FitOptions(first_days=3, length=12))[0]
    made.set_budget("stays", "4")
    with made.session("stays") as session:
        session.release(session.plan.histogram(epsilon=1), accept_noise=True)
    return made


def refit(project: Project, confirmed: str | None = None, **options: Any) -> Project:
    rows = FitOptions(length=12, **options)
    return project.fit("stays", rows, replace=True, publish_rows=confirmed)[0]


@pytest.mark.nightly
@pytest.mark.parametrize("options", [{"first_days": 8}, {"share": Fraction(1, 5)}, {}])
def test_a_refit_on_released_rows_is_refused_and_writes_nothing(
    project: Project, options: dict[str, Any]
) -> None:
    before = {path.name: path.read_bytes() for path in project.folder.glob("*.*") if path.is_file()}
    with pytest.raises(UnsoundRequest) as error:
        refit(project, **options)
    assert error.value.reason == "publishes-protected-rows"
    with pytest.raises(UnsoundRequest):
        refit(project, "before 7", **options)  # another name
    after = {path.name: path.read_bytes() for path in project.folder.glob("*.*") if path.is_file()}
    assert set(before) == set(after)
    assert before["takifugu.toml"] == after["takifugu.toml"]


@pytest.mark.nightly
def test_a_fit_in_another_folder_on_rows_that_were_released_is_refused(project: Project) -> None:
    folder = project.folder / "second"
    folder.mkdir()
    for name in ("stays.csv", "stays.toml"):
        (folder / name).write_bytes((project.folder / name).read_bytes())
    second = init_project(folder).add_dataset("copy", folder / "stays.toml")
    rows = FitOptions(first_days=8, length=12)
    with pytest.raises(SameRows) as refused:
        second.fit("copy", rows)
    assert not list(folder.glob("*.prior.json"))
    second.count_separately("copy", refused.value.other)
    second.fit("copy", rows)


@pytest.mark.nightly
def test_a_refit_on_rows_that_were_given_up_before_is_not_asked_about(project: Project) -> None:
    refit(project, first_days=3, tau=0.01)
    refit(project, first_days=2)


@pytest.mark.nightly
def test_once_confirmed_it_is_an_event_and_every_guarantee_says_so(project: Project) -> None:
    made = refit(project, "before 8", first_days=8)
    with made.ledger() as ledger:
        *_, event = ledger.history("stays", kind="policy")
    assert event.body["details"]["published"] == ["before 8"]
    made.accept_prior("stays", made.change("stays"))
    with made.session("stays") as session:
        assert session.releasable.start == 8
        said = " ".join(session.guarantee().split())
    assert "gave them up to a fitted prior later: before 8." in said


def table() -> Table:
    return tf.table(
        stays(),
        name="stays",
        entity="person",
        order="day",
        order_kind="number",
        protected={"place": ["home", "ward"]},
    )


@pytest.mark.nightly
def test_in_a_session_too_the_owner_names_the_rows_as_they_accept_the_prior(tmp_path: Path) -> None:
    first, later = (tf.fit_markov(table(), "place", first_days=n, length=12) for n in (3, 8))
    with tf.Session(table(), first, ledger=tmp_path / "ledger", budget=4) as session:
        session.release(session.plan.histogram(epsilon=1), accept_noise=True)

    def accept(**details: object) -> None:
        translation = tf.Translation(later)
        with tf.open_ledger(tmp_path / "ledger") as ledger:
            seen = ledger.review("stays", translation, None)
            ledger.accept(terms_of(translation), seen, **details)

    accept()
    with pytest.raises(UnsoundRequest) as error:
        tf.Session(table(), later, ledger=tmp_path / "ledger")
    assert error.value.reason == "publishes-protected-rows"
    accept(published=[error.value.needed])
    with tf.Session(table(), later, ledger=tmp_path / "ledger") as session:
        assert "before 8" in session.guarantee()
