"""Every name that a ledger is given is looked at, and the one at fault is named."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import InvalidCharge
from takifugu.ledger import Ledger, accept_loss, open_ledger
from takifugu.ledger.events.decisions import Terms
from takifugu.ledger.events.stored_answers import request_key
from tests.ledger.charges import CELLS, DOUBLING, charge
from tests.raising import raises

pytestmark = pytest.mark.nightly

TERMS = Terms("prior", "secrets")
ASKED: dict[str, Any] = {
    "dataset": "ward",
    "analyst": "ana",
    "question": "question",
    "words": "stays",
    "epsilon": "1/3",
    "request": "r1",
}
TOKEN: dict[str, Any] = {"name": "ana", "role": "analyst", "token": "t1"}
BAD = "x" * 501


@pytest.fixture
def kept(folder: Path) -> Iterator[Ledger]:
    with open_ledger(folder / "ward.ledger", actor="olga") as ledger:
        ledger.set_budget("ward", 2)
        yield ledger


def _made(field: str) -> Callable[[Ledger], object]:
    return lambda ledger: ledger.record_access("made", **(TOKEN | {field: BAD}))


def _approved(field: str) -> Callable[[Ledger], object]:
    return lambda ledger: ledger.approve(**(ASKED | {field: BAD * 20}))


DECISIONS: dict[str, tuple[str, Callable[[Ledger], object]]] = {
    "budget": ("dataset", lambda ledger: ledger.set_budget(BAD, 1)),
    "first budget": ("dataset", lambda ledger: ledger.begin_budget(BAD, 1)),
    "budget of": ("analyst", lambda ledger: ledger.set_budget("ward", 1, analyst=BAD)),
    "partition": ("dataset", lambda ledger: ledger.set_partition(BAD, ("country",))),
    "columns": ("groups", lambda ledger: ledger.set_partition("ward", (BAD,))),
    "cells": ("dataset", lambda ledger: ledger.accept_cells(BAD, CELLS)),
    "separate": ("dataset", lambda ledger: ledger.count_separately(BAD, "ward")),
    "separate from": ("dataset", lambda ledger: ledger.count_separately("ward", BAD)),
    "itself": ("dataset", lambda ledger: ledger.count_separately("ward", "ward")),
    "review": ("dataset", lambda ledger: ledger.review(BAD, DOUBLING)),
    "policy": ("dataset", lambda ledger: ledger.enter_policy(BAD, TERMS, {})),
    "prior": ("prior", lambda _: Terms(BAD, "secrets")),
    "secrets": ("secrets", lambda _: Terms("prior", BAD)),
    "actor": ("actor", lambda ledger: ledger.acting(BAD)),
    "key": ("key", lambda _: request_key("ana", BAD)),
    "change": ("change", lambda ledger: ledger.record_access("lost", **TOKEN)),  # type: ignore[arg-type]
    **{f"token {field}": (field, _made(field)) for field in TOKEN},
    **{
        f"approval {field}": (field, _approved(field))
        for field in ("dataset", "analyst", "question", "words", "request")
    },
    "approval epsilon": ("epsilon", lambda ledger: ledger.approve(**ASKED | {"epsilon": 2**65})),
}


@pytest.mark.parametrize("which", DECISIONS)
def test_a_name_that_cannot_be_one_is_refused_and_nothing_is_written(
    kept: Ledger, which: str
) -> None:
    field, decide = DECISIONS[which]
    before = kept.head()
    with raises(InvalidCharge, field=field):
        decide(kept)
    assert kept.head() == before


def test_who_opens_a_ledger_has_a_name(folder: Path) -> None:
    path = folder / "ward.ledger"
    with raises(InvalidCharge, field="actor"):
        open_ledger(path, actor=BAD)
    assert not path.exists()
    with open_ledger(path):
        pass
    with raises(InvalidCharge, field="actor"):
        accept_loss(path, actor=BAD)


@pytest.mark.parametrize(
    "field", ["dataset", "data", "prior", "secrets", "translation", "key", "analyst", "request"]
)
def test_every_name_of_a_charge_is_looked_at(field: str) -> None:
    fine: dict[str, Any] = {field: "x" * 500}
    assert getattr(replace(charge("0.25"), **fine), field) == fine[field]
    wrong: dict[str, Any] = {field: BAD}
    with raises(InvalidCharge, field=field, reason="name"):
        replace(charge("0.25"), **wrong)


LOOKS: dict[str, Callable[..., object]] = {
    "snapshot": lambda ledger, dataset, **who: ledger.snapshot(dataset, **who),
    "standings": lambda ledger, dataset, **who: ledger.standings(dataset, DOUBLING, **who),
    "remaining": lambda ledger, dataset, **who: ledger.remaining(dataset, DOUBLING, **who),
    "spent": lambda ledger, dataset, **who: ledger.spent(dataset, DOUBLING, **who),
    "lost": lambda ledger, dataset, **who: ledger.lost(dataset, **who),
    "odometer": lambda ledger, dataset, **who: list(ledger.odometer(dataset, DOUBLING, **who)),
    "over time": lambda ledger, dataset, **who: ledger.over_time(dataset, **who),
}


@pytest.mark.parametrize("bad", ["a\0b", "ana\udcff"])
@pytest.mark.parametrize("look", LOOKS)
def test_a_name_that_no_database_can_look_for_is_refused(
    look: str, bad: str, ledger: Ledger
) -> None:
    ledger.charge(charge("0.25", analyst="ana"), DOUBLING)
    with raises(InvalidCharge, field="analyst"):
        LOOKS[look](ledger, "ward", analyst=bad)
    with raises(InvalidCharge, field="dataset"):
        LOOKS[look](ledger, bad)
