"""Figures as SVG files."""

from datetime import UTC, datetime
from xml.etree import ElementTree

from takifugu.reports.html_style import BLUE, FIGURE_COLOURS
from takifugu.reports.plot_files import standalone_svg
from takifugu.reports.spending_figure import BudgetEvent, spending_figure

NOW = datetime(2026, 11, 16, tzinfo=UTC)
SVG = "{http://www.w3.org/2000/svg}"


def made(alt: str) -> bytes:
    """The file of a small figure."""
    events = [
        BudgetEvent(1, NOW, 0.0, 2.0, released=False),
        BudgetEvent(2, NOW, 0.5, 2.0, released=True),
    ]
    return standalone_svg(spending_figure(events), alt)


def test_a_file_is_well_formed_says_what_it_shows_and_asks_for_nothing() -> None:
    alt = "spent <0.5> of 2 & more"
    tree = ElementTree.fromstring(made(alt))  # noqa: S314 - our own
    assert tree.tag == f"{SVG}svg"
    assert tree.findtext(f"{SVG}title") == alt
    text = made(alt).decode()
    assert "<script" not in text
    links = [value for one in tree.iter() for name, value in one.attrib.items() if "href" in name]
    assert all(link.startswith("#") for link in links)
    assert "url(http" not in text and "@import" not in text


def test_colours_follow_light_and_dark() -> None:
    text = made("spent").decode()
    drawn = text.partition("</style>")[2]
    assert BLUE not in drawn and "#000000" not in drawn
    assert "var(--figure-0)" in drawn
    assert FIGURE_COLOURS[BLUE] in text.partition("prefers-color-scheme: dark")[2]


def test_the_same_figure_is_the_same_file() -> None:
    assert made("spent") == made("spent")
