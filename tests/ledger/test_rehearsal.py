"""A rehearsal admits what the ledger then admits, charge for charge."""

from collections.abc import Iterator
from datetime import date
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from takifugu.costs.losses import Concentrated
from takifugu.errors import BudgetExceeded
from takifugu.ledger import Charge, Groups, Ledger, Window, open_ledger
from takifugu.ledger.events.replay import Rehearsed, rehearse
from takifugu.ledger.limits import Limits
from tests.ledger.charges import DOUBLING, RICH, Doubling, charge

PLACES = st.tuples(st.integers(0, 5), st.integers(1, 4)).map(lambda p: (p[0], p[0] + p[1]))
CHARGES = st.lists(
    st.tuples(
        st.sampled_from(["1/10", "1/4", "1/2"]),
        st.none() | PLACES,
        st.none() | st.lists(st.sampled_from(["fr", "de", "es"]), min_size=1, unique=True),
    ),
    max_size=8,
)


@pytest.mark.costly
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(before=CHARGES, after=CHARGES)
def test_a_rehearsal_is_what_happens(tmp_path: Path, before: list, after: list) -> None:  # type: ignore[type-arg]
    made = [_made(one) for one in after]
    (tmp_path / "a.ledger").unlink(missing_ok=True)
    with open_ledger(tmp_path / "a.ledger", witness=False) as ledger:
        ledger.set_budget("ward", 2)
        for one in before:
            try:
                ledger.charge(_made(one), DOUBLING)
            except BudgetExceeded:
                continue
        head = ledger.head()
        found = ledger.rehearse([(one, DOUBLING) for one in made])
        assert ledger.head() == head
        for one, rehearsed in zip(made, found, strict=True):
            try:
                ledger.charge(one, DOUBLING)
                admitted = True
            except BudgetExceeded:
                admitted = False
            assert rehearsed.admitted == admitted
            assert rehearsed.spent == ledger.spent("ward", DOUBLING)


def _made(one: tuple) -> Charge:  # type: ignore[type-arg]
    loss, window, groups = one
    return charge(loss, window, groups)


# --- several who pay ---


@pytest.fixture
def shared(folder: Path) -> Iterator[Ledger]:
    """A budget of 2 for everybody, of 1 for ana and of 4 for bob; ana has spent 0.5."""
    with open_ledger(folder / "ward.ledger", witness=False) as ledger:
        ledger.set_budget("ward", 2)
        for analyst, budget in (("ana", 1), ("bob", 4)):
            ledger.set_budget("ward", budget, analyst=analyst)
        ledger.charge(charge("1/4", analyst="ana"), DOUBLING)
        yield ledger


def test_everybody_who_pays_must_admit_a_charge(shared: Ledger) -> None:
    """Ana's own budget refuses what the dataset has room for, and the other way round for bob."""
    planned = [
        (charge("1/2", analyst="ana"), False, 0.5),  # 1.5 of her 1
        (charge("1/8", analyst="ana"), True, 0.75),
        (charge("3/4", analyst="bob"), False, 0.75),  # 2.25 of the 2 of everybody, 1.5 of his 4
        (charge("1/2", analyst="bob"), True, 1.75),
        (charge("1/8", analyst="ana"), True, 2.0),  # to the last bit of both
        (charge("1/1000", (3, 4), ["fr"], analyst="bob"), False, 2.0),
    ]
    found = shared.rehearse([(one, DOUBLING) for one, _, _ in planned])
    assert found == tuple(Rehearsed(*one) for one in planned)
    for one, admitted, spent in planned:
        if admitted:
            shared.charge(one, DOUBLING)
        else:
            with pytest.raises(BudgetExceeded):
                shared.charge(one, DOUBLING)
        assert shared.spent("ward", DOUBLING) == spent


def test_only_budgets_that_were_set_are_asked(folder: Path) -> None:
    planned = [(charge("1/4", analyst="eve"), DOUBLING), (charge("1/8"), DOUBLING)]
    with open_ledger(folder / "ward.ledger", witness=False) as ledger:
        none = ledger.rehearse(planned)
        assert [(one.admitted, one.spent) for one in none] == [(False, 0.0), (False, 0.0)]
        ledger.set_budget("ward", 2)
        some = ledger.rehearse(planned)  # eve has none of her own
        assert [(one.admitted, one.spent) for one in some] == [(True, 0.5), (True, 0.75)]
    assert rehearse((), planned[:1], Limits()) == (Rehearsed(planned[0][0], False, 0.0),)


def test_a_rehearsal_reads_the_delta_of_each_budget(folder: Path) -> None:
    with open_ledger(folder / "ward.ledger", witness=False) as ledger:
        ledger.set_budget("ward", 3, delta="1e-6")
        ledger.set_budget("ward", 3, delta="1e-12", analyst="ana")
        loss = Concentrated(Fraction(1, 10))
        mine = charge(loss, analyst="ana", translation="rich")
        small = charge(Concentrated("1/100"), analyst="ana", translation="rich")
        refused, fine = ledger.rehearse([(mine, RICH), (small, RICH)])
        assert (refused.admitted, refused.spent, fine.admitted) == (False, 0.0, True)
        ledger.charge(small, RICH)
        assert fine.spent == ledger.spent("ward", RICH) > ledger.spent("ward", RICH) / 2 > 0
        with pytest.raises(BudgetExceeded):
            ledger.charge(mine, RICH)


class Loose(Doubling):
    """Of a smaller loss it finds more than of a larger one, as a search may."""

    fingerprint = "loose"

    def to_pufferfish(self, dp: float, /) -> float:
        """Rounded up, far too far below 1."""
        return 2 * dp + (1.25 if 0 < dp < 1 else 0.0)


def test_what_a_budget_admits_is_no_more_than_that_budget(folder: Path) -> None:
    with open_ledger(folder / "ward.ledger", witness=False) as ledger:
        ledger.set_budget("ward", 2)
        half = charge("1/2", translation="loose")
        (found,) = ledger.rehearse([(half, Loose())])
        assert found == Rehearsed(half, True, 2.0)  # and not 2.25
        ledger.charge(half, Loose())
        assert ledger.spent("ward", Loose()) == 2.0


def test_a_charge_that_is_refused_fixes_no_cells_for_those_after_it(folder: Path) -> None:
    """Neither the unit of windows nor the columns of groups: nothing was written under them."""
    days = charge(5, Window(date(2026, 1, 1), date(2026, 2, 1)), ["fr"])
    steps = charge("1/4", (0, 3), Groups(["sex", "ward"], [("m", 3)]))
    with open_ledger(folder / "ward.ledger", witness=False) as ledger:
        ledger.set_budget("ward", 2)
        refused, fine = ledger.rehearse([(days, DOUBLING), (steps, DOUBLING)])
        assert (refused.admitted, fine.admitted) == (False, True)
        with pytest.raises(BudgetExceeded):
            ledger.charge(days, DOUBLING)
        ledger.charge(steps, DOUBLING)
