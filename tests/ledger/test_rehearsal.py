"""A rehearsal admits what the ledger then admits, charge for charge."""

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from takifugu.errors import BudgetExceeded
from takifugu.ledger import Charge, open_ledger
from tests.ledger.charges import DOUBLING, charge

PLACES = st.tuples(st.integers(0, 5), st.integers(1, 4)).map(lambda p: (p[0], p[0] + p[1]))
CHARGES = st.lists(
    st.tuples(
        st.sampled_from(["1/10", "1/4", "1/2"]),
        st.none() | PLACES,
        st.none() | st.lists(st.sampled_from(["fr", "de", "es"]), min_size=1, unique=True),
    ),
    max_size=8,
)


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
