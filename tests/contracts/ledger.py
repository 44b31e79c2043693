"""What every backend of the ledger has to keep. One suite; `tests/ledger` runs it on each.

The fixtures: ``url``, the address of a ledger that does not exist yet; ``opened``, which opens one
and closes it after the test; ``ledger``, with a budget of 2 for the dataset "ward".
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import Any

import pytest

import takifugu
from takifugu._core.postgresql import quoted_name
from takifugu.costs.losses import Approximate, Concentrated, Total
from takifugu.errors import (
    BudgetExceeded,
    InvalidCharge,
    LedgerConflict,
    LedgerError,
    LedgerUnavailable,
    NoBudget,
    UnsoundRequest,
)
from takifugu.ledger import Groups, Ledger, Window
from takifugu.ledger.storage.database import Store
from takifugu.translation.protocol import LossTranslation
from tests.ledger.charges import DOUBLING, IDENTITY, RICH, Identity, charge
from tests.raising import raises

Opener = Callable[..., Ledger]
ROOT = Path(takifugu.__file__).parents[2]


def tamper(url: str, *statements: str) -> None:
    """Change the storage behind the ledger's back."""
    with (
        closing(Store(url, read_only=False, wait=5)) as store,
        store.writing() as connection,
        closing(connection.raw.cursor()) as cursor,
    ):
        if not connection.sqlite:
            cursor.execute(f"SET LOCAL search_path = {quoted_name(connection.schema)}")
        for statement in statements:
            cursor.execute(statement)


