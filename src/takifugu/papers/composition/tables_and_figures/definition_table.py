"""The appendix's table of privacy definitions as a table: printed beside computed."""

from collections.abc import Iterable, Sequence
from typing import Any

from takifugu.papers.composition.collapse.exact_loss import Exact
from takifugu.papers.composition.definitions.composition_table import CompositionRow
from takifugu.papers.composition.definitions.deterministic_attack import FunctionPair
from takifugu.papers.composition.tables_and_figures.plain_tables import PlainTable

COLUMNS = ("definition", "world", "printed", "composes", "why")
CAPTION = (
    "Each definition on a small world. Yes: a theorem proves that all runs of all mechanisms lose"
    " at most the sum of their losses, and its hypothesis was checked on the world. No: a mechanism"
    " whose runs lose more than the sum, or two functions without noise that do (⊕: sum modulo 2);"
    " the losses, in nats, are exact, and other code computed them again. A and B are outputs."
    " Infinite: something secret is ruled out for sure. Datasets are written entry by entry."
    " A dash: the paper's table has no such row."
)


def definition_table(rows: Iterable[CompositionRow]) -> PlainTable:
    """One line for each definition."""
    return PlainTable(
        "definitions",
        "Which privacy definitions compose, computed",
        CAPTION,
        COLUMNS,
        tuple(
            (
                row.about.definition,
                row.about.where,
                row.about.printed or "–",
                f"{row.composes}, not as printed" if row.differs else row.composes,
                row.witness,
            )
            for row in rows
        ),
        (2.2, 2.6, 0.7, 0.9, 5.0),
    )


def definition_document(rows: Sequence[CompositionRow]) -> dict[str, Any]:
    """The same for programs, with every witness whole: likelihoods and losses as fractions."""
    return {row.about.key: _described(row) for row in rows}


def _described(row: CompositionRow) -> dict[str, Any]:
    found: dict[str, Any] = {
        "definition": row.about.definition,
        "world": row.about.where,
        "printed": row.about.printed,
        "composes": row.composes,
    }
    datasets = row.about.world().universe.datasets
    if row.proof is not None:
        found["compared"] = sorted([str(datasets[d]), str(datasets[e])] for d, e in row.proof.edges)
        found["comparisons"] = row.proof.comparisons
    if isinstance(row.attack, FunctionPair):
        found["functions"] = {
            name: {str(data): output for data, output in zip(datasets, function, strict=True)}
            for name, function in zip(row.attack.names, row.attack.functions, strict=True)
        }
        found["exp_loss_of_each"] = [_exact(odds) for odds in row.attack.once]
        found["exp_loss_of_both"] = _exact(row.attack.together)
        found["seen"] = list(row.attack.seen)
        found["distinguished"] = str(row.attack.pair)
    elif row.attack is not None:
        found["mechanism"] = row.attack.name
        found["outputs"] = [str(output) for output in row.attack.outputs]
        found["likelihood"] = {
            str(data): [str(p) for p in chances]
            for data, chances in zip(datasets, row.attack.rows, strict=True)
        }
        found["runs"] = row.attack.runs
        found["exp_loss_of_one_run"] = _exact(row.attack.once)
        found["exp_loss_of_the_runs"] = _exact(row.attack.together)
        found["seen"] = [str(output) for output in row.attack.seen]
    return found


def _exact(odds: Exact) -> str:
    return "infinity" if isinstance(odds, float) else str(odds)
