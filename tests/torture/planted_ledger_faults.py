"""Faults of a ledger that its machine must find."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from fractions import Fraction
from typing import Any
from unittest import mock

from takifugu.costs.losses import Pure
from takifugu.ledger import Charge, Ledger, account
from takifugu.ledger.charge_values import BEGINNING, END, cell_names, loss_body
from takifugu.ledger.events import cell_naming
from takifugu.ledger.frontier import ZERO
from takifugu.ledger.limits import Limit
from takifugu.ledger.witnesses import head_witness

Planted = Callable[[], AbstractContextManager[Any]]


def drop_every_seventh_charge() -> AbstractContextManager[Any]:
    """An event that says that nothing was lost."""
    inner = Charge.body

    def body(self: Charge) -> Any:
        found = inner(self)
        number = self.key.rpartition(" ")[2]
        dropped = number.isdigit() and int(number) % 7 == 0
        return {**found, "loss": loss_body(Pure(0))} if dropped else found

    return mock.patch.object(Charge, "body", body)


def acknowledge_without_writing() -> AbstractContextManager[Any]:
    inner = Ledger._enter

    def enter(self: Ledger, kind: str, body: Any, *given: Any) -> Any:
        paid = list(self.history(kind="charge"))
        if kind == "charge" and len(paid) % 7 == 6:
            return paid[-1], False
        return inner(self, kind, body, *given)

    return mock.patch.object(Ledger, "_enter", enter)


def count_one_group_of_many() -> AbstractContextManager[Any]:
    inner = cell_names

    def one_name(*given: Any) -> Any:
        found = inner(*given)
        return None if found is None else found[:1]

    return mock.patch.object(account, "cell_names", one_name)


def end_windows_too_early() -> AbstractContextManager[Any]:
    inner = account.Shape.touch

    def touch(self: account.Shape, window: Any, groups: Any) -> Any:
        whole = window is not None and None not in (window["start"], window["end"])
        if whole and window["end"] - window["start"] > 1:
            window = {**window, "end": window["end"] - 1}
        return inner(self, window, groups)

    return mock.patch.object(account.Shape, "touch", touch)


def forget_at_an_edit() -> AbstractContextManager[Any]:
    def everywhere(self: account.Account, _costs: str = account.BY_VALUE) -> None:
        self.always, self.worst = ZERO, (ZERO,)
        self.segments = [account.Segment(BEGINNING, END)]

    return mock.patch.object(account.Account, "everywhere", everywhere)


def keep_costs_of_renamed_values() -> AbstractContextManager[Any]:
    return mock.patch.object(cell_naming, "costs_once_accepted", return_value=account.BY_VALUE)


def accept_a_rollback() -> AbstractContextManager[Any]:
    return mock.patch.object(head_witness, "holds", return_value=True)


def admit_a_tenth_more() -> AbstractContextManager[Any]:
    inner = Limit.__init__

    def init(self: Limit, translation: Any, epsilon: Fraction, delta: Fraction) -> None:
        inner(self, translation, epsilon * Fraction(11, 10), delta)

    return mock.patch.object(Limit, "__init__", init)


LEDGER_FAULTS: dict[str, Planted] = {
    "every seventh charge is 0": drop_every_seventh_charge,
    "every seventh charge is not written": acknowledge_without_writing,
    "of several groups one counts": count_one_group_of_many,
    "a window ends too early": end_windows_too_early,
    "an edit forgets": forget_at_an_edit,
    "a rollback is accepted": accept_a_rollback,
    "a tenth more is admitted": admit_a_tenth_more,
}
