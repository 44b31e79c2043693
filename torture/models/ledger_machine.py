"""Charges of a ledger: by two handles, in another process, again, interrupted, killed."""

import itertools
import os
from dataclasses import replace
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from takifugu.errors import BudgetExceeded, LedgerConflict, TakifuguError
from takifugu.ledger import open_ledger
from torture.models.counted_machine import CRASHED, must
from torture.models.crash_points import (
    CHARGING,
    Crash,
    Elsewhere,
    Point,
    crashing,
    kill_self,
)
from torture.models.ledger_model import UNITS, WORTHS, ZONES, Reads
from torture.models.ledger_state import ANALYSTS, USUAL, Asked, LedgerState
from torture.models.two_handles import handles

SIZES = tuple(map(Fraction, ("1/20", "1/8", "1/3", "1", "3")))
EVERYTHING = Reads(None, None, (), frozenset(), USUAL, "UTC")
NOT_PURE = ("approximate", "concentrated")  # what a budget without a δ never admits
ELSEWHERE = Elsewhere("torture.models.ledger_machine")
analysts = st.sampled_from(ANALYSTS)
tens = st.integers(0, 9)


@st.composite
def readings(draw: st.DrawFn) -> Reads:
    """What a charge reads."""
    first = draw(st.sampled_from((None, 0, 1, 2)))
    end = draw(st.sampled_from([None, *range(1 if first is None else first + 1, 4)]))
    by = draw(st.sampled_from(((), ("country",), ("floor",), ("floor", "country"))))
    of = {"country": ("x", "y", "rest"), "floor": (1, 2)}
    keys = [tuple(key) for key in itertools.product(*(of[column] for column in by))]
    chosen = draw(st.frozensets(st.sampled_from(keys), min_size=1)) if by else frozenset()
    unit = draw(st.sampled_from((USUAL,) * 15 + UNITS))
    return Reads(first, end, by, chosen, unit, draw(st.sampled_from(ZONES)))


def charge_elsewhere(
    tell: Any, path: str, state: str, worth: str, asked: Asked, point: Point | None
) -> None:
    """Charge in this process, which may be killed at some point."""
    os.environ["XDG_STATE_HOME"] = state
    translation = WORTHS[worth].priors[asked.prior]
    with open_ledger(path, wait=60, create=False) as ledger:
        ledger.quote(asked.charge, translation)
        with crashing(point, kill_self):
            try:
                ledger.charge(asked.charge, translation, resume=asked.resume)
                tell("charged")
            except BudgetExceeded:
                tell("refused")


