"""What every backend of the ledger has to keep. One suite; `tests/ledger` runs it on each.

The fixtures: ``url``, the address of a ledger that does not exist yet; ``opened``, which opens one
and closes it after the test; ``ledger``, with a budget of 2 for the dataset "ward".
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from math import inf
from pathlib import Path

import pytest

import takifugu
from takifugu.errors import (
    BudgetExceeded,
    InvalidCharge,
    LedgerConflict,
    LedgerDamaged,
    LedgerError,
    LedgerSetBack,
    LedgerUnavailable,
    LedgerUnwritable,
    NewerLedger,
    NoBudget,
    NotAccepted,
    NotALedger,
    UnknownAnalyst,
    UnsoundRequest,
)
from takifugu.ledger import Anchor, Groups, Ledger, Terms, Window
from takifugu.ledger.accounts.account import Book, Books
from takifugu.ledger.accounts.limits import Limit, Limits
from takifugu.ledger.storage.statement import Connection, Statement
from takifugu.ledger.storage.store import Store
from takifugu.losses import Approximate, Concentrated, Total
from takifugu.translation.protocol import LossTranslation
from tests.ledger.charges import DOUBLING, IDENTITY, RICH, Identity, charge
from tests.oracles.digests import root as oracle_root
from tests.raising import raises

Opener = Callable[..., Ledger]
ROOT = Path(takifugu.__file__).parents[2]


def tamper(url: str, *statements: str) -> None:
    """Change the storage behind the ledger's back."""
    store = Store(url, read_only=False, wait=5)
    with store.writing() as connection:
        for statement in statements:
            connection.raw.execute(statement)
    store.close()


