"""The synthetic activities against the model that their page states."""

from pathlib import Path

import numpy as np
import pytest

from takifugu.synthetic import Routines, draw_routines, write_activities
from takifugu.synthetic.activities import ACTIVITIES, AGES, EPOCHS, PARTICIPANTS, part_of_day
from takifugu.tables import check, open_engine
from tests.synthetic.transition_counts import Floats, Integers, codes, columns, farthest, prefers

SEED = 24
ALL = "participant, epoch, activity, age"
NAMES = tuple(ACTIVITIES)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_activities(tmp_path_factory.mktemp("days"), rng=np.random.default_rng(SEED))


@pytest.fixture(scope="module")
def routines() -> Routines:
    return draw_routines(rng=np.random.default_rng(SEED))


@pytest.fixture(scope="module")
def days(written: Path) -> Integers:
    """[participant, epoch]: the activity's number."""
    rows = columns(written.with_suffix(".parquet"), ALL)
    assert (rows["participant"] == np.repeat(np.arange(PARTICIPANTS), EPOCHS)).all()
    assert (rows["epoch"] == np.tile(np.arange(EPOCHS), PARTICIPANTS)).all()
    return codes(rows["activity"], NAMES).reshape(PARTICIPANTS, EPOCHS)


@pytest.fixture(scope="module")
def moves(days: Integers) -> Integers:
    """[participant, part of the day, activity, activity]."""
    counts = np.zeros((PARTICIPANTS, 4, len(NAMES), len(NAMES)), dtype=np.int64)
    for epoch in range(1, EPOCHS):
        who = np.arange(PARTICIPANTS)
        counts[who, part_of_day(epoch), days[:, epoch - 1], days[:, epoch]] += 1
    return counts


def test_it_fits_its_declaration(written: Path) -> None:
    with open_engine(written) as engine:
        found = check(engine)
        assert engine.keys("age") == AGES
        assert engine.keys("activity") == NAMES
        by_age = engine.histogram(["age", "activity"]).counts
    assert (found.rows, found.entities, found.longest) == (434_880, 151, 2_880)
    assert (by_age > 0).all()  # every group does everything


def test_ages_are_those_of_the_model(written: Path, routines: Routines) -> None:
    rows = columns(written.with_suffix(".parquet"), ALL)
    assert (codes(rows["age"], AGES) == np.repeat(routines.ages, EPOCHS)).all()
    assert np.bincount(routines.ages).tolist() == [38, 38, 38, 37]


def rivals(routines: Routines) -> list[Floats]:
    whole = routines.transition
    no_day = np.broadcast_to(whole.mean(axis=1, keepdims=True), whole.shape)
    no_tastes = np.broadcast_to(whole.mean(axis=0, keepdims=True), whole.shape)
    return [no_day, no_tastes, whole * 0.99 + 0.01 / len(NAMES), whole * 0.5 + 0.5 / len(NAMES)]


@pytest.mark.statistical
def test_moves_follow_the_model(moves: Integers, routines: Routines) -> None:
    assert farthest(moves, routines.transition) < 1
    assert not any(prefers(moves, routines.transition, rival) for rival in rivals(routines))


@pytest.mark.statistical
def test_the_test_above_would_catch_other_models(moves: Integers, routines: Routines) -> None:
    assert farthest(moves, rivals(routines)[-1]) > 1.5
    assert all(prefers(moves, rival, routines.transition) for rival in rivals(routines))


def test_people_go_on_with_what_they_do(days: Integers) -> None:
    assert (days[:, 1:] == days[:, :-1]).mean() > 0.9


def test_people_sleep_at_night_and_sit_by_day(days: Integers) -> None:
    asleep, sitting = days == NAMES.index("sleep"), days == NAMES.index("sitting")
    assert asleep[:, 240:720].mean() > 0.7 > 0.2 > asleep[:, 1200:2400].mean()
    assert sitting[:, 1200:2400].mean() > 0.3


@pytest.mark.nightly
def test_the_same_seed_gives_the_same_rows(tmp_path: Path, days: Integers) -> None:
    again = write_activities(tmp_path, rng=np.random.default_rng(SEED))
    rows = columns(again.with_suffix(".parquet"), ALL)
    assert (codes(rows["activity"], NAMES) == days.ravel()).all()
    other = write_activities(tmp_path / "other", rng=np.random.default_rng(SEED + 1))
    rows = columns(other.with_suffix(".parquet"), ALL)
    assert (codes(rows["activity"], NAMES) != days.ravel()).any()
