"""What every backend keeps of charges that may be resumed: one charge, one answer, ever.

One suite; `tests/ledger` runs it on each backend, with the fixtures of `tests.contracts.ledger`.
"""

import random
import signal
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from takifugu.errors import BudgetExceeded, LedgerConflict, LedgerError, LedgerUnavailable
from takifugu.ledger import Ledger, Receipt
from takifugu.ledger.event_documents import event_words
from takifugu.ledger.events.stored_answers import request_key
from tests.contracts.ledger import Opener, acknowledgements_lost, paid, tamper, worker
from tests.ledger.charges import DOUBLING, charge
from tests.raising import raises


def answers(ledger: Ledger) -> list[object]:
    return [event.body["answer"] for event in ledger.history(kind="answer")]


@pytest.mark.parametrize("where", ["charged", "drawn"])
def test_kill_minus_9_between_charge_and_answer_costs_one_charge(
    ledger: Ledger, url: str, where: str
) -> None:
    for _ in range(2):
        killed = worker("resume", url, "1/4", "request", where)
        assert killed.communicate()[0] == "" and killed.returncode == -signal.SIGKILL
        assert paid(ledger) == {"request"} and not answers(ledger)
    first = worker("resume", url, "1/4", "request", "")
    shown = int(first.communicate()[0])
    again = worker("resume", url, "1/4", "request", "")
    assert int(again.communicate()[0]) == shown
    assert answers(ledger) == [shown] and paid(ledger) == {"request"}
    assert ledger.spent("ward", DOUBLING) == 0.5 and ledger.verify().sound


def test_processes_that_resume_at_once_return_one_answer(ledger: Ledger, url: str) -> None:
    killed = worker("resume", url, "1/4", "request", "drawn")
    killed.communicate()
    workers = [worker("resume", url, "1/4", "request", "ready") for _ in range(4)]
    for one in workers:
        assert one.stdout is not None and one.stdout.readline() == "ready\n"
    for one in workers:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    shown = {int(one.communicate()[0]) for one in workers}
    assert all(one.returncode == 0 for one in workers) and len(shown) == 1
    assert answers(ledger) == list(shown) and paid(ledger) == {"request"}
    assert ledger.spent("ward", DOUBLING) == 0.5 and ledger.verify().sound


def test_kill_minus_9_at_random_shows_one_answer_for_each_key(ledger: Ledger, url: str) -> None:
    ledger.set_budget("ward", 10**6)
    killing = worker("again", url, "1/256", "12", "3", "1", "4")
    lines = killing.communicate()[0].splitlines()
    assert killing.returncode == 0
    seen: dict[str, set[int]] = {}
    for line in lines:
        key, value = line.split()
        seen.setdefault(key, set()).add(int(value))
    assert len(seen) >= 4 and all(len(values) == 1 for values in seen.values())
    charged = [event.body["key"] for event in ledger.history(kind="charge")]
    assert len(charged) == len(set(charged)) and set(seen) <= set(charged)
    stored = {
        charged_key(ledger, event.body["charge"]): event.body["answer"]
        for event in ledger.history(kind="answer")
    }
    assert all(values == {stored[key]} for key, values in seen.items())
    assert ledger.spent("ward", DOUBLING) == len(charged) / 128 and ledger.verify().sound


def charged_key(ledger: Ledger, number: int) -> str:
    event = ledger.event(number)
    assert event is not None
    return str(event.body["key"])


def test_the_second_of_two_draws_is_dropped(ledger: Ledger, url: str, opened: Opener) -> None:
    wanted = charge("0.25")
    first = ledger.charge(wanted, DOUBLING, resume=True)
    second = opened(url).charge(wanted, DOUBLING, resume=True)
    assert first.may_release and second.may_release and first.anchor == second.anchor
    stored = ledger.record_answer(second, "two")
    assert stored.value == "two"
    assert ledger.record_answer(first, "one") == stored and answers(ledger) == ["two"]
    third = ledger.charge(wanted, DOUBLING, resume=True)
    assert not third.may_release  # there is an answer
    earlier = ledger.earlier(wanted)
    assert earlier is not None and earlier.answer == stored
    with raises(LedgerConflict, reason="receipt"):
        ledger.record_answer(third, "three")