def worker(*arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(  # noqa: S603 - our own interpreter and arguments
        [sys.executable, "-m", "tests.ledger.worker", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
    )


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
    ledger: Ledger, url: str, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, enter = charge("0.25"), Ledger._enter

    def lost(self: Ledger, *arguments: object) -> None:
        enter(self, *arguments)  # type: ignore[arg-type]
        raise LedgerUnavailable("the connection broke after the commit")

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "_enter", lost)
        with pytest.raises(LedgerUnavailable):
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
    tamper(url, "ALTER TABLE takifugu_head RENAME TO elsewhere")
    with pytest.raises(LedgerError):
        ledger.charge(first, DOUBLING)
    tamper(url, "ALTER TABLE elsewhere RENAME TO takifugu_head")
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


# --- the chain ---


def test_events_are_in_order_whatever_the_clock_says(url: str, opened: Opener) -> None:
    times = iter(datetime(2026, 1, 9, tzinfo=UTC) - timedelta(days=d) for d in range(99))
    ledger = opened(url, clock=lambda: next(times))
    ledger.set_budget("ward", 2)
    ledger.charge(charge("0.25"), DOUBLING)
    events = list(ledger.history())
    assert [e.seq for e in events] == [1, 2, 3] and events[2].at < events[0].at
    assert "clock_behind" not in events[0].body
    assert events[2].body["clock_behind"].endswith(" days, 0:00:00")
    assert ledger.verify().sound


def test_history_is_filtered_and_limited(ledger: Ledger) -> None:
    ledger.charge(charge("0.25", analyst="ana"), DOUBLING)
    ledger.charge(charge("0.25"), DOUBLING)
    assert [e.kind for e in ledger.history()] == ["created", "budget", "charge", "charge"]
    assert [e.seq for e in ledger.history("ward", analyst="ana")] == [3]
    assert [e.seq for e in ledger.history(last=2)] == [3, 4]


@pytest.mark.parametrize(
    ("change", "reason", "event"),
    [
        ("UPDATE takifugu_events SET body = replace(body, '\"1/4\"', '\"1/8\"') WHERE seq = 3",
         "edited", 3),
        ("DELETE FROM takifugu_events WHERE seq = 3", "missing", 3),
        ("DELETE FROM takifugu_events WHERE seq = 5", "head", 5),
        ("UPDATE takifugu_events SET dataset = 'other' WHERE seq = 3", "filed", 3),
        ("UPDATE takifugu_events SET key = 'other' WHERE seq = 4", "filed", 4),
        ("UPDATE takifugu_events SET hash = 'x' WHERE seq = 4", "edited", 4),
        ("UPDATE takifugu_head SET seq = 4", "head", 4),
        ("UPDATE takifugu_events SET body = 'x' WHERE seq = 3", "unreadable", 3),
        ("UPDATE takifugu_accounts SET worst = '0 0 0'", "totals", None),
        ("UPDATE takifugu_accounts SET epsilon = '99'", "budget", None),
        ("UPDATE takifugu_accounts SET worst = 'many'", "totals", None),
        ("UPDATE takifugu_segments SET base = '0 0 0'", "segments", None),
        ("DELETE FROM takifugu_cells", "segments", None),
        ("DELETE FROM takifugu_accounts", "account", None),
    ],
)  # fmt: skip
def test_verify_finds(
    ledger: Ledger, url: str, change: str, reason: str, event: int | None
) -> None:
    for window, groups in [((0, 5), None), ((2, 9), None), ((0, 5), ["fr"])]:
        ledger.charge(charge("0.25", window, groups), DOUBLING)
    assert ledger.verify().sound
    tamper(url, change)
    report = ledger.verify()
    assert not report.sound
    assert (reason, event) in {(problem.reason, problem.event) for problem in report.problems}


def test_verify_finds_a_change_of_order(ledger: Ledger, url: str) -> None:
    for _ in range(3):
        ledger.charge(charge("0.25"), DOUBLING)
    tamper(
        url,
        "UPDATE takifugu_events SET seq = 99 WHERE seq = 3",
        "UPDATE takifugu_events SET seq = 3 WHERE seq = 4",
        "UPDATE takifugu_events SET seq = 4 WHERE seq = 99",
    )
    found = {(problem.reason, problem.event) for problem in ledger.verify().problems}
    assert ("edited", 3) in found


def test_a_clean_rollback_is_seen_by_the_witness_and_against_an_anchor(
    ledger: Ledger, url: str, opened: Opener
) -> None:
    before = ledger.head()
    noted = ledger.charge(charge("0.25"), DOUBLING).anchor
    tamper(
        url,
        f"DELETE FROM takifugu_events WHERE seq = {noted.seq}",  # noqa: S608
        f"UPDATE takifugu_head SET seq = {before.seq}, hash = '{before.hash}'",  # noqa: S608
    )
    with raises(LedgerSetBack, reason="older"):
        ledger.rebuild()
    unseen = opened(url, witness=False)
    unseen.rebuild()
    assert unseen.verify().sound and unseen.verify(before).sound
    report = unseen.verify(noted)
    assert not report.sound and report.problems[0].reason == "anchor"
    assert not unseen.verify(Anchor(1, "0" * 64)).sound
    report = ledger.verify()
    assert report.witness == noted and report.problems[0].reason == "older"
    with raises(LedgerSetBack, reason="older"):
        opened(url)


def test_totals_are_rebuilt_from_the_events(ledger: Ledger, url: str) -> None:
    ledger.charge(charge("0.25", (0, 5), ["fr"], analyst="ana"), DOUBLING)
    ledger.charge(charge("0.5", (3, 9), ["fr", "de"]), DOUBLING)
    tamper(url, "UPDATE takifugu_accounts SET worst = 'many', always = 'none'")
    with raises(LedgerDamaged, reason="totals"):
        ledger.charge(charge("0.01"), DOUBLING)
    ledger.rebuild()
    assert ledger.verify().sound and ledger.spent("ward", DOUBLING) == 1.5


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE takifugu_accounts SET worst = 'many'",
        "UPDATE takifugu_accounts SET always = '1/0 0 0'",
        "UPDATE takifugu_accounts SET always = '-1 0 0'",
        "UPDATE takifugu_accounts SET epsilon = 'plenty'",
        "UPDATE takifugu_accounts SET partition = 'x'",
        "UPDATE takifugu_segments SET base = ''",
        "UPDATE takifugu_segments SET peak = '0 0'",
        "DELETE FROM takifugu_segments",
        "UPDATE takifugu_cells SET own = '1 2 3 4'",
        "DELETE FROM takifugu_head",
    ],
)
def test_a_row_that_cannot_be_read_gives_no_receipt(ledger: Ledger, url: str, damage: str) -> None:
    ledger.charge(charge("0.25", (0, 5), ["fr"]), DOUBLING)
    written = [event.hash for event in ledger.history()]
    tamper(url, damage)
    with pytest.raises(LedgerDamaged):
        ledger.charge(charge("0.01", (0, 5), ["fr"]), DOUBLING)
    assert [event.hash for event in ledger.history()] == written


