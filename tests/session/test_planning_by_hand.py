"""The parts of planning, one by one, on accounts and queries that are written by hand."""

from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from takifugu.costs import Cost, Membership
from takifugu.engines import InvalidQuery
from takifugu.errors import UnsoundRequest
from takifugu.losses import Approximate, Concentrated, Metric, Pure
from takifugu.priors import AR1, Gaussian, MarkovChain, Product
from takifugu.session import planning
from takifugu.session.planning import NAMED, QueryPlanning, _epsilon, _loss, refuse_stale
from takifugu.session.protected_values import WHOLLY
from takifugu.session.query.query import Aim, ChosenMechanism, NumberQuery
from takifugu.session.query.top_k import TopKQuery
from takifugu.session.query_options import QueryOptions
from takifugu.session.query_planner import refuse_unserved
from takifugu.session.release_cost import Prices
from takifugu.session.release_errors import MostlyNoise, SessionClosed, StalePlan
from takifugu.session.release_plan import UnpricedPlan
from tests.ledger.charges import DOUBLING
from tests.raising import raises
from tests.session.test_prices import standing
from tests.session.test_usefulness import scales_of
from tests.session.world import CHAIN

pytestmark = pytest.mark.nightly

NONE = Fraction(0)
HOME = Cost.of({Membership(["home"]): 1})
SCALES = scales_of("histogram", [58], 2)  # useful below 29, mostly noise from 58 on


def mechanism(loss: Any, **body: Any) -> Any:
    return SimpleNamespace(loss=loss, describe=lambda: {"kind": "noise", **body})


class Noisy:
    """A query whose error is 29 at a loss of 1, and less at more."""

    kind = "histogram"

    def __init__(self, error: Any = lambda amount: 29 / amount) -> None:
        self.error, self.aims = error, list[Aim]()

    def choose(self, _engine: Any, aim: Aim) -> ChosenMechanism:
        """Noise that loses what is allowed."""
        self.aims.append(aim)
        loss: Any = aim.allowed
        amount = loss.rho if isinstance(loss, Concentrated) else loss.epsilon
        return ChosenMechanism(mechanism(loss), {"interval": float(self.error(amount))}, "why")


def made(query: Any, loss: Any = None, **changes: Any) -> UnpricedPlan:
    parts: dict[str, Any] = {
        "options": QueryOptions("histogram", epsilon=1),
        "query": query,
        "mechanism": mechanism(loss or Pure(Fraction(1, 2))),
        "error": {"interval": 58.0},
        "reason": "why",
        "delta": NONE,
        "unit": WHOLLY,
        "otherwise": None,
        "charge": "the charge",
        "reads": None,
    }
    return UnpricedPlan(**(parts | changes))


def half(**parts: Any) -> Any:
    """A half of a session with these parts alone."""
    found = QueryPlanning()
    found._engine = SimpleNamespace(may_change=False)  # type: ignore[assignment]
    found._prices = Prices("ward", DOUBLING)
    for name, part in parts.items():
        setattr(found, f"_{name}", part)
    return found


def quoted(*standings: Any, reuse: bool = False, stored: bool = False) -> Any:
    return SimpleNamespace(standings=standings, reuse=reuse, stored=stored)


WHOLE, SMALL = standing(DOUBLING, "4"), standing(DOUBLING, "2")
MINE, LITTLE = (standing(DOUBLING, budget, analyst="Ann") for budget in ("4", "2"))


# --- what would make an answer useful ---


@pytest.mark.parametrize(
    ("standings", "reuse", "admitted"),
    [
        ((WHOLE,), False, True),
        ((SMALL,), False, False),
        ((WHOLE, MINE), False, True),
        ((WHOLE, LITTLE), False, False),
        ((SMALL, MINE), False, False),
        ((SMALL, MINE), True, True),  # another analyst's answer costs this one's budget alone
        ((WHOLE, LITTLE), True, False),
        ((SMALL,), True, True),
    ],
)
def test_an_advised_epsilon_is_admitted_by_every_account_that_pays(
    standings: tuple[Any, ...], reuse: bool, admitted: bool
) -> None:
    found = half()._useful_epsilon(made(Noisy()), quoted(*standings, reuse=reuse), SCALES)
    assert found == (Decimal("2.1"), admitted)  # a loss of a little more than 1, counted twice