def test_a_charge_that_was_not_made_to_be_resumed_never_is(
    ledger: Ledger, url: str, opened: Opener
) -> None:
    wanted = charge("0.25")
    receipt = ledger.charge(wanted, DOUBLING)
    assert receipt.may_release and not receipt.resumable
    again = opened(url).charge(wanted, DOUBLING, resume=True)
    assert not again.may_release and not again.resumable and again.anchor == receipt.anchor
    earlier = ledger.earlier(wanted)
    assert earlier is not None and not earlier.receipt.may_release and earlier.answer is None
    forged = replace(receipt, resumable=True)
    with raises(LedgerConflict, reason="receipt"):
        ledger.record_answer(forged, 1)
    ledger.record_answer(receipt, 1)
    with raises(LedgerConflict, reason="answer"):
        ledger.record_answer(receipt, 2)


def test_without_asking_for_it_nothing_is_resumed(ledger: Ledger) -> None:
    wanted = charge("0.25")
    ledger.charge(wanted, DOUBLING, resume=True)
    assert not ledger.charge(wanted, DOUBLING).may_release


def test_another_charge_under_the_same_key_is_refused(ledger: Ledger) -> None:
    first = charge("0.25", key="request")
    ledger.charge(first, DOUBLING, resume=True)
    for other in (
        charge("0.5", key="request"),
        charge("0.25", key="request", analyst="ana"),
        charge("0.25", key="request", data="newer"),
        charge("0.25", (0, 3), key="request"),
        charge("0.25", key="request", query={"name": "other"}),
        charge("0.25", key="request", approval=2),
    ):
        with raises(LedgerConflict, reason="key"):
            ledger.charge(other, DOUBLING, resume=True)
        with raises(LedgerConflict, reason="key"):
            ledger.earlier(other)
    assert ledger.earlier(charge("0.25")) is None
    assert len(paid(ledger)) == 1 and ledger.verify().sound


def test_an_abandoned_charge_is_spent_and_never_answered(
    ledger: Ledger, url: str, opened: Opener
) -> None:
    wanted, other = charge("0.25"), opened(url)
    mine = ledger.charge(wanted, DOUBLING, resume=True)
    theirs = other.charge(wanted, DOUBLING, resume=True)
    ledger.abandon(mine)
    ledger.abandon(mine)
    assert not other.charge(wanted, DOUBLING, resume=True).may_release
    for receipt in (mine, theirs):
        with raises(LedgerConflict, reason="abandoned"):
            other.record_answer(receipt, 1)
    (event,) = ledger.events(kind="abandoned")
    assert event_words(event.body) == (
        f"answer to event {mine.anchor.seq} abandoned by {ledger.actor}"
    )
    assert ledger.spent("ward", DOUBLING) == 0.5 and not answers(ledger)
    assert ledger.verify().sound


def test_what_is_abandoned_without_a_ledger_is_not_resumed_here(ledger: Ledger, url: str) -> None:
    wanted = charge("0.25")
    receipt = ledger.charge(wanted, DOUBLING, resume=True)
    tamper(url, "ALTER TABLE takifugu_head RENAME TO takifugu_elsewhere")
    with pytest.raises(LedgerError):
        ledger.abandon(receipt)
    tamper(url, "ALTER TABLE takifugu_elsewhere RENAME TO takifugu_head")
    assert not ledger.charge(wanted, DOUBLING, resume=True).may_release
    assert not ledger.acting("ana").charge(wanted, DOUBLING, resume=True).may_release


def test_an_answer_has_the_time_of_its_charge(url: str, opened: Opener) -> None:
    """Whoever reads the ledger does not learn how long counting and drawing took."""
    times = (datetime(2026, 1, 9, tzinfo=UTC) + timedelta(days=d) for d in range(99))
    ledger = opened(url, clock=lambda: next(times))
    ledger.set_budget("ward", 2)
    receipts = [
        ledger.charge(charge("1/16", key=f"k{n}", query={"n": n}), DOUBLING, resume=True)
        for n in range(4)
    ]
    assert len({receipt.at for receipt in receipts}) == 4
    found = ledger.record_answer(receipts[1], 7)
    ledger.abandon(receipts[0])
    ledger.set_budget("ward", 3)
    assert found.at == receipts[1].at
    *_, answer, abandoned, budget = ledger.history()
    assert (answer.kind, answer.at) == ("answer", receipts[1].at)
    assert (abandoned.kind, abandoned.at) == ("abandoned", receipts[0].at)
    assert budget.at > receipts[3].at
    assert not any("clock_behind" in event.body for event in ledger.history())
    assert ledger.verify().sound


