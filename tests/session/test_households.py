"""Sessions over households: who belongs together is public, checked, and charged together."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from takifugu.binding.entries import Entries
from takifugu.declarations import Category
from takifugu.errors import BudgetExceeded, NotAccepted, TooLarge, UnsoundRequest
from takifugu.ledger import Ledger
from takifugu.priors import FittedRows, MarkovChain, Secrets, household_contagion
from takifugu.session import Session
from takifugu.translation.rows.household import Household
from tests.oracles import cost_programs as oracle
from tests.raising import raises
from tests.session.tables import opened_table
from tests.session.world import said

LABELS = ("well", "ill")
HEALTH = (Category("health", LABELS, "refuse"),)
HEADER = ("person", "home", "role", "day", "health")
PUBLIC = (Category("home", None, "refuse"), Category("role", ("parent", "child"), "refuse"))
PAIR = household_contagion(
    ("parent", "child"), background=0.1, infection=0.2, recovery=0.4, start=0.2, length=4
)
BY_ROLE, ALIKE = (
    Entries("household", household="home", member="role"),
    Entries("household", household="home"),
)
ROWS = tuple(
    (f"{role[0]}{home}", f"h{home}", role, day, LABELS[(home * day + len(role)) % 3 == 0])
    for home in range(5)
    for role in ("parent", "child")
    for day in range(4)
)
LOPSIDED = MarkovChain(
    PAIR.transition,
    states=PAIR.states,
    columns=PAIR.columns,
    start=np.array([0.5, 0.3, 0.1, 0.1]),
    length=4,
)


@contextmanager
def study(
    folder: Path,
    rows: Sequence[tuple[Any, ...]] = ROWS,
    prior: Any = PAIR,
    over: Any = BY_ROLE,
    public: Sequence[Category] = PUBLIC,
    **options: Any,
) -> Iterator[tuple[Session, Ledger]]:
    table: dict[str, Any] = {"protected": HEALTH, "rows": rows, "header": HEADER, "public": public}
    with opened_table(folder, prior, over, **table, **options) as opened:
        yield opened


@pytest.mark.nightly
def test_a_household_is_charged_for_what_it_tells_of_both(tmp_path: Path) -> None:
    with study(tmp_path, budget=2) as (session, _):
        assert session.columns == ("health",) and session.about == "health"
        plan = session.plan.histogram(epsilon=1)
        allowed = float(plan.charge.loss.epsilon)  # type: ignore[union-attr]
        whole = Household({"prior": PAIR}, {"health": Secrets()})
        assert whole.to_pufferfish(allowed) <= 1 < whole.to_pufferfish(allowed * 1.01)
        assert 1 / 8 < allowed < 1  # less than all rows of both at once, more than one row
        result = session.release(plan, accept_noise=True)
        assert result.cost.alone <= 1
        assert session.spent() == pytest.approx(whole.to_pufferfish(allowed), rel=1e-9)
        assert session.plan.histogram(epsilon=1).stored
        session.release(session.plan.count(["ill"], by="role", epsilon=0.5), accept_noise=True)
        assert 1 < session.spent() <= 2
        with pytest.raises(BudgetExceeded):
            session.release(session.plan.histogram(by="home", epsilon=1.5), accept_noise=True)


@pytest.mark.nightly
def test_windows_and_roles_that_were_not_read_have_lost_nothing(tmp_path: Path) -> None:
    """What one day and then another one loses is the largest of rows, not a sum of all."""
    with study(tmp_path, budget=5) as (session, _):
        session.release(session.plan.histogram(window=(0, 1), epsilon=1), accept_noise=True)
        first = session.spent()
        session.release(session.plan.histogram(window=(2, 3), epsilon=1), accept_noise=True)
        assert session.spent() == pytest.approx(first)
        session.release(
            session.plan.histogram(where={"role": ["child"]}, epsilon=1), accept_noise=True
        )
        assert session.spent() > first


def test_the_guarantee_says_who_belongs_together(tmp_path: Path) -> None:
    with study(tmp_path) as (session, _):
        text = said(session)
    assert "The rows of all of `person` in one `home`, told apart by `role`" in text
    assert "independent of every other `home`" in text
    with study(tmp_path, over=ALIKE) as (session, _):
        assert "told apart" not in said(session)


@pytest.mark.nightly
def test_the_columns_that_group_people_are_terms_of_the_budget(tmp_path: Path) -> None:
    with study(tmp_path) as (session, _):
        session.release(session.plan.histogram(epsilon=1), accept_noise=True)
    with raises(NotAccepted, dataset="table"), study(tmp_path, over=ALIKE):
        pass
    one = Household({"p": PAIR}, {"health": Secrets()}, grouping=("home", "role"))
    other = Household({"p": PAIR}, {"health": Secrets()}, grouping=("flat", "role"))
    assert one.fingerprint != other.fingerprint


@pytest.mark.nightly
def test_some_secrets_may_be_kept_alone(tmp_path: Path) -> None:
    kept = Secrets(entries=(0,))
    with study(tmp_path, how={"secrets": kept}) as (session, _):
        less = float(session.plan.histogram(epsilon=1).charge.loss.epsilon)  # type: ignore[union-attr]
        assert "0" in said(session)
    (tmp_path / "all").mkdir()
    with study(tmp_path / "all") as (session, _):
        every = float(session.plan.histogram(epsilon=1).charge.loss.epsilon)  # type: ignore[union-attr]
    assert less > every


@pytest.mark.nightly
def test_members_need_a_column_unless_they_are_alike(tmp_path: Path) -> None:
    with study(tmp_path, prior=LOPSIDED) as (session, _):
        assert session.plan.histogram(epsilon=1)
    with study(tmp_path, over=ALIKE) as (session, _):
        assert session.plan.histogram(epsilon=1)
    with (
        raises(UnsoundRequest, field="member", reason="missing", needed=("parent", "child")),
        study(tmp_path, prior=LOPSIDED, over=ALIKE),
    ):
        pass


def changed(**cells: Any) -> Any:
    """The rows, with the first row of home 2's child changed."""
    at = next(k for k, row in enumerate(ROWS) if row[:2] == ("c2", "h2"))
    row = dict(zip(HEADER, ROWS[at], strict=True)) | cells
    return (*ROWS[:at], tuple(row[name] for name in HEADER), *ROWS[at + 1 :])


