"""What every backend of the ledger does when it is opened, and when it is read at once.

For the fixtures see `tests.contracts.ledger`.
"""

from contextlib import AbstractContextManager
from dataclasses import replace
from fractions import Fraction

import pytest

from takifugu.errors import (
    BudgetExceeded,
    LedgerUnavailable,
    LedgerUnwritable,
    NewerLedger,
    NotAccepted,
    NotALedger,
    UnknownAnalyst,
)
from takifugu.ledger import Ledger, Terms
from takifugu.ledger.account import Book
from takifugu.ledger.limits import Limit, Limits
from takifugu.ledger.storage.database import Connection, Statement, Store
from takifugu.translation.protocol import LossTranslation
from tests.contracts.ledger import Opener, paid, tamper
from tests.ledger.charges import DOUBLING, charge
from tests.raising import raises

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


def test_what_is_read_in_one_moment_is_one_read(
    ledger: Ledger, url: str, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, unguarded = [], Store.unguarded

    def counted(store: Store) -> AbstractContextManager[Connection]:
        begun.append(store)
        return unguarded(store)

    other, mine = opened(url), charge("0.25", data="k:a#1")
    ledger.data_state("ward", "k:a")
    monkeypatch.setattr(Store, "unguarded", counted)
    with ledger.one_moment():
        with ledger.one_moment():
            assert ledger.data_state("ward", "k:a") == "k:a#1"
        before = ledger.quote(mine, DOUBLING)
        other.charge(mine, DOUBLING)
        assert ledger.quote(mine, DOUBLING) == before and before.last is None
        ledger.lookup(mine)
        assert len([store for store in begun if store is ledger._store]) == 1
        ledger.set_budget("ward", "1.5")  # whoever writes sees all that is there then
        seen = ledger.quote(mine, DOUBLING)
        assert seen.last is not None and seen.snapshot.whole is not None
        assert seen.snapshot.whole.epsilon == Fraction(3, 2)
        assert ledger.data_state("ward", "k:b") == "k:b#2" != ledger.data_state("ward", "k:a")
    assert ledger.quote(mine, DOUBLING) != before


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


# --- states of the data ---


def test_a_state_of_the_data_is_numbered_when_it_is_seen_and_never_comes_back(
    ledger: Ledger, url: str, opened: Opener
) -> None:
    other = opened(url)
    first = ledger.data_state("ward", "k:a")
    assert first == other.data_state("ward", "k:a") == opened(url).data_state("ward", "k:a")
    second, third = other.data_state("ward", "k:b"), ledger.data_state("ward", "k:a")
    assert third == other.data_state("ward", "k:a")
    assert [first, second, third] == ["k:a#1", "k:b#2", "k:a#3"]
    assert ledger.data_state("annex", "k:a") == "k:a#1"
    assert ledger.verify().sound


def test_a_state_that_was_charged_before_states_had_numbers_is_still_the_same(
    ledger: Ledger,
) -> None:
    before = replace(charge("0.25"), data="k:a")
    ledger.record_answer(ledger.charge(before, DOUBLING), 7)
    again = replace(before, data=ledger.data_state("ward", "k:a"))
    found = ledger.lookup(again)
    assert found is not None and found.value == 7
    assert [ledger.data_state("ward", mark) for mark in ("k:b", "k:a")] == ["k:b#1", "k:a#2"]
