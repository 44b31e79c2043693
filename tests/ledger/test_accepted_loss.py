"""What was lost for good counts as spent."""

import shutil
import sqlite3
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.costs.losses import Concentrated, Total
from takifugu.errors import (
    BudgetExceeded,
    LedgerConflict,
    LedgerDamaged,
    LedgerSetBack,
    LedgerUnwritable,
    UnsoundRequest,
)
from takifugu.ledger import Groups, Terms, Window, accept_loss, open_ledger, restore_ledger
from takifugu.ledger.witnesses.lost_history import LossTerms
from takifugu.translation.protocol import LossTranslation
from tests.contracts.ledger import paid
from tests.ledger.charges import DOUBLING, IDENTITY, RICH, charge
from tests.ledger.folders import in_memory
from tests.ledger.older_copies import (
    Opener,
    copied_ledger,
    no_room_in_the_witness,
    set_back,
)
from tests.raising import raises


@pytest.fixture
def path(folder: Path) -> Path:
    return copied_ledger(folder)


def test_a_loss_counts_as_spent_up_to_the_budget(path: Path, opened: Opener) -> None:
    set_back(path)
    event = accept_loss(path, translations={"ward": DOUBLING}, actor="Dr Owner")
    assert event.kind == "loss" and event.body["actor"] == "Dr Owner"
    assert event.body["lost"]["seq"] == 4
    ledger = opened(path)
    assert ledger.verify().sound and ledger.verify().witness == ledger.head()
    assert ledger.spent("ward", DOUBLING) == 2 and ledger.remaining("ward", DOUBLING) == 0
    for window in (None, (0, 5)):
        with pytest.raises(BudgetExceeded):
            ledger.charge(charge("1/1000000", window), DOUBLING)
    ledger.set_budget("ward", 3)
    assert ledger.remaining("ward", DOUBLING) == Fraction(1, 2)
    ledger.charge(charge("0.5", (0, 5)), DOUBLING)
    with pytest.raises(BudgetExceeded):
        ledger.charge(charge("0.01", (4, 9)), DOUBLING)
    assert [r.epsilon for r in ledger.odometer("ward", DOUBLING)] == [0.5, 2, 3]
    ledger.close()
    shutil.copy(path.with_name("newer"), path)
    with pytest.raises(LedgerSetBack):
        opened(path)


def test_cells_of_the_copy_start_from_the_loss(path: Path, opened: Opener) -> None:
    with open_ledger(path) as ledger:
        ledger.charge(charge("0.5", (0, 5), ["fr"]), DOUBLING)
        ledger.charge(charge("0.125", (0, 5), analyst="bob"), DOUBLING)
        ledger.set_budget("ward", 1, analyst="ana")
    shutil.copy(path, path.with_name("copy"))
    set_back_with = charge("0.25", (7, 8), ["de"], analyst="ana")
    with open_ledger(path) as ledger:
        ledger.charge(set_back_with, DOUBLING)
    shutil.copy(path.with_name("copy"), path)
    accept_loss(path, translations={"ward": DOUBLING})
    ledger = opened(path)
    one, half = (Total(Fraction(1)),), (Total(Fraction(1, 2)),)
    assert ledger.lost("ward") == ledger.lost("ward", window=Window(7, 8)) == one
    assert ledger.lost("ward", groups=Groups(["country"], [("it",)])) == one
    assert ledger.lost("ward", analyst="ana") == half
    assert ledger.lost("ward", analyst="bob") == one  # no budget of his own: that of the whole
    assert ledger.lost("ward", analyst="eve") == one  # what she learnt is unknown
    ledger.set_budget("ward", 4)
    ledger.set_budget("ward", 2, analyst="eve")
    with raises(BudgetExceeded, analyst="eve"):
        ledger.charge(charge("0.01", analyst="eve"), DOUBLING)
    assert ledger.verify().sound


@pytest.mark.parametrize(
    ("translations", "budgets", "counted"),
    [
        ({}, {}, 2),  # the ε of the budget itself: no translation is below it
        ({"ward": DOUBLING}, {"ward": 5}, Fraction(5, 2)),
        ({"ward": DOUBLING}, {"ward": "0.5"}, 1),
        ({"ward": IDENTITY}, {}, 2),
    ],
)
def test_what_is_not_known_counts_as_more(
    path: Path,
    opened: Opener,
    translations: dict[str, object],
    budgets: dict[str, object],
    counted: Fraction,
) -> None:
    set_back(path)
    accept_loss(path, translations=translations, budgets=budgets, costs=False)  # type: ignore[arg-type]
    ((total,),) = [p.worst for p in opened(path).positions()]
    assert counted <= total.epsilon <= counted * (1 + Fraction(1, 2**40))