def one_more(*rows: tuple[Any, ...]) -> Any:
    return (*ROWS, *rows)


NINE = tuple((f"n{k}", "h9", "child", day, "well") for k in range(9) for day in range(4))


@pytest.mark.parametrize(
    ("rows", "fields"),
    [
        (changed(home="h3"), {"field": "household", "reason": "not-constant", "given": ("c2",)}),
        (changed(role="parent"), {"field": "member", "reason": "not-constant", "given": ("c2",)}),
        (changed(day=9), {"field": "prior", "reason": "uneven", "given": ("h2",)}),
        (
            one_more(("x", "h2", "child", 0, "ill")),
            {"field": "prior", "reason": "sizes-differ", "given": {2: 4, 3: 1}, "needed": 2},
        ),
        (
            one_more(("alone", "h7", "child", 0, "ill")),
            {"field": "prior", "reason": "sizes-differ", "given": {1: 1, 2: 5}},
        ),
        (one_more(*NINE), {"field": "prior", "reason": "sizes-differ", "given": {2: 5, 9: 1}}),
        (
            one_more(("x", "h7", "child", 0, "ill"), ("y", "h7", "child", 0, "ill")),
            {"field": "member", "reason": "members-differ", "given": ("h7",)},
        ),
        (
            one_more(("p1", "h1", "parent", 4, "ill"), ("c1", "h1", "child", 4, "ill")),
            {"field": "prior", "reason": "too-short", "given": 4, "needed": 5},
        ),
        (ROWS[:-1], {"field": "prior", "reason": "uneven", "given": ("h4",)}),
    ],
)
def test_a_table_of_other_households_is_refused(
    tmp_path: Path, rows: Any, fields: dict[str, Any]
) -> None:
    with raises(UnsoundRequest, **fields) as refused, study(tmp_path, rows):
        pass
    assert "ill" not in str(refused.value).replace("will", "")  # no protected value


