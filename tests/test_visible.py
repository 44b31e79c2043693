"""Nothing that was read from a file acts on a terminal, a spreadsheet, a page or a figure."""

import csv
import io
import json
import re
import unicodedata
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import takifugu
from takifugu.cli.commands.release_command import OutputFile
from takifugu.declarations import Category, InvalidDeclaration
from takifugu.errors import Malformed
from takifugu.reports.html_page import (
    FactList,
    Page,
    PageTable,
    Paragraphs,
    Part,
    Section,
    Verbatim,
)
from takifugu.reports.plot_files import drawing, save
from takifugu.reports.prior_figures import heat_map
from takifugu.reports.result_figure import result_figure
from takifugu.session.result_files import csv_text
from takifugu.visible import csv_cell, four_digits, visible

ANYTHING = st.text(st.characters(codec=None), max_size=30)  # half characters too
HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07",
    "\x9b31m",
    "a\u202eb\u2066c",
    "\u200b",
    "a\rb",
    "\ud800",
    "\x7f",
)


@given(ANYTHING)
def test_what_is_shown_holds_no_mark_that_acts_and_can_be_encoded(text: str) -> None:
    found = visible(text)
    assert found.encode().decode() == found
    kinds = {unicodedata.category(letter) for letter in found}
    assert not kinds & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert not any(ord(letter) & 0xFFFE == 0xFFFE for letter in found)  # XML has no such letters
    assert visible(found) == found
    if text.isprintable():
        assert found == text


@given(st.recursive(st.none() | st.integers() | ANYTHING, st.lists, max_leaves=8))
def test_a_json_document_stays_the_same_document(value: Any) -> None:
    for indent in (None, 2):
        written = json.dumps(value, ensure_ascii=False, indent=indent)
        assert json.loads(visible(written, keep="\n")) == value


@given(ANYTHING)
def test_a_csv_cell_is_no_formula_and_gives_its_text_back(text: str) -> None:
    cell = csv_cell(text)
    assert not cell or cell[0] not in "=+-@\t\r\n"
    back = cell[1:] if re.match("'+[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]", cell) else cell
    assert back == re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found.group()):04x}", text)


def test_numbers_stay_numbers_in_a_csv_file() -> None:
    rows = [["=cmd|' /C calc'!A0", -3, -0.5, None], ["'=x", 1, 2.5, "+1"], ["\ud800", 0, 0.0, ""]]
    text = csv_text(["@label", "estimate", "low", "note"], rows)
    found = list(csv.reader(io.StringIO(text)))
    assert found == [
        ["'@label", "estimate", "low", "note"],
        ["'=cmd|' /C calc'!A0", "-3", "-0.5", ""],
        ["''=x", "1", "2.5", "'+1"],
        ["\\ud800", "0", "0.0", ""],
    ]


def test_a_json_file_holds_half_a_character_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    with OutputFile(path) as target:
        target.write({"rows": [[*HOSTILE]]})
    assert json.loads(path.read_text(encoding="utf-8")) == {"rows": [[*HOSTILE]]}


@pytest.mark.parametrize("text", HOSTILE)
def test_messages_and_pages_show_marks(text: str) -> None:
    assert str(Malformed(text, given=f"is {text}", needed="be plain")).isprintable()
    parts: list[Part] = [
        Paragraphs(text),
        Verbatim(text),
        FactList({text: text}),
        PageTable([text], [[text]], caption=text),
    ]
    html = Page(text, text, [Section(text, parts)], foot=text).html()
    assert html.encode()
    assert all(letter.isprintable() or letter == "\n" for letter in html)


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb"])
def test_half_a_character_is_no_label(text: str) -> None:
    made: list[Callable[[], Category]] = [
        lambda: Category("state", ("home", text), "refuse"),
        lambda: Category("state", ("home",), "other", text),
        lambda: Category("state", ("home",), "refuse", labels=((text, "home"),)),
    ]
    for one in made:
        with pytest.raises(InvalidDeclaration, match="surrogate") as told:
            one()
        assert str(told.value).isprintable()


LABELS = (r"$\frac{1$", "$x$ and $y$", "a_b^c", "東京", "\U0001f421", *HOSTILE[:5])
NUMBERS = [(label, 5, 3, 7) for label in LABELS]
RANKS = [(label, 1, other) for label, other in zip(LABELS, LABELS[::-1], strict=True)]
FIGURES: dict[str, Callable[[], Any]] = {
    "numbers": lambda: result_figure(
        ("state", "estimate", "low", "high"), NUMBERS, by=(), title=LABELS[0], note=LABELS[1]
    ),
    "groups": lambda: result_figure(
        (LABELS[0], "state", "estimate", "low", "high"),
        [(label, *row) for label in LABELS[:3] for row in NUMBERS[:2]],
        by=(LABELS[0],),
        title="t",
    ),
    "ranks": lambda: result_figure(
        ("zone", "rank", "state"), RANKS, by=("zone",), title="t", ranked=True
    ),
    "heat map": lambda: heat_map(np.eye(10), LABELS, LABELS, down="$", across="$"),
}


@pytest.mark.parametrize("name", FIGURES)
def test_labels_are_drawn_as_they_are_written(name: str, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if name == "ranks":
            save(FIGURES[name](), tmp_path / "figure.pdf")
        found = drawing(FIGURES[name](), name="one").svg
    assert r"$\frac{1$" in found
    assert "\\u001b[2J" in found or name == "groups"
    assert all(letter.isprintable() or letter == "\n" for letter in found)


def test_commands_print_by_one_function() -> None:
    """`terminal.echo` escapes invisible characters; the other places that print are listed."""
    folder = Path(takifugu.__file__).parent / "cli"
    found = {
        path.name: len(re.findall(r"typer\.echo\(|(?<![\w.])print\(|click\.echo\(", text))
        for path in folder.rglob("*.py")
        if (text := path.read_text(encoding="utf-8"))
    }
    assert {name: many for name, many in found.items() if many} == {
        "shared_options.py": 1,
        "collapse_command.py": 1,
    }


@given(value=st.fractions(), rounded=st.sampled_from(["up", "down", "nearest"]))
def test_a_number_for_people_has_four_digits_rounded_as_asked(
    value: Fraction, rounded: Literal["up", "down", "nearest"]
) -> None:
    text = four_digits(value, rounded)
    seen = Fraction(text)
    assert len(Decimal(text).normalize().as_tuple().digits) <= 4
    assert abs(seen - value) <= abs(value) / 1000
    if rounded != "nearest":
        assert seen >= value if rounded == "up" else seen <= value


@given(value=st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_off_by_its_own_rounding_at_most(value: float) -> None:
    spare = abs(Fraction(value)) / 10**11
    up, down = Fraction(four_digits(value, "up")), Fraction(four_digits(value, "down"))
    assert down - spare <= Fraction(value) <= up + spare
