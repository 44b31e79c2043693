"""What every backend of the ledger keeps of its chain: edits, rollbacks and exports.

For the fixtures see `tests.contracts.ledger`.
"""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from takifugu.errors import (
    LedgerDamaged,
    LedgerSetBack,
)
from takifugu.ledger import Anchor, Groups, Ledger, Window
from takifugu.ledger.account import Books
from tests.contracts.ledger import Opener, tamper
from tests.ledger.charges import DOUBLING, charge
from tests.oracles.digests import root as oracle_root
from tests.raising import raises


def test_events_are_in_order_whatever_the_clock_says(url: str, opened: Opener) -> None:
    times = iter(datetime(2026, 1, 9, tzinfo=UTC) - timedelta(days=d) for d in range(99))
    ledger = opened(url, clock=lambda: next(times))
    ledger.set_budget("ward", 2)
    ledger.charge(charge("0.25"), DOUBLING)
    events = list(ledger.history())
    assert [e.seq for e in events] == [1, 2, 3] and events[2].at < events[0].at
    assert "clock_behind" not in events[0].body
    # behind the latest time that any event has seen, which is that of the first
    assert events[2].body["clock_behind"] == str(events[0].at - events[2].at)
    assert ledger.verify().sound


@pytest.mark.parametrize("name", ["\0", "a\0b", "\udcff"])
def test_no_event_has_a_name_that_a_database_cannot_look_for(ledger: Ledger, name: str) -> None:
    for given in ("dataset", "analyst", "kind"):
        assert list(ledger.history(**{given: name})) == []  # type: ignore[arg-type]
        assert ledger.events(**{given: name}) == ()  # type: ignore[arg-type]
    assert not ledger.events(kind=["charge", name])


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
        ("CREATE VIEW takifugu_shown AS SELECT * FROM takifugu_events", "foreign", None),
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


def edits() -> list[str]:
    """Changes of derived rows that a charge on window (0, 5) and group "fr" depends on."""
    return [
        "UPDATE takifugu_accounts SET epsilon = '1000'",
        "UPDATE takifugu_accounts SET epsilon = 'plenty'",
        "UPDATE takifugu_accounts SET delta = '1/2'",
        "UPDATE takifugu_accounts SET always = '0 0 0', worst = '0 0 0'",
        "UPDATE takifugu_accounts SET worst = '0 0 0'",
        "UPDATE takifugu_accounts SET worst = 'many', always = 'none'",
        "UPDATE takifugu_accounts SET always = '1/0 0 0'",
        "UPDATE takifugu_accounts SET always = '-1 0 0'",
        "UPDATE takifugu_accounts SET partition = 'x'",
        "UPDATE takifugu_accounts SET partition = NULL",
        "UPDATE takifugu_accounts SET unit = NULL",
        "UPDATE takifugu_accounts SET lost = '0 0 0'",
        "DELETE FROM takifugu_accounts WHERE analyst = 'ana'",
        "UPDATE takifugu_accounts SET analyst = 'eve' WHERE analyst = 'ana'",
        "UPDATE takifugu_accounts SET id = id + 5",
        "UPDATE takifugu_segments SET base = '0 0 0'",
        "UPDATE takifugu_segments SET base = ''",
        "UPDATE takifugu_segments SET peak = '0 0 0'",
        "UPDATE takifugu_segments SET peak = '0 0'",
        'UPDATE takifugu_segments SET "end" = "end" + 1 WHERE start = 0',
        "DELETE FROM takifugu_segments",
        "DELETE FROM takifugu_segments WHERE start = 0",
        "DELETE FROM takifugu_segments WHERE start = 2",
        "DELETE FROM takifugu_segments WHERE start = 4",
        "UPDATE takifugu_segments SET cells = '' WHERE start = 2",
        'INSERT INTO takifugu_segments SELECT account, 1, "end", base, peak, cells'
        " FROM takifugu_segments WHERE start = 0",
        "UPDATE takifugu_cells SET own = '0 0 0'",
        "UPDATE takifugu_cells SET own = '1 2 3 4'",
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


def test_an_account_that_was_edited_is_not_shown(ledger: Ledger, url: str) -> None:
    charged_twice(ledger)
    assert ledger.positions("ward")
    tamper(url, "UPDATE takifugu_accounts SET epsilon = '1000'")
    with raises(LedgerDamaged, reason="totals"):
        ledger.positions("ward")


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
    tamper(url, *(f"CREATE TABLE takifugu_kept_{n} AS SELECT * FROM takifugu_{n}" for n in names))  # noqa: S608
    ledger.charge(charge("0.25", (0, 5), ["fr"]), DOUBLING)
    for put_back in (names[:3], names[3:]):  # without its digests, then with them
        tamper(
            url,
            *(f"DELETE FROM takifugu_{n}" for n in put_back),  # noqa: S608
            *(f"INSERT INTO takifugu_{n} SELECT * FROM takifugu_kept_{n}" for n in put_back),  # noqa: S608
        )
        with raises(LedgerDamaged, reason="totals"):
            ledger.charge(charge("0.25", (0, 5), ["fr"]), DOUBLING)
    tamper(url, *(f"DROP TABLE takifugu_kept_{n}" for n in names))


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
