"""Random histories of charges by value, against a plain count of every row and every value.

The model knows three rows of two groups by where they stand. For each row, and each ordered pair of
raw values, it adds up by hand what every admitted charge tells about it, by whichever labels the
declaration called them then. Whatever the owner accepts,
raises, restores or loses in between, the ledger never counts less for any row, and what was
admitted stays within the budget: that is asked of a linear program over all datasets.
"""

import os
import shutil
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from takifugu.costs.cost import Cost, Distance, Matrix, Membership
from takifugu.costs.losses import Approximate, Concentrated, Loss, Metric, Pure
from takifugu.errors import BudgetExceeded, LedgerSetBack, TakifuguError
from takifugu.ledger import Cells, Groups, Ledger, Terms, Window, accept_loss, open_ledger
from takifugu.priors import MarkovChain
from takifugu.translation.translation import Translation
from tests.ledger.charges import EVERY_PAIR, charge
from tests.ledger.folders import in_memory
from tests.oracles import cost_programs

DEEP = bool(os.environ.get("DEEP"))
VALUES = ("0", "4", "10")
PAIRS = tuple(permutations(range(3), 2))
START = np.array([0.5, 0.2, 0.3])
ROWS = tuple(
    np.array(rows)
    for rows in (
        [[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.3, 0.3, 0.4]],
        [[0.62, 0.28, 0.10], [0.05, 0.75, 0.20], [0.33, 0.07, 0.60]],
    )
)
PRIORS = tuple(
    Translation(MarkovChain(rows, start=START, length=3, states=VALUES)) for rows in ROWS
)
CHANNEL: list[list[int | str]] = [[0, "1/4", "1/2"], ["1/3", 0, "1/2"], ["1/4", "1/4", 0]]
TELLS: tuple[tuple[Loss, Any], ...] = (  # a loss of size 1, and what it says about u against v
    (Pure(1), lambda _u, _v: Fraction(1)),
    (Metric(Cost.of({Membership(["0"]): 1})), lambda u, v: Fraction((u == 0) != (v == 0))),
    (Metric(Cost.of({Membership(["4"]): 1})), lambda u, v: Fraction((u == 1) != (v == 1))),
    (
        Metric(Cost.of({Membership(["0", "10"]): 1, Membership(["4"]): 1})),
        lambda u, v: 2 * Fraction((u == 1) != (v == 1)),
    ),
    (
        Metric(Cost.of({Distance(0, 10): 1})),
        lambda u, v: abs(Fraction((0, 4, 10)[u] - (0, 4, 10)[v], 10)),
    ),
    (
        Metric(Cost.of({Matrix(VALUES, CHANNEL): 1})),  # its own closure
        lambda u, v: Fraction(str(CHANNEL[u][v])),
    ),
    (Approximate(1, 0), lambda _u, _v: Fraction(1)),
)
SIZES = tuple(map(Fraction, ("1/20", "1/8", "1/3", "3/5")))
WINDOWS = (None, (0, 1), (1, 3), (0, 2))
GROUPS: tuple[tuple[str, ...] | None, ...] = (None, ("x",), ("y",), ("x", "y"))
ANALYSTS = (None, "ana", "bob")
NAMES = ({"x": "x", "y": "y"}, {"x": "y", "y": "x"})  # what a declaration calls a group
OPERATIONS = (
    *("charge",) * 14,
    *("delta", "rho", "budget", "own", "declare", "prior", "copy", "lose", "verify", "again"),
)


@dataclass
class Admitted:
    """What a charge left behind: the prior and budget that judged it, the true loss of each row."""

    prior: int
    budget: Fraction
    lost: dict[tuple[str, int], dict[tuple[int, int], Fraction]]


