"""The page ``docs/explanation/definitions-and-baselines.md``, made by computing, never by hand.

Its tables and figures are also what `takifugu reproduce` writes beside the experiments.

``python -m takifugu.papers.composition.appendix_page`` writes it, with its figures. The bounds on
chains are stored beside this module; ``--again`` computes those on published chains anew, and
``--fitted FILE …`` stores those that runs of ``takifugu reproduce`` wrote about fitted chains
(``fitted-baselines.json``).
"""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from takifugu.errors import TakifuguError
from takifugu.papers.composition.collapse.repeated_runs import Exact
from takifugu.papers.composition.composition_attack import FunctionPair
from takifugu.papers.composition.composition_table import CompositionRow, composition_rows
from takifugu.papers.composition.experiments.compared_chains import (
    APPROX,
    CURVE,
    EPSILON,
    EXACT,
    GROUP,
    LENGTH,
    METHODS,
    OTHER,
    OTHERS,
    PUBLISHED,
    QUILTS,
    SHARPENED,
    STAYS,
    TEMPORAL,
    ChainAllowances,
    ComparedChains,
    Progress,
    compared_chains,
    read_chain_allowances,
    stored_chains,
    write_chain_allowances,
)
from takifugu.papers.composition.reproduction_page import page_template
from takifugu.papers.composition.tables_and_figures.concept_figures import CAPTIONS, concept_figures
from takifugu.papers.composition.tables_and_figures.figure_writing import (
    legend_below,
    new_figure,
    write_figure,
    write_svg_and_png,
    write_whole,
)
from takifugu.papers.composition.tables_and_figures.print_agreement import INK
from takifugu.papers.composition.tables_and_figures.table_formats import (
    PlainTable,
    write_table_files,
)
from takifugu.reports.html_page import Drawing
from takifugu.reports.html_style import BLUE, GREEN, GREY, ORANGE, RED
from takifugu.reports.plot_files import drawing
from takifugu.visible import four_digits

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