def test_an_error_at_the_limit_is_not_useful_yet() -> None:
    query = Noisy(lambda amount: 29 if amount < Fraction(6, 5) else 20)
    epsilon, _ = half()._useful_epsilon(made(query), quoted(WHOLE), SCALES)
    assert epsilon == Decimal("2.5")
    assert all(aim.delta is None and isinstance(aim.allowed, Pure) for aim in query.aims)


class Grudging:
    """Prices that allow less than a price, and nothing at first."""

    def __init__(self, share: Fraction, refused: int = 0) -> None:
        self.share, self.refused, self.asked = share, refused, list[tuple[Any, ...]]()

    def apart(self) -> "Grudging":
        """The same."""
        return self

    def alone(self, loss: Any, delta: Fraction) -> float:
        """The same for all, and for what it was asked."""
        self.priced = loss, delta
        return 2.0

    def allowed(self, epsilon: Decimal, delta: Any, unit: Cost) -> Any:
        """A share of what is asked for."""
        self.asked.append((epsilon, delta, unit))
        if len(self.asked) <= self.refused:
            raise UnsoundRequest("below the table", field="epsilon")
        amount = Fraction(epsilon) * self.share
        return Pure(amount) if delta is None else Concentrated(amount)


TRIED = ["2", "2.1", "2.3", "2.7", "4"]  # two digits, of floats rounded up


@pytest.mark.parametrize(
    ("share", "refused", "tried", "found"),
    [
        (Fraction(1), 0, 1, "2"),
        (Fraction(1), 1, 2, "2.1"),
        (Fraction(1), 4, 5, "4"),
        (Fraction(1), 5, 5, None),
        (Fraction(1, 2), 0, 2, "2.1"),  # half of 2 is at the limit
        (Fraction(2, 5), 0, 4, "2.7"),
        (Fraction(1, 5), 0, 5, None),
    ],
)
def test_an_epsilon_is_advised_only_if_its_plan_is_useful(
    share: Fraction, refused: int, tried: int, found: str | None
) -> None:
    prices = Grudging(share, refused)
    plan = made(Noisy(), unit=HOME)
    epsilon, admitted = half(prices=prices)._useful_epsilon(plan, quoted(), SCALES)
    assert epsilon == (None if found is None else Decimal(found)) and admitted == (
        found is not None
    )
    assert [str(one) for one, *_ in prices.asked] == TRIED[:tried]
    assert {(delta, unit) for _, delta, unit in prices.asked} == {(None, HOME)}
    loss, delta = prices.priced
    assert isinstance(loss, Metric) and delta == 0 and 1 < loss.epsilon < Fraction(102, 100)


def test_with_a_delta_the_loss_is_in_rho() -> None:
    prices, query, delta = Grudging(Fraction(1)), Noisy(), Fraction(1, 1024)
    options = QueryOptions("histogram", epsilon=1, delta="0.0009765625")
    plan = made(query, Concentrated(Fraction(1, 2)), options=options, delta=delta)
    account = SimpleNamespace(analyst=None, admits=lambda loss: loss == Concentrated(2))
    found = half(prices=prices)._useful_epsilon(plan, quoted(account), SCALES)
    assert found == (Decimal(2), True) and prices.asked == [(Decimal(2), delta, WHOLLY)]
    assert all(isinstance(aim.allowed, Concentrated) for aim in query.aims)
    assert {aim.delta for aim in query.aims} == {1 / 1024}
    assert prices.priced[1] == delta and query.aims[0].allowed == Concentrated(1)


def test_where_no_loss_makes_it_useful_none_is_advised() -> None:
    query = Noisy(lambda _: 29)
    assert half()._useful_epsilon(made(query), quoted(WHOLE), SCALES) == (None, False)


