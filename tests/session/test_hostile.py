"""What a caller might try: to pay for less than is read, or to read what is not paid for."""

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import takifugu
from takifugu._core.numeric import Integers
from takifugu.costs.losses import Pure
from takifugu.declarations import Category, InvalidDeclaration, InvalidQuery
from takifugu.ledger import Window
from takifugu.mechanisms import COUNT, BoundedSum, IntegerLaplace, PermuteAndFlip
from takifugu.session import Plan, ReleaseFailed, Session, StalePlan
from takifugu.session.query.counts import HistogramQuery
from takifugu.session.query.quantiles import QuantileQuery
from takifugu.session.query_options import QueryOptions
from takifugu.tables import Engine, Scope
from takifugu.tables.scope import Share
from tests.raising import raises
from tests.session.world import PLAIN, ROWS, TRANSLATION, WEIGHT, accept, opened

SECRET = 314159  # a value that no message may hold


def paid(plan: Plan, session: Session, **parts: Any) -> Plan:
    """A plan with other parts, and a charge that agrees with them as far as it can."""
    forged = replace(plan, **parts)
    charge = session._plans.charge(
        forged.query,
        forged.mechanism,
        forged.mechanism.loss,  # type: ignore[arg-type]
        session._open.engine.fingerprint(),
    )
    return replace(forged, charge=charge)


def refused(session: Session, ledger: Any, *plans: Plan) -> None:
    head = ledger.head()
    for plan in plans:
        with pytest.raises(StalePlan):
            session.release(plan, accept_noise=True)
    assert ledger.head() == head


@dataclass(frozen=True)
class Cheap(IntegerLaplace):
    """Noise that says it loses less than it does."""

    @property
    def loss(self) -> Pure:
        """Too little."""
        return Pure("0.001")


@dataclass(frozen=True)
class Everything(HistogramQuery):
    """A histogram that reads all rows, whatever it is charged for."""

    def exact(self, engine: Engine) -> Integers:
        """Of everything."""
        return engine.histogram((self.column,)).counts


def test_noise_must_be_for_the_query(tmp_path: Path) -> None:
    """Half the sensitivity would be half the price for the same noise."""
    with opened(tmp_path) as (session, ledger, _):
        plan = session.plan.histogram(epsilon=1)
        noise: Any = plan.mechanism
        refused(
            session,
            ledger,
            paid(plan, session, mechanism=IntegerLaplace(noise.scale, COUNT)),
            paid(plan, session, mechanism=Cheap(noise.scale, noise.sensitivity)),
            paid(plan, session, mechanism=PermuteAndFlip(noise.scale)),
            replace(plan, mechanism=Cheap(noise.scale, noise.sensitivity)),
        )
        wide = paid(plan, session, mechanism=IntegerLaplace(3 * noise.scale, noise.sensitivity))
        refused(session, ledger, wide)  # more noise for less: not what the options lead to
        best = session.plan.top_k(2, epsilon=1)
        named: Any = best.mechanism
        assert named.k == 2
        refused(session, ledger, paid(best, session, mechanism=replace(named, k=1)))


def test_bounds_and_sizes_must_be_those_of_the_data(tmp_path: Path) -> None:
    how: dict[str, Any] = {"protected": (WEIGHT,), "translation": PLAIN}
    with opened(tmp_path, **how) as (session, ledger, _):
        total: Any = session.plan.sum(epsilon=1)
        mean: Any = session.plan.mean(by="zone", epsilon=1)
        level: Any = session.plan.quantile("0.5", epsilon=1)
        narrow = replace(total.mechanism.bounds, high=Fraction(1, 2))
        small = IntegerLaplace(total.mechanism.noise.scale, COUNT)
        refused(
            session,
            ledger,
            paid(total, session, mechanism=BoundedSum(narrow, small)),
            paid(mean, session, mechanism=replace(mean.mechanism, entries=(30, 30))),
            paid(level, session, mechanism=replace(level.mechanism, sensitivity=1)),
            paid(level, session, query=replace(level.query, level=Fraction(1, 3))),
        )


def test_rows_that_are_read_are_rows_that_are_charged(tmp_path: Path) -> None:
    with opened(tmp_path) as (session, ledger, _):
        plan = session.plan.histogram(window=(0, 1), epsilon=1)
        rows = plan.query.rows
        refused(
            session,
            ledger,
            paid(plan, session, query=replace(plan.query, rows=replace(rows, scope=Scope()))),
            paid(plan, session, query=replace(plan.query, rows=replace(rows, window=Window(3, 4)))),
            paid(
                plan,
                session,
                query=replace(
                    plan.query,
                    rows=replace(
                        rows,
                        scope=replace(rows.scope, entities=Share("", Fraction(0), Fraction(1))),
                    ),
                ),
            ),
            paid(plan, session, query=Everything("state", (), rows)),
            paid(plan, session, query=replace(plan.query, by=("state",))),
            paid(plan, session, query=QuantileQuery("state", (), rows)),
        )


