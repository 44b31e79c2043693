"""The whole: whatever is asked, the true joint leakage is never more than what the ledger says."""

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from takifugu.costs.losses import Pure
from takifugu.declarations import Amount, InvalidQuery
from takifugu.errors import UnsoundRequest
from takifugu.finite.translation_exact import translation_exact
from takifugu.finite.world import World
from takifugu.ledger import open_ledger
from takifugu.priors.secrets import EntryIs, SecretPair
from takifugu.session import OverBudget, Plan, Session
from takifugu.session.query_options import QueryOptions
from takifugu.session.release_cost import Prices
from takifugu.tables import Engine, open_engine
from takifugu.translation.translation import Translation
from tests.ledger.folders import example_folder
from tests.oracles import session as oracle
from tests.oracles import totals as exact
from tests.session.world import CHAIN, PLAIN, ROWS, STATES, TRANSLATION, ZONES, declaration, opened

START, STEP = (0.6, 0.4), ((0.8, 0.2), (0.3, 0.7))  # the chain of CHAIN, at rest
LENGTHS = (4, 2)  # the rows of Ann and of Bea in ROWS, in order
EVERY, CHANCES = oracle.tables(LENGTHS, START, STEP)
EXACT = World(
    (explicit := CHAIN.explicit()).universe,
    (explicit,),
    tuple(
        SecretPair(EntryIs(entry, (one,)), EntryIs(entry, (other,)))
        for entry in range(4)
        for one, other in (STATES, STATES[::-1])
    ),
)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with TemporaryDirectory() as folder, open_engine(declaration(Path(folder)), threads=1) as made:
        yield made


@contextmanager
def fresh(
    engine: Engine,
    budget: int,
    *,
    delta: Fraction = Fraction(0),
    translation: Translation = TRANSLATION,
) -> Iterator[Session]:
    with example_folder() as folder, open_ledger(Path(folder) / "a.ledger") as ledger:
        ledger.set_budget("visits", budget, delta=delta)
        yield Session(engine, translation, ledger=ledger, dataset="visits")


WINDOWS = st.sampled_from([None, (0, 2), (2, None), (1, 3), (None, 1), (3, 4), (0, 4)])
HOW = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["histogram", "count", "top_k", "proportions", "transitions"]),
        "window": WINDOWS,
        "where": st.sampled_from([None, {"zone": ["a"]}, {"zone": ["b"]}, {"zone": ["a", "b"]}]),
        "by": st.sampled_from([(), ("zone",)]),
        "epsilon": st.sampled_from(["0.3", "0.8", "1.5"]),
    }
)


def asked(session: Session, how: dict[str, Any]) -> Plan:
    more: dict[str, Any] = {}
    if how["kind"] == "count":
        more["values"] = ["ward"]
    if how["kind"] == "top_k":
        more["k"] = 1
    if how["kind"] == "transitions":
        more["by"] = ()
    return session.plan(QueryOptions(**how | more))


def read(how: dict[str, Any]) -> frozenset[int]:
    """The rows that a query is about, by a plain loop."""
    start, end = how["window"] or (None, None)
    zones = ZONES if how["where"] is None else how["where"]["zone"]
    return frozenset(
        i
        for i, (_, step, zone, *_) in enumerate(ROWS)
        if (start is None or step >= start) and (end is None or step < end) and zone in zones
    )


def noisy(how: dict[str, Any], plan: Plan) -> oracle.Noisy:
    """A histogram or a count as the oracle takes it: which rows each number counts."""
    rows = read(how)
    zones = ZONES if how["where"] is None else how["where"]["zone"]
    groups = [rows]
    if how["by"]:
        groups = [frozenset(i for i in rows if ROWS[i][2] == zone) for zone in zones]
    states = (1,) if how["kind"] == "count" else (0, 1)
    scale: float = plan.mechanism.describe()["scale"]
    return oracle.Noisy(tuple((group, state) for group in groups for state in states), scale)


def channel(how: dict[str, Any], plan: Plan) -> oracle.Floats | None:
    """A release as the oracle takes it, ``[output, table]``; None for a ranking."""
    rows = read(how)
    if how["kind"] in ("histogram", "count", "proportions"):
        return oracle.likelihoods(EVERY, noisy(how, plan), 16)
    found = plan.mechanism.describe()
    if how["kind"] == "transitions":
        people = [[i for i in sorted(rows) if ROWS[i][0] == person] for person in ("Ann", "Bea")]
        return oracle.numbers(oracle.steps(EVERY, people), found["scale"], 16)
    groups = [sorted(rows)]
    if how["by"]:
        zones = ZONES if how["where"] is None else how["where"]["zone"]
        groups = [[i for i in sorted(rows) if ROWS[i][2] == zone] for zone in zones]
    values = [2 * EVERY[:, group] for group in groups if group]
    if how["kind"] in ("sum", "mean"):
        sums = np.stack([value.sum(axis=1) for value in values], axis=1)
        return oracle.numbers(sums, found["scale"], 40)
    if how["kind"] == "quantile":
        scale = found["scale"] / found["sensitivity"]["linf"]
        laws = [oracle.quantile(value, 0.5, (0, 1, 2), scale) for value in values]
        joint = laws[0]
        for law in laws[1:]:
            joint = (joint[:, None] * law[None]).reshape(-1, len(EVERY))
        return joint
    return None