@pytest.mark.parametrize(
    ("interval", "stored", "remedied"),
    [(28.9, False, False), (29.0, False, True), (58.0, False, True), (58.0, True, False)],
)
def test_a_remedy_is_for_what_costs_and_is_not_useful(
    monkeypatch: pytest.MonkeyPatch, interval: float, stored: bool, remedied: bool
) -> None:
    monkeypatch.setattr(planning, "answer_scales", lambda *_: SCALES)
    plan = made(Noisy(), error={"interval": interval})
    found = half()._usefulness(plan, quoted(WHOLE, stored=stored))
    assert (found.remedy is not None) == remedied
    if found.remedy is not None:
        assert (found.remedy.epsilon, found.remedy.admitted) == (Decimal("2.1"), True)
        assert found.remedy.rows == (2 if interval == 29 else 3)


@pytest.mark.parametrize("stored", [False, True])
def test_what_is_mostly_noise_is_refused_with_its_numbers(
    monkeypatch: pytest.MonkeyPatch, stored: bool
) -> None:
    monkeypatch.setattr(planning, "answer_scales", lambda *_: SCALES)
    rough = made(Noisy(), error={"interval": np.nextafter(58, 0)})
    half()._refuse_noise(rough, quoted(WHOLE))
    with raises(
        MostlyNoise,
        half_width=58.0,
        range=(0.0, 58.0),
        size=29.0,
        epsilon_needed=None if stored else Decimal("2.1"),
        rows_factor=None if stored else 3,
    ):
        half()._refuse_noise(made(Noisy()), quoted(WHOLE, stored=stored))


# --- answers of earlier versions ---


class Numbers(NumberQuery):
    """Laplace noise, whose loss is one over its scale."""

    def __init__(self) -> None:
        self.scales: list[float] = []

    def check(self, declaration: Any) -> None:
        """Not called."""

    def exact(self, engine: Any) -> Any:
        """Not called."""

    def sensitivity(self, declaration: Any) -> Any:
        """Not called."""

    def chosen_before(self, scale: float, engine: Any) -> ChosenMechanism:
        """Noise of this scale."""
        del engine
        self.scales.append(scale)
        return ChosenMechanism(mechanism(Pure(1 / Fraction(scale))), {"then": scale}, "before")


def before(
    released: list[Any], answered: Any = lambda _: True, query: Any = None, **options: Any
) -> Any:
    """What is found if so much was released, and ``answered`` says which charges are stored."""
    session = half(ledger=SimpleNamespace(released=lambda _: released))
    session._engine.fingerprint = lambda: "found"
    session._charge = lambda _query, noise, loss, found: (noise.loss, loss, found)
    session._quote = lambda _, charge: quoted(
        stored=charge != "the charge" and answered(charge), reuse=False
    )
    asked = QueryOptions("histogram", **(options or {"epsilon": 1}))
    plan = made(query or Numbers(), Pure(1), options=asked)
    return plan, session._released_before(plan)


def of_scale(scale: float, loss: Any = None) -> Any:
    return {"scale": scale}, loss or Pure(1 / Fraction(scale))


@pytest.mark.parametrize(
    ("scale", "taken"), [(0.5, False), (0.875, False), (1.0, True), (1.25, True), (1.375, False)]
)
def test_an_answer_of_a_little_more_noise_is_the_same_release(scale: float, taken: bool) -> None:
    plan, found = before([of_scale(scale)])
    assert (found is not None) == taken
    if found is not None:
        loss = Pure(1 / Fraction(scale))
        assert found.charge == (loss, loss, "found") and found.mechanism.loss == loss
        assert (found.error, found.reason) == ({"then": scale}, "before")
        assert (found.query, found.options) == (plan.query, plan.options)


def test_the_last_answer_that_is_stored_is_taken() -> None:
    released = [of_scale(1.125), of_scale(1.25), ({}, Pure(1)), of_scale(1.0, Concentrated(1))]
    plan, found = before(released)
    assert found.error == {"then": 1.25} and plan.query.scales == [1.25]
    plan, found = before(released, lambda charge: charge[0] == Pure(Fraction(8, 9)))
    assert found.error == {"then": 1.125} and plan.query.scales == [1.25, 1.125]
    assert before(released, lambda _: False)[1] is None
    assert before([of_scale(1.125, Pure(Fraction(9, 10)))])[1] is None  # noise of another loss
    assert before([])[1] is None


