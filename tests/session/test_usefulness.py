"""Whether an answer will be worth having: verdicts, advice that works, and the confirmation."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from math import ceil, log, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from takifugu.errors import UnsoundRequest
from takifugu.mechanisms import BoundedMean, BoundedSum
from takifugu.mechanisms.prediction import staircase
from takifugu.session import Plan, Session
from takifugu.session.query.sums import WeightedSum
from takifugu.session.release_errors import MostlyNoise, OverBudget
from takifugu.session.usefulness import (
    NEGLIGIBLE_SHARE,
    AnswerScales,
    answer_scales,
    candidates_above,
    judged,
    least_useful,
    rows_factor,
)
from tests.oracles import usefulness as oracle
from tests.raising import raises
from tests.session.world import PLAIN, ROWS, WEIGHT, opened

FALSE_ALARM = 1e-9  # per test
DRAWS = 40_000
SELECTIONS = 6_000  # each is a call of its own
LOAD = {"load": WeightedSum("weight", "zone", {"a": "1/2", "b": -2})}
Ask = Callable[..., Plan]


def slack(draws: int) -> float:
    """Hoeffding, one side."""
    return sqrt(log(1 / FALSE_ALARM) / (2 * draws))


LABELS: dict[str, Callable[[Any], Ask]] = {
    "histogram": lambda plan: plan.histogram,
    "histogram by zone": lambda plan: lambda **how: plan.histogram(by="zone", **how),
    "proportions": lambda plan: lambda **how: plan.proportions(by="zone", **how),
    "count": lambda plan: lambda **how: plan.count("home", **how),
    "counts": lambda plan: lambda **how: plan.counts(["home", "ward"], **how),
    "top_k": lambda plan: lambda **how: plan.top_k(2, **how),
    "top_k by zone": lambda plan: lambda **how: plan.top_k(1, by="zone", **how),
    "transitions": lambda plan: plan.transitions,
    "marginals": lambda plan: plan.marginals,
}
NUMBERS: dict[str, Callable[[Any], Ask]] = {
    "sum": lambda plan: plan.sum,
    "mean": lambda plan: lambda **how: plan.mean(by="zone", **how),
    "quantile": lambda plan: lambda **how: plan.quantile("0.5", by="zone", **how),
    "a low quantile": lambda plan: lambda **how: plan.quantile("0.1", **how),
    "linear": lambda plan: lambda **how: plan.linear("load", **how),
}
EVERY = [*LABELS, *NUMBERS]


@contextmanager
def asked(
    folder: Path, kind: str, *, times: int = 1, budget: int = 1000, delta: str = "0.000001"
) -> Iterator[tuple[Ask, Session, Any]]:
    """What plans a kind of query on a table that has every row so many times."""
    folder.mkdir(exist_ok=True)
    rows = [(f"{who}{i}", *rest) for i in range(times) for who, *rest in ROWS]
    how: dict[str, Any] = {}
    if kind in NUMBERS:
        how = {"translation": PLAIN, "protected": (WEIGHT,), "how": {"linear": LOAD}}
    with opened(folder, rows=rows, budget=budget, delta=delta, **how) as (session, ledger, _):
        yield (LABELS | NUMBERS)[kind](session.plan), session, ledger


# --- verdicts ---


def scales_of(kind: str, groups: list[int], labels: int, **how: float) -> AnswerScales:
    """Scales as the oracle has them, for `judged` alone."""
    rows = np.array([n for n in groups if n], dtype=np.int64)
    ends = np.array([oracle.scale(kind, int(n), labels, **how) for n in rows])
    low, high, size = ends.T
    noise = np.minimum(5 * size, high - low) if kind in oracle.COUNTED else high - low
    return AnswerScales(
        "a count",
        "counts",
        rows,
        low,
        high,
        size,
        noise,
        error="interval",
        per_row=kind in ("proportions", "mean"),
        name=lambda group: {"group": group},
    )


@given(
    kind=st.sampled_from(("histogram", "proportions", "transitions", "sum", "mean", "quantile")),
    groups=st.lists(st.integers(0, 10**6), min_size=1, max_size=12).filter(any),
    labels=st.integers(1, 50),
    half=st.floats(0, 10**7),
)
@example("histogram", [29], 2, 219.0)  # a ward: noise
@example("proportions", [72, 150, 200, 180], 9, 125.0)  # the weekend: noise
@example("histogram", [3, 1000, 1000], 2, 9.0)  # a small group that does not decide
@example("histogram", [1], 1, 1.0)
@example("histogram", [3000], 246, 175.0)  # below the range, and drowned
@example("histogram", [90], 5, 65.0)  # rough, and hardly seen
@example("histogram", [10**6], 1, 0.0)
def test_verdicts_are_those_of_the_oracle(
    kind: str, groups: list[int], labels: int, half: float
) -> None:
    smallest = min(n for n in groups if n)
    predicted = oracle.half_of_a_group(kind, half, smallest)  # what a plan predicts
    found = judged(scales_of(kind, groups, labels), {"interval": predicted})
    assert found.verdict == oracle.verdict(kind, half, groups, labels)
    each = [
        oracle.of_a_group(
            kind, oracle.half_of_a_group(kind, half, n), *oracle.scale(kind, n, labels)
        )
        for n in groups
        if n
    ]
    ranked = ("useful", "rough", "mostly noise")
    worse = [one for one in each if ranked.index(one) > ranked.index(found.verdict)]
    assert found.worse == len(worse) and (found.worst is None) == (not worse)
    if found.worst is not None:
        assert found.worst.verdict in worse and found.worst.rows == smallest
        held = sum(n for n, one in zip((n for n in groups if n), each, strict=True) if one in worse)
        assert held < NEGLIGIBLE_SHARE * sum(groups)
    assert found.words.startswith(f"{found.verdict}: ")
    shown = found.accuracy
    drowned = oracle.single_numbers_are_noise(
        kind, shown.half_width, *oracle.scale(kind, shown.rows, labels)
    )
    assert found.describe()["single_numbers_are_noise"] == drowned
    assert ("single numbers" in found.words) == (drowned and found.verdict == "rough")
    json.dumps(found.describe(), allow_nan=False)


@pytest.mark.parametrize("half", [28.0, np.nextafter(29, 0), 29.0, 29.5, 30.0])
def test_the_boundaries_are_the_range_and_the_size(half: float) -> None:
    """At the range itself an interval excludes nothing; just below, the ends exclude each other."""
    for groups, noise in (([29], 29), ([29, 29], 29)):
        found = judged(scales_of("histogram", groups, 2), {"interval": half})
        assert (found.verdict == "mostly noise") == (half >= noise)
        assert found.needs_confirmation == (half >= noise)
    assert judged(scales_of("histogram", [58], 2), {"interval": half}).verdict == (
        "useful" if half < 29 else "rough"
    )


@pytest.mark.parametrize("times", [0.99, 1, 2.99, 3, 4.99, 5, 200])
def test_counts_that_drown_in_noise_need_a_confirmation(times: float) -> None:
    """Far below the range of 1,000 rows, for 100 labels; a ranking may have such leads."""
    found = judged(scales_of("histogram", [1000], 100), {"interval": 10 * times})
    verdicts = ("useful",) * (times < 1) + ("rough",) * (times < 5) + ("mostly noise",)
    assert found.verdict == verdicts[0]
    assert found.needs_confirmation == (times >= 5)
    assert ("single numbers" in found.words) == (3 <= times < 5)
    ranking = judged(scales_of("top_k", [1000], 100), {"interval": 10 * times})
    assert ranking.needs_confirmation == (times >= 100)
    wide = judged(scales_of("mean", [5], 1), {"interval": times / 5})
    assert ("single numbers" in wide.words) == (wide.verdict == "rough" and times > 2.5)


def test_an_error_that_is_no_number_is_noise() -> None:
    assert judged(scales_of("mean", [5], 1), {"interval": float("nan")}).needs_confirmation
    assert judged(scales_of("mean", [5], 1), {"interval": float("inf")}).needs_confirmation


@pytest.mark.nightly
@pytest.mark.parametrize("kind", EVERY)
def test_ranges_and_sizes_come_from_what_is_public(tmp_path: Path, kind: str) -> None:
    """The same for other protected values: six rows, three of each zone."""
    with asked(tmp_path / "one", kind) as (ask, session, _):
        plan = ask(epsilon=1)
        scales = answer_scales(plan.query, session._open.engine)
    expected = {
        "histogram": (0, 6, 3),
        "histogram by zone": (0, 3, 1.5),
        "proportions": (0, 1, 0.5),
        "count": (0, 6, 3),
        "counts": (0, 6, 3),
        "top_k": (0, 6, 3),
        "top_k by zone": (0, 3, 1.5),
        "transitions": (0, 6, 1.5),
        "marginals": (0, 6, 3),
        "sum": (0, 24, 6),
        "mean": (0, 4, 1),
        "quantile": (0, 1.5, 0.75),
        "a low quantile": (0, 5.4, 0.3),
        "linear": (-24, 6, 7.5),
    }[kind]
    at = scales.deciding
    found = scales.low[at], scales.high[at], scales.size[at]
    assert found == pytest.approx(expected)
    accuracy = plan.usefulness.accuracy
    assert (accuracy.low, accuracy.high, accuracy.size) == pytest.approx(expected)
    assert accuracy.half_width == pytest.approx(plan.error[scales.error])  # three rows each
    assert plan.usefulness.words in str(plan).splitlines()[1]
    assert plan.describe()["usefulness"]["verdict"] == plan.usefulness.verdict


@pytest.mark.nightly
@settings(max_examples=12, deadline=None)
@given(sizes=st.tuples(st.integers(0, 300), st.integers(1, 300)))
@example((1, 300))
@example((0, 40))
def test_sizes_of_groups_are_those_of_the_table(
    tmp_path_factory: pytest.TempPathFactory, sizes: tuple[int, int]
) -> None:
    rows = [
        (f"{zone}{i}", 0, zone, "home", 1.0) for zone, n in zip("ab", sizes, strict=True)
        for i in range(n)
    ]  # fmt: skip
    with opened(tmp_path_factory.mktemp("sizes"), rows=rows, budget=1000) as (session, _, _):
        for ask in (session.plan.histogram, session.plan.proportions):
            plan = ask(by="zone", epsilon=1)
            noise = plan.mechanism.error().interval
            kind = plan.query.kind
            assert plan.usefulness.verdict == oracle.verdict(kind, noise, list(sizes), 2)
            half = oracle.half_of_a_group(kind, noise, plan.usefulness.accuracy.rows)
            assert plan.usefulness.accuracy.half_width == pytest.approx(half)


# --- what is predicted holds ---


@pytest.mark.nightly
@pytest.mark.parametrize("delta", [None, "0.000001"])
@pytest.mark.parametrize("kind", EVERY)
def test_errors_are_within_the_predicted_half_width(
    tmp_path: Path, kind: str, delta: str | None
) -> None:
    """Drawn by OpenDP on the exact answer of the table, many times in one call."""
    with asked(tmp_path, kind) as (ask, session, _):
        plan = ask(epsilon=2, delta=delta)
        engine, mechanism = session._open.engine, plan.mechanism
        query: Any = plan.query
        exact = np.atleast_1d(query.exact(engine))
        unit = float(query.unit(engine)) if hasattr(query, "unit") else 1.0
    if kind.startswith("top_k"):
        counts = np.round(staircase(2, query.k) * ceil(plan.error["gap"])).astype(np.int64)
        drawn = np.asarray(mechanism.release(np.tile(counts, (SELECTIONS, 1))))
        right = (drawn.reshape(SELECTIONS, -1) == np.arange(query.k)).mean(axis=0)
        assert (right >= 0.95 - slack(SELECTIONS)).all()
        return
    if kind.endswith("quantile"):
        scores = exact.reshape(-1, exact.shape[-1])[0]  # minus the distance of ranks, in 1/q
        drawn = np.ravel(mechanism.release(np.tile(scores, (SELECTIONS, 1))))
        away = -scores[drawn] / query.level.denominator
        half = plan.error["ranks"]
    else:
        if isinstance(mechanism, BoundedMean):
            mechanism = mechanism.total
        if isinstance(mechanism, BoundedSum):
            mechanism = mechanism.noise
        value = int(np.ravel(exact)[0])
        away = np.abs(np.asarray(mechanism.release([value] * DRAWS)) - value) * unit
        half = plan.error["interval"]
    inside = float((away <= half * (1 + 1e-9)).mean())
    assert inside >= 0.95 - slack(len(away))
    assert plan.usefulness.accuracy.half_width <= half * (1 + 1e-9)


# --- what would make it useful ---


def test_a_plan_without_advice_has_the_same_verdict_and_price(tmp_path: Path) -> None:
    with asked(tmp_path, "histogram", times=20) as (ask, session, _):
        plan = ask(epsilon="0.02")
        bare = session.planned(plan.options, advice=False)
    assert plan.usefulness.remedy is not None
    assert bare.usefulness == replace(plan.usefulness, remedy=None)
    assert (bare.cost, bare.error, bare.notes) == (plan.cost, plan.error, plan.notes)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", EVERY)
def test_the_advised_epsilon_is_enough_and_hardly_more(tmp_path: Path, kind: str) -> None:
    with asked(tmp_path, kind, times=20) as (ask, _, _):
        plan = ask(epsilon="0.02")
        assert plan.usefulness.verdict != "useful"
        remedy = plan.usefulness.remedy
        assert remedy is not None and remedy.epsilon is not None and remedy.admitted
        assert f"ε ≥ {remedy.epsilon.normalize():f}" in plan.usefulness.words
        assert ask(epsilon=str(remedy.epsilon)).usefulness.verdict == "useful"
        assert ask(epsilon=float(remedy.epsilon) * 0.85).usefulness.verdict != "useful"


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["histogram", "mean", "quantile", "top_k"])
def test_the_advised_epsilon_works_with_a_delta(tmp_path: Path, kind: str) -> None:
    with asked(tmp_path, kind, times=20) as (ask, _, _):
        plan = ask(epsilon="0.02", delta="0.000001")
        remedy = plan.usefulness.remedy
        assert remedy is not None and remedy.epsilon is not None
        again = ask(epsilon=str(remedy.epsilon), delta="0.000001")
        assert again.usefulness.verdict == "useful"


@pytest.mark.nightly
@pytest.mark.parametrize("kind", EVERY)
def test_the_advised_number_of_rows_is_enough(tmp_path: Path, kind: str) -> None:
    with asked(tmp_path / "few", kind, times=4) as (ask, _, _):
        remedy = ask(epsilon="0.5").usefulness.remedy
        assert remedy is not None
        many = remedy.rows
        assert many >= 2
    with asked(tmp_path / "many", kind, times=4 * many) as (ask, _, _):
        assert ask(epsilon="0.5").usefulness.verdict == "useful"
    if many >= 4:
        with asked(tmp_path / "less", kind, times=2 * many - 2) as (ask, _, _):
            assert ask(epsilon="0.5").usefulness.verdict != "useful"


@pytest.mark.parametrize("budget", [1, 1000])
def test_advice_says_whether_the_budget_admits_it(tmp_path: Path, budget: int) -> None:
    with asked(tmp_path, "histogram", budget=budget) as (ask, session, _):
        remedy = ask(epsilon="0.5").usefulness.remedy
        assert remedy is not None and remedy.epsilon is not None
        assert remedy.admitted == (budget == 1000)
        assert ("budget" in remedy.words) == (budget == 1)
        advised = ask(epsilon=str(remedy.epsilon))
        assert advised.cost.fits == remedy.admitted
        if not remedy.admitted:
            with pytest.raises(OverBudget):  # said before any noise
                session.release(advised)


def test_no_epsilon_is_advised_where_none_is_found() -> None:
    assert least_useful(Fraction(1), lambda _: None) is None
    assert list(candidates_above(float("inf"))) == [] == list(candidates_above(float("nan")))
    assert str(next(candidates_above(2.31))) == "2.4"


@given(half=st.floats(1e-6, 1e12), size=st.floats(1e-6, 1e12))
def test_so_many_rows_are_enough_in_parts_of_the_size(half: float, size: float) -> None:
    times = rows_factor(half, size)
    assert Fraction(half) < Fraction(size) * times
    assert times <= 1.11 * (half / size) + 1.1  # two digits


# --- the confirmation ---


@pytest.mark.nightly
@pytest.mark.parametrize("kind", EVERY)
def test_noise_is_charged_only_if_it_is_confirmed(tmp_path: Path, kind: str) -> None:
    with asked(tmp_path, kind) as (ask, session, ledger):
        plan = ask(epsilon="0.05")
        head = ledger.head()
        assert plan.needs_confirmation
        accuracy, remedy = plan.usefulness.accuracy, plan.usefulness.remedy
        assert remedy is not None
        with raises(
            MostlyNoise,
            half_width=accuracy.half_width,
            range=(accuracy.low, accuracy.high),
            size=accuracy.size,
            name=None,
            epsilon_needed=remedy.epsilon,
            rows_factor=remedy.rows,
            reason="mostly-noise",
        ):
            session.release(plan)
        assert ledger.head() == head and session.spent() == 0
        first = session.release(plan, accept_noise=True)
        again = ask(epsilon="0.05")
        assert again.stored and not again.needs_confirmation
        assert session.release(again).rows == first.rows


def test_what_is_not_true_or_false_confirms_nothing(tmp_path: Path) -> None:
    with asked(tmp_path, "histogram") as (ask, session, ledger):
        plan, head = ask(epsilon="0.05"), ledger.head()
        with raises(UnsoundRequest, field="accept_noise"):
            session.release(plan, accept_noise="no")  # type: ignore[arg-type]
        assert ledger.head() == head


def test_a_plan_that_is_made_to_look_useful_is_refused_all_the_same(tmp_path: Path) -> None:
    with asked(tmp_path / "a", "histogram", times=3000) as (ask, _, _):
        useful = ask(epsilon="0.05").usefulness
    with asked(tmp_path / "b", "histogram") as (ask, session, ledger):
        plan = replace(ask(epsilon="0.05"), usefulness=useful)
        head = ledger.head()
        with pytest.raises(MostlyNoise):
            session.release(plan)
        assert ledger.head() == head


def test_what_is_useful_or_rough_needs_no_confirmation(tmp_path: Path) -> None:
    with asked(tmp_path, "histogram", times=50) as (ask, session, _):
        for epsilon, verdict in (("0.05", "rough"), ("1", "useful")):
            plan = ask(epsilon=epsilon)
            assert plan.usefulness.verdict == verdict
            assert not session.release(plan).free