def worker(*arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(  # noqa: S603 - our own interpreter and arguments
        [sys.executable, "-m", "tests.ledger.worker", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
    )


@contextmanager
def acknowledgements_lost() -> Iterator[None]:
    """Charges are written until the block is left, and whoever made them is not told."""
    enter = Ledger._enter

    def lost(self: Ledger, *arguments: Any) -> None:
        enter(self, *arguments)
        raise LedgerUnavailable("the connection broke after the commit")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "_enter", lost)
        yield


def paid(ledger: Ledger) -> set[str]:
    return {event.body["key"] for event in ledger.history(kind="charge")}


# --- the filter ---


def test_a_budget_can_be_spent_to_the_last_bit_and_no_further(ledger: Ledger) -> None:
    for _ in range(10):
        ledger.charge(charge("0.1"), DOUBLING)
    assert ledger.remaining("ward", DOUBLING) == 0
    assert ledger.spent("ward", DOUBLING) == 2
    with raises(BudgetExceeded, left=0, dataset="ward", analyst=None):
        ledger.charge(charge(Fraction(1, 10**30)), DOUBLING)
    assert len(paid(ledger)) == 10 and ledger.verify().sound


@pytest.mark.parametrize("translation", [DOUBLING, IDENTITY])
def test_the_advice_of_a_refusal_works_when_followed(
    ledger: Ledger, translation: LossTranslation
) -> None:
    ledger.charge(charge("1/3", (0, 5)), translation)
    with pytest.raises(BudgetExceeded) as refused:
        ledger.charge(charge(5, (3, 9)), translation)
    advice = str(refused.value).split("at most epsilon = ")[1].split(",")[0]
    assert Fraction(advice) <= refused.value.left < Fraction(advice) * (1 + Fraction(1, 1000))
    assert refused.value.needs == 5 and refused.value.dataset == "ward"
    ledger.charge(charge(advice, (3, 9)), translation)


def test_without_a_budget_nothing_is_charged(ledger: Ledger) -> None:
    for query in (ledger.spent, ledger.remaining):
        with raises(NoBudget, dataset="clinic"):
            query("clinic", DOUBLING)
    with raises(NoBudget, dataset="clinic"):
        ledger.charge(charge("0.1", dataset="clinic"), DOUBLING)


def test_a_raised_budget_counts_at_once_and_a_lowered_one_stops_everything(ledger: Ledger) -> None:
    ledger.charge(charge(1, (0, 5)), DOUBLING)
    ledger.set_budget("ward", 3)
    assert ledger.remaining("ward", DOUBLING) == Fraction(1, 2)
    ledger.charge(charge("0.5"), DOUBLING)
    ledger.set_budget("ward", 1)
    with pytest.raises(BudgetExceeded):  # the entries of 0 to 5 are over it, whatever the query
        ledger.charge(charge("0.01", (7, 8)), DOUBLING)
    assert ledger.remaining("ward", DOUBLING, window=Window(7, 8)) == 0


def test_disjoint_windows_and_groups_cost_nothing_more(ledger: Ledger) -> None:
    ledger.charge(charge(1, (0, 5)), DOUBLING)
    ledger.charge(charge(1, (5, 9), ["fr"]), DOUBLING)
    ledger.charge(charge(1, (5, 9), ["de", "nl"]), DOUBLING)
    ledger.charge(charge("0.75", (9, None)), DOUBLING)
    assert ledger.spent("ward", DOUBLING) == 2
    for window, groups, left in [
        (Window(4, 5), None, 0),
        (Window(5, 6), Groups(["country"], [("fr",)]), 0),
        (Window(5, 6), Groups(["country"], [("it",)]), 1),
        (Window(5, 6), None, 0),
        (Window(9, 10), None, Fraction(1, 4)),
        (Window(None, 0), None, 1),
        (None, Groups(["country"], [("it",)]), 0),
    ]:
        found = ledger.remaining("ward", DOUBLING, window=window, groups=groups)
        assert found == left, (window, groups)
    stretches = [(s.start, s.end, s.worst[0].epsilon) for s in ledger.over_time("ward")]
    assert stretches == [
        (None, 0, 0),
        (0, 5, 1),
        (5, 9, 1),
        (9, None, Fraction(3, 4)),
    ]
    assert ledger.verify().sound


def test_groups_by_other_columns_count_on_everybody(ledger: Ledger) -> None:
    ledger.set_partition("ward", ("country",))
    ledger.charge(charge("0.25", groups=["fr"]), DOUBLING)
    finer = Groups(["age", "country"], [(30, "de"), (40, "de")])
    ledger.charge(charge("0.25", groups=finer), DOUBLING)
    assert ledger.spent("ward", DOUBLING) == 0.5
    ledger.charge(charge("0.5", groups=Groups(["age"], [(30,)])), DOUBLING)
    assert ledger.spent("ward", DOUBLING) == 1.5
    with raises(LedgerConflict, reason="partition", dataset="ward"):
        ledger.set_partition("ward", ("age",))
    assert ledger.verify().sound


def test_keys_that_an_engine_might_confuse_share_a_cell(ledger: Ledger) -> None:
    for key in ("1", 1):
        ledger.charge(charge("0.25", groups=Groups(["country"], [(key,)])), DOUBLING)
    for key in ("caf\u00e9", "cafe\u0301"):
        ledger.charge(charge("0.25", groups=Groups(["country"], [(key,)])), DOUBLING)
    assert ledger.spent("ward", DOUBLING) == 1


def test_windows_keep_to_one_unit(ledger: Ledger) -> None:
    ledger.charge(charge("0.25", (0, 5)), DOUBLING)
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    for other in (Window(noon, None), Window(noon.date(), None)):
        with raises(InvalidCharge, field="window", reason="unit"):
            ledger.charge(charge("0.25", other), DOUBLING)


def test_an_analyst_is_bounded_alone_and_all_of_them_together(ledger: Ledger) -> None:
    ledger.set_budget("ward", 1, analyst="ana")
    ledger.set_budget("ward", 10, analyst="bob")
    ledger.charge(charge("0.5", analyst="ana"), DOUBLING)
    with raises(BudgetExceeded, analyst="ana", dataset="ward", left=0):
        ledger.charge(charge("0.25", analyst="ana"), DOUBLING)
    ledger.charge(charge("0.25", analyst="bob"), DOUBLING)
    ledger.set_budget("ward", 10, analyst="ana")
    assert ledger.remaining("ward", DOUBLING, analyst="ana") == Fraction(1, 4)
    with raises(BudgetExceeded, analyst=None, dataset="ward", left=Fraction(1, 4)):
        ledger.charge(charge("0.5", analyst="ana"), DOUBLING)
    assert ledger.spent("ward", DOUBLING, analyst="ana") == 1
    assert ledger.spent("ward", DOUBLING, analyst="bob") == 0.5
    assert ledger.spent("ward", DOUBLING, analyst="eve") == 0
    assert ledger.spent("ward", DOUBLING) == 1.5
    assert [r.epsilon for r in ledger.odometer("ward", DOUBLING)] == [1, 1.5]
    assert [r.epsilon for r in ledger.odometer("ward", DOUBLING, analyst="bob")] == [0.5]


def test_three_currencies_are_kept_apart_and_every_translation_reads_them(
    ledger: Ledger,
) -> None:
    ledger.set_budget("ward", 2, delta="1e-6")
    ledger.charge(charge("0.25", (0, 5), translation="rich"), RICH)
    ledger.charge(charge(Approximate("0.5", "1e-7"), (5, 6), translation="rich"), RICH)
    ledger.charge(charge(Concentrated("0.01"), (5, 9), translation="rich"), RICH)
    worst = {s.start: s.worst for s in ledger.over_time("ward")}
    assert worst[0] == (Total(Fraction(1, 4)),)
    assert worst[5] == (Total(Fraction(1, 2), Fraction(1, 10**7), Fraction(1, 100)),)
    assert worst[6] == (Total(rho=Fraction(1, 100)),)
    assert 0.5 < ledger.spent("ward", RICH) <= 2 < ledger.spent("ward", DOUBLING) < inf
    with pytest.raises(BudgetExceeded):
        ledger.charge(charge("0.1", (5, 6)), DOUBLING)
    with pytest.raises(BudgetExceeded) as refused:
        ledger.charge(charge(Concentrated(9), (5, 9), translation="rich"), RICH)
    assert refused.value.currency == "rho" and 0 < refused.value.left < 9
    most = Concentrated(refused.value.left)
    ledger.charge(charge(most, (5, 9), translation="rich"), RICH)
    with pytest.raises(BudgetExceeded):  # δ alone may be what is too much
        ledger.charge(charge(Approximate(0, "1e-6"), (5, 6), translation="rich"), RICH)
    assert ledger.verify().sound


def test_a_new_translation_sees_all_that_was_ever_released(ledger: Ledger) -> None:
    ledger.charge(charge("0.25"), DOUBLING)
    ledger.charge(charge("0.25"), DOUBLING)

    class Worse(LossTranslation):
        def to_pufferfish(self, dp: float, /) -> float:
            return 100 * dp

        def to_dp(self, pufferfish: float, /) -> float:
            return pufferfish / 100

    assert ledger.spent("ward", Worse()) == 50
    assert [r.epsilon for r in ledger.odometer("ward", Worse())] == [25, 50]
    with raises(BudgetExceeded, left=0):
        ledger.charge(charge("0.001", translation="worse"), Worse())


@pytest.mark.parametrize("value", [float("nan"), -1.0])
def test_a_translation_that_makes_no_sense_lets_nothing_pass(ledger: Ledger, value: float) -> None:
    class Broken(Identity):
        def to_pufferfish(self, _dp: float, /) -> float:
            return value

    with raises(UnsoundRequest, reason="broken translation"):
        ledger.charge(charge("0.1"), Broken())
    assert not paid(ledger)


def test_the_charge_must_name_the_translation_that_is_used(ledger: Ledger) -> None:
    with raises(UnsoundRequest, field="translation", needed="other"):
        ledger.charge(charge("0.1", translation="other"), DOUBLING)


# --- answers and retries ---


def test_the_same_query_again_is_answered_for_free(
    ledger: Ledger, url: str, opened: Opener
) -> None:
    first = charge("0.25", (0, 3), ["fr"])
    assert ledger.lookup(first) is None
    receipt = ledger.charge(first, DOUBLING)
    assert receipt.may_release and ledger.lookup(first) is None
    ledger.record_answer(receipt, {"counts": [1, 2.5, None]})
    again = opened(url).lookup(charge("0.25", (0, 3), ["fr"], prior="another"))
    assert again is not None and again.value == {"counts": [1, 2.5, None]}
    assert again.charge == receipt.anchor.seq
    for other in (
        charge("0.5", (0, 3), ["fr"]),
        charge("0.25", (0, 4), ["fr"]),
        charge("0.25", (0, 3)),
        charge("0.25", (0, 3), ["fr"], data="newer"),
        charge("0.25", (0, 3), ["fr"], mechanism={"kind": "geometric"}),
        charge("0.25", (0, 3), ["fr"], query={"name": "other"}),
    ):
        assert ledger.lookup(other) is None


def test_a_charge_without_an_answer_must_be_paid_again(ledger: Ledger) -> None:
    ledger.charge(charge("0.25"), DOUBLING)  # and the process dies here
    assert ledger.lookup(charge("0.25")) is None
    ledger.charge(charge("0.25"), DOUBLING)
    assert ledger.spent("ward", DOUBLING) == 1


def test_a_charge_has_one_answer(ledger: Ledger) -> None:
    receipt = ledger.charge(charge("0.25"), DOUBLING)
    first = ledger.record_answer(receipt, [1])
    assert ledger.record_answer(receipt, [1]) == first
    with raises(LedgerConflict, reason="answer"):
        ledger.record_answer(receipt, [2])
    with raises(InvalidCharge, field="answer"):
        ledger.record_answer(ledger.charge(charge("0.25"), DOUBLING), [float("nan")])


def test_the_same_key_is_charged_once_and_gives_no_second_release(
    ledger: Ledger, url: str, opened: Opener
) -> None:
    first = charge("0.25")
    receipt = ledger.charge(first, DOUBLING)
    repeated = opened(url).charge(first, DOUBLING)
    assert repeated.anchor == receipt.anchor and not repeated.may_release
    assert not ledger.charge(first, DOUBLING).may_release
    assert ledger.spent("ward", DOUBLING) == 0.5
    with raises(LedgerConflict, reason="receipt"):
        ledger.record_answer(repeated, 1)
    with raises(LedgerConflict, reason="key"):
        ledger.charge(charge("0.5", key=first.key), DOUBLING)


def test_a_retry_after_a_lost_acknowledgement_is_charged_once_and_may_release(
    ledger: Ledger, url: str, opened: Opener
) -> None:
    first = charge("0.25")
    with acknowledgements_lost(), pytest.raises(LedgerUnavailable):
        ledger.charge(first, DOUBLING)
    assert not opened(url).charge(first, DOUBLING).may_release  # it cannot know what we know
    assert ledger.charge(first, DOUBLING).may_release
    assert not ledger.charge(first, DOUBLING).may_release
    assert ledger.spent("ward", DOUBLING) == 0.5


def test_a_failed_repeat_of_a_charge_that_was_released_gives_no_second_release(
    ledger: Ledger, url: str
) -> None:
    first = charge("0.25")
    assert ledger.charge(first, DOUBLING).may_release
    with pytest.raises(LedgerConflict):
        ledger.charge(charge("0.5", key=first.key), DOUBLING)
    tamper(url, "ALTER TABLE takifugu_head RENAME TO takifugu_elsewhere")
    with pytest.raises(LedgerError):
        ledger.charge(first, DOUBLING)
    tamper(url, "ALTER TABLE takifugu_elsewhere RENAME TO takifugu_head")
    assert not ledger.charge(first, DOUBLING).may_release


def test_another_analysts_answer_costs_the_reader_and_not_the_whole(ledger: Ledger) -> None:
    ledger.set_budget("ward", 1, analyst="bob")
    ledger.set_budget("ward", 10, analyst="ana")
    hers = charge("0.25", analyst="ana")
    ledger.record_answer(ledger.charge(hers, DOUBLING), 7)
    his = charge("0.25", analyst="bob")
    assert ledger.lookup(his) is None
    answer = ledger.reuse(his, DOUBLING)
    assert answer is not None and answer.value == 7 and ledger.lookup(his) == answer
    assert ledger.reuse(charge("0.25", analyst="bob"), DOUBLING) == answer
    assert ledger.spent("ward", DOUBLING) == 0.5
    assert ledger.spent("ward", DOUBLING, analyst="bob") == 0.5
    dear = charge("0.5", analyst="ana")
    ledger.record_answer(ledger.charge(dear, DOUBLING), 8)
    with raises(BudgetExceeded, analyst="bob"):
        ledger.reuse(charge("0.5", analyst="bob"), DOUBLING)
    assert ledger.reuse(charge("0.75", analyst="bob"), DOUBLING) is None
    assert ledger.verify().sound


# --- processes ---


def test_processes_together_never_overspend(ledger: Ledger, url: str) -> None:
    workers = [worker("charge", url, "1/64", "24") for _ in range(4)]
    lines = [line for one in workers for line in one.communicate()[0].split()]
    assert all(one.returncode == 0 for one in workers)
    keys = {line for line in lines if line != "refused"}
    assert len(lines) == 96 and len(keys) == 64 and paid(ledger) == keys
    assert ledger.spent("ward", DOUBLING) == 2 and ledger.verify().sound


def test_kill_minus_9_loses_nothing_that_was_acknowledged(ledger: Ledger, url: str) -> None:
    ledger.set_budget("ward", 1)
    crashing = worker("crash", url, "1/256", "16", "2", "1")
    lines = crashing.communicate()[0].split()
    assert crashing.returncode == 0
    keys = set(lines) - {"refused"}
    assert keys and keys <= paid(ledger)
    assert len(paid(ledger)) <= 128 and ledger.spent("ward", DOUBLING) <= 1
    assert ledger.spent("ward", DOUBLING) == len(paid(ledger)) / 128
    assert ledger.verify().sound
