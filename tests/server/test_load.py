"""A small seed of `tests.server.load`: analysts on one budget while what serves them is killed."""

from pathlib import Path

import numpy as np
import pytest

from takifugu.project.project import open_project
from tests.ledger import postgres
from tests.oracles.ledger_sums import events_of, largest_sum
from tests.server.load import run, trial, verdict
from tests.server.projects import ZONES

ANALYSTS = 6


def address_of(folder: Path) -> str:
    return str(folder / "a study" / "takifugu.ledger")


def test_a_budget_that_does_not_suffice_is_not_overspent(tmp_path: Path) -> None:
    with trial(tmp_path, ANALYSTS, budget="1") as found:
        for number, name in enumerate(found.tokens):  # each asks for whole days of every zone
            assert found.query(number, 0) != found.query(number, 1), name
        found.ask(0, "analyst 0", 2)  # the workers are there
        wide = found.wide = True  # type: ignore[attr-defined]
        assert wide
        run(found, most=6, rng=np.random.default_rng(1))
    told = verdict(found, address_of(tmp_path), "1")
    assert not told.faults and found.tally.done == ANALYSTS * 6 + 2
    assert told.figures["charges"] > 0