def several(kind: str, *choices: dict[str, Any]) -> list[dict[str, Any]]:
    usual = {"kind": kind, "window": None, "where": None, "by": (), "epsilon": "0.8"}
    return [usual | choice for choice in choices]


TWICE = several(
    "histogram", {"where": {"zone": ["a"]}}, {"where": {"zone": ["a"]}, "epsilon": "1.5"}
)
LAP = several("histogram", {"window": (0, 2)}, {"window": (1, 3)}, {"window": (2, None)})


@pytest.mark.costly
@settings(max_examples=12)
@example(queries=TWICE)
@example(queries=LAP)
@given(queries=st.lists(HOW, min_size=1, max_size=3))
def test_the_joint_leakage_is_never_more_than_the_ledger_says(
    engine: Engine, queries: list[dict[str, Any]]
) -> None:
    with fresh(engine, budget=3) as session:
        charges, channels = [], []
        for how in queries:
            if not read(how):
                with pytest.raises(InvalidQuery):
                    asked(session, how)
                continue
            plan = asked(session, how)
            assert (plan.rows_read, plan.rows_there) == (len(read(how)), len(ROWS))
            try:
                answer = session.release(plan, accept_noise=True)
            except OverBudget:
                assert not plan.cost.fits
                continue
            if answer.free:
                continue
            assert plan.cost.fits and session.spent() == plan.cost.after
            charges.append((read(how), float(plan.cost.per_entry)))
            told = channel(how, plan)
            if told is not None:
                channels.append(told)
        spent = session.spent()
    assert spent <= 3
    lost = oracle.sums_of(charges, len(ROWS))
    ann, bea = lost[:4], [*lost[4:], 0.0, 0.0]
    less = all(b <= a for a, b in zip(ann, bea, strict=True))  # more loss never leaks less
    for person in [ann] if less else [ann, bea]:
        if any(person):
            assert translation_exact(EXACT, person).lower <= spent
    assert oracle.joint_leak(EVERY, CHANCES, channels) <= spent * (1 + 1e-9) + 1e-12


# --- the same for numbers: a weight is 2 where the state is 1, and 0 elsewhere ---

WEIGHED = tuple((*row[:4], 2.0 * STATES.index(row[3])) for row in ROWS)
TWO = Amount("weight", Fraction(0), Fraction(2), Fraction(1), Fraction(0))


@pytest.fixture(scope="module")
def scales() -> Iterator[Engine]:
    with example_folder() as folder:
        made = declaration(Path(folder), WEIGHED, protected=(TWO,))
        with open_engine(made, threads=1) as engine:
            yield engine


@pytest.mark.costly
@settings(max_examples=15)
@example(
    queries=several("quantile", {"window": (0, 2)}, {"window": (1, 4), "epsilon": "1.5"})
    + several("mean", {"where": {"zone": ["b"]}})
)
@given(
    queries=st.lists(
        st.fixed_dictionaries(
            {
                "kind": st.sampled_from(["sum", "mean", "quantile"]),
                "window": WINDOWS,
                "where": st.sampled_from([None, {"zone": ["a"]}, {"zone": ["b"]}]),
                "by": st.sampled_from([(), ("zone",)]),
                "epsilon": st.sampled_from(["0.3", "0.8", "1.5"]),
            }
        ),
        min_size=1,
        max_size=3,
    )
)
def test_numbers_leak_no_more_than_the_ledger_says(
    scales: Engine, queries: list[dict[str, Any]]
) -> None:
    with fresh(scales, budget=3, translation=PLAIN) as session:
        channels = []
        for how in queries:
            if not read(how):
                continue
            more: dict[str, Any] = {"level": "0.5"} if how["kind"] == "quantile" else {}
            plan = session.plan(QueryOptions(**how, **more))
            try:
                if not session.release(plan, accept_noise=True).free:
                    channels.append(channel(how, plan))
            except OverBudget:
                assert not plan.cost.fits
        spent = session.spent()
    found = [one for one in channels if one is not None]
    assert len(found) == len(channels)
    assert spent <= 3 and oracle.joint_leak(EVERY, CHANCES, found) <= spent * (1 + 1e-9) + 1e-12


def test_the_test_above_would_see_a_quantile_that_pays_for_a_third(scales: Engine) -> None:
    """The true leak of a median is more than a third of what is charged."""
    how = several("quantile", {"epsilon": "1.5"})[0]
    with fresh(scales, budget=3, translation=PLAIN) as session:
        plan = session.plan(QueryOptions(**how, level="0.5"))
        session.release(plan, accept_noise=True)
        law = channel(how, plan)
        assert law is not None
        assert session.spent() / 3 < oracle.joint_leak(EVERY, CHANCES, [law]) <= session.spent()


# --- and for budgets with a δ: the exact hockey-stick divergence of all answers together ---

