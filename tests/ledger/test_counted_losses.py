"""What is counted for each account whose history is lost, by every budget it may have had."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import UnsoundRequest
from takifugu.ledger import Anchor, Ledger, open_ledger
from takifugu.ledger.witnesses.lost_history import (
    LossTerms,
    counted,
)
from tests.ledger.charges import DOUBLING, RICH, charge
from tests.raising import raises

pytestmark = pytest.mark.nightly

MICRO = Fraction(1, 10**6)


# --- which budgets an account may have had ---


# --- all accounts ---


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


def test_terms_are_checked_with_all_that_they_state(kept: Ledger) -> None:
    """What cannot be counted is refused for each of the four, and for that one alone."""
    lost = Anchor(99, "c" * 64)
    fine = LossTerms({"ward": DOUBLING}, {"town": (7, MICRO)}, costs=False)
    with kept._store.reading() as connection:
        with raises(UnsoundRequest, reason="translation unknown") as told:
            counted(connection, lost, fine)
        assert "'town'" in str(told.value)
        both = {"ward": DOUBLING, "town": RICH}
        counted(connection, lost, LossTerms(both, {"town": (7, MICRO)}, costs=False))
        counted(connection, lost, LossTerms({"town": RICH}, costs=False))
        for some in (
            LossTerms({"town": RICH}),
            LossTerms({"town": RICH}, columns={"ward": ("a", "b")}, costs=False),
        ):
            with raises(UnsoundRequest, reason="some pairs") as told:
                counted(connection, lost, some)
            assert "'ward'" in str(told.value)
    assert LossTerms() == LossTerms({}, {}, {}, True)