class Ward:
    """One ledger, and what is known of every row."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / "ward.ledger"
        self.declared = self.in_force = self.prior = 0
        self.budget = self.highest = Fraction(0)
        self.rows = [(group, step) for group in "xy" for step in range(3)]
        # by analyst, row and pair of values; δ and ρ by analyst and row
        self.told: dict[Any, dict[Any, dict[Any, Fraction]]] = {}
        self.other: dict[Any, dict[Any, list[Fraction]]] = {}
        self.admitted: list[Admitted] = []
        self.mixed = False  # a δ or ρ was spent
        self.set_budget(Fraction(3, 2))

    def opened(self) -> Ledger:
        """The ledger."""
        return open_ledger(self.path)

    def set_budget(self, epsilon: Fraction) -> None:
        """Set the budget of all, and remember the highest."""
        with self.opened() as ledger:
            ledger.set_budget("ward", epsilon, delta="1e-6")
        self.budget, self.highest = epsilon, max(self.highest, epsilon)

    @property
    def cells(self) -> Cells:
        """What names the cells and their values now: the group, and a list or a step of values."""
        group, reading = self.declared % 2, self.declared // 2
        parts = {"public": {"group": group}, "protected": {"list": min(reading, 1)}}
        return Cells.of(parts, {"value": {"step": reading}} if reading == 2 else {})

    def label(self, value: int) -> int:
        """What a raw value is called in the ledger."""
        return (value + self.in_force // 2) % len(VALUES)

    def terms(self, prior: int) -> dict[str, Any]:
        """What a charge under a prior names."""
        name = f"prior {prior}"
        return {"prior": name, "secrets": EVERY_PAIR, "translation": PRIORS[prior].fingerprint}

    def charge(self, number: int, loss: Loss, tells: Any) -> None:
        """Charge, and add up by hand what was told if it was admitted."""
        window = WINDOWS[number % 4]
        groups = GROUPS[number // 4 % 4]
        analyst = ANALYSTS[number // 16 % 3]
        planned = charge(
            *(loss, window),
            groups=None if groups is None else Groups(["g"], [(name,) for name in groups]),
            cells=self.cells,
            analyst=analyst,
            **self.terms(self.prior),
        )
        translation = PRIORS[self.prior]
        with self.opened() as ledger:
            quote = ledger.quote(planned, translation)
            foretold = all(one.admits(loss) for one in quote.standings)
            try:
                ledger.charge(planned, translation)
            except BudgetExceeded as refused:
                assert not foretold
                self.follow(ledger, planned, refused)
                raise
            assert foretold
        self.in_force = self.declared
        named = NAMES[self.declared % 2]
        for group, step in self.rows:
            if window is not None and not window[0] <= step < window[1]:
                continue
            if groups is not None and named[group] not in groups:
                continue
            for who in {None, analyst}:
                pairs = self.told.setdefault(who, {}).setdefault(
                    (group, step), defaultdict(Fraction)
                )
                for u, v in PAIRS:
                    pairs[u, v] += tells(self.label(u), self.label(v))
                others = self.other.setdefault(who, {}).setdefault((group, step), [Fraction(0)] * 2)
                if isinstance(loss, Approximate):
                    others[0] += loss.delta
                if isinstance(loss, Concentrated):
                    others[1] += loss.rho
        self.mixed = self.mixed or bool(
            isinstance(loss, Concentrated) or (isinstance(loss, Approximate) and loss.delta)
        )
        lost = {
            row: {(self.label(u), self.label(v)): told for (u, v), told in pairs.items()}
            for row, pairs in self.told.get(None, {}).items()
        }
        self.admitted.append(Admitted(self.prior, self.budget, lost))

    def follow(self, ledger: Ledger, planned: Any, refused: BudgetExceeded) -> None:
        """What a refusal advises would be admitted."""
        if refused.left <= 0 or not isinstance(planned.loss, Metric | Pure):
            return
        factor = refused.left / refused.needs
        cost = planned.loss.cost if isinstance(planned.loss, Metric) else Cost.any(refused.needs)
        after = ledger.quote(planned, PRIORS[self.prior]).standings
        assert all(one.admits(Metric(cost * factor)) for one in after)

    def act(self, what: str, number: int) -> None:
        """Do one thing; ``number`` says how."""
        match what:
            case "charge":
                loss, tells = TELLS[number // 48 % len(TELLS)]
                size = SIZES[number // 336 % 4]
                match loss:
                    case Metric(cost=cost):
                        self.charge(number, Metric(cost * size), lambda u, v: size * tells(u, v))
                    case _:
                        self.charge(number, Pure(size), lambda _u, _v: size)
            case "delta":
                self.charge(number, Approximate("1/50", "1e-9"), lambda _u, _v: Fraction(1, 50))
            case "rho":
                self.charge(number, Concentrated("1/5000"), lambda _u, _v: Fraction(0))
            case "budget":
                self.set_budget(Fraction(number % 5))
            case "own":
                with self.opened() as ledger:
                    for who in ("ana", "bob"):
                        ledger.set_budget("ward", Fraction(number % 7, 2), analyst=who)
            case "declare":
                self.declared = number % 6
                with self.opened() as ledger:
                    ledger.accept_cells("ward", self.cells)
                self.in_force = self.declared
            case "prior":
                with self.opened() as ledger:
                    seen = ledger.review("ward", PRIORS[number % 2])
                    ledger.accept(Terms(f"prior {number % 2}", EVERY_PAIR), seen)
                self.prior = number % 2
            case "copy":
                (self.folder / "copy").unlink(missing_ok=True)
                with self.opened() as ledger:
                    ledger.backup(self.folder / "copy")
            case "lose" if (self.folder / "copy").exists():
                self.lose()
            case "verify":
                with self.opened() as ledger:
                    ledger.rebuild()
            case "again":
                with self.opened() as ledger:
                    ledger.spent("ward", PRIORS[self.prior])

    def lose(self) -> None:
        """The newest copy is lost for good, and the owner accepts it."""
        shutil.copy(self.folder / "copy", self.path)
        try:
            self.opened().close()
        except LedgerSetBack:
            most = {"ward": (self.highest, "1e-6")}
            kept = {"ward": PRIORS[self.prior]}
            try:
                accept_loss(self.path, budgets=most, translations=kept)
            except TakifuguError:  # other priors were in use: put an earlier one back first
                accept_loss(self.path, budgets=most, translations={"ward": PRIORS[1 - self.prior]})
        with self.opened() as ledger:
            (whole,) = (p for p in ledger.positions() if p.analyst is None)
            assert whole.epsilon is not None
            self.budget = whole.epsilon
            seen = ledger.snapshot("ward").terms
            self.prior = self.prior if seen is None else int(seen.prior[-1])
            naming = [e for e in ledger.history() if e.kind == "cells" or "naming" in e.body]
            if naming:
                self.declared = self.in_force = _declared(naming[-1].body)

    def check(self) -> None:
        """No row has lost more than the ledger counts for it."""
        with self.opened() as ledger:
            report = ledger.verify()
            assert report.sound, report.problems
            same = ledger.snapshot("ward", cells=self.cells).changes is None
            for who, rows in self.told.items():
                worst = ledger.lost("ward", analyst=who)
                for row, pairs in rows.items():
                    delta, rho = self.other[who][row]
                    counted = worst
                    if same:
                        group = Groups(["g"], [(NAMES[self.declared % 2][row[0]],)])
                        window = Window(row[1], row[1] + 1)
                        counted = ledger.lost("ward", analyst=who, window=window, groups=group)
                    for totals in (counted, worst):
                        assert any(
                            total.delta >= delta
                            and total.rho >= rho
                            and all(
                                total.cost.between(VALUES[self.label(u)], VALUES[self.label(v)])
                                >= told
                                for (u, v), told in pairs.items()
                            )
                            for total in totals
                        ), (who, row)

    def check_losses(self) -> None:
        """What was admitted is within the budget, by a linear program over all datasets."""
        for seen in self.admitted[-2:] if not DEEP else self.admitted:
            table = cost_programs.chain_table(START, [ROWS[seen.prior]] * 2)
            for group in "xy":
                costs = [np.zeros((3, 3)) for _ in range(3)]
                for (where, step), pairs in seen.lost.items():
                    if where == group:
                        for (u, v), told in pairs.items():
                            costs[step][u, v] = float(told)
                if not any(cost.any() for cost in costs):
                    continue
                closed = [cost_programs.shortest(cost) for cost in costs]
                found = cost_programs.largest(cost_programs.all_losses(table, closed))
                assert found.lower <= float(seen.budget) + 1e-9


def _declared(body: Any) -> int:
    """The declaration that an event names."""
    parts = body["naming"]
    reading = 2 if "values" in body else parts["protected"]["list"]
    return int(parts["public"]["group"] + 2 * reading)


histories = st.lists(
    st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 1343)),
    min_size=3,
    max_size=30 if DEEP else 9,
)


# Two labels in two windows; a count, then a δ; a copy, a count and a loss, then a higher budget.
@pytest.mark.costly
@example([("charge", 1 + 48), ("charge", 2 + 2 * 48), ("charge", 1 + 336 + 48)])
@example([("charge", 672 + 48), ("delta", 2), ("rho", 1), ("charge", 96)])
@example([("copy", 0), ("charge", 672 + 48), ("lose", 0), ("budget", 4), ("charge", 48 + 1)])
@example([("charge", 1 + 48), ("declare", 1), ("charge", 5 + 96), ("prior", 1), ("charge", 48)])
# Three labels are counted, then each raw value is called by the next one: by a list, and by a step.
@example([("charge", 48), ("charge", 2 * 48), ("declare", 2), ("charge", 48), ("declare", 4)])
@example([("charge", 4 * 48), ("declare", 4), ("charge", 4 * 48), ("declare", 0), ("charge", 48)])
@settings(max_examples=200 if DEEP else 6, deadline=None)
@given(histories)
def test_no_row_loses_more_by_value_than_the_ledger_counts(
    history: list[tuple[str, int]],
) -> None:
    with in_memory() as folder, in_memory() as state, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(state))
        ward = Ward(folder)
        for what, number in history:
            with suppress(TakifuguError):  # refused: what is counted must still be right
                ward.act(what, number)
            ward.check()
        ward.check_losses()
