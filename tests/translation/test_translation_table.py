"""A table is sound between its points, close to the translation, and tied to it."""

import json
from pathlib import Path

import numpy as np
import pytest

from takifugu.errors import InvalidFile
from takifugu.priors import MarkovChain, Secrets
from takifugu.priors.bif import read_bif
from takifugu.translation import Translation, TranslationTable, tabulate
from takifugu.translation.accounting.tables import table_beside
from tests.priors.files import example
from tests.raising import raises

CHAIN = MarkovChain(np.array([[0.9, 0.1], [0.2, 0.8]]), length=12)
HOME = Translation(CHAIN)
TABLE = tabulate(HOME, losses=(0.2, 3.0))


@pytest.mark.nightly
def test_between_points_it_is_sound_and_loses_two_percent() -> None:
    rng = np.random.default_rng(7)
    grid = rng.uniform(TABLE.epsilon[0], TABLE.epsilon[-1], 25)
    true, found = HOME.to_pufferfish(grid), TABLE.to_pufferfish(grid)
    assert (found >= true).all() and (found <= true * 1.021).all()
    targets = rng.uniform(0.21, 2.9, 10)
    allowed = np.asarray(TABLE.to_dp(targets))
    assert (HOME.to_pufferfish(allowed) <= targets).all()
    assert (allowed >= np.asarray(HOME.to_dp(targets)) * 0.978).all()
    assert TABLE.to_pufferfish(0.0) == 0 and TABLE.to_dp(0.0) == 0
    assert isinstance(TABLE.to_pufferfish(0.1), float)


def test_where_the_loss_rises_fast_the_grid_is_finer() -> None:
    steep = MarkovChain(
        np.array([[0.999, 0.001], [0.99, 0.01]]), start=np.array([0.5, 0.5]), length=2
    )
    table = tabulate(Translation(steep), losses=(1.0, 12.0), share=0.05)
    rise = table.loss[1:] / table.loss[:-1]
    assert rise.max() <= 1.0501
    ratio = table.loss / table.epsilon
    assert (np.diff(ratio) > 0).any() and (np.diff(ratio) < 0).any()  # not monotone: steps only


@pytest.mark.nightly
def test_a_stream_without_end_is_tabulated_from_point_to_point() -> None:
    seen: list[tuple[int, int]] = []
    unbounded = Translation(MarkovChain(np.array([[0.9, 0.1], [0.2, 0.8]])))
    table = tabulate(
        unbounded, losses=(0.5, 2.0), share=0.1, progress=lambda k, n: seen.append((k, n))
    )
    assert [k for k, _ in seen] == list(range(1, len(seen) + 1))
    assert all(k <= n for k, n in seen) and seen[-1][0] == seen[-1][1] <= len(table.epsilon)
    assert table.loss[0] <= 0.5 and table.loss[-1] > 2.0
    grid = np.array([0.1, 0.17])
    found, true = np.asarray(table.to_pufferfish(grid)), unbounded.to_pufferfish(grid)
    assert (found >= 0.999 * true).all() and (found <= 1.11 * true).all()


@pytest.mark.nightly
def test_a_table_that_reaches_further_has_the_same_points_and_more() -> None:
    unbounded = Translation(MarkovChain(np.array([[0.9, 0.1], [0.2, 0.8]])))
    short, long = (tabulate(unbounded, losses=(0.5, most), share=0.1) for most in (1.0, 2.0))
    shared = len(short.epsilon)
    assert shared < len(long.epsilon)
    assert short.epsilon.tolist() == long.epsilon[:shared].tolist()
    assert short.loss.tolist() == long.loss[:shared].tolist()


def test_it_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    path = table_beside(tmp_path / "ward.json", HOME)
    TABLE.save(path)
    again = TranslationTable.load(path, HOME)
    assert again == TABLE and again.to_pufferfish(0.1) == TABLE.to_pufferfish(0.1)
    assert path.parent == tmp_path and [p.name for p in tmp_path.iterdir()] == [path.name]
    assert table_beside(path, HOME) != table_beside(path, Translation(CHAIN, uncertainty=0.1))


@pytest.mark.parametrize(
    "other",
    [
        Translation(MarkovChain(np.array([[0.9, 0.1], [0.2, 0.8]]), length=13)),
        Translation(CHAIN, Secrets(entries=(0,))),
        Translation(CHAIN, uncertainty=0.1),
    ],
)
def test_a_table_of_something_else_is_refused(other: Translation, tmp_path: Path) -> None:
    TABLE.save(tmp_path / "t.json")
    with raises(InvalidFile, reason="about"):
        TranslationTable.load(tmp_path / "t.json", other)


def test_an_edited_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    TABLE.save(path)
    document = json.loads(path.read_text())
    edits = (
        {"loss": [*document["loss"][:-1], document["loss"][-1] + 0.001]},
        {"epsilon": document["epsilon"][:-1], "loss": document["loss"][:-1]},
        {"about": HOME.fingerprint[::-1]},
    )
    for edit in edits:
        path.write_text(json.dumps({**document, **edit}))
        with raises(InvalidFile, reason="edited"):
            TranslationTable.load(path, HOME)
    for broken in ("{", "[]", json.dumps({"kind": "translation-table"})):
        path.write_text(broken)
        with pytest.raises(InvalidFile):
            TranslationTable.load(path, HOME)
    with raises(InvalidFile, field=str(tmp_path / "none.json")):
        TranslationTable.load(tmp_path / "none.json", HOME)


@pytest.mark.nightly
def test_the_curve_of_a_large_network_is_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(_: Translation) -> None:
        raise AssertionError

    alarm = Translation(read_bif(example("alarm")))
    assert alarm.curve_waits
    monkeypatch.setattr(Translation, "curve", property(asked))
    table = tabulate(alarm, losses=(0.5, 0.7), share=0.5)
    best = [alarm.bound(epsilon).value for epsilon in table.epsilon.tolist()]
    assert table.loss == pytest.approx(best)
    assert table.loss[-1] > 0.7