def test_only_noise_on_numbers_at_an_epsilon_was_charged_otherwise() -> None:
    assert before([of_scale(1.0)], query=Noisy())[1] is None
    assert before([of_scale(1.0)], within=3)[1] is None


@pytest.mark.parametrize(("stored", "reuse"), [(True, False), (False, True)])
def test_what_is_answered_as_it_is_charged_now_is_that(stored: bool, reuse: bool) -> None:
    session = half()
    session._quote = lambda *_: quoted(stored=stored, reuse=reuse)
    plan = made(Noisy(), options=QueryOptions("histogram", within=3))
    assert session._released_before(plan) is plan


@pytest.mark.parametrize(("stored", "reuse"), [(True, False), (False, True), (False, False)])
def test_a_mechanism_of_an_earlier_version_counts_if_it_was_answered(
    stored: bool, reuse: bool
) -> None:
    session, query = half(), Noisy()
    session._engine.fingerprint = lambda: "found"
    session._charge = lambda _query, noise, loss, found: (noise.loss, loss, found)
    session._quote = lambda _, charge: quoted(
        stored=stored and charge[0] == Pure(3), reuse=reuse and charge[0] == Pure(3)
    )
    chosen = [ChosenMechanism(mechanism(Pure(n)), {"n": n}, f"{n}") for n in (2, 3)]
    query.chosen_earlier = lambda _engine, aim: query.aims.append(aim) or chosen  # type: ignore
    found = session._answered_earlier(made(query))
    assert query.aims == [Aim(Pure(Fraction(1, 2)))]  # what an ε of 1 allows
    assert (found is not None) == (stored or reuse)
    if found is not None:
        assert (found.error, found.reason, found.mechanism.loss) == ({"n": 3}, "3", Pure(3))
        assert found.charge == (Pure(3), Pure(3), "found")


# --- small parts ---


def test_an_aim_is_an_allowance_or_an_error() -> None:
    ranked = QueryOptions("top_k", k=1, confidence=0.9, gap=2.0)
    aim = half()._aim
    assert aim(ranked, epsilon=None, unit=WHOLLY) == Aim(confidence=0.9, gap=2.0)
    assert aim(ranked, epsilon=1, unit=WHOLLY) == Aim(Pure(Fraction(1, 2)), gap=2.0)
    near = QueryOptions("histogram", within=3, delta="0.0009765625")
    assert aim(near, epsilon=None, unit=WHOLLY) == Aim(delta=1 / 1024, within=near.within)
    third = QueryOptions("histogram", within=3, delta=Fraction(1, 3))
    assert aim(third, epsilon=None, unit=WHOLLY).delta == 1 / 3  # the float below it


def test_a_loss_is_charged_by_what_the_answer_tells() -> None:
    assert _loss(mechanism(Pure(2)), WHOLLY) == Pure(2)
    assert _loss(mechanism(Pure(2)), HOME) == Metric(HOME * 2)
    assert _loss(mechanism(Concentrated(2)), HOME) == Concentrated(2)
    with raises(UnsoundRequest):
        _loss(mechanism(Approximate(Fraction(1), Fraction(1, 10))), WHOLLY)
    assert _epsilon(made(Noisy(), Pure(2))) == 2 and _epsilon(made(Noisy(), Concentrated(2))) == 0


def test_a_closed_session_and_a_stale_plan_are_refused() -> None:
    half(closed=False)._refuse_closed()
    with raises(SessionClosed):
        half(closed=True)._refuse_closed()
    plan = made("one")
    refuse_stale(plan, made("one", mechanism=plan.mechanism))
    with raises(StalePlan):
        refuse_stale(plan, made("another", mechanism=plan.mechanism))


