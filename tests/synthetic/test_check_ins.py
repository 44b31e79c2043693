"""The synthetic check-ins against the model that their page states."""

from pathlib import Path

import numpy as np
import pytest

from takifugu.errors import InvalidWorld
from takifugu.fitting import FirstDays, fit
from takifugu.influence import chain_curve
from takifugu.priors import Transitions
from takifugu.priors.labels import foursquare_labels
from takifugu.synthetic import Habits, check_ins, draw_habits, write_check_ins
from takifugu.synthetic.habits import AFFINITY, COUNTRIES, KINDS
from takifugu.tables import check, open_engine
from tests.raising import raises
from tests.synthetic.transition_counts import Floats, Integers, codes, columns, farthest, prefers

ROWS, SEED = 200_000, 20_120_403
ALL = '"user", epoch("at") AS "at", place, country, "row"'


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_check_ins(
        tmp_path_factory.mktemp("world"), rows=ROWS, rng=np.random.default_rng(SEED)
    )


@pytest.fixture(scope="module")
def habits() -> Habits:
    return draw_habits(rng=np.random.default_rng(SEED))


@pytest.fixture(scope="module")
def moves(written: Path, habits: Habits) -> Integers:
    """[country, label, label]: how many times one label followed another of the same user."""
    rows = columns(written.with_suffix(".parquet"), ALL)
    place, country = codes(rows["place"], habits.labels), codes(rows["country"], COUNTRIES)
    same = rows["user"][1:] == rows["user"][:-1]
    counts = np.zeros((len(COUNTRIES), 78, 78), dtype=np.int64)
    np.add.at(counts, (country[1:][same], place[:-1][same], place[1:][same]), 1)
    return counts


def test_it_fits_its_declaration(written: Path) -> None:
    with open_engine(written) as engine:
        found = check(engine)
        assert engine.keys("country") == COUNTRIES
        assert set(engine.keys("place")) == set(foursquare_labels().labels)
    assert found.rows == ROWS
    assert found.entities == ROWS // 125
    assert found.keys == {"place": 78, "country": 77}
    assert str(found.first).startswith("2012-04-03")
    assert str(found.last) < "2013-08-16"


def test_every_country_and_label_is_there(moves: Integers) -> None:
    assert (moves.sum(axis=(1, 2)) > 0).all()
    assert (moves.sum(axis=(0, 1)) > 0).all()  # `codes` has refused any other label


