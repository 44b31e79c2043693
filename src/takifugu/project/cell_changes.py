"""What an owner decides when the cells of a dataset are not what they were.

A declaration that was edited makes other cells of the same rows. Nothing is then released until the
owner puts it back, or accepts that all earlier releases count on every row: a decision that is
written in the ledger, with who made it.
"""

from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from takifugu.engines import Declaration
from takifugu.engines.backends.source_paths import source_files
from takifugu.errors import SameRows, TakifuguError
from takifugu.ledger import Cells, Ledger, Position
from takifugu.ledger.accounts.standings import spent_epsilon
from takifugu.losses import Total

if TYPE_CHECKING:
    from takifugu.project.loaded_dataset import LoadedDataset
    from takifugu.project.project import Project


@dataclass(frozen=True)
class Pending:
    """What stands between a dataset and its next release.

    Attributes:
        dataset: Its name.
        cells: What names its cells by the present declaration.
        charged: Whether anything was ever charged.
        told: Whether the earlier charges say what named their cells.
        changes: What differs from that, part by part, in words.
        before: What the rows that lost most have lost so far, a Pufferfish ε, rounded up; None
            without a prior.
        after: The same for every row, once the change is accepted.
    """

    dataset: str
    cells: Cells
    charged: bool
    told: bool
    changes: tuple[str, ...]
    before: float | None
    after: float | None


def pending(ledger: Ledger, dataset: str, cells: Cells, translation: Any) -> Pending:
    """How the declaration of a dataset differs from what was charged under."""
    changes = ledger.snapshot(dataset, cells=cells).changes
    position = _position(ledger, dataset)
    before = after = None
    if translation is not None and position is not None:
        worst = position.worst
        most = Total(
            max(total.epsilon for total in worst),
            max(total.delta for total in worst),
            max(total.rho for total in worst),
        )
        before = spent_epsilon(translation, worst, position.epsilon, position.delta)
        after = spent_epsilon(translation, (most,), position.epsilon, position.delta)
    return Pending(
        dataset=dataset,
        cells=cells,
        charged=position is not None and has_spent(position),
        told=changes != (),
        changes=changes or (),
        before=before,
        after=after,
    )


def _position(ledger: Ledger, dataset: str) -> Position | None:
    for position in ledger.positions():
        if (position.dataset, position.analyst) == (dataset, None):
            return position
    return None


def has_spent(position: Position) -> bool:
    """Whether anything was charged to an account."""
    zero = Fraction(0)
    return any((t.epsilon, t.delta, t.rho) != (zero, zero, zero) for t in position.worst)


def places(declaration: Declaration, about: str) -> frozenset[tuple[Any, ...]]:
    """The files of a source, whichever name they go by, or its table; with the column."""
    source = declaration.source
    if source.path is None:
        return frozenset({(source.url, source.table, about)})
    found: tuple[Path, ...] = ()
    with suppress(TakifuguError, OSError):
        found = source_files(declaration)
    facts = [path.stat() for path in found]
    return frozenset((fact.st_dev, fact.st_ino, source.table, about) for fact in facts)


def refuse_same_files(project: "Project", dataset: "LoadedDataset", ledger: Ledger) -> None:
    """Raise if another dataset that was charged before reads a file of this one, as it is now."""
    name = dataset.name
    others = [other for other in project.policy.datasets if other != name]
    if not others:
        return
    mine = places(dataset.declaration, dataset.about)
    spent = {p.dataset for p in ledger.positions() if p.analyst is None and has_spent(p)}
    for other in others:
        if other not in spent:
            continue
        shared = frozenset[tuple[Any, ...]]()
        with suppress(TakifuguError, OSError):  # a dataset that is broken is none of this one's
            found = project.load(other)
            shared = mine & places(found.declaration, found.about)
        if shared and other not in ledger.counted_separately(name):
            raise SameRows(name, other, "the same file or table")