@pytest.mark.parametrize("over", [*NAMED, "sequence", "row"])
@pytest.mark.parametrize("may_change", [True, False])
def test_rows_are_matched_again_where_they_have_names_or_may_change(
    monkeypatch: pytest.MonkeyPatch, over: str, may_change: bool
) -> None:
    matched: list[tuple[Any, ...]] = []
    fitted: list[tuple[Any, ...]] = []
    monkeypatch.setattr(planning, "refuse_unmatched", lambda *given: matched.append(given))
    entries = {"a": SimpleNamespace(over="sequence"), "b": SimpleNamespace(over=over)}
    session = half(
        entries=entries,
        prior=SimpleNamespace(priors="priors"),
        releasable=SimpleNamespace(refuse_fitted=lambda *given: fitted.append(given)),
        engine=SimpleNamespace(may_change=may_change, declaration="declared"),
    )
    session._refuse_rows(SimpleNamespace(rows=SimpleNamespace(scope=SimpleNamespace(start=3))))
    assert fitted == [(3, "declared")]
    again = may_change or over in ("entities", "household", "entities × sequence")
    assert matched == ([("priors", entries, session._engine)] if again else [])


def test_data_is_marked_once_and_not_if_the_ledger_knows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[tuple[Any, ...]] = []

    def identities(*given: Any) -> list[tuple[str, Any]]:
        looked.append(given)
        return [("file", "x"), ("rows", 3)]

    monkeypatch.setattr(planning, "identities", identities)
    ledger = SimpleNamespace(
        mark=lambda kind, what: f"<{kind}:{what}>",
        marks_elsewhere=lambda found: tuple(kind for kind, _ in found),
        knows_data=lambda dataset, data: (dataset, data) == ("ward", "known"),
    )
    session = half(ledger=ledger, dataset="ward", columns=("state",), sources={})
    assert session._marks("known") == ((), ()) and not looked
    marks = ("file <file:x>", "rows <rows:3>"), ("file", "rows")
    assert session._marks("new") == session._marks("new") == marks
    assert looked == [(session._engine, ("state",))]
    assert session._sources == {"new": marks}  # of the last data alone


# --- which query a prior serves ---


UNBOUNDED = Gaussian(AR1(0.5))
PEOPLE = Product({"Ann": CHAIN, "Bea": CHAIN})
FOREVER = MarkovChain(np.array([[0.8, 0.2], [0.3, 0.7]]))


@pytest.mark.parametrize(
    ("prior", "over", "order", "distance", "reason"),
    [
        (CHAIN, "row", True, False, "no-order"),
        (CHAIN, "entities", True, True, "no-order"),
        (CHAIN, "sequence", True, False, None),
        (CHAIN, "row", False, False, None),
        (PEOPLE, "entities", True, False, None),
        (FOREVER, "sequence", True, False, None),
        (Gaussian(AR1(0.5), 4), "sequence", False, False, None),
        (UNBOUNDED, "sequence", False, False, "no-finite-price"),
        (UNBOUNDED, "sequence", False, True, None),
        (Product({"Ann": Gaussian(AR1(0.5), 4), "Bea": UNBOUNDED}), "sequence", False, False,
         "no-finite-price"),
    ],
)  # fmt: skip
def test_a_query_is_refused_by_the_prior_that_cannot_serve_it(
    prior: Any, over: str, order: bool, distance: bool, reason: str | None
) -> None:
    query: Any = SimpleNamespace(needs_order=order, by_distance=distance, kind="histogram")
    priors, read = {"other": CHAIN, "it": prior}, {"other": "sequence", "it": over}
    if reason is None:
        refuse_unserved(query, priors, read)
        return
    with raises(InvalidQuery, field="kind", reason=reason):
        refuse_unserved(query, priors, read)


def test_a_ranking_names_one_label_unless_more_are_asked_for() -> None:
    rows: Any = None
    asked: Any = SimpleNamespace(k=None, by=("zone",), leave_out=("x",))
    found = TopKQuery.of(asked, None, ("state", "job"), rows)  # type: ignore[arg-type]
    assert (found.k, found.column, found.beside) == (1, "state", ("job",))
    assert (found.by, found.leave_out) == (("zone",), ("x",))
    asked.k = 3
    assert TopKQuery.of(asked, None, ("state",), rows).k == 3  # type: ignore[arg-type]
