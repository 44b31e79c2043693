"""Everything that is written from results: tables in four formats, figures, the page."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from takifugu.papers.composition.experiments.measurements import Cell
from takifugu.papers.composition.results import DatasetSummary, Results
from takifugu.papers.composition.tables_and_figures import cell_figures as drawings
from takifugu.papers.composition.tables_and_figures import formats, paper_layout_formats
from takifugu.papers.composition.tables_and_figures.figure_writing import write_figure, write_whole
from takifugu.papers.composition.tables_and_figures.paper_layout import all_layouts
from takifugu.papers.composition.tables_and_figures.paper_tables import all_tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRINTED = "printed"
SIDEWAYS = "Each mechanism is moved sideways a little, so that none hides another."


@dataclass(frozen=True)
class NamedFigure:
    """A figure: its name among files, its dataset ("printed" for the paper's), what it shows."""

    key: str
    data: str
    caption: str
    figure: "Figure"


def write_tables(results: Results, out: Path) -> list[Path]:
    """Every table as Markdown, CSV and LaTeX, and all of them as one LaTeX document.

    Where the printed numbers belong, the paper's tables also in the paper's own layout.
    """
    made, beside = all_tables(results), all_layouts(results)
    texts = {}
    for layout in beside:
        texts[out / f"{layout.key}.md"] = paper_layout_formats.markdown(layout)
        texts[out / f"{layout.key}.csv"] = paper_layout_formats.as_csv(layout)
        texts[out / f"{layout.key}.tex"] = paper_layout_formats.latex(layout)
    for table in made:
        texts[out / f"{table.key}.md"] = formats.markdown(table)
        texts[out / f"{table.key}.csv"] = formats.as_csv(table)
        texts[out / f"{table.key}.tex"] = formats.latex(table)
    if made:
        every = [*map(paper_layout_formats.latex, beside), *map(formats.latex, made)]
        texts[out / "all.tex"] = formats.latex_document(every)
    for path, text in texts.items():
        write_whole(path, text)
    return list(texts)


def pictures(results: Results) -> list[NamedFigure]:
    """The figures of every dataset, after the shift on the printed tables."""
    drawn = [picture for one in results.about for picture in _pictures(one, results)]
    return [printed_shift(), *drawn]


def printed_shift() -> NamedFigure:
    """The paper's own columns: those with uncertainty are those without, shifted."""
    plain, uncertain = (drawings.printed_points(uncertain=flag) for flag in (False, True))
    return NamedFigure(
        f"{PRINTED}-shift",
        PRINTED,
        "Printed Acc@1 of Table 1: from ε = 1 on each point with 20 % uncertainty (open) lies on"
        f" the line without it, at ε − {drawings.SHIFT:.3f}.",
        drawings.shift_figure(None, plain, uncertain),
    )


def write_picture(picture: NamedFigure, out: Path) -> list[Path]:
    """A figure as SVG and PNG: both files."""
    files = [out / f"{picture.key}{end}" for end in (".svg", ".png")]
    for path in files:
        write_figure(picture.figure, path)
    return files


def _coinciding(cells: tuple[Cell, ...]) -> str:
    """Which lines cannot be told apart, in words."""
    pairs = [f"{one} and {other}" for one, other in drawings.coinciding(cells)]
    return f" Everywhere within a point of each other: {'; '.join(pairs)}." if pairs else ""


def _pictures(one: DatasetSummary, results: Results) -> Iterator[NamedFigure]:
    cells = results.of(one.key)
    yield NamedFigure(
        f"{one.key}-accuracy",
        one.key,
        "Acc@k against the Pufferfish ε. The shaded region is between no and 20 % uncertainty."
        f" {SIDEWAYS}{_coinciding(cells)}",
        drawings.accuracy_figure(one, cells),
    )
    yield NamedFigure(
        f"{one.key}-noise",
        one.key,
        "The standard deviation of the noise on one count, on a logarithmic scale; where nothing"
        f" may be spent it is infinite, and marked at the top. {SIDEWAYS}",
        drawings.noise_figure(one, cells),
    )
    plain, uncertain = (drawings.measured_points(cells, uncertain=flag) for flag in (False, True))
    again = drawings.again_points(results.shifted_of(one.key))
    line = {name: points | again.get(name, {}) for name, points in plain.items()}
    yield NamedFigure(
        f"{one.key}-shift",
        one.key,
        "Lines: without uncertainty, with what was run again at each ε −"
        f" {drawings.SHIFT:.3f}. Marks: with 20 % uncertainty. Group DP, which is no worse for it,"
        " is left out; where it is all that is left, a mark is above its line.",
        drawings.shift_figure(one, line, uncertain),
    )
