"""What was spent of the budgets of a dataset: under its policy, and under other priors.

The ledger holds what every row has lost, exactly and before any translation: by value, by stretch
of time, by public group, with δ and ρ. Another prior is another translation of the same totals, so
that nothing has to be released, read or charged to know what it would mean. A prior that is
compared must be about these rows: it is held to the checks of a prior of the policy.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from pathlib import Path
from typing import Any

from takifugu._core.rounding import float_down
from takifugu.costs.cost import ANY, Column, Cost
from takifugu.costs.losses import Metric, Pure, Total
from takifugu.errors import UnsoundRequest
from takifugu.ledger import Cells, Event, Ledger, Position, Reading
from takifugu.ledger.account import WHOLE, charged
from takifugu.ledger.charge_values import EPOCH, loss_of
from takifugu.ledger.frontier import Frontier
from takifugu.ledger.limits import spent_epsilon, to_pufferfish
from takifugu.priors import read_prior
from takifugu.project.loaded_dataset import LoadedDataset
from takifugu.project.policy import PriorPolicy
from takifugu.project.project import Project
from takifugu.session.release_cost import Prices, beside_what_is_left
from takifugu.tables import open_engine
from takifugu.tables.opening import BackendName
from takifugu.translation.protocol import LossTranslation
from takifugu.translation.rows.row_translation import RowTranslation
from takifugu.translation.translation import Translation


@dataclass(frozen=True)
class StretchLoss:
    """The Pufferfish ε that the rows in a stretch of the order have lost at worst.

    Attributes:
        start: In ticks of the ledger; None if it is unbounded.
        end: In the same; None if it is unbounded.
        spent: Rounded up.
    """

    start: int | None
    end: int | None
    spent: float

    def ends(self, *, instants: bool) -> tuple[str | int | None, str | int | None]:
        """Both ends in the order: times as ISO 8601 has them, or numbers."""
        places = (at_tick(tick, instants=instants) for tick in (self.start, self.end))
        start, end = (p.isoformat() if isinstance(p, datetime) else p for p in places)
        return start, end


@dataclass(frozen=True)
class BudgetStanding:
    """A budget: what was spent of it and what is left.

    Attributes:
        analyst: Whose it is; None for the dataset as a whole.
        budget: The Pufferfish ε that is allowed; None if nobody has set one.
        delta: The δ beside it.
        spent: The Pufferfish ε of all releases together, rounded up; None without a prior.
        left: What a release on all rows may still cost alone: ``most``; None without a budget of
            its own. It is not the rest of the budget, since prices do not simply add up.
        most: A Pufferfish ε that would be accepted on all rows now, rounded down.
        history: The odometer after each of the latest charges.
        stretches: What each stretch of the order has lost.
        by_column: Where rows have several protected columns: what was spent of each, rounded up;
            None if there is but one, or if a δ or ρ was spent.
    """

    analyst: str | None
    budget: Fraction | None
    delta: Fraction
    spent: float | None = None
    left: float | None = None
    most: Decimal | None = None
    history: tuple[Reading, ...] = ()
    stretches: tuple[StretchLoss, ...] = ()
    by_column: Mapping[str, float] | None = None

    @property
    def beside_what_is_left(self) -> str:
        """Why what is left is not the rest of the budget; empty if it is.

        The most that an analyst may spend is also limited by the budget of the whole.
        """
        if self.most is None or self.budget is None or self.spent is None:
            return ""
        over = self.spent > self.budget  # also if it is infinite
        rest = 0.0 if over else float_down(self.budget - Fraction(self.spent))
        if self.analyst is not None and self.most < rest:
            return ""
        return beside_what_is_left(self.most, rest, self.spent)

    def document(self, *, instants: bool) -> dict[str, Any]:
        """As JSON; ``instants``: whether the order is of times, not of numbers."""
        return {
            "analyst": self.analyst,
            "epsilon": None if self.budget is None else str(self.budget),
            "delta": str(self.delta),
            "spent": self.spent,
            "left": self.left,
            "most": None if self.most is None else str(self.most),
            "by_column": None if self.by_column is None else dict(self.by_column),
            "history": [
                {"seq": reading.seq, "at": reading.at.isoformat(), "spent": reading.epsilon}
                for reading in self.history
            ],
            "stretches": [
                {"start": start, "end": end, "spent": part.spent}
                for part in self.stretches
                for start, end in [part.ends(instants=instants)]
            ],
        }


def budget_standings(
    ledger: Ledger,
    dataset: str,
    translation: LossTranslation | None,
    *,
    last: int,
    cells: Cells | None = None,
) -> tuple[BudgetStanding, ...]:
    """The budget of the whole dataset, then that of each analyst who has one or has spent.

    ``cells`` are what names the protected values now: see `Ledger.spent`.
    """
    return tuple(
        standing_of(ledger, position, translation, last=last, cells=cells)
        for position in ledger.positions(dataset)
    )


def standing_of(
    ledger: Ledger,
    position: Position,
    view: LossTranslation | None,
    *,
    last: int = 0,
    cells: Cells | None = None,
) -> BudgetStanding:
    """How one budget stands, with the ``last`` readings of its odometer."""
    dataset, analyst, budget = position.dataset, position.analyst, position.epsilon
    if view is None:
        return BudgetStanding(analyst, budget, position.delta)
    spent = ledger.spent(dataset, view, analyst=analyst, cells=cells)
    left = most = None
    if ledger.snapshot(dataset).whole is not None:
        standings = ledger.standings(dataset, view, analyst=analyst)
        prices = Prices(dataset, view)
        most = min(prices.most(loss, Fraction(0), standings) for loss in _typical(view))
        left = None if budget is None else float_down(Fraction(most))
    history = tuple(ledger.odometer(dataset, view, analyst=analyst, last=last)) if last else ()
    stretches = tuple(
        StretchLoss(part.start, part.end, spent_epsilon(view, part.worst, budget, position.delta))
        for part in ledger.over_time(dataset, analyst=analyst)
    )
    by_column = _by_column(view, position, spent)
    return BudgetStanding(
        analyst, budget, position.delta, spent, left, most, history, stretches, by_column
    )


def _typical(view: LossTranslation) -> tuple[Pure | Metric, ...]:
    """Losses, of any amount, of which a query may have one: all that an entry is, or a column.

    Where every pair of values of the columns of independent rows is secret, a column that is read
    at ε loses ε itself, and that fits where any change of the row may cost ε.
    """
    if not isinstance(view, RowTranslation) or len(view.secrets) < 2:
        return (Pure(0),)
    if view.over == "row" and view.covering_cost(Fraction(1)) is not None:
        return (Pure(0),)
    return tuple(Metric(Cost.of({Column(column, ANY): 1})) for column in view.secrets)


def _by_column(view: LossTranslation, position: Position, most: float) -> dict[str, float] | None:
    """What the secrets of each column have lost; no more than ``most``, what all have."""
    totals = position.worst
    if not isinstance(view, RowTranslation) or len(view.secrets) < 2:
        return None
    if any(total.delta or total.rho for total in totals):
        return None
    try:
        losses = view.losses(*(total.cost for total in totals))
    except UnsoundRequest:  # costs that name no column, of before there were several
        losses = view.losses(Cost.any(max(total.scalar for total in totals)))
    return {column: min(loss, most) for column, loss in losses.items()}


def at_tick(tick: int | None, *, instants: bool) -> datetime | int | None:
    """A tick of the ledger as an instant, or as the step that it is."""
    return EPOCH + timedelta(microseconds=tick) if instants and tick is not None else tick


PRESENT = "present"  # what the priors of the policy are called in a comparison


@dataclass(frozen=True)
class ComparedRelease:
    """One release, alone, under every prior.

    Attributes:
        seq: The number of its event in the ledger.
        at: When it was paid for.
        analyst: Who asked; None if nobody was named.
        body: The query, its rows and its mechanism, as the event holds them.
        losses: By prior, the Pufferfish ε of this release alone, rounded up.
    """

    seq: int
    at: datetime
    analyst: str | None
    body: Mapping[str, Any]
    losses: Mapping[str, float]


@dataclass(frozen=True)
class PriorComparison:
    """All releases of a dataset under its present priors and under others.

    Attributes:
        dataset: The dataset.
        analyst: Whose releases these are; None for all.
        delta: The δ at which losses with a δ or ρ are read: that of the budget.
        budget: The ε of the budget; None if there is none.
        releases: One after the other; the ``last`` that were requested.
        count: How many releases there are.
        totals: By prior, the Pufferfish ε of all releases together, rounded up.
        leaks: By prior, what some mechanism leaks that costs every row what the worst of them has
            lost, rounded down: how far the total may be above the truth. None where no such
            mechanism is computed: losses with a δ or ρ, rows that lost different things because
            some release left groups or later times out.
    """

    dataset: str
    analyst: str | None
    delta: Fraction
    budget: Fraction | None
    releases: tuple[ComparedRelease, ...]
    count: int
    totals: Mapping[str, float]
    leaks: Mapping[str, float | None]

    @property
    def beyond(self) -> tuple[str, ...]:
        """The priors under which all releases together lose more than the budget."""
        if self.budget is None:
            return ()
        return tuple(
            name
            for name, total in self.totals.items()
            if not isfinite(total) or Fraction(total) > self.budget
        )

    def document(self) -> dict[str, Any]:
        """Ready to be written as JSON; null for what is infinite."""
        return {
            "dataset": self.dataset,
            "analyst": self.analyst,
            "delta": str(self.delta),
            "budget": None if self.budget is None else str(self.budget),
            "count": self.count,
            "releases": [
                {
                    "seq": one.seq,
                    "at": one.at.isoformat(),
                    "analyst": one.analyst,
                    **{part: one.body[part] for part in ("query", "window", "groups")},
                    "losses": _finite(one.losses),
                }
                for one in self.releases
            ],
            "totals": _finite(self.totals),
            "leaks": dict(self.leaks),
            "beyond": list(self.beyond),
        }


def compare_priors(
    project: Project,
    name: str,
    files: Sequence[str | Path],
    *,
    over: str | None = None,
    analyst: str | None = None,
    last: int | None = None,
    backend: BackendName | None = None,
) -> PriorComparison:
    """The releases of a dataset under its priors, and under those in ``files``.

    Args:
        project: The project.
        name: The dataset.
        files: Priors, each of which is compared by itself.
        over: What the entries of these are; None for what those of the policy are.
        analyst: Compare what was released to this analyst; None for all.
        last: How many of the latest releases are listed; None for all.
        backend: What reads the data, of which only public facts are looked at.
    """
    loaded = project.load(name)
    others = dict(_others(loaded, files, over))
    with open_engine(loaded.declaration, backend=backend) as engine:
        for other in others.values():
            other.refuse_misfit(engine)
            other.refuse_unknown_secrets()
    views: dict[str, LossTranslation] = {PRESENT: loaded.translation}
    views |= {called: other.translation for called, other in others.items()}
    with project.ledger(read_only=True) as ledger:
        return _compared(ledger, name, analyst, views, last)


def _others(
    found: LoadedDataset, files: Sequence[str | Path], over: str | None
) -> Iterator[tuple[str, LoadedDataset]]:
    """The dataset as it would be under each other prior, by the name of its file."""
    names = [str(file) for file in files]
    if len(set(names)) < len(names) or PRESENT in names or not names:
        raise UnsoundRequest(
            "the priors to compare with are none, repeat a file, or include one called"
            f" {PRESENT!r}; name each file once",
            field="priors",
        )
    reading = _reading(found.policy.priors, over)
    for called, file in zip(names, files, strict=True):
        read_prior(file)  # what is wrong in the file is about the file, not about the policy
        prior = replace(reading, file=str(Path(file).absolute()))
        policy = replace(found.policy, priors=(prior,), table=False)
        yield called, replace(found, policy=policy)


def _reading(priors: Sequence[PriorPolicy], over: str | None) -> PriorPolicy:
    """What the entries of other priors are: as stated, or as those of the policy, if all agree."""
    known = {
        PriorPolicy("", over=p.over, positions=p.positions, household=p.household, member=p.member)
        for p in priors
        if over in (None, p.over)
    }
    return known.pop() if len(known) == 1 else PriorPolicy("", over=over)


def _compared(
    ledger: Ledger,
    name: str,
    analyst: str | None,
    views: Mapping[str, LossTranslation],
    last: int | None,
) -> PriorComparison:
    budget, delta = ledger.snapshot(name).budget
    if analyst is not None:
        own = ledger.position(name, analyst)
        delta, budget = (delta, None) if own is None else (own.delta, own.epsilon)
    events = [
        event
        for kind in ("charge", "reuse")
        for event in ledger.history(name, kind=kind)
        if (analyst or WHOLE) in charged(event.body)
    ]
    events.sort(key=lambda event: event.seq)
    listed = events if last is None else events[len(events) - min(last, len(events)) :]
    known: dict[tuple[str, Total], float] = {}

    def alone(event: Event) -> dict[str, float]:
        total = Total().plus(loss_of(event.body["loss"]))
        for called, view in views.items():
            if (called, total) not in known:
                known[called, total] = to_pufferfish(view, (total,), delta)
        return {called: known[called, total] for called in views}

    releases = tuple(
        ComparedRelease(event.seq, event.at, event.body["analyst"], event.body, alone(event))
        for event in listed
    )
    totals = {called: ledger.spent(name, view, analyst=analyst) for called, view in views.items()}
    lost = ledger.lost(name, analyst=analyst) if _alike(events) else ()
    leaks = {called: _leak(view, lost, totals[called]) for called, view in views.items()}
    return PriorComparison(name, analyst, delta, budget, releases, len(events), totals, leaks)


def _alike(events: Sequence[Event]) -> bool:
    """Whether every release read the same rows: all from one time on, such as those not fitted on.

    Otherwise a mechanism that costs every row what the worst has lost is none of these releases,
    and what it leaks may be above what they do.
    """
    windows = [event.body["window"] for event in events]
    return all(
        event.body["groups"] is None
        and window == windows[0]
        and (window is None or window["end"] is None)
        for event, window in zip(events, windows, strict=True)
    )


def _leak(view: LossTranslation, lost: Frontier, total: float) -> float | None:
    """A lower bound on what the worst mechanism leaks that costs every row what was lost."""
    if not isinstance(view, Translation) or len(lost) != 1:
        return None
    (one,) = lost
    if one.delta or one.rho:
        return None
    if one.costs:
        try:
            leak = view.explain_cost(one.cost).lower
        except UnsoundRequest:  # about values that this prior does not know
            return None
    else:
        leak = view.explain(float_down(one.epsilon)).lower
    return min(leak, total)


def _finite(losses: Mapping[str, float]) -> dict[str, float | None]:
    return {name: loss if isfinite(loss) else None for name, loss in losses.items()}
