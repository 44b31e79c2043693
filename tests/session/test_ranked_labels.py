"""Rankings of labels, without a session: which labels are ranked, by what, and what is told."""

from pathlib import Path
from typing import Any

import pytest

from takifugu.costs.losses import Pure
from takifugu.declarations import Category, Declaration
from takifugu.mechanisms import NoisyTopK
from takifugu.session.cells import rows_of
from takifugu.session.query import top_k
from takifugu.session.query.query import CONFIDENCE, Aim
from takifugu.session.query.top_k import POSTERIOR, PREDICTED, UNKNOWN, TopKQuery
from takifugu.tables import Engine, open_engine
from tests.session.world import declaration

pytestmark = pytest.mark.nightly

LABELS = ("home", "ward", "clinic", "street")
ROWS = [
    ("Ann", 0, "a", "home", 1),
    ("Ann", 1, "a", "ward", 1),
    ("Ann", 2, "b", "ward", 1),
    ("Ann", 3, "b", "clinic", 1),
    ("Bea", 0, "b", "ward", 1),
    ("Bea", 1, "a", "home", 1),
    ("Bea", 2, "a", "home", 1),
    ("Bea", 3, "b", "street", 1),
]
SURE = Pure(5000)


def declared(folder: Path) -> Declaration:
    return declaration(folder, ROWS, protected=(Category("state", LABELS, "refuse"),))


def query(engine: Engine, k: int = 1, leave_out: tuple[str, ...] = ()) -> TopKQuery:
    return TopKQuery("state", ("zone",), rows_of(engine.declaration, None, None), k, leave_out)


@pytest.fixture
def engine(tmp_path: Path) -> Any:
    with open_engine(declared(tmp_path), threads=1) as found:
        yield found


# --- what ranks ---


def test_without_a_lead_to_resolve_counts_are_released(engine: Engine) -> None:
    asked = query(engine)
    blind = asked.choose(engine, Aim(Pure(1)))
    assert isinstance(blind.mechanism, NoisyTopK)
    seeing = [asked.choose(engine, Aim(Pure(1), gap=3.0))]
    seeing.append(
        asked.choose(engine, Aim(Pure(1), reference=((5.0, 3.0, 2.0, 1.0), (1.0, 2.0, 3.0, 9.0))))
    )
    assert not any(isinstance(found.mechanism, NoisyTopK) for found in seeing)
    assert "`gap`" in blind.reason and not any("`gap`" in found.reason for found in seeing)
    for found in (blind, *seeing):
        loss = found.mechanism.loss
        assert isinstance(loss, Pure) and loss.epsilon <= 1


def test_of_very_many_groups_the_noise_is_drawn_at_once(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, aim = query(engine), Aim(Pure(1), gap=3.0)
    monkeypatch.setattr(top_k, "MAX_SELECTIONS", 2)  # as many as there are
    assert not isinstance(asked.choose(engine, aim).mechanism, NoisyTopK)
    assert len(asked.chosen_earlier(engine, Aim(Pure(1)))) == 1
    monkeypatch.setattr(top_k, "MAX_SELECTIONS", 1)
    many = asked.choose(engine, aim)
    assert isinstance(many.mechanism, NoisyTopK) and "at once" in many.reason
    assert asked.chosen_earlier(engine, Aim(Pure(1))) == ()


# --- what is told ---


def test_a_selection_tells_places_and_what_was_predicted(engine: Engine) -> None:
    asked = query(engine, 2, ("home",))
    mechanism = query(engine).choose(engine, Aim(SURE, gap=1.0)).mechanism
    told = asked.tabulated(mechanism, [0, 2, 1, 0], engine, {"right": [0.75, 0.5]})
    assert told.columns == ("zone", "rank", "state", "probability")
    assert told.rows == (
        ("a", 1, "ward", 0.75),
        ("a", 2, "street", 0.5),
        ("b", 1, "clinic", 0.75),
        ("b", 2, "ward", 0.5),
    )
    assert told.notes == (PREDICTED,) and told.raw is None
    unknown = asked.tabulated(mechanism, [0, 2, 1, 0], engine, {})
    assert [row[-1] for row in unknown.rows] == [None] * 4 and unknown.notes == (UNKNOWN,)


def test_a_selection_that_is_sure_names_the_most_frequent(engine: Engine) -> None:
    asked = query(engine)
    chosen = asked.choose(engine, Aim(SURE, gap=1.0))
    drawn = asked.draw(chosen.mechanism, engine)
    assert drawn == [0, 1]  # home of a, ward of b
    named = asked.tabulated(chosen.mechanism, drawn, engine, chosen.error)
    assert [row[:3] for row in named.rows] == [("a", 1, "home"), ("b", 1, "ward")]


def test_counts_that_are_sure_come_with_their_place_and_interval(engine: Engine) -> None:
    asked = query(engine, 2)
    chosen = asked.choose(engine, Aim(SURE))
    mechanism: Any = chosen.mechanism
    drawn = asked.draw(mechanism, engine)
    assert drawn == asked.exact(engine).tolist()  # no noise at such an ε
    told = asked.tabulated(mechanism, drawn, engine, chosen.error)
    assert told.columns == (
        "zone", "rank", "state", "estimate", "low", "high", "probability"
    )  # fmt: skip
    assert [row[:4] for row in told.rows[:3]] == [
        ("a", 1, "home", 3),
        ("a", 2, "ward", 1),
        ("b", 1, "ward", 2),
    ]
    assert told.rows[3][:2] == ("b", 2) and told.rows[3][2] in ("clinic", "street")
    assert told.raw is not None and POSTERIOR in told.notes
    first = told.rows[0][-1]
    assert first == pytest.approx(1.0)


@pytest.mark.parametrize("epsilon", ["0.5", "1", "3"])
def test_intervals_of_a_group_hold_together(engine: Engine, epsilon: str) -> None:
    """Four counts with noise of their own: each within the reach that all keep with 95 %."""
    asked = query(engine, 2)
    mechanism: Any = asked.choose(engine, Aim(Pure(epsilon))).mechanism
    noisy = [[40, 3, 2, 1], [7, 9, 2, 8]]
    told = asked.tabulated(mechanism, noisy, engine, {})
    assert told.raw is not None
    half = mechanism.noise.reach(1 - CONFIDENCE ** (1 / len(LABELS)))
    assert [row[3] for row in told.raw] == [40, 3, 9, 8]
    for row in told.raw:
        estimate, low, high = row[3:6]
        assert low == estimate - half and high == estimate + half
    assert all(0 <= low <= estimate <= high <= 4 for *_, estimate, low, high, _ in told.rows)
