"""What the owner of a project decides: another policy, or cells that are not what they were.

Other priors or secrets change what was spent; the owner sees both amounts before accepting them.

A declaration that was edited makes other cells of the same rows. Nothing is then released until the
owner puts it back, or accepts that all earlier releases count on every row: a decision that is
written in the ledger, with who made it.

What owners see of a policy, of a change to it and of a fit is made here too, as JSON and in lines.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from takifugu.declarations import Declaration
from takifugu.errors import SameRows, TakifuguError
from takifugu.ledger import Cells, Ledger, Position, Review, Terms
from takifugu.ledger.account import on_every_entry
from takifugu.ledger.event_documents import four_up
from takifugu.ledger.events.decisions import decimal_up
from takifugu.ledger.frontier import ZERO
from takifugu.ledger.limits import spent_epsilon
from takifugu.tables.backends.opened_files import source_files
from takifugu.translation.protocol import LossTranslation
from takifugu.visible import four_digits

if TYPE_CHECKING:
    from takifugu.fitting import Fitted
    from takifugu.project.loaded_dataset import LoadedDataset
    from takifugu.project.project import Project


@dataclass(frozen=True)
class PolicyChange:
    """The policy beside the terms in force, which may be the same.

    Attributes:
        terms: The prior and the secrets of the policy.
        rules: Which rows are released from, by the policy.
        seen: What is spent under the terms in force and under these.
        analysts: For each analyst with a budget: the budget, and what is spent under these terms.
        needed: Whether there is anything to accept.
    """

    terms: Terms
    rules: Mapping[str, Any]
    seen: Review
    analysts: Mapping[str, tuple[Any, float]]
    needed: bool


@dataclass(frozen=True)
class CellChange:
    """How the cells of a dataset differ from those that were charged before.

    Attributes:
        dataset: Its name.
        cells: What names its cells by the present declaration.
        charged: Whether anything was ever charged.
        recorded: Whether earlier charges recorded what named their cells.
        changes: The parts that differ, in words.
        before: What the rows that lost most have lost so far, a Pufferfish ε, rounded up; None
            without a prior.
        after: The same for every row, once the change is accepted.
    """

    dataset: str
    cells: Cells
    charged: bool
    recorded: bool
    changes: tuple[str, ...]
    before: float | None
    after: float | None


def cell_change(
    ledger: Ledger, dataset: str, cells: Cells, translation: LossTranslation | None
) -> CellChange:
    """How the declaration of a dataset differs from what was charged under."""
    snapshot = ledger.snapshot(dataset, cells=cells)
    changes = snapshot.changes
    position = ledger.position(dataset)
    before = after = None
    if translation is not None and position is not None:
        worst = position.worst
        before = spent_epsilon(translation, worst, position.epsilon, position.delta)
        every = (on_every_entry(worst, snapshot.costs),)
        after = spent_epsilon(translation, every, position.epsilon, position.delta)
    return CellChange(
        dataset=dataset,
        cells=cells,
        charged=position is not None and has_spent(position),
        recorded=changes != (),
        changes=changes or (),
        before=before,
        after=after,
    )


def has_spent(position: Position) -> bool:
    """Whether anything was charged to an account."""
    return any(total != ZERO for total in position.worst)


def places(declaration: Declaration, columns: tuple[str, ...]) -> frozenset[tuple[Any, ...]]:
    """The files of a source, under whatever name, or its table; with each column."""
    source = declaration.source
    if source.path is None:
        return frozenset((source.url, source.table, column) for column in columns)
    files: tuple[Path, ...] = ()
    with suppress(TakifuguError, OSError):
        files = source_files(declaration)
    facts = [path.stat() for path in files]
    return frozenset(
        (fact.st_dev, fact.st_ino, source.table, column) for fact in facts for column in columns
    )


def refuse_same_files(project: "Project", dataset: "LoadedDataset", ledger: Ledger) -> None:
    """Raise if another dataset that was charged before reads a file of this one."""
    name = dataset.name
    others = [other for other in project.policy.datasets if other != name]
    mine = places(dataset.declaration, dataset.columns)
    spent = {p.dataset for p in ledger.positions() if p.analyst is None and has_spent(p)}
    for other in others:
        if other not in spent:
            continue
        shared = frozenset[tuple[Any, ...]]()
        with suppress(TakifuguError, OSError):  # a broken dataset does not stop this one
            loaded = project.load(other)
            shared = mine & places(loaded.declaration, loaded.columns)
        if shared and other not in ledger.counted_separately(name):
            raise SameRows(name, other, "the same file or table")


def declaration_facts(found: "Declaration") -> dict[str, Any]:
    """What a declaration says, its source among it."""
    return {
        "title": found.title,
        "fingerprint": found.fingerprint,
        "source": found.source.place,
        "entity": found.entity,
        "order": [] if found.order.absent else [found.order.column, *found.order.ties],
        "protected": [column.column for column in found.protected],
        "public": [column.column for column in found.public],
        "guarantee": found.guarantee(),
    }


def policy_facts(project: "Project", name: str) -> dict[str, Any]:
    """The policy of a dataset, with the files that it names."""
    loaded = project.load(name)
    policy, releasable = loaded.policy, loaded.releasable
    start, share = releasable.start, releasable.entities
    return {
        "dataset": name,
        "about": loaded.about,
        "priors": [prior.file for prior in policy.priors],
        "columns": list(loaded.columns),
        "over": [prior.over for prior in policy.priors],
        "pairs": _pairs(policy.pairs),
        "entries": policy.entries and list(policy.entries),
        "secrets_within": None if policy.within is None else str(policy.within),
        "uncertainty": policy.uncertainty,
        "analysts": list(policy.analysts),
        "approval": None if policy.approval is None else policy.approval.document(),
        "linear": {
            query: {
                "column": one.column,
                "by": one.by,
                "weights": {str(key): str(weight) for key, weight in one.weights},
            }
            for query, one in policy.linear.items()
        },
        "released_from": start if start is None or isinstance(start, int) else start.isoformat(),
        "released_share": None if share is None else str(share.high - share.low),
        "fitted": list(releasable.statements),
    }


def _pairs(pairs: Any) -> Any:
    """Secret pairs as JSON, by column if the policy has them so."""
    if isinstance(pairs, Mapping):
        return {column: _pairs(column_pairs) for column, column_pairs in pairs.items()}
    return pairs and [[list(left), list(right)] for left, right in pairs]


def change_facts(name: str, uncertainty: float, change: "PolicyChange") -> dict[str, Any]:
    """What is spent of a dataset under the terms in force and under those of the policy."""
    seen = change.seen
    return {
        "dataset": name,
        "accepted": False,
        "prior": change.terms.prior,
        "secrets": change.terms.secrets,
        "uncertainty": uncertainty,
        "budget": None if seen.epsilon is None else str(seen.epsilon),
        "delta": str(seen.delta),
        "spent_before": decimal_up(seen.before),
        "spent_after": decimal_up(seen.after),
        "analysts": {
            who: {"budget": str(budget), "spent_after": decimal_up(spent)}
            for who, (budget, spent) in change.analysts.items()
        },
        "event": None,
        "actor": None,
    }


def change_lines(name: str, change: "PolicyChange", facts: Mapping[str, Any]) -> Iterator[str]:
    """What an owner must see: what is spent under both, and the budget."""
    seen, old = change.seen, change.seen.old
    parts = ["prior", "secrets"]
    if old is not None:
        parts = [part for part in parts if getattr(old, part) != getattr(change.terms, part)]
    yield f"{name}: new {' and '.join(parts) or 'rows that are released from'}"
    before = facts["spent_before"]
    unknown = "unknown: the prior in force is no longer there"
    yield f"  spent under the old: {unknown if before is None else four_up(before)}"
    yield f"  spent under the new: {four_up(facts['spent_after'])}"
    budget = "none" if seen.epsilon is None else four_digits(seen.epsilon, "down")
    yield f"  budget: {budget}"
    if not seen.within:
        yield "  That is more than the budget: nothing is released until it is raised."
    for who, facts_of in facts["analysts"].items():
        spent, own = four_up(facts_of["spent_after"]), four_digits(change.analysts[who][0], "down")
        yield f"  analyst {who}: {spent} spent under the new, of a budget of {own}"


def fit_facts(project: "Project", name: str, found: "Fitted") -> dict[str, Any]:
    """What a prior was fitted on that was entered last, and whether it describes its rows."""
    entered = project.dataset(name).priors[-1]
    start = entered.released_from
    return {
        "dataset": name,
        "project": str(project.file),
        "steps": found.estimate.counted,
        "unit": found.estimate.unit,
        "fitted": entered.fitted,
        "share": entered.share and str(entered.share),
        "released_from": start if start is None or isinstance(start, int) else str(start),
        "statement": found.statement,
        "notes": list(found.estimate.notes),
        "remaining": found.remaining,
        "rests_on": dict(found.estimate.facts),
        "goodness": None if found.goodness is None else found.goodness.document(),
    }
