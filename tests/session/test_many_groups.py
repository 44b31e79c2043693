"""Releases by a public column of many keys: the work grows with the keys, not with their square."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from takifugu.engines import Category, Declaration, Engine, Order, Source, open_engine
from takifugu.ledger import open_ledger
from takifugu.mechanisms import NoisyTopK
from takifugu.mechanisms import opendp_measurements as measurements
from takifugu.priors import MarkovChain
from takifugu.session import Session
from takifugu.session.query import top_k
from takifugu.translation.translation import Translation

GROUPS = 20_000
CLEAR = 200  # an ε at which noise moves nothing


class Watched(tuple[str, ...]):
    """Keys that count how often all of them are walked over, and are never searched."""

    walks = 0

    def index(self, *_: Any) -> int:
        """Not to be used."""
        raise AssertionError("a key is looked for from the first to the last")

    def __contains__(self, _: object) -> bool:
        raise AssertionError("a key is looked for from the first to the last")

    def __iter__(self) -> Iterator[str]:
        Watched.walks += 1
        return super().__iter__()


@pytest.fixture
def session(tmp_path: Path) -> Iterator[tuple[Session, Engine]]:
    lines = [f"p{i},{i},g{i * 7 % GROUPS},{'ward' if i % 3 else 'home'}" for i in range(GROUPS)]
    (tmp_path / "stays.csv").write_text("\n".join(["person,step,block,state", *lines]))
    keys = Watched(f"g{i}" for i in range(GROUPS))
    declaration = Declaration(
        source=Source("csv", path="stays.csv"),
        entity="person",
        order=Order("step", "number"),
        protected=(Category("state", ("home", "ward"), "refuse"),),
        public=(Category("block", keys, "refuse"),),
        folder=tmp_path,
    )
    translation = Translation(MarkovChain(np.full((2, 2), 0.5), states=("home", "ward")))
    with open_engine(declaration) as engine, open_ledger(tmp_path / "stays.ledger") as ledger:
        ledger.set_budget("stays", 10 * CLEAR)
        yield Session(engine, translation, ledger=ledger, dataset="stays"), engine


def truth() -> dict[str, str]:
    return {f"g{i * 7 % GROUPS}": "ward" if i % 3 else "home" for i in range(GROUPS)}


@pytest.mark.nightly
def test_the_work_of_a_release_grows_with_the_number_of_groups(
    session: tuple[Session, Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    asks, engine = session
    queries, draws = list[int](), list[int]()
    rows, release = engine._backend.rows, measurements.release

    def watched_rows(sql: str) -> Any:
        queries.append(len(sql))
        return rows(sql)

    def watched_release(measurement: Any, values: Any) -> Any:
        draws.append(len(values))
        return release(measurement, values)

    monkeypatch.setattr(engine._backend, "rows", watched_rows)
    monkeypatch.setattr(measurements, "release", watched_release)
    monkeypatch.setattr(top_k, "MOST_SELECTIONS", GROUPS - 1)
    Watched.walks = 0
    counted = asks.release(asks.plan.count(["ward"], by="block", epsilon=CLEAR), accept_noise=True)
    assert {row[0]: row[1] for row in counted.rows} == {
        key: int(state == "ward") for key, state in truth().items()
    }
    assert draws == [GROUPS]
    plan = asks.plan.top_k(1, by="block", epsilon=CLEAR)
    assert isinstance(plan.mechanism, NoisyTopK)
    assert "at once" in plan.reason
    assert {row[0]: row[2] for row in asks.release(plan, accept_noise=True).rows} == truth()
    assert draws == [GROUPS, 2 * GROUPS]
    some = [f"g{i}" for i in range(0, GROUPS, 200)]
    part = asks.release(
        asks.plan.histogram(by="block", where={"block": some}, epsilon=CLEAR), accept_noise=True
    )
    assert {row[0]: row[1] for row in part.rows if row[2] == 1} == {k: truth()[k] for k in some}
    assert max(queries) < 5_000  # no query holds the list
    assert Watched.walks < 100


def test_few_groups_are_ranked_by_the_best_mechanism(session: tuple[Session, Engine]) -> None:
    """By the places that are right, if these can be predicted; else by one that has counts."""
    plan = session[0].plan.top_k(1, by="block", epsilon=1, gap=9)
    assert not isinstance(plan.mechanism, NoisyTopK)
    assert "at once" not in plan.reason
    assert isinstance(session[0].plan.top_k(1, by="block", epsilon=1).mechanism, NoisyTopK)