DEFINITION_COLUMNS = ("definition", "world", "printed", "composes", "why")
DEFINITION_CAPTION = (
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
        DEFINITION_CAPTION,
        DEFINITION_COLUMNS,
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


NOT_APPLICABLE = "n/a"
TABLED = (0.5, 0.55, 0.6, 0.65, 0.7, 0.8, 0.9)  # p = q
TABLED_OTHERS = (0.1, 0.3, 0.8)  # p, with q = .6
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
MEANING = (
    f"All are lower bounds, rounded down. {NOT_APPLICABLE}: the theorem does not apply (GK16: a"
    " spectral norm of 1 or more, in brackets, infinite where values rule one another out;"
    " MQMApprox: states to which the chain does not return), and nothing takes its place. A"
    " 1-Lipschitz query takes Laplace noise of scale 1/ε."
)
BASELINE_CAPTION = (
    f"The per-entry ε that a Pufferfish ε of {EPSILON:g} allows on binary chains of {LENGTH}"
    " entries, by each bound; both in nats, on a logarithmic axis. A line ends with a cross where"
    " its theorem does not apply any more."
    " MQMExact and the paper's curve agree, and so do TPL and takifugu where p + q is at least 1."
)
HEADS = {  # short, so that the table is not wider than a page
    GROUP: "group DP",
    PUBLISHED: "GK16",
    SHARPENED: "GK16 sharp",
    APPROX: "MQM Approx",
    QUILTS: "MQM Exact",
    CURVE: "paper's curve",
    TEMPORAL: "TPL",
    EXACT: "takifugu",
}
STYLES = {  # wide pale lines lie below the thin ones that they agree with
    GROUP: (GREY, ":", 1.6, 1.0),
    APPROX: (GREY, "-", 1.4, 1.0),
    QUILTS: (ORANGE, "-", 5.5, 0.35),
    CURVE: (BLUE, "--", 1.6, 1.0),
    PUBLISHED: (RED, "-", 1.8, 1.0),
    SHARPENED: (RED, "-.", 1.8, 1.0),
    TEMPORAL: (GREEN, "-", 5.5, 0.35),
    EXACT: (INK, "-", 1.6, 1.0),
}


def baseline_table(made: ComparedChains) -> PlainTable:
    """Per-entry ε by method, on binary and published chains."""
    few = [one for p, one in zip(STAYS, made.equal, strict=True) if p in TABLED]
    few += [one for p, one in zip(OTHERS, made.unequal, strict=True) if p in TABLED_OTHERS]
    body = tuple(
        (one.name, *(_cell(one, method) for method in METHODS)) for one in [*few, *made.published]
    )
    return PlainTable(
        "baselines",
        f"The per-entry ε that a Pufferfish ε of {EPSILON:g} allows, by each bound",
        f"Chains of {LENGTH} entries; p and q are the probabilities to stay of two states."
        " Stationary but for those of Song et al. (who start at (1, 0) and (.9, .1)) and the one of"
        f" Cao et al. with two states (½, ½). {MEANING}",
        ("chain", *(HEADS[method] for method in METHODS)),
        body,
        (3.0, *(1.0,) * len(METHODS)),
    )


def fitted_table(rows: Iterable[ChainAllowances]) -> PlainTable:
    """The same on fitted chains, a column each."""
    listed = list(rows)
    applies = sum(one.allowed[PUBLISHED] is not None for one in listed)
    body = [
        ("states", *(str(one.states) for one in listed)),
        ("entries", *(str(one.length) for one in listed)),
        *((method, *(_cell(one, method) for one in listed)) for method in METHODS),
    ]
    return PlainTable(
        "baselines-fitted",
        f"The per-entry ε that a Pufferfish ε of {EPSILON:g} allows on fitted chains",
        "Smoothed with τ = 1e-5, as in the paper."
        f" GK16 applies to {applies} of {len(listed)}: where probabilities are as small as τ the"
        f" influence of neighbours is large. {MEANING}",
        ("bound", *(one.name for one in listed)),
        tuple(body),
        (1.5, *(1.0,) * len(listed)),
    )


def _cell(one: ChainAllowances, method: str) -> str:
    value = one.allowed[method]
    if value is not None:
        return four_digits(value, "down")
    if method != PUBLISHED:
        return NOT_APPLICABLE
    return f"{NOT_APPLICABLE} ({'∞' if isinf(one.norm) else four_digits(one.norm)})"


def baseline_figure(made: ComparedChains) -> "Figure":
    """Per-entry ε against p: on the left p = q, on the right q fixed; the same axis for both."""
    title = f"What a Pufferfish ε of {EPSILON:g} nat allows per entry of a binary chain of {LENGTH}"
    drawn = new_figure(10.5, 5.0, title)
    left, right = drawn.subplots(1, 2, sharey=True)
    _lines(left, STAYS, made.equal)
    _lines(right, OTHERS, made.unequal)
    left.set(
        title="p = q: both states stay alike",
        xlabel="p = q, probability to stay",
        ylabel="per-entry ε in nats (lower bound; logarithmic axis)",
        yscale="log",
    )
    right.set(
        title=f"q = {OTHER:g}: dependence of either sign", xlabel="p, probability to stay at 0"
    )
    left.set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
    left.minorticks_off()
    for axes in (left, right):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    legend_below(
        drawn, left, 5, [(left.plot([], [], "x", color=RED, ms=8, mew=2)[0], "applies no further")]
    )
    return drawn


def _lines(axes: "Axes", places: Sequence[float], rows: Sequence[ChainAllowances]) -> None:
    for method, (colour, dash, width, alpha) in STYLES.items():
        values = [one.allowed[method] for one in rows]
        axes.plot(
            places, [np.nan if y is None else y for y in values],
            color=colour, ls=dash, lw=width, alpha=alpha, label=method,
        )  # fmt: skip
        for k, (x, y) in enumerate(zip(places, values, strict=True)):
            if y is not None and None in values[max(k - 1, 0) : k + 2]:
                axes.plot(x, y, "x", color=colour, ms=8, mew=2)


@dataclass(frozen=True)
class Appendix:
    """What was written, and what of it stands in the page."""

    files: tuple[Path, ...] = ()
    drawings: tuple[Drawing, ...] = ()
    tables: tuple[PlainTable, ...] = ()


def write_appendix(
    out: Path, fitted: Sequence[ChainAllowances], progress: Progress, *, concepts: bool
) -> Appendix:
    """Tables in ``out``/tables, figures in ``out``/figures.

    With ``concepts`` the definitions, the baselines on published chains and the conceptual figures;
    in any case the baselines on the chains that were ``fitted``, if there are any.
    """
    tables: list[PlainTable] = []
    files: list[Path] = []
    drawings: list[Drawing] = []
    if concepts:
        progress("definitions", 0, 1)
        rows = composition_rows()
        tables.append(definition_table(rows))
        files.append(out / "tables" / "definitions.json")
        document = definition_document(rows)
        write_whole(files[-1], json.dumps(document, indent=1, ensure_ascii=False) + "\n")
        progress("definitions", 1, 1)
        made = compared_chains(out / "work", progress)
        tables.append(baseline_table(made))
        figures = {**concept_figures(), "baselines": baseline_figure(made)}
        for name, figure in figures.items():
            files += write_svg_and_png(figure, out / "figures", name)
            drawings.append(
                drawing(figure, name=name, caption=CAPTIONS.get(name, BASELINE_CAPTION))
            )
    if fitted:
        tables.append(fitted_table(fitted))
        files.append(out / "fitted-baselines.json")
        write_chain_allowances(fitted, files[-1])
    files += write_table_files(tables, out / "tables")
    return Appendix(tuple(files), tuple(drawings), tuple(tables))


ROOT = Path(__file__).parents[4]
STORED = Path(__file__).with_name("compared_chains.json")
FITTED = Path(__file__).with_name("fitted_chains.json")
FIGURES = "definitions-and-baselines"  # the page, its template, and the folder beside it
PAGE = ROOT / "docs" / "explanation" / f"{FIGURES}.md"


def document(
    rows: Sequence[CompositionRow], made: ComparedChains, fitted: Sequence[ChainAllowances]
) -> str:
    """The whole page."""
    concepts = (
        f"![{name.replace('-', ' ').capitalize()}]({FIGURES}/{name}.svg)\n\n*{caption}*\n"
        for name, caption in CAPTIONS.items()
    )
    return page_template(f"{FIGURES}.md").substitute(
        definitions=definition_table(rows).markdown(),
        baseline_caption=BASELINE_CAPTION,
        baselines=baseline_table(made).markdown(),
        fitted=fitted_table(fitted).markdown() if fitted else "",
        concepts="\n".join(concepts).rstrip("\n"),
    )


def write_figures(made: ComparedChains, folder: Path) -> None:
    """The three figures that the page shows."""
    for name, figure in {**concept_figures(), "baselines": baseline_figure(made)}.items():
        write_figure(figure, folder / f"{name}.svg")


def main() -> None:
    """Compute or read, and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--again", action="store_true", help="compute the bounds anew")
    parser.add_argument("--fitted", nargs="+", type=Path, help="fitted-baselines.json of runs")
    given = parser.parse_args()
    try:
        if given.again:
            made = compared_chains(None, lambda *_: None)
            write_chain_allowances([*made.equal, *made.unequal, *made.published], STORED)
        if given.fitted:
            rows = [row for path in given.fitted for row in read_chain_allowances(path)]
            write_chain_allowances(rows, FITTED)
        made = stored_chains(STORED)
        fitted = read_chain_allowances(FITTED, any_version=True)
        write_figures(made, PAGE.with_suffix(""))
        write_whole(PAGE, document(composition_rows(), made, fitted))
    except TakifuguError as error:
        sys.exit(f"takifugu: {error}")
    print(PAGE.relative_to(ROOT))


if __name__ == "__main__":
    main()
