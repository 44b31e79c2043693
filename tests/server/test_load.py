"""A small seed of `tests.server.load`: analysts on one budget while what serves them is killed."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from takifugu.project.project import open_project
from tests.ledger import postgres
from tests.oracles.ledger_sums import PlainEvent, events_of, largest_sum
from tests.server.load import run, trial, verdict
from tests.server.projects import ZONES

pytestmark = pytest.mark.nightly


def address_of(folder: Path) -> str:
    return str(folder / "a study" / "takifugu.ledger")


@pytest.mark.nightly
def test_a_budget_that_does_not_suffice_is_not_overspent(tmp_path: Path) -> None:
    with trial(tmp_path, 6, budget="1") as found:
        found.wide = True
        run(found, most=5, rng=np.random.default_rng(1))
    told = verdict(found, address_of(tmp_path), "1")
    assert not told.faults and found.tally.done == 30
    assert told.figures["charges"] == told.figures["answered"] == 19  # 20 would be above 1
    assert found.tally.refused == 11 and 0.95 < told.figures["largest sum on a cell"] <= 1
    project = open_project(tmp_path / "a study")
    with project.ledger(read_only=True) as ledger:  # by the ledger's own account it is the same
        worst = max(one.epsilon for one in ledger.positions()[0].worst)
    assert worst == largest_sum(events_of(address_of(tmp_path)), "stays", "zone", ZONES)
    # and the trial sees what is wrong
    lost = replace(found.tally.acknowledged[0], charge=(10**6, "0"))
    found.tally.acknowledged.append(lost)
    assert verdict(found, address_of(tmp_path), "1").faults == [
        f"charge {10**6} of {lost.analyst} is lost"
    ]
    del found.tally.acknowledged[:2], found.tally.acknowledged[-1]
    assert len(verdict(found, address_of(tmp_path), "1").faults) == 2  # nobody was told of them
    assert verdict(found, address_of(tmp_path), "0").faults[0].startswith("overspent")


@pytest.mark.nightly
def test_a_server_and_workers_that_are_killed_lose_nothing(tmp_path: Path) -> None:
    with trial(tmp_path, 6) as found:
        run(found, kills=2, worker_kills=1, rng=np.random.default_rng(2))
    told = verdict(found, address_of(tmp_path), "2")
    assert not told.faults and told.figures["answered"] >= 50


@pytest.mark.nightly
def test_a_database_that_is_killed_loses_nothing(tmp_path: Path, cluster: postgres.Cluster) -> None:
    address = cluster.address()
    with trial(tmp_path, 6, ledger=address) as found:
        run(found, cluster=cluster, database_kills=2, rng=np.random.default_rng(3))
    told = verdict(found, address, "2")
    assert not told.faults and told.figures["answered"] >= 50


# --- the plain sum ---


def charge(seq: int, loss: str, window: Any = None, zones: tuple[str, ...] = ()) -> PlainEvent:
    groups = {"columns": ["zone"], "keys": [[zone] for zone in zones]} if zones else None
    span = None if window is None else {"unit": "step", "start": window[0], "end": window[1]}
    loss_body = {"currency": "pure", "epsilon": loss}
    body = {"dataset": "stays", "loss": loss_body, "window": span, "groups": groups}
    return PlainEvent(seq, "", "charge", body)


def test_the_plain_sum_is_that_of_the_worst_cell() -> None:
    events = [
        charge(1, "1/10"),
        charge(2, "1/5", (0, 10), ("north",)),
        charge(3, "1/3", (10, 20), ("north", "south")),
        charge(4, "1/7", (5, 11), ("south",)),
        charge(5, "1/9", (None, 0)),
        PlainEvent(6, "", "answer", {"charge": 1}),
        replace(charge(7, "9"), body={**charge(7, "9").body, "dataset": "others"}),
    ]
    found = largest_sum(events, "stays", "zone", ["north", "south", "east"])
    assert found == Fraction(1, 10) + Fraction(1, 3) + Fraction(1, 7)  # south, in [10, 11)
    assert largest_sum([], "stays", "zone", ["north"]) == 0
