"""Ledgers that were written once: they open, mean what they meant, and can be charged further."""

import hashlib
import sqlite3
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from takifugu.costs.losses import Total
from takifugu.ledger import Anchor, Cells, Ledger
from takifugu.ledger.events.event_chain import KINDS
from tests.ledger.charges import DOUBLING, KNOWN, charge, count

Opener = Callable[..., Ledger]
FAMILIES = Cells.of({"source": {"kind": "csv", "path": "ward.csv"}, "entity": "family"})
HEAD = Anchor(34, "e101ad89c68b80820648efb30ef1e4268243916dcbd7eeac6b7a63ae78f946d9")
EXPORT = (
    "a269b5687d4b0a3ba3678c8c248dc254b87e05cd1414d011e8d1b5fff4113ef2"  # of the lines of an export
)
SPENT: dict[str, dict[tuple[str, str | None], float]] = {
    "before_digests": {("ward", None): 1, ("ward", "ana"): 0.5},
    "before_cells": {("ward", None): 0.8125},
    "before_costs": {("ward", None): 0.8125, ("ward", "bob"): 0.8125},
}
FORMS = ("before_digests", "before_cells", "before_costs", "before_scalars", "every_event")


def written(folder: Path, form: str) -> Path:
    """A ledger as the version wrote it that had this form."""
    path = folder / f"{form}.ledger"
    with closing(sqlite3.connect(path)) as raw:
        raw.executescript(Path(__file__).with_name(f"{form}.sql").read_text(encoding="utf-8"))
    return path


@pytest.mark.parametrize("form", FORMS)
def test_a_ledger_of_every_form_replays_to_the_totals_that_it_names(
    folder: Path, opened: Opener, form: str
) -> None:
    path = written(folder, form)
    with closing(sqlite3.connect(path)) as raw:
        events = raw.execute("SELECT seq, hash, body FROM takifugu_events ORDER BY seq").fetchall()
    ledger = opened(path, witness=False)
    assert list(ledger.stored(0, len(events))) == events
    before = ledger.positions()
    assert ledger.verify().sound
    for (dataset, analyst), spent in SPENT.get(form, {}).items():
        assert ledger.spent(dataset, DOUBLING, analyst=analyst) == spent
    ledger.rebuild()
    assert ledger.verify().sound and ledger.positions() == before


def test_totals_of_an_older_form_that_were_edited_become_what_its_events_say(
    folder: Path, opened: Opener
) -> None:
    path = written(folder, "before_digests")
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("UPDATE takifugu_accounts SET epsilon = '1000', worst = '0 0 0'")
    ledger = opened(path, witness=False)
    assert ledger.verify().sound and ledger.spent("ward", DOUBLING) == 1
    assert ledger.positions()[0].epsilon == 2


def test_an_answer_from_before_costs_is_given_and_costs_may_be_charged(
    folder: Path, opened: Opener
) -> None:
    ledger = opened(written(folder, "before_costs"), witness=False)
    again = ledger.lookup(charge("0.25", (0, 5), ["fr"], analyst="ana"))
    assert again is not None and again.value == {"count": 7}
    ledger.charge(charge(count("1/8", "home"), (0, 3), analyst="ana"), DOUBLING)
    assert ledger.spent("ward", DOUBLING) == 1.0625 and ledger.verify().sound


def test_every_kind_of_event_means_what_it_meant(folder: Path, opened: Opener) -> None:
    ledger = opened(written(folder, "every_event"), witness=False)
    assert {event.kind for event in ledger.history()} == set(KINDS) - {"totals"}
    assert ledger.head() == HEAD
    ledger.export(folder / "events")
    assert hashlib.sha256((folder / "events").read_bytes()).hexdigest() == EXPORT
    accounts = {(one.dataset, one.analyst): one for one in ledger.positions()}
    budgets = {name: (str(one.epsilon), str(one.delta)) for name, one in accounts.items()}
    assert budgets == {
        ("annex", None): ("40", "0"),
        ("town", None): ("4", "1/1000"),
        ("ward", None): ("12", "1/1000"),
        ("ward", "ana"): ("6", "1/1000"),
        ("ward", "bob"): ("5", "1/2000"),
    }
    lost = Fraction(6004799503160661, 2**52)  # in the part that is lost, beside two counts since
    assert accounts["annex", None].worst == (
        Total(lost).plus(count("1/4", "home")),
        Total(lost).plus(count("1/8", "ward")),
    )
    further = charge(
        count("1/8", "ward"),
        (3, 9),
        ["de"],
        dataset="annex",
        translation="places",
        cells=FAMILIES,
        query={"name": "further"},
    )
    ledger.charge(further, KNOWN)
    assert ledger.verify().sound
    assert accounts["annex", None].worst != ledger.positions()[0].worst