COUNTS = st.fixed_dictionaries(
    {
        "window": WINDOWS,
        "where": st.sampled_from([None, {"zone": ["a"]}, {"zone": ["b"]}]),
        "epsilon": st.sampled_from(["0.8", "2"]),
        "smooth": st.booleans(),
    }
)
DELTA = Fraction(1, 100)


def exact_channel(how: dict[str, Any], plan: Plan) -> oracle.Floats:
    """``[table, output]``: every output of a count, and its probability."""
    counts = EVERY[:, sorted(read(how))].sum(axis=1).tolist()
    scale = plan.mechanism.describe()["scale"]
    return exact.channel(counts, (exact.gaussian if how["smooth"] else exact.laplace)(scale))


@pytest.mark.costly
@settings(max_examples=12)
@example(queries=[{"window": None, "where": None, "epsilon": "2", "smooth": s} for s in (1, 0)])
@given(queries=st.lists(COUNTS, min_size=1, max_size=2))
def test_with_a_delta_all_answers_together_keep_the_guarantee(
    engine: Engine, queries: list[dict[str, Any]]
) -> None:
    with fresh(engine, budget=3, delta=DELTA) as session:
        joint = np.ones((len(EVERY), 1))
        for how in queries:
            asking = {key: how[key] for key in ("window", "where", "epsilon")}
            delta = DELTA if how["smooth"] else None
            options = QueryOptions("count", values=["ward"], delta=delta, **asking)
            if not read(how):
                with pytest.raises(InvalidQuery):
                    session.plan(options)
                continue
            plan = session.plan(options)
            try:
                if not session.release(plan, accept_noise=True).free:
                    joint = exact.both(joint, exact_channel(how, plan))
            except OverBudget:
                assert not plan.cost.fits
        spent = session.spent()
    assert spent <= 3
    sides = EVERY.T == 1
    assert exact.worst_delta(joint, CHANCES, sides, spent) <= DELTA + 10 * exact.MISSED


def test_the_test_above_would_see_a_third_of_the_loss(engine: Engine) -> None:
    how = {"window": None, "where": None, "epsilon": "2", "smooth": True}
    with fresh(engine, budget=3, delta=DELTA) as session:
        plan = session.plan.count(["ward"], epsilon=2, delta=DELTA)
        session.release(plan, accept_noise=True)
        spent = session.spent()
    told, sides = exact_channel(how, plan), EVERY.T == 1
    assert exact.worst_delta(told, CHANCES, sides, spent) <= DELTA
    assert exact.worst_delta(told, CHANCES, sides, spent / 3) > DELTA


def test_the_test_above_would_see_two_percent_too_little(engine: Engine) -> None:
    """A histogram of everything leaks nearly all that is charged, by the oracle alone."""
    how = {"kind": "histogram", "window": None, "where": None, "by": (), "epsilon": "1.5"}
    with fresh(engine, budget=3) as session:
        plan = asked(session, how)
        session.release(plan, accept_noise=True)
        spent = session.spent()
    leak = oracle.leak(EVERY, CHANCES, [noisy(how, plan)], most=100)
    assert 0.98 * spent < leak <= spent * (1 + 1e-9)


def test_the_oracle_knows_independent_coins() -> None:
    every, probabilities = oracle.tables((2,), (0.5, 0.5), ((0.5, 0.5), (0.5, 0.5)))
    one = oracle.Noisy(((frozenset({0}), 1),), scale=2.0)
    assert np.isclose(oracle.leak(every, probabilities, [one]), 0.5)
    assert np.isclose(oracle.leak(every, probabilities, [one, one]), 1.0)


@pytest.mark.parametrize("kind", ["histogram", "count"])
def test_what_is_read_is_what_is_charged(engine: Engine, kind: str) -> None:
    """The oracle's rows are the engine's: with hardly any noise the counts agree."""
    with fresh(engine, budget=100_000) as session:
        for window in (None, (0, 2), (2, None), (1, 3)):
            for where in (None, {"zone": ["b"]}):
                how = {"kind": kind, "window": window, "where": where, "by": (), "epsilon": 400}
                plan = asked(session, how)
                truth = [
                    sum(STATES.index(ROWS[i][3]) == state for i in rows)
                    for rows, state in noisy(how, plan).numbers
                ]
                assert session.release(plan, accept_noise=True).column("estimate") == truth


@pytest.mark.parametrize("query", [{"kind": "histogram"}, {"kind": "count", "values": ["ward"]}])
def test_noise_that_would_lose_more_than_was_asked_is_never_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: dict[str, Any]
) -> None:
    """Even if the search for what is allowed were wrong, whatever the budget admits."""
    allowed = Prices.allowed

    def too_much(self: Prices, *given: Any) -> Pure:
        found = allowed(self, *given)
        assert isinstance(found, Pure)
        return Pure(found.epsilon * Fraction(11, 10))

    with opened(tmp_path) as (session, _, _):
        assert session.plan(QueryOptions(**query, epsilon="0.5")).cost.alone <= 0.5
        monkeypatch.setattr(Prices, "allowed", too_much)
        with pytest.raises(UnsoundRequest, match="nothing can be built"):
            session.plan(QueryOptions(**query, epsilon="0.25"))