def edits() -> list[str]:
    """Changes of derived rows that a charge on window (0, 5) and group "fr" depends on."""
    return [
        "UPDATE takifugu_accounts SET epsilon = '1000'",
        "UPDATE takifugu_accounts SET delta = '1/2'",
        "UPDATE takifugu_accounts SET always = '0 0 0', worst = '0 0 0'",
        "UPDATE takifugu_accounts SET worst = '0 0 0'",
        "UPDATE takifugu_accounts SET partition = NULL",
        "UPDATE takifugu_accounts SET unit = NULL",
        "UPDATE takifugu_accounts SET lost = '0 0 0'",
        "DELETE FROM takifugu_accounts WHERE analyst = 'ana'",
        "UPDATE takifugu_accounts SET id = id + 5",
        "UPDATE takifugu_segments SET base = '0 0 0'",
        "UPDATE takifugu_segments SET peak = '0 0 0'",
        'UPDATE takifugu_segments SET "end" = "end" + 1 WHERE start = 0',
        "DELETE FROM takifugu_segments WHERE start = 2",
        "UPDATE takifugu_segments SET cells = '' WHERE start = 2",
        'INSERT INTO takifugu_segments SELECT account, 1, "end", base, peak, cells'
        " FROM takifugu_segments WHERE start = 0",
        "UPDATE takifugu_cells SET own = '0 0 0'",
        "UPDATE takifugu_cells SET own = '1/8 0 0' WHERE start = 2",
        "DELETE FROM takifugu_cells",
        "DELETE FROM takifugu_cells WHERE start = 2 AND account = 1",
        "UPDATE takifugu_cells SET cell = '[\"xx\"]'",
        "UPDATE takifugu_digests SET path = path || 'f'",
        "DELETE FROM takifugu_digests",
    ]


def charged_twice(ledger: Ledger) -> None:
    ledger.charge(charge("0.25", (0, 5), ["fr"], analyst="ana"), DOUBLING)
    ledger.charge(charge("0.125", (2, 9)), DOUBLING)
    ledger.charge(charge("0.125", (2, 4), ["fr"], analyst="ana"), DOUBLING)


@pytest.mark.parametrize("edit", edits())
def test_a_total_that_was_edited_releases_nothing(ledger: Ledger, url: str, edit: str) -> None:
    charged_twice(ledger)
    written = [event.hash for event in ledger.history()]
    tamper(url, edit)
    with raises(LedgerDamaged, reason="totals"):
        ledger.charge(charge("0.01", (0, 5), ["fr"], analyst="ana"), DOUBLING)
    with pytest.raises(LedgerDamaged):  # nor does a plan see other numbers
        ledger.remaining(
            "ward",
            DOUBLING,
            analyst="ana",
            window=Window(0, 5),
            groups=Groups(["country"], [("fr",)]),
        )
    assert [event.hash for event in ledger.history()] == written
    assert not ledger.verify().sound
    ledger.rebuild()
    assert ledger.verify().sound
    ledger.charge(charge("0.01", (0, 5), ["fr"], analyst="ana"), DOUBLING)


@pytest.mark.parametrize(
    "added",
    [
        "INSERT INTO takifugu_cells VALUES (1, 0, '[\"de\"]', '0 0 0')",
        "INSERT INTO takifugu_accounts (id, dataset, analyst, epsilon, delta, always, worst)"
        " VALUES (9, 'ward', 'eve', '9', '0', '0 0 0', '0 0 0')",
    ],
)
def test_a_row_that_was_added_releases_nothing(ledger: Ledger, url: str, added: str) -> None:
    charged_twice(ledger)
    tamper(url, added)
    with raises(LedgerDamaged, reason="totals"):
        ledger.charge(charge("0.01", (0, 5), ["de"], analyst="eve"), DOUBLING)
    assert not ledger.verify().sound


def test_totals_that_were_right_once_release_nothing_later(ledger: Ledger, url: str) -> None:
    ledger.charge(charge("0.25", (0, 5), ["fr"]), DOUBLING)
    names = ("accounts", "segments", "cells", "digests")
    tamper(url, *(f"CREATE TABLE kept_{n} AS SELECT * FROM takifugu_{n}" for n in names))  # noqa: S608
    ledger.charge(charge("0.25", (0, 5), ["fr"]), DOUBLING)
    for put_back in (names[:3], names[3:]):  # without its digests, then with them
        tamper(
            url,
            *(f"DELETE FROM takifugu_{n}" for n in put_back),  # noqa: S608
            *(f"INSERT INTO takifugu_{n} SELECT * FROM kept_{n}" for n in put_back),  # noqa: S608
        )
        with raises(LedgerDamaged, reason="totals"):
            ledger.charge(charge("0.25", (0, 5), ["fr"]), DOUBLING)
    tamper(url, *(f"DROP TABLE kept_{n}" for n in names))