def test_rows_are_as_documented(written: Path) -> None:
    rows = columns(written.with_suffix(".parquet"), ALL)
    user, at = rows["user"], rows["at"]
    assert (rows["row"] == np.arange(ROWS)).all()
    assert (np.diff(user) >= 0).all() and (np.diff(at)[np.diff(user) == 0] >= 0).all()
    first = np.concatenate([[True], np.diff(user) > 0])
    assert set(rows["country"][first].tolist()) == set(COUNTRIES)
    lives = dict(zip(user[first].tolist(), rows["country"][first].tolist(), strict=True))
    assert all(lives[u] == c for u, c in zip(user.tolist(), rows["country"], strict=True))
    lengths = np.sort(np.bincount(user))[::-1]
    assert lengths.min() >= 1
    assert lengths[: len(lengths) // 5].sum() > 0.55 * ROWS  # a fifth writes most of the rows


def rivals(habits: Habits) -> list[Floats]:
    sticky = habits.sticky[:, None] * np.eye(78)
    no_kinds = sticky + (1 - habits.sticky)[:, None] * habits.taste[:, None, :]
    less_sticky = habits.transition - 0.2 * sticky
    less_sticky /= less_sticky.sum(axis=2, keepdims=True)
    no_tastes = np.broadcast_to(habits.transition.mean(axis=0), habits.transition.shape)
    return [no_kinds, less_sticky, no_tastes, np.roll(habits.transition, 1, axis=0)]


@pytest.mark.statistical
def test_moves_follow_the_model(moves: Integers, habits: Habits) -> None:
    assert farthest(moves, habits.transition) < 1
    assert not any(prefers(moves, habits.transition, rival) for rival in rivals(habits))


@pytest.mark.statistical
def test_the_test_above_would_catch_other_models(moves: Integers, habits: Habits) -> None:
    assert farthest(moves, rivals(habits)[-1]) > 1.5
    assert all(prefers(moves, rival, habits.transition) for rival in rivals(habits))


def test_the_model_is_what_the_page_says(habits: Habits) -> None:
    kind = {label: name for name, members in KINDS.items() for label in members}
    kinds = list(KINDS)
    assert sorted(kind) == sorted(habits.labels)
    for country, x, y in ((0, 0, 0), (5, 3, 70), (76, 77, 12), (30, 40, 40)):
        taste = habits.taste[country]
        here, there = kind[habits.labels[x]], kind[habits.labels[y]]
        within = sum(taste[k] for k, label in enumerate(habits.labels) if kind[label] == there)
        led = AFFINITY[here][kinds.index(there)] * taste[y] / within
        expected = (x == y) * habits.sticky[x] + (1 - habits.sticky[x]) * (
            0.65 * taste[y] + 0.35 * led
        )
        assert habits.transition[country, x, y] == pytest.approx(expected, rel=1e-12)
    assert (
        np.abs(habits.rest[:, None, :] @ habits.transition - habits.rest[:, None, :]).max() < 1e-12
    )
    assert habits.shares[0] / habits.shares[76] == pytest.approx(0.935**-76)


def test_top_labels_are_about_as_hard_to_find_as_in_the_paper(habits: Habits) -> None:
    """Ours-Exp of Table 1 on as many rows: the curve, then peeling in three even rounds."""
    rng, rows = np.random.default_rng(SEED), 33_278_683
    expected = rows * habits.shares[:, None] * habits.rest
    seen = rng.poisson(0.8 * expected[:, :, None] * habits.transition).sum(axis=0)
    curve = chain_curve(Transitions(seen, habits.labels).chain(tau=1e-5), max_exposed=60)
    counts = rng.poisson(0.2 * expected)
    true = np.argsort(-counts, axis=1)
    for epsilon, low, high in ((0.5, 0.65, 0.87), (1, 0.80, 0.95), (5, 0.95, 1.0)):
        scale = 6 / float(curve.to_dp(epsilon))
        noisy = counts + rng.gumbel(scale=scale, size=(50, *counts.shape))
        assert low < (noisy.argmax(axis=2) == true[:, 0]).mean() < high, epsilon


@pytest.mark.nightly
def test_the_same_seed_gives_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_ins, "BLOCK", 4_000)  # several blocks
    paths = [
        write_check_ins(tmp_path / name, rows=20_000, rng=np.random.default_rng(seed))
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    ]
    a, b, c = (columns(path.with_suffix(".parquet"), ALL) for path in paths)
    assert all((a[name] == b[name]).all() for name in a)
    assert (a["place"] != c["place"]).any()
    assert (a["row"] == np.arange(20_000)).all()
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == [
        "check-ins.parquet",
        "check-ins.toml",
    ]


def test_a_chain_can_be_fitted_on_the_first_days(written: Path) -> None:
    with open_engine(written) as engine:
        fitted = fit(engine, "place", split=FirstDays(400))
        assert fitted.test is not None
        assert 0.15 * ROWS < engine.count(fitted.test) < 0.25 * ROWS
    assert len(fitted.chain.states) == 78


@pytest.mark.parametrize("rows", [999, 0, -5, True])
def test_too_few_rows_are_refused(tmp_path: Path, rows: int) -> None:
    with raises(InvalidWorld, field="rows"):
        write_check_ins(tmp_path, rows=rows, rng=np.random.default_rng(0))
    assert not list(tmp_path.iterdir())
