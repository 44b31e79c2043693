"""Totals by cell against an oracle that goes through all charges for every entry."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.costs.losses import Approximate, Concentrated, Loss, Pure, Total
from takifugu.errors import BudgetExceeded
from takifugu.ledger import Groups, Ledger, Window, frontier, open_ledger
from takifugu.ledger.account import Account, Shape
from takifugu.ledger.charge_values import groups_body, loss_of, window_body
from tests.ledger.charges import DOUBLING, charge
from tests.oracles import ledger as oracle

GROUPS = ["de", "fr", "nl"]
STEPS = range(-1, 10)
amounts = st.sampled_from(["1/10", "1/3", "1/4", "0.07"]).map(Fraction)
ends = st.none() | st.integers(0, 9)


@st.composite
def charges(draw: st.DrawFn, *, pure: bool) -> oracle.Paid:
    start, end = draw(ends), draw(ends)
    if start is not None and end is not None and start >= end:
        start, end = (end, start) if end < start else (None, None)
    amount, zero = draw(amounts), Fraction(0)
    kind = 0 if pure else draw(st.integers(0, 2))
    loss = [(amount, zero, zero), (amount, amount / 10**6, zero), (zero, zero, amount)][kind]
    groups = draw(st.none() | st.frozensets(st.sampled_from(GROUPS), min_size=1))
    return oracle.Paid(loss, start, end, groups, draw(st.sampled_from([None, "ana", "bob"])))


def loss_in(paid: oracle.Paid) -> Loss:
    epsilon, delta, rho = paid.loss
    if rho:
        return Concentrated(rho)
    return Approximate(epsilon, delta) if delta else Pure(epsilon)


def touched(paid: oracle.Paid) -> tuple[Window | None, Groups | None]:
    window = None if paid.start is None and paid.end is None else Window(paid.start, paid.end)
    keys = None if paid.groups is None else [(group,) for group in paid.groups]
    return window, None if keys is None else Groups(["country"], keys)


def cells(account: Account) -> dict[tuple[str, int], oracle.Loss]:
    """Every cell of an account, at every step."""
    found = {}
    for group in [*GROUPS, oracle.OTHER]:
        for step in STEPS:
            touch = Shape().touch(
                window_body(Window(step, step + 1)),
                groups_body(Groups(["country"], [(group,)])),
            )
            (total,) = account.on(touch)
            found[group, step] = (total.epsilon, total.delta, total.rho)
    return found


@given(paid=st.lists(charges(pure=False), max_size=12))
def test_every_cell_has_the_total_of_what_was_read_from_it(paid: list[oracle.Paid]) -> None:
    account, shape = Account(), Shape()
    for one in paid:
        window, groups = touched(one)
        account.apply(shape.touch(window_body(window), groups_body(groups)), loss_in(one))
    true = oracle.totals(paid, GROUPS, STEPS)
    assert cells(account) == true
    # The frontier dominates every cell, and holds nothing but totals of cells.
    totals = {Total(*total) for total in true.values()}
    assert all(any(frontier.dominates(w, t) for w in account.worst) for t in totals)
    assert len(account.worst) > frontier.MAX_TOTALS or set(account.worst) <= totals


@contextmanager
def scratch() -> Iterator[Ledger]:
    memory = Path("/dev/shm")  # noqa: S108
    with (
        TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder,
        open_ledger(Path(folder) / "scratch.ledger") as ledger,
    ):
        yield ledger


@pytest.mark.nightly
@pytest.mark.costly
@settings(max_examples=25)
@given(
    paid=st.lists(charges(pure=True), min_size=1, max_size=10),
    budget=st.sampled_from(["3/10", "1/2", "1"]).map(Fraction),
)
def test_the_filter_passes_exactly_what_the_oracle_allows(
    paid: list[oracle.Paid], budget: Fraction
) -> None:
    with scratch() as ledger:
        ledger.set_budget("ward", 2 * budget)
        ledger.set_budget("ward", budget, analyst="ana")
        ledger.set_budget("ward", 100, analyst="bob")
        allowed = {None: Fraction(float(2 * budget)) / 2, "ana": Fraction(float(budget)) / 2}
        accepted: list[oracle.Paid] = []
        for one in (replace(each, analyst=each.analyst or "bob") for each in paid):
            window, groups = touched(one)
            tried = [*accepted, one]
            fits = all(
                epsilon <= most
                for who, most in allowed.items()
                if who is None or who == one.analyst
                for epsilon, _, _ in oracle.totals(tried, GROUPS, STEPS, who).values()
            )
            left = ledger.remaining(
                "ward", DOUBLING, analyst=one.analyst, window=window, groups=groups
            )
            assert (one.loss[0] <= left) == fits
            planned = charge(loss_in(one), window, groups, analyst=one.analyst)
            if fits:
                ledger.charge(planned, DOUBLING)
                accepted = tried
            else:
                with pytest.raises(BudgetExceeded) as refused:
                    ledger.charge(planned, DOUBLING)
                assert refused.value.left == left
        for who in (None, "ana", "bob"):
            true = oracle.totals(accepted, GROUPS, STEPS, who)
            worst = max(epsilon for epsilon, _, _ in true.values())
            spent = ledger.spent("ward", DOUBLING, analyst=who)
            assert Fraction(spent) >= 2 * worst and spent == pytest.approx(float(2 * worst))
        stretches = ledger.over_time("ward")
        for step in STEPS:
            (now,) = [
                s
                for s in stretches
                if (s.start is None or s.start <= step) and (s.end is None or step < s.end)
            ]
            true = oracle.totals(accepted, GROUPS, [step])
            assert now.worst == (Total(max(epsilon for epsilon, _, _ in true.values())),)
        assert ledger.verify().sound  # the stored cells are those of a replay, tested above


def test_a_total_stays_short_and_is_rounded_up() -> None:
    total, true = Total(), Fraction(0)
    for number in range(3, 1200, 2):
        total = frontier.add(total, Pure(Fraction(1, number)))
        true += Fraction(1, number)
    assert (
        total.epsilon.denominator.bit_length()
        <= frontier.MAX_TOTAL_BITS
        < true.denominator.bit_length()
    )
    assert true <= total.epsilon < true + Fraction(1, 2**1100)
    exact = frontier.add(frontier.add(Total(), Pure(5e-324)), Pure("0.1"))
    assert exact.epsilon == Fraction(5e-324) + Fraction(1, 10)


def test_too_many_totals_become_one_that_dominates_them() -> None:
    many = [Total(Fraction(n), rho=Fraction(99 - n)) for n in range(frontier.MAX_TOTALS + 1)]
    (one,) = frontier.worst(many)
    assert all(frontier.dominates(one, total) for total in many)
    few = many[: frontier.MAX_TOTALS]
    assert set(frontier.worst([*few, Total(), few[0]])) == set(few)
    assert frontier.read(frontier.write(frontier.worst(few))) == frontier.worst(few)


@pytest.mark.parametrize(
    "body",
    [
        {"currency": "pure", "epsilon": "1/3"},
        {"currency": "approximate", "epsilon": "1/3", "delta": "1/7"},
        {"currency": "concentrated", "rho": "2/1"},
    ],
)
def test_losses_are_read_as_they_were_written(body: dict[str, str]) -> None:
    assert charge(loss_of(body)).body()["loss"] == body
