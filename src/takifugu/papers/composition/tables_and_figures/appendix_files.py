"""What `takifugu reproduce` writes beside the experiments: definitions, baselines, concepts."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from takifugu.papers.composition.definitions.composition_table import composition_rows
from takifugu.papers.composition.experiments.compared_chains import (
    ChainAllowances,
    Progress,
    compared_chains,
    write_chain_allowances,
)
from takifugu.papers.composition.tables_and_figures.baseline_figure import (
    CAPTION,
    baseline_figure,
    baseline_table,
    fitted_table,
)
from takifugu.papers.composition.tables_and_figures.concept_figures import (
    CAPTIONS,
    concept_figures,
)
from takifugu.papers.composition.tables_and_figures.definition_table import (
    definition_document,
    definition_table,
)
from takifugu.papers.composition.tables_and_figures.figure_writing import write_figure, write_whole
from takifugu.papers.composition.tables_and_figures.plain_tables import (
    PlainTable,
    write_plain_tables,
)
from takifugu.reports.html_figures import drawing
from takifugu.reports.html_page import Drawing


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
            files += [out / "figures" / f"{name}{end}" for end in (".svg", ".png")]
            for path in files[-2:]:
                write_figure(figure, path)
            drawings.append(drawing(figure, name=name, caption=CAPTIONS.get(name, CAPTION)))
    if fitted:
        tables.append(fitted_table(fitted))
        files.append(out / "fitted-baselines.json")
        write_chain_allowances(fitted, files[-1])
    files += write_plain_tables(tables, out / "tables")
    return Appendix(tuple(files), tuple(drawings), tuple(tables))
