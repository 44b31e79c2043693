"""Pages: one file that holds everything, and nothing that was not put there."""

import re
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from takifugu.errors import InvalidFile
from takifugu.influence import chain_curve
from takifugu.priors import MarkovChain
from takifugu.reports.curve_figures import curves_figure
from takifugu.reports.html_page import (
    Drawing,
    FactList,
    Page,
    PageTable,
    Paragraphs,
    Part,
    Section,
    Verbatim,
    shown,
    write_page,
)
from takifugu.reports.plot_files import drawing
from takifugu.visible import visible
from tests.pdf_needs import weasyprint_or_skip
from tests.raising import raises
from tests.reports.reading import Reader

# fmt: off
ALL = {
    "html", "head", "meta", "title", "style", "body", "header", "h1", "p", "main", "section", "h2",
    "pre", "dl", "dt", "dd", "footer", "a",
}
# fmt: on
STICKY = np.array([[0.8, 0.2], [0.2, 0.8]])
NASTY = "<script>alert('x')</script> & \"quotes\" </table>"


def page(*parts: Paragraphs | Verbatim | FactList | PageTable | Drawing) -> Page:
    return Page("A title", "A lead.", [Section("One", parts), Section("Two", [])], foot="The end")


def figures() -> list[Drawing]:
    curve = chain_curve(MarkovChain(STICKY, length=20))
    figure = curves_figure({"a < b": curve}, epsilon=1)
    return [drawing(figure, name=name, caption="Caption", alt="In words") for name in ("a", "b")]


@given(st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), max_size=30))
def test_whatever_is_said_is_said_and_nothing_else(text: str) -> None:
    made = Page(
        text,
        text,
        [Section(text, [Paragraphs(text), Verbatim(text), FactList({text: text})])],
        foot=text,
    )
    found = Reader(made.html())
    assert not found.open
    assert set(found.tags) <= ALL
    words = " ".join("".join(found.text).split())
    assert " ".join(visible(text).split()) in words


def test_markup_in_a_cell_stays_text() -> None:
    html = page(PageTable([NASTY, "n"], [[NASTY, 1]], caption=NASTY), Paragraphs(NASTY)).html()
    assert "<script" not in html
    assert unescape(html).count(NASTY) == 5  # the caption also names the box that scrolls
    assert not Reader(html).open


def test_it_fetches_nothing_and_runs_nothing() -> None:
    html = page(*figures(), PageTable(["a"], [[1]])).html()
    found = Reader(html)
    assert not found.open
    assert not {"script", "link", "img", "iframe", "object", "image"} & set(found.tags)
    links = [value for name, value in found.attributes if name in ("href", "src", "xlink:href")]
    assert links and all(str(link).startswith("#") for link in links)
    assert not re.search(r"url\((?!#)", html) and "@import" not in html
    assert "default-src 'none'" in html


def test_every_link_leads_to_one_place() -> None:
    found = Reader(page(*figures()).html())
    marks = [value for name, value in found.attributes if name == "id"]
    assert len(marks) == len(set(marks))  # two figures share no name
    links = [value for name, value in found.attributes if name in ("href", "xlink:href")]
    uses = re.findall(r"url\(#([^)]+)\)", page(*figures()).html())
    assert {str(link)[1:] for link in links} | set(uses) <= set(marks)


def test_figures_take_the_colour_of_the_page_and_keep_their_text() -> None:
    (first, _) = figures()
    assert "#000000" not in first.svg and "currentColor" in first.svg
    assert "a &lt; b" in first.svg and "entries exposed" in first.svg
    assert "<style" not in first.svg and "<metadata" not in first.svg
    assert figures()[0] == first  # the same values, the same text


def test_numbers_stand_to_the_right_and_words_to_the_left() -> None:
    html = PageTable(["word", "n", "mixed"], [["x", 1, 2.5], ["y", None, "z"]]).html()
    assert html.count('<td class="number">') == 2
    assert '<td class="number">1</td>' in html and '<td class="number">–</td>' in html


def test_long_tables_scroll_on_screens() -> None:
    assert 'class="box sideways tall"' in PageTable(["n"], [[k] for k in range(25)]).html()
    assert "tall" not in PageTable(["n"], [[k] for k in range(24)]).html()


@pytest.mark.parametrize(("letters", "whole"), [(20, True), (200, False)])
def test_words_of_a_table_are_broken_on_paper_only_where_they_must_be(
    letters: int, whole: bool
) -> None:
    html = PageTable(["column", "what it is"], [["x" * letters, "several short words"]]).html()
    assert f"--letters: {letters + 2 + len('several') + 2}" in html
    assert ('<table class="whole">' in html) == whole


@pytest.mark.nightly
def test_on_paper_a_figure_fits_the_page_and_headings_stay_with_what_follows() -> None:
    weasyprint = weasyprint_or_skip()
    figure = Figure(figsize=(10, 40))
    figure.subplots()
    line = Paragraphs("A line.")
    for above in range(0, 40, 3):  # wherever the page ends
        tall = drawing(figure, name="tall", caption="Caption", alt="In words")
        parts: list[Part] = [
            *[line] * above,
            Paragraphs("In these words:", leads=True),
            Verbatim("x\n" * 9),
        ]
        below = Section("Below", [], [Section("Deeper", [tall, line])])
        html = Page("A title", "", [Section("One", parts, [below])]).html(paper=True)
        for sheet in weasyprint.HTML(string=html).render().pages:
            end = sheet._page_box.content_box_y() + sheet._page_box.height
            boxes = [box for box in sheet._page_box.descendants() if box.element_tag]
            drawn = [box for box in boxes if box.element_tag == "svg"]
            assert all(box.position_y + box.height <= end for box in drawn)
            within = [box for box in boxes if box.element_tag in ("h2", "h3", "h4", "p", "pre")]
            last = max([*within, *drawn], key=lambda box: box.position_y)
            assert last.element_tag in ("p", "pre", "svg")
            assert "leads" not in last.element.get("class", "")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (float("nan"), "–"),
        (float("inf"), "∞"),
        (float("-inf"), "-∞"),
        (1234567, "1,234,567"),
        (0.123456789, "0.1235"),
        ("as it is", "as it is"),
    ],
)
def test_values_as_they_are_shown(value: str | float | None, text: str) -> None:
    assert shown(value) == text


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    write_page(page(), tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page().html()
    with raises(InvalidFile, field="page", reason="unwritable"):
        write_page(page(), tmp_path / "nowhere" / "page.html")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ValueError, match="one svg element"):
        Drawing("<p>", "", "")
    with pytest.raises(ValueError, match="2 cells"):
        PageTable(["a", "b"], [[1]])
    curve = chain_curve(MarkovChain(STICKY, length=5))
    with pytest.raises(ValueError, match="small letters"):
        drawing(curves_figure({"c": curve}), name="Two words")
