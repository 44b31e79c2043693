"""What the owner of a project decides: another policy, or cells that are not what they were.

Other priors or secrets change what was spent; the owner sees both amounts before accepting them.

A declaration that was edited makes other cells of the same rows. Nothing is then released until the
owner puts it back, or accepts that all earlier releases count on every row: a decision that is
written in the ledger, with who made it.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from takifugu.declarations import Declaration
from takifugu.errors import SameRows, TakifuguError
from takifugu.ledger import Cells, Ledger, Position, Review, Terms
from takifugu.ledger.account import on_every_entry
from takifugu.ledger.frontier import ZERO
from takifugu.ledger.limits import spent_epsilon
from takifugu.tables.backends.opened_files import source_files
from takifugu.translation.protocol import LossTranslation

if TYPE_CHECKING:
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