@pytest.mark.nightly
def test_priors_that_are_about_something_else_are_refused(tmp_path: Path) -> None:
    def refused(prior: Any, over: Any = BY_ROLE, **fields: Any) -> None:
        with raises(UnsoundRequest, **fields), study(tmp_path, prior=prior, over=over):
            pass

    named = household_contagion(
        ("mother", "child"), background=0.1, infection=0.2, recovery=0.4, length=4
    )
    refused(named, field="member", reason="names-differ", given=("mother",), needed=("parent",))
    numbered = household_contagion(
        ("1", "2"), background=0.1, infection=0.2, recovery=0.4, length=4
    )
    refused(numbered, field="member", reason="names-differ")
    three = household_contagion(3, background=0.1, infection=0.2, recovery=0.4, length=4)
    refused(three, ALIKE, field="prior", reason="sizes-differ", needed=3)
    other = household_contagion(
        ("parent", "child"),
        background=0.1,
        infection=0.2,
        recovery=0.4,
        labels=("healthy", "ill"),
        length=4,
    )
    refused(other, field="prior, parent", reason="states-differ", given=("healthy", "ill"))
    refused(PAIR.against(known="any"), field="prior", reason="known")
    refused(PAIR, Entries("household", household="flat"), field="household", reason="not-public")
    refused(PAIR, Entries("household", household="health"), field="household", reason="not-public")
    refused(PAIR, Entries("household", household="home", member="day"), field="member")
    refused(PAIR, "sequence", field="prior")
    refused(PAIR, None, field="prior", reason="over-missing")
    refused(MarkovChain(np.full((2, 2), 0.5), states=LABELS), field="prior")
    with raises(TooLarge, field="members", size=9, limit=8):
        household_contagion(9, background=0.1, infection=0.2, recovery=0.4)


@pytest.mark.nightly
def test_members_may_be_numbers(tmp_path: Path) -> None:
    rows = tuple((*row[:2], 1 + (row[2] == "child"), *row[3:]) for row in ROWS)
    public = (PUBLIC[0], Category("role", (1, 2), "refuse"))
    chain = household_contagion(("1", "2"), background=0.1, infection=0.2, recovery=0.4, length=4)
    with study(tmp_path, rows, chain, public=public) as (session, _):
        assert session.plan.histogram(epsilon=1)


def test_a_household_column_that_merges_values_is_refused(tmp_path: Path) -> None:
    merged = Category("home", ("h0",), "refuse", labels=tuple((f"h{k}", "h0") for k in range(1, 5)))
    with (
        raises(UnsoundRequest, field="household", reason="labels"),
        study(tmp_path, public=(merged, PUBLIC[1])),
    ):
        pass


def test_a_prior_fitted_on_some_people_parts_households(tmp_path: Path) -> None:
    half = FittedRows("csv table.csv", "person", "day", None, share=Fraction(1, 2), salt="x")
    fitted = PAIR.also_fitted_on(half)
    with raises(UnsoundRequest, field="prior", reason="share"), study(tmp_path, prior=fitted):
        pass
    days = FittedRows("csv table.csv", "person", "day", None, before=1.0)
    with study(tmp_path, prior=PAIR.also_fitted_on(days)) as (session, _):
        assert session.releasable.start == 1


RELEASES: tuple[tuple[dict[str, Any], ...], ...] = (
    ({"window": (0, 2), "epsilon": 1}, {"window": (1, 3), "epsilon": 0.5}),
    ({"where": {"role": ["child"]}, "epsilon": 1}, {"window": (3, 4), "epsilon": 2}),
    (
        {"where": {"role": ["parent"]}, "window": (0, 1), "epsilon": 2},
        {"where": {"role": ["child"]}, "window": (1, 4), "epsilon": 1},
        {"epsilon": 0.1},
    ),
)


@pytest.mark.nightly
@pytest.mark.parametrize("releases", RELEASES)
@pytest.mark.parametrize("prior", [PAIR, LOPSIDED])
def test_no_mechanism_that_loses_as_much_of_each_row_leaks_more_than_is_reported(
    tmp_path: Path, prior: MarkovChain, releases: tuple[dict[str, Any], ...]
) -> None:
    lost = np.zeros((4, 2))  # [day, member]
    with study(tmp_path, prior=prior, budget=20) as (session, _):
        for release in releases:
            plan = session.plan.histogram(**release)
            session.release(plan, accept_noise=True)
            first, last = release.get("window", (0, 4))
            roles = release.get("where", {}).get("role", ["parent", "child"])
            for k, role in enumerate(("parent", "child")):
                if role in roles:
                    lost[first:last, k] += float(plan.charge.loss.epsilon)  # type: ignore[union-attr]
        spent = session.spent()
    joint = oracle.chain_table(prior.start_law, [prior.kernel()] * 3)
    table = joint.reshape((2,) * 8)  # states are listed as pairs of members, the child last
    costs = [oracle.any_value(2, epsilon) for epsilon in lost.ravel()]
    truth = max(solved.lower for solved in oracle.all_losses(table, costs).values())
    assert 0 < truth <= spent * (1 + 1e-9)
    assert spent < 8 * lost.max()