def test_a_key_is_the_one_that_is_charged(tmp_path: Path) -> None:
    """True equals 1 in Python and would choose its rows, on an account of its own."""
    rows = [("Ann", 0, 1, "home", 0), ("Ann", 1, 2, "ward", 0)]
    public = (Category("zone", (1, 2), "refuse"),)
    with opened(tmp_path, rows=rows, public=public, budget=3) as (session, _, _):
        session.release(session.plan.histogram(where={"zone": [1]}, epsilon=1), accept_noise=True)
        for key in (True, 1.0, np.int64(1), None):
            with raises(InvalidQuery, field="where, zone"):
                session.plan.histogram(where={"zone": [key]}, epsilon=1)  # type: ignore[list-item]


def test_a_list_that_grows_after_it_was_priced_changes_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, budget=2000) as (session, _, _):
        zones = ["a"]
        plan = session.plan.histogram(where={"zone": zones}, epsilon=400)
        zones.append("b")
        assert session.release(plan, accept_noise=True).column("estimate") == [2, 1]


def test_options_are_what_is_planned_anew(tmp_path: Path) -> None:
    """The options of another plan, options that were changed, and options that are not ours."""

    class Later(QueryOptions):
        """Options that are something else when they are read again."""

        window: Any = property(lambda _: (0, 1))

    with opened(tmp_path) as (session, ledger, _):
        plan = session.plan.histogram(where={"zone": ["a"]}, epsilon=1)
        cheap = session.plan.histogram(where={"zone": ["a"]}, epsilon="0.1")
        mutated = session.plan.histogram(where={"zone": ["a"]}, epsilon=1)
        mutated.options.where["zone"] = ("a", "b")  # type: ignore[index]
        forced = QueryOptions("histogram", epsilon=1)
        object.__setattr__(forced, "k", 3)
        with raises(InvalidQuery, field="k"):
            session.plan(forced)
        raised = session.plan.histogram(epsilon=1)
        object.__setattr__(raised.options, "epsilon", 2)
        other = object.__new__(Later)
        for part in fields(QueryOptions):
            if part.name != "window":
                object.__setattr__(other, part.name, getattr(plan.options, part.name))
        refused(
            session,
            ledger,
            replace(plan, options=cheap.options),
            replace(cheap, options=plan.options),
            replace(plan, error=cheap.error),
            mutated,
            raised,
            replace(plan, options=other),
        )
        assert not session.release(plan, accept_noise=True).free


def test_a_plan_tells_nothing_that_is_the_owners(tmp_path: Path) -> None:
    with opened(tmp_path) as (session, _, engine):
        plan = session.plan.histogram(epsilon=1)
        mark = engine.fingerprint().fingerprint
        assert mark not in plan.charge.data  # only its keyed mark is
        for text in (repr(plan), str(plan), json.dumps(plan.describe())):
            assert mark not in text


@pytest.mark.parametrize("broken", [KeyError(SECRET), ValueError(f"bad value {SECRET}")])
def test_what_breaks_after_the_charge_tells_nothing_of_what_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: Exception
) -> None:
    def read(*_: Any) -> Integers:
        seen = SECRET + 0  # in a frame that a traceback would show
        assert seen
        raise broken

    with opened(tmp_path) as (session, _, _):
        plan = session.plan.histogram(epsilon=1)
        monkeypatch.setattr(HistogramQuery, "exact", read)
        with pytest.raises(ReleaseFailed) as told:
            session.release(plan, accept_noise=True)
        assert session.spent() == plan.cost.after
    assert told.value.__context__ is None and told.value.__cause__ is None
    assert str(SECRET) not in everything_told(told.value)


def test_a_declared_rule_that_fails_after_the_charge_is_told_without_its_value(
    tmp_path: Path,
) -> None:
    rows = [*ROWS, ("Bea", 2, "a", str(SECRET), 0.0)]
    with opened(tmp_path, rows=rows) as (session, _, _):
        with pytest.raises(InvalidDeclaration, match="outside its declared list") as told:
            session.release(session.plan.histogram(epsilon=1), accept_noise=True)
        assert session.spent() > 0
    assert str(SECRET) not in everything_told(told.value)


def everything_told(error: BaseException) -> str:
    """The message, every frame and every value in it, from where it left the session."""
    frames = traceback.TracebackException.from_exception(error, capture_locals=True)
    package = str(Path(takifugu.__file__).parent)
    inside = [frame for frame in frames.stack if frame.filename.startswith(package)]
    assert inside
    locals_seen = [str(frame.locals) for frame in inside]
    return "\n".join([str(error), *map(str, frames.format_exception_only()), *locals_seen])