def test_every_event_names_the_totals_that_a_replay_gives(ledger: Ledger) -> None:
    charged_twice(ledger)
    ledger.record_answer(ledger.charge(charge("0.01", analyst="bob"), DOUBLING), 3)
    ledger.set_partition("other", ("age", "zone"))
    many = [f"k{n}" for n in range(400)]  # beyond what one leaf holds, and one at a time
    ledger.charge(charge("0.01", (1, 3), many), DOUBLING)
    ledger.charge(charge("0.01", (1, 2), ["k7", "new"]), DOUBLING)
    books = Books()
    for event in ledger.history():
        books.apply(event.body)
        assert event.body["totals"] == oracle_root(books), event.seq
    assert ledger.verify().sound


def test_an_edited_answer_is_not_given_out(ledger: Ledger, url: str) -> None:
    ledger.record_answer(ledger.charge(charge("0.25"), DOUBLING), {"count": 41})
    tamper(url, "UPDATE takifugu_events SET body = replace(body, '41', '42')")
    with raises(LedgerDamaged, reason="edited"):
        ledger.lookup(charge("0.25"))


def test_a_head_that_was_set_back_cannot_be_written_over(
    ledger: Ledger, url: str, opened: Opener
) -> None:
    before = ledger.head()
    ledger.charge(charge("0.25"), DOUBLING)
    tamper(url, f"UPDATE takifugu_head SET seq = {before.seq}, hash = '{before.hash}'")  # noqa: S608
    with pytest.raises(LedgerSetBack):
        ledger.charge(charge("0.25"), DOUBLING)
    with pytest.raises(LedgerDamaged):
        opened(url, witness=False).charge(charge("0.25"), DOUBLING)


def test_an_export_holds_the_chain(ledger: Ledger, tmp_path: Path) -> None:
    import hashlib

    ledger.record_answer(ledger.charge(charge("0.25", (0, 5), ["é"]), DOUBLING), [0.1, "é"])
    target = tmp_path / "events.jsonl"
    assert ledger.export(target) == 4
    previous = "0" * 64
    for line in target.read_text(encoding="ascii").splitlines():
        event = json.loads(line)
        body = json.dumps(event["body"], sort_keys=True, separators=(",", ":"))
        previous = hashlib.sha256(f"{previous}\n{body}".encode()).hexdigest()
        assert event["hash"] == previous
    assert ledger.head().hash == previous and list(tmp_path.iterdir()) == [target]


# --- opening ---


def test_a_ledger_of_a_later_version_is_refused(ledger: Ledger, url: str, opened: Opener) -> None:
    tamper(url, "INSERT INTO takifugu_migrations VALUES (99, '0099 of the future')")
    with raises(NewerLedger, field="0099 of the future"):
        opened(url)
    assert ledger.verify().sound


def test_an_older_ledger_is_migrated_and_its_events_stay(
    ledger: Ledger, url: str, opened: Opener
) -> None:
    ledger.charge(charge("0.25", (0, 5), ["fr"], analyst="ana"), DOUBLING)
    head = ledger.head()
    ledger.close()
    tamper(
        url,
        "DROP TABLE takifugu_accounts",
        "DROP TABLE takifugu_segments",
        "DROP TABLE takifugu_cells",
        "DROP TABLE takifugu_digests",
        "DROP INDEX takifugu_events_of",
        "DELETE FROM takifugu_migrations WHERE place >= 2",
    )
    with raises(LedgerUnwritable, reason="migration"):
        opened(url, read_only=True)
    again = opened(url)
    assert again.head() == head and again.verify(head).sound
    assert again.spent("ward", DOUBLING, analyst="ana") == 0.5


def test_read_only_reads_and_refuses_to_write(ledger: Ledger, url: str, opened: Opener) -> None:
    ledger.charge(charge("0.25"), DOUBLING)
    reader = opened(url, read_only=True)
    assert reader.spent("ward", DOUBLING) == 0.5 and reader.verify().sound
    with pytest.raises(LedgerUnwritable):
        reader.charge(charge("0.25"), DOUBLING)
    assert ledger.spent("ward", DOUBLING) == 0.5


def test_no_ledger_is_made_where_one_should_be(url: str, opened: Opener) -> None:
    for options in ({"create": False}, {"read_only": True}):
        with pytest.raises(NotALedger):
            opened(url, **options)


def test_a_locked_ledger_is_waited_for_and_then_given_up(
    ledger: Ledger, url: str, opened: Opener
) -> None:
    holder = Store(url, read_only=False, wait=5)
    impatient = opened(url, wait=0.1)
    with holder.writing() as connection:
        Statement("UPDATE takifugu_head SET at = at").run(connection, {})
        with raises(LedgerUnavailable, reason="locked"):
            impatient.charge(charge("0.25"), DOUBLING)
        assert impatient.spent("ward", DOUBLING) == 0
    holder.close()
    impatient.charge(charge("0.25"), DOUBLING)
    assert ledger.spent("ward", DOUBLING) == 0.5


