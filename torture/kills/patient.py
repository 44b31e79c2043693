"""Processes that try again when the ledger cannot be reached or written, as a service would."""

import itertools
import os
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np

from takifugu.errors import BudgetExceeded, LedgerConflict, LedgerError
from takifugu.ledger import Ledger
from torture.kills.jobs import Place, acknowledge, draw, request
from torture.kills.strikes import Job, Notes

MOST = 600  # times that a process tries again
Trouble = type[LedgerError] | tuple[type[LedgerError], ...]


def charging_on(
    place: Place,
    rng: np.random.Generator,
    trouble: Trouble,
    *,
    resume: bool,
    reopen: bool = False,
) -> Job:
    """Release over and over, and try again whenever there is ``trouble``.

    With ``reopen`` the ledger is closed after each release, for a moment.
    """

    def job(say: Notes) -> None:
        turns = itertools.count()
        while True:
            say("now", "open")
            with closing(_patiently(place.open, trouble, say)) as ledger:
                for turn in turns:
                    wanted = request(rng, f"{os.getpid()}.{turn}", place)
                    _release(ledger, wanted, place, rng, trouble, say, resume=resume)
                    if reopen:
                        say("now", "close")
                        break
            time.sleep(float(rng.uniform(0, 0.05)))

    return job


def _release(
    ledger: Ledger,
    wanted: Any,
    place: Place,
    rng: Any,
    trouble: Trouble,
    say: Notes,
    *,
    resume: bool,
) -> None:
    say("now", "charge")
    try:
        receipt = _patiently(
            lambda: ledger.charge(wanted, place.translation, resume=resume), trouble, say
        )
    except BudgetExceeded:
        say("refused", wanted.key)
        return
    acknowledge(receipt, wanted, say)
    if not receipt.may_release:
        raise AssertionError("a new charge, and no right to draw")
    value = draw(rng)
    if not resume:
        say("shown", wanted.key, value)
    say("now", "record")
    try:
        stored = _patiently(lambda: ledger.record_answer(receipt, value), trouble, say).value
    except LedgerConflict as error:
        if error.reason != "answer":
            raise
        stored = value  # recorded by the attempt that seemed to fail
    say("recorded", wanted.key, stored)
    if resume:
        say("shown", wanted.key, stored)
    say("now", "idle")


def _patiently(attempt: Callable[[], Any], trouble: Trouble, say: Notes) -> Any:
    """Try until it works."""
    for _ in range(MOST):
        try:
            return attempt()
        except trouble as error:
            say("failed", type(error).__name__, error.reason)
            time.sleep(0.1)
    raise AssertionError("it does not work any more")