KINDS: list[tuple[str, Callable[[Session], Plan]]] = [
    ("histogram", lambda s: s.plan.histogram(by="zone", window=(0, 3), epsilon=1)),
    ("count", lambda s: s.plan.count(["ward"], within=3)),
    ("proportions", lambda s: s.plan.proportions(epsilon=1)),
    ("top_k", lambda s: s.plan.top_k(1, gap=2, confidence=0.9)),
    ("transitions", lambda s: s.plan.transitions(epsilon=1)),
]
AMOUNTS: list[tuple[str, Callable[[Session], Plan]]] = [
    ("sum", lambda s: s.plan.sum(by="zone", epsilon=1)),
    ("mean", lambda s: s.plan.mean(by="zone", within=3)),
    ("quantile", lambda s: s.plan.quantile("0.5", by="zone", epsilon=1)),
]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("column", "kind", "plan"),
    [("state", *one) for one in KINDS] + [("weight", *one) for one in AMOUNTS],
)
def test_nothing_protected_is_read_before_the_charge_is_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    column: str,
    kind: str,
    plan: Callable[[Session], Plan],
) -> None:
    how: dict[str, Any] = {"protected": (WEIGHT,), "translation": PLAIN}
    with opened(tmp_path, **(how if column == "weight" else {})) as (session, ledger, engine):
        spent_when_read: list[float] = []
        rows = engine._backend.rows

        def watched(sql: str) -> list[tuple[Any, ...]]:
            if f'"{column}"' in sql:
                spent_when_read.append(session.spent())
            return rows(sql)

        monkeypatch.setattr(engine._backend, "rows", watched)
        Session(engine, session._open.prior, ledger=ledger, dataset="visits").guarantee()
        made = plan(session)
        assert made.query.kind == kind and not spent_when_read
        session.release(made, accept_noise=True)
        assert spent_when_read and min(spent_when_read) == made.cost.after
        seen = len(spent_when_read)
        assert (
            session.release(made, accept_noise=True).free and len(spent_when_read) == seen
        )  # not read again


SCRIPT = """
import os, sys
from pathlib import Path
from takifugu.tables import Engine
from tests.session.world import opened
Engine.histogram = lambda *_: os._exit(9)  # the machine stops while the answer is computed
with opened(Path(sys.argv[1])) as (session, ledger, engine):
    session.release(session.plan.histogram(epsilon=1), accept_noise=True)
"""


def environment() -> dict[str, str]:
    """The same packages, and the tests, for another process."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.mark.nightly
def test_a_machine_that_stops_after_the_charge_has_paid(tmp_path: Path) -> None:
    ended = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, "-c", SCRIPT, str(tmp_path)], check=False, env=environment()
    )
    assert ended.returncode == 9
    with opened(tmp_path) as (session, ledger, _):
        plan = session.plan.histogram(epsilon=1)
        assert not plan.stored and plan.cost.before == plan.cost.alone > 0
        again = session.release(plan, accept_noise=True)
        assert not again.free  # paid again: the first noise may have been seen
        (worst,) = ledger.positions()[0].worst
        assert worst.epsilon == 2 * plan.cost.per_entry
        assert ledger.verify().sound


def test_two_protected_columns_have_two_budgets(tmp_path: Path) -> None:
    both = (Category("state", ("home", "ward"), "refuse"), WEIGHT)
    how = {"about": "state"}
    with opened(tmp_path, protected=both, how=how) as (states, ledger, engine):
        ledger.set_budget("visits, weight", 2)
        weights = Session(engine, PLAIN, ledger=ledger, dataset="visits, weight", about="weight")
        states.release(states.plan.histogram(epsilon=1), accept_noise=True)
        assert states.spent() > 0 == weights.spent()
        weights.release(weights.plan.sum(epsilon=1), accept_noise=True)
        assert weights.about == "weight" and weights.spent() > 0
        with raises(InvalidQuery, field="weight"):
            states.plan.sum("weight", epsilon=1)
        assert "`weight` alone" in weights.guarantee() and "`state` alone" in states.guarantee()


def test_a_new_prior_sees_all_that_was_spent_under_the_old_one(tmp_path: Path) -> None:
    from takifugu.priors import MarkovChain
    from takifugu.translation.translation import Translation

    sticky = Translation(
        MarkovChain(np.array([[0.99, 0.01], [0.01, 0.99]]), states=("home", "ward"), length=4)
    )
    with opened(tmp_path, budget=2) as (session, ledger, engine):
        plan = session.plan.histogram(epsilon=1)
        session.release(plan, accept_noise=True)
        accept(ledger, sticky)
        harder = Session(engine, sticky, ledger=ledger, dataset="visits")
        assert (
            harder.spent()
            == float(sticky.to_pufferfish(float(plan.cost.per_entry)))
            > session.spent()
        )
        more = harder.plan.count(["ward"], epsilon="0.1")
        assert more.cost.before == harder.spent() and more.cost.fits
        assert harder.release(more, accept_noise=True).cost.after == harder.spent()
        assert session.spent() == TRANSLATION.to_pufferfish(
            float(plan.cost.per_entry + more.cost.per_entry)
        )
