"""What is counted for each account whose history is lost, by every budget it may have had."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from takifugu.ledger import Anchor, Ledger, open_ledger
from takifugu.ledger.witnesses.lost_history import (
    LossTerms,
    counted,
)
from tests.ledger.charges import DOUBLING, charge

pytestmark = pytest.mark.nightly

MICRO = Fraction(1, 10**6)


@pytest.fixture
def kept(folder: Path) -> Iterator[Ledger]:
    """Two datasets with budgets, and charges of several people under several terms."""
    with open_ledger(folder / "ward.ledger") as ledger:
        ledger.set_budget("ward", 8)
        ledger.set_budget("town", 6)
        ledger.charge(charge("1/8", analyst="bob", secrets="s1"), DOUBLING)
        ledger.set_budget("ward", 4, analyst="ana")
        ledger.set_budget("ward", 2, analyst="bob")
        asked = charge("1/4", analyst="ana", secrets="s1")
        ledger.record_answer(ledger.charge(asked, DOUBLING), 7)
        ledger.set_partition("yard", ("country",))  # which has no budget
        yield ledger


def test_every_account_is_counted_also_of_a_dataset_that_the_copy_does_not_know(
    kept: Ledger,
) -> None:
    with kept._store.reading() as connection:
        terms = LossTerms(
            {"ward": DOUBLING},
            {"new": (9, 0), "town": 7},
            columns={"new": ("a", "b"), "ward": ("a",)},
            costs=False,
        )
        content, _ = counted(connection, Anchor(99, "c" * 64), terms)
    each = [["9", ["column", "a", ["any"]]], ["9", ["column", "b", ["any"]]]]
    plain = {"delta": "0", "rho": "0"}
    expected: list[dict[str, Any]] = [
        {"dataset": "ward", "analyst": None, "epsilon": "4", **plain},
        {"dataset": "town", "analyst": None, "epsilon": "7", **plain},
        {"dataset": "ward", "analyst": "bob", "epsilon": "1", **plain},
        {"dataset": "ward", "analyst": "ana", "epsilon": "2", **plain},
        {"dataset": "new", "analyst": None, "epsilon": "0", **plain, "costs": each},
    ]
    found = sorted(content["accounts"], key=str)
    for one in (*found, *expected):
        one.get("costs", []).sort()
    assert found == sorted(expected, key=str)


def test_a_loss_is_counted_on_every_backend(ledger: Ledger) -> None:
    lost = Anchor(9, "c" * 64)
    with ledger._store.reading() as connection:
        content, _ = counted(connection, lost, LossTerms({"ward": DOUBLING}))
    whole = {"dataset": "ward", "analyst": None, "epsilon": "1", "delta": "0", "rho": "0"}
    assert content == {"lost": {"seq": 9, "hash": "c" * 64}, "accounts": [whole]}
