"""What the demonstration shows: printed step by step, and kept for ``--json``."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from textwrap import fill
from time import monotonic
from typing import Any

from takifugu.cli.shared_options import Spinner, echo
from takifugu.reports.html_page import FactList, PageTable, Paragraphs, Part, Section, Verbatim
from takifugu.reports.html_page import shown as cell_text

WIDTH, INDENT = 92, "   "
ROWS_PRINTED = 10


@dataclass
class DemoRecord:
    """The steps so far.

    Attributes:
        silent: Whether to print nothing.
        sections: What is shown of each step.
        facts: What ``--json`` prints.
        seconds: How long each piece of work took.
    """

    silent: bool
    sections: list[Section] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def as_expected(self) -> bool:
        """Whether the third query was refused, the repeated one free and the ledger sound."""
        facts = self.facts
        return facts["refused"] is not None and facts["again_free"] and facts["sound"]

    @contextmanager
    def working(self, doing: str) -> Iterator[Spinner]:
        """A spinner on stderr, and how long the work took."""
        begun = monotonic()
        with Spinner(doing) as spinner:
            yield spinner
        self.seconds[doing] = round(monotonic() - begun, 3)

    def show(self, title: str, *parts: Part) -> None:
        """Print a step, and keep it."""
        self.sections.append(Section(title, parts))
        self.line(f"\n{len(self.sections)}  {title}")
        for part in parts:
            for line in _lines(part):
                self.line(f"{INDENT}{line}".rstrip())

    def line(self, text: str) -> None:
        """Print text, unless silent."""
        if not self.silent:
            echo(text)


def _lines(part: Part) -> Iterator[str]:
    """A part of a step as lines of text."""
    match part:
        case Paragraphs(text):
            yield from fill(
                text, WIDTH - len(INDENT), break_long_words=False, break_on_hyphens=False
            ).splitlines()
        case Verbatim(text):
            yield from text.strip().splitlines()
        case FactList(pairs):
            yield from _aligned([[name, cell_text(value)] for name, value in pairs.items()])
        case PageTable(columns, rows):
            cells = [list(map(cell_text, row)) for row in rows[:ROWS_PRINTED]]
            yield from _aligned([list(columns), *cells])
            if len(rows) > ROWS_PRINTED:
                yield f"… and {len(rows) - ROWS_PRINTED} more"


def _aligned(rows: list[list[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
