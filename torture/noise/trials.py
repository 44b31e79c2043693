"""Run a query on many small datasets through a real session, and read what an analyst is shown."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import takifugu as tf
from takifugu.costs.losses import Concentrated, Loss, Metric, Pure
from takifugu.ledger import open_ledger
from takifugu.session import Plan, QueryOptions, Result
from tests.oracles.ledger_sums import events_of
from torture.noise.trial_tables import Rows, Setting, trial_table

BUDGET, BUDGET_DELTA = 100, "0.2"
AT_ONCE = 20_000  # groups of one release
IN_A_ROW = 100  # releases of one ledger: a plan looks at earlier charges for the same query
LEDGER = "trials.ledger"
ENDS = ("low", "high")  # of intervals
Cells = tuple[Any, ...]


@dataclass(frozen=True)
class Trials:
    """Releases about many groups.

    Attributes:
        plan: What was planned for the last of them, and is charged for each.
        outputs: ``[group]``: what was drawn for it, as the result has it.
        unexplained: How many groups were shown something else than another with the same draw.
        underpaid: How many ledgers count less than what was charged, after their releases.
        mischarged: How many ledgers hold other losses than were planned, one for each release.
    """

    plan: Plan
    outputs: tuple[Cells, ...]
    unexplained: int
    underpaid: int
    mischarged: int


def run_trials(
    setting: Setting, options: Mapping[str, Any], datasets: Sequence[Rows], *, alone: bool = False
) -> Trials:
    """Release a query about each dataset: by groups, one charge for many; or each ``alone``."""
    drawn: list[Cells] = []
    shown: list[Cells] = []
    plan, underpaid, mischarged = None, 0, 0
    most = IN_A_ROW if alone else AT_ONCE
    for start in range(0, len(datasets), most):
        some = datasets[start : start + most]
        losses: list[Loss] = []
        with _opened(setting, some) as (session, ledger):
            for where in _parts(len(some), alone):
                kept = {"trial": where} if alone else {}
                plan = session.plan(QueryOptions(**options, by="trial", where=kept))
                losses.append(plan.charge.loss)
                result = session.release(plan, accept_noise=True)
                if result.free or result.cost.alone != plan.cost.alone:
                    raise AssertionError("a release was not charged as it was planned")
                told, all_cells = by_group(result)
                drawn += told
                shown += all_cells
            underpaid += paid_too_little(session.spent(), plan)
            mischarged += not charged(ledger, losses)
    if plan is None:
        raise ValueError("there are no datasets")
    return Trials(plan, tuple(drawn), unexplained(drawn, shown), underpaid, mischarged)


def paid_too_little(spent: float, plan: Plan | None) -> bool:
    """Whether a ledger counts less than one release that it paid for.

    What was released to other groups adds nothing: their rows are others. A loss in ρ is counted at
    the δ of the budget, where it is less than at its own: `charged` looks at it as it is written.
    """
    if plan is None or plan.cost.delta:
        return not spent > 0
    return spent < plan.cost.alone * (1 - 1e-9)


def charged(ledger: Path, losses: Sequence[Loss]) -> bool:
    """Whether a ledger holds these losses and no others, read by plain SQL."""
    bodies = [event.body["loss"] for event in events_of(str(ledger)) if event.kind == "charge"]
    return len(bodies) == len(losses) and all(map(_is, bodies, losses))


def _is(body: Mapping[str, Any], loss: Loss) -> bool:
    """Whether this is a loss as it is written."""
    match loss:
        case Concentrated(rho=rho):
            same = body["currency"] == "concentrated" and Fraction(body["rho"]) == rho
        case Metric(cost=cost):
            same = body["currency"] == "metric" and body["cost"] == cost.document()
        case Pure(epsilon=epsilon):
            same = body["currency"] == "pure" and Fraction(body["epsilon"]) == epsilon
        case _:
            raise ValueError(f"no case is charged a {type(loss).__name__}")
    return bool(same)


@contextmanager
def _opened(setting: Setting, datasets: Sequence[Rows]) -> Iterator[tuple[tf.Session, Path]]:
    """A session on a table of these datasets, with a ledger of its own, and where that is."""
    with (
        tempfile.TemporaryDirectory() as folder,
        open_ledger(Path(folder) / LEDGER, witness=False) as ledger,  # rows are charged again
        tf.Session(
            trial_table(setting, datasets),
            setting.prior,
            ledger=ledger,
            budget=BUDGET,
            budget_delta=BUDGET_DELTA,
            over=setting.over,
            linear=setting.linear,
        ) as session,
    ):
        yield session, Path(folder) / LEDGER


def _parts(groups: int, alone: bool) -> Iterator[list[int]]:
    """The groups that one release is about, release by release."""
    yield from ([group] for group in range(groups)) if alone else (list(range(groups)),)


def by_group(result: Result) -> tuple[list[Cells], list[Cells]]:
    """``[group]``: what was drawn for it, and all that is shown of it, in the order of groups."""
    place = result.columns.index("trial")
    read = [i for i in range(len(result.columns)) if i != place]
    told = [i for i in read if result.columns[i] not in ENDS]
    drawn: dict[int, list[Any]] = {}
    shown: dict[int, list[Any]] = {}
    for row in result.rows if result.raw is None else result.raw:
        drawn.setdefault(row[place], []).extend(row[i] for i in told)
    for row in (*result.rows, *(result.raw or ())):
        shown.setdefault(row[place], []).extend(row[i] for i in read)
    return (
        [tuple(drawn[group]) for group in sorted(drawn)],
        [tuple(shown[group]) for group in sorted(shown)],
    )


def unexplained(drawn: Sequence[Cells], shown: Sequence[Cells]) -> int:
    """How many groups are shown something that does not follow from what was drawn for them."""
    first: dict[Cells, Cells] = {}
    return sum(
        first.setdefault(one, other) != other for one, other in zip(drawn, shown, strict=True)
    )