class LedgerSteps(LedgerState):
    """The steps that charge."""

    @rule(
        handle=handles, reads=readings(), kind=tens, size=st.sampled_from(SIZES), analyst=analysts,
        dataset=st.sampled_from(("ward",) * 6 + ("annex",)), record=st.booleans(),
    )  # fmt: skip
    def charge(
        self, handle: int, reads: Reads, kind: int, size: Fraction, analyst: str | None,
        dataset: str, record: bool,
    ) -> None:  # fmt: skip
        """Pay, draw and perhaps record."""
        asked = self.ask(reads, kind, size, analyst, dataset=dataset)
        receipt = self.pay("charge", handle, asked)
        if receipt is not None:
            self.drawn[receipt.key] = 1
            if record:
                self.open[1 - handle].record_answer(receipt, next(self.numbers))

    @rule(handle=handles, reads=readings(), kind=tens, size=st.sampled_from(SIZES[:3]))
    def charge_little(self, handle: int, reads: Reads, kind: int, size: Fraction) -> None:
        """The same, of what mostly fits, by somebody who may ask."""
        self.charge(handle, reads, kind, size, self.somebody(), "ward", True)

    @rule(handle=handles, first=readings(), second=readings(), kind=tens)
    def charge_two(self, handle: int, first: Reads, second: Reads, kind: int) -> None:
        """Two of them, by two handles in turn."""
        for turn, reads in enumerate((first, second)):
            self.charge((handle + turn) % 2, reads, kind, SIZES[1], self.somebody(), "ward", False)

    @precondition(lambda self: not self.delta)
    @rule(handle=handles, kind=tens, over=tens)
    def fill(self, handle: int, kind: int, over: int) -> None:
        """Charge to just below the limit, then a little more than fits: that is refused."""
        who = self.somebody()
        for step, number, part, least in (
            ("charge to the limit", kind, Fraction(99, 100), Fraction(0)),
            ("charge beyond the limit", over, Fraction(105, 100), Fraction(1, 100)),
        ):
            if self.kind(number) in NOT_PURE:
                number = 0
            size = self.filling(number, who, part)
            if size is not None and max(size, least) > 0:
                fine = Fraction(int(max(size, least) * 10**6), 10**6)
                asked = self.ask(EVERYTHING, number, fine, who, dataset="ward")
                receipt = self.pay(step, handle, asked)
                self.drawn |= {} if receipt is None else {receipt.key: 1}

    def somebody(self) -> str | None:
        """Somebody who may ask."""
        own = sorted(who for name, who in self.budgets if name == "ward" and who is not None)
        return own[0] if own else None

    @precondition(lambda self: self.asked)
    @rule(handle=handles, which=st.integers(0, 99))
    def same_key(self, handle: int, which: int) -> None:
        """The same charge again: paid once, and drawn once."""
        asked = list(self.asked.values())[which % len(self.asked)]
        key = asked.charge.key
        if asked.resume or key not in self.keys():
            return
        translation = WORTHS[self.worth].priors[asked.prior]
        before = self.state()
        receipt = self.open[handle].charge(asked.charge, translation)
        self.told(receipt.anchor.seq)
        must(self.state() == before, "a charge was paid twice")
        if receipt.may_release:
            must(self.lost_attempts.pop(key, None) == handle, "noise is drawn twice for one charge")
            self.drawn[key] = self.drawn.get(key, 0) + 1
        must(self.drawn.get(key, 0) <= 1, "noise was drawn twice for one charge")
        self.made(key)
        self.took("same key")

    @precondition(lambda self: self.there - self.gone)
    @rule(handle=handles, which=st.integers(0, 99), size=st.sampled_from(SIZES))
    def another_under_its_key(self, handle: int, which: int, size: Fraction) -> None:
        """Another charge under a key that was used: refused."""
        keys = sorted(self.there - self.gone)
        asked = self.asked[keys[which % len(keys)]]
        other = replace(asked.charge, mechanism={"kind": "another", "size": str(size)})
        before = self.state()
        try:
            self.open[handle].charge(other, WORTHS[self.worth].priors[asked.prior])
        except LedgerConflict as error:
            must(error.reason == "key" and self.state() == before, "it left a trace")
            self.took("another charge under its key", type(error).__name__)
        else:
            must(False, "two charges have one key")

    @rule(handle=handles, reads=readings(), kind=tens, point=st.sampled_from(CHARGING))
    def crash(self, handle: int, reads: Reads, kind: int, point: Point) -> None:
        """Whoever charges finds an exception in the middle of it."""
        asked = self.ask(reads, kind, SIZES[1], self.somebody(), dataset="ward")
        translation = WORTHS[self.worth].priors[asked.prior]
        before = self.state()
        try:
            self.open[handle].quote(asked.charge, translation)
            with crashing(point):
                self.open[handle].charge(asked.charge, translation)
        except Crash:
            self.after_crash(asked, point, handle)
        except TakifuguError as error:
            must(self.state() == before, "a refused charge left a trace")
            self.took("interrupted charge", type(error).__name__)

    @rule(
        reads=readings(), kind=tens, size=st.sampled_from(SIZES[:3]),
        point=st.sampled_from((None, *CHARGING)),
    )  # fmt: skip
    def elsewhere(self, reads: Reads, kind: int, size: Fraction, point: Point | None) -> None:
        """Another process charges, and may be killed in the middle of it."""
        asked = self.ask(reads, kind, size, self.somebody(), dataset="ward")
        given = (str(self.path), os.environ["XDG_STATE_HOME"], self.worth, asked, point)
        try:
            self.open[0].quote(asked.charge, WORTHS[self.worth].priors[asked.prior])
        except TakifuguError as error:
            self.took("charge in another process", type(error).__name__)
            return
        status, told = ELSEWHERE.run(charge_elsewhere, *given)
        must(status in (0, -9), f"another process ended with {status}")
        if told == ["charged"]:
            self.made(asked.charge.key)
            self.took("charge in another process")
        elif status == 0:
            self.took("charge in another process", "BudgetExceeded")
        else:
            self.after_crash(asked, point, None)

    def after_crash(self, asked: Asked, point: Point | None, handle: int | None) -> None:
        """What a crash may have left: all of a charge or nothing, by where it was."""
        self.took("interrupted charge" if handle is not None else "killed process", CRASHED)
        written = asked.charge.key in self.keys()
        late = self.untold == self.events()[-1].seq  # what it recorded may be others' event
        whole = point in ("committed", "witnessed")
        must(written == whole or (whole and late), f"a crash when {point} left half")
        self.died(point)
        if written:
            self.made(asked.charge.key)  # a later attempt may draw
            if handle is not None:
                self.lost_attempts[asked.charge.key] = handle