def test_an_answer_that_is_recorded_cannot_be_abandoned(ledger: Ledger) -> None:
    wanted = charge("0.25")
    receipt = ledger.charge(wanted, DOUBLING, resume=True)
    stored = ledger.record_answer(receipt, 1)
    ledger.abandon(receipt)
    earlier = ledger.earlier(wanted)
    assert earlier is not None and earlier.answer == stored and not ledger.events(kind="abandoned")


def test_a_lost_acknowledgement_is_resumed_by_anybody(
    ledger: Ledger, url: str, opened: Opener
) -> None:
    first = charge("0.25")
    with acknowledgements_lost(), pytest.raises(LedgerUnavailable):
        ledger.charge(first, DOUBLING, resume=True)
    assert opened(url).charge(first, DOUBLING, resume=True).may_release
    assert ledger.charge(first, DOUBLING, resume=True).may_release
    assert ledger.spent("ward", DOUBLING) == 0.5


def test_a_resumed_charge_needs_no_more_budget(ledger: Ledger) -> None:
    wanted = charge(1)
    ledger.charge(wanted, DOUBLING, resume=True)
    with pytest.raises(BudgetExceeded):
        ledger.charge(charge("0.01"), DOUBLING)
    assert ledger.charge(wanted, DOUBLING, resume=True).may_release


def test_a_reuse_under_a_key_is_found_again(ledger: Ledger) -> None:
    for who in ("ana", "bob"):
        ledger.set_budget("ward", 1, analyst=who)
    ledger.record_answer(ledger.charge(charge("0.25", analyst="ana"), DOUBLING), 7)
    his = charge("0.25", analyst="bob", key="bob's")
    answer = ledger.reuse(his, DOUBLING)
    earlier = ledger.earlier(his)
    assert earlier is not None and earlier.answer == answer and not earlier.receipt.may_release
    assert ledger.spent("ward", DOUBLING, analyst="bob") == 0.5


@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_in_whatever_order_one_answer_is_seen(
    ledger: Ledger, url: str, opened: Opener, seed: int
) -> None:
    """Attempts of several processes, each of which may end at any point, against a plain model."""
    rng = random.Random(seed)  # noqa: S311 - the order of events
    ledgers = [ledger, opened(url), opened(url)]
    wanted = {key: charge("1/64", key=key) for key in ("a", "b", "c")}
    resumable = {"a": True, "b": True, "c": False}
    held: list[tuple[str, int, Receipt]] = []
    charged: set[str] = set()
    stored: dict[str, object] = {}
    abandoned: set[str] = set()
    for step in range(60):
        one = rng.choice(ledgers)
        match rng.choice(("charge", "charge", "record", "die", "abandon")):
            case "charge":
                key = rng.choice("abc")
                receipt = one.charge(wanted[key], DOUBLING, resume=resumable[key])
                free = key not in stored and key not in abandoned
                assert receipt.may_release == (key not in charged or (resumable[key] and free))
                charged.add(key)
                if receipt.may_release:
                    held.append((key, step, receipt))
            case "record" if held:
                key, drawn, receipt = held.pop(rng.randrange(len(held)))
                if key in abandoned:
                    with raises(LedgerConflict, reason="abandoned"):
                        one.record_answer(receipt, drawn)
                    continue
                seen = one.record_answer(receipt, drawn).value
                assert seen == stored.setdefault(key, drawn)
            case "die" if held:
                held.pop(rng.randrange(len(held)))
            case "abandon" if held and rng.random() < 0.3:
                key, _, receipt = held.pop(rng.randrange(len(held)))
                one.abandon(receipt)
                if key not in stored and resumable[key]:
                    abandoned.add(key)
    assert ledger.spent("ward", DOUBLING) == len(charged) / 32
    assert sorted(map(str, answers(ledger))) == sorted(map(str, stored.values()))
    assert ledger.verify().sound


def test_analysts_who_choose_the_same_key_do_not_meet() -> None:
    names = [("ana", "1"), ("bob", "1"), (None, "1"), ("ana", "2"), ("an", "a1")]
    assert len({request_key(*pair) for pair in names}) == len(names)
    assert request_key("ana", "1") == request_key("ana", "1")