def test_another_translation_than_was_used_is_not_relied_on(path: Path, opened: Opener) -> None:
    class Steep(LossTranslation):
        fingerprint = "steep"

        def to_pufferfish(self, epsilon: float, /) -> float:
            return 100 * epsilon

        def to_dp(self, epsilon: float, /) -> float:
            return epsilon / 100

    set_back(path)
    accept_loss(path, translations={"ward": Steep()}, costs=False)
    assert opened(path).lost("ward") == (Total(Fraction(2)),)


def test_a_budget_with_a_delta_counts_every_currency_and_needs_the_translation(
    folder: Path, opened: Opener
) -> None:
    path = folder / "ward.ledger"
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 2, delta="1e-6")
    shutil.copy(path, folder / "copy")
    with open_ledger(path) as ledger:
        ledger.charge(charge(Concentrated("0.01"), translation="rich"), RICH)
        most = ledger.remaining("ward", RICH, like=Concentrated(0))
    shutil.copy(folder / "copy", path)
    with raises(UnsoundRequest, field="delta", reason="translation unknown"):
        accept_loss(path)
    accept_loss(path, translations={"ward": RICH})
    ledger = opened(path)
    (total,) = ledger.lost("ward")
    assert total.rho >= Fraction(1, 100) + most and total.delta == Fraction(1, 10**6)
    assert total.epsilon >= Fraction(1999, 1000)
    with pytest.raises(BudgetExceeded):
        ledger.charge(charge("1/1000000", translation="rich"), RICH)


def test_nothing_is_accepted_where_nothing_was_lost_or_the_copy_is_not_sound(path: Path) -> None:
    with raises(LedgerConflict, reason="nothing lost"):
        accept_loss(path)
    set_back(path)
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE takifugu_events SET body = replace(body, '1/4', '1/8') WHERE seq = 3")
    raw.close()
    with raises(LedgerDamaged, reason="unsound copy"):
        accept_loss(path)
    with pytest.raises((LedgerSetBack, LedgerDamaged)):
        open_ledger(path)


def test_a_crash_between_the_acceptance_and_its_note_is_made_good(
    path: Path, opened: Opener
) -> None:
    set_back(path)

    with no_room_in_the_witness(), pytest.raises(LedgerUnwritable):
        accept_loss(path, costs=False)
    ledger = opened(path)
    assert ledger.verify().sound and ledger.verify().witness == ledger.head()
    assert len(paid(ledger)) == 1


@pytest.mark.nightly
@settings(max_examples=8 if settings.get_current_profile_name() == "quick" else 120)
@given(
    before=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3)), max_size=3),
    since=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3)), min_size=1, max_size=4),
    raised=st.integers(2, 6),
)
def test_the_total_counted_after_a_loss_is_never_below_the_true_one(
    before: list[tuple[int, int]],
    since: list[tuple[int, int]],
    raised: int,
) -> None:
    """By adding up, for four days, all that was ever admitted, whichever copy it is written in."""
    with in_memory() as folder:
        a_loss(folder / "ward.ledger", before, since, raised)


def a_loss(
    path: Path, before: list[tuple[int, int]], since: list[tuple[int, int]], raised: int
) -> None:
    true = [Fraction(0)] * 4

    def spend(charges: list[tuple[int, int]]) -> None:
        with open_ledger(path) as ledger:
            for tenths, day in charges:
                loss, window = Fraction(tenths, 10), None if day == 0 else (day, 4)
                try:
                    ledger.charge(charge(loss, window), DOUBLING)
                except BudgetExceeded:
                    continue
                for at in range(day, 4):
                    true[at] += loss

    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 2)
    spend(before)
    shutil.copy(path, path.with_name("copy"))
    with open_ledger(path) as ledger:
        ledger.set_partition("ward", ("country",))  # so that something is lost in any case
    spend(since)
    shutil.copy(path.with_name("copy"), path)
    accept_loss(path, translations={"ward": DOUBLING})
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", raised)
    spend(since)
    with open_ledger(path) as ledger:
        for day in range(4):
            (total,) = ledger.lost("ward", window=Window(day, day + 1))
            assert true[day] <= total.epsilon <= Fraction(raised, 2)
        assert ledger.verify().sound


def test_a_policy_after_a_loss_of_history_is_accepted_at_an_infinite_loss(folder: Path) -> None:
    """What the lost charges were made under is not known, and no prior translates them."""
    path, copy = folder / "a.ledger", folder / "copy"
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 1)
        ledger.backup(copy)
        ledger.charge(charge("0.25"), DOUBLING)
    path.unlink()
    restore_ledger(copy, path, lossy=True, terms=LossTerms({"ward": DOUBLING}))
    with open_ledger(path) as ledger:
        ledger.enter_policy("ward", Terms("prior", "secrets"), {})
        accepted = list(ledger.history("ward"))[-1].body
    told = [accepted[name] for name in ("kind", "budget", "spent_before", "spent_after")]
    assert told == ["accepted", "1", None, "infinity"]