# --- one consistent read ---


def test_a_quote_is_what_the_charge_then_finds(ledger: Ledger) -> None:
    ledger.set_budget("ward", 1, analyst="ana")
    ledger.charge(charge("0.25", (0, 5), analyst="ana"), DOUBLING)
    for amount, fits in (("0.2", True), ("0.3", False)):
        first = charge(amount, (3, 9), analyst="ana")
        quote = ledger.quote(first, DOUBLING)
        assert [one.analyst for one in quote.standings] == [None, "ana"]
        assert all(one.admits(first.loss) for one in quote.standings) == fits
        assert min(one.room(first.loss) for one in quote.standings) == ledger.remaining(
            "ward", DOUBLING, analyst="ana", window=first.window
        )
        assert [one.spent for one in quote.standings] == [
            ledger.spent("ward", DOUBLING, analyst=who) for who in (None, "ana")
        ]
        if not fits:
            with raises(BudgetExceeded, analyst="ana"):
                ledger.charge(first, DOUBLING)
            continue
        after = [one.spent_after(first.loss) for one in quote.standings]
        ledger.charge(first, DOUBLING)
        assert after == [ledger.spent("ward", DOUBLING, analyst=who) for who in (None, "ana")]


def test_a_quote_knows_stored_answers_and_the_last_charge(ledger: Ledger) -> None:
    for who in ("ana", "bob"):
        ledger.set_budget("ward", 1, analyst=who)
    mine, theirs = charge("0.25", analyst="ana"), charge("0.25", analyst="bob")
    before = ledger.quote(mine, DOUBLING)
    assert (before.answer, before.shared, before.reuse, before.last) == (None, False, False, None)
    receipt = ledger.charge(mine, DOUBLING)
    ledger.record_answer(receipt, [7])
    again, other = ledger.quote(mine, DOUBLING), ledger.quote(theirs, DOUBLING)
    assert again.answer is not None and again.answer.value == [7] and not again.reuse
    assert other.answer is None and other.shared and other.reuse
    assert other.last is not None and other.last.seq == receipt.anchor.seq


def test_an_old_snapshot_decides_nothing(ledger: Ledger, url: str, opened: Opener) -> None:
    """What changes after a snapshot was taken is checked again by the charge itself."""
    ledger.charge(charge("0.1"), DOUBLING)
    terms, cells = Terms("prior", "secrets"), charge("0.1").cells
    seen = ledger.snapshot("ward", cells=cells)
    seen.refuse(terms, None)
    owner = opened(url)
    owner.accept(Terms("new prior", "secrets"), owner.review("ward", DOUBLING))
    seen.refuse(terms, None)
    with raises(NotAccepted, changed=("prior",)):
        ledger.charge(charge("0.1"), DOUBLING)
    owner.set_budget("ward", 1, analyst="ana")
    with raises(UnknownAnalyst, analyst=None):
        ledger.charge(charge("0.1", prior="new prior"), DOUBLING)
    owner.set_budget("ward", "0.1")
    mine = charge("0.1", prior="new prior", analyst="ana")
    quote = ledger.quote(mine, DOUBLING)
    assert not all(one.admits(mine.loss) for one in quote.standings)
    with raises(BudgetExceeded, analyst=None, left=0):
        ledger.charge(mine, DOUBLING)


def test_a_snapshot_and_a_quote_are_one_transaction_each(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, unguarded = [], Store.unguarded

    def counted(store: Store) -> AbstractContextManager[Connection]:
        begun.append(store)
        return unguarded(store)

    monkeypatch.setattr(Store, "unguarded", counted)
    ledger.snapshot("ward", analyst="ana", cells=charge("0.1").cells)
    assert len(begun) == 1
    ledger.quote(charge("0.1", (0, 5), ["fr"], analyst="ana"), DOUBLING)
    assert len(begun) == 2


def test_a_limit_that_another_thread_drops_from_the_cache_is_not_skipped(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = Limits.known

    def dropping(limits: Limits, translation: LossTranslation, book: Book) -> Limit | None:
        found = known(limits, translation, book)
        if found is not None:
            limits._known.clear()
        return found

    monkeypatch.setattr(Limits, "known", dropping)
    with raises(BudgetExceeded, dataset="ward", left=1):
        ledger.charge(charge(2), DOUBLING)
    assert not paid(ledger)
