"""How a demonstration is told in a terminal: answers on stdout, what is being done on stderr."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill
from time import monotonic
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from takifugu.cli.demo_story import Story
from takifugu.cli.shared_options import Working
from takifugu.visible import visible

WIDTH = 92


class Teller:
    """Tells one step after the other; with ``silent`` only stderr hears of it."""

    def __init__(self, *, silent: bool) -> None:
        self._console = Console(quiet=silent, highlight=False, markup=False, soft_wrap=True)
        self._number = 0
        self.seconds: dict[str, float] = {}

    def heading(self, title: str) -> None:
        """Begin a step."""
        self._number += 1
        self._console.print(Text(f"\n{self._number}  {title}", style="bold"))

    @contextmanager
    def step(self, title: str, doing: str) -> Iterator[Working]:
        """Begin a step that takes a moment, and note how long it took."""
        self.heading(title)
        begun = monotonic()
        with Working(doing) as working:
            yield working
        self.seconds[doing] = round(monotonic() - begun, 3)

    def say(self, *paragraphs: str) -> None:
        """Plain words, wrapped and set in."""
        for paragraph in paragraphs:
            told = fill(
                paragraph, WIDTH, initial_indent="   ", subsequent_indent="   ",
                break_long_words=False, break_on_hyphens=False,
            )  # fmt: skip
            self._console.print(visible(told, keep="\n"))

    def lines(self, *lines: str, style: str = "") -> None:
        """Lines as they are."""
        for line in lines:
            self._console.print(Text(visible(f"   {line}"), style=style))

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """A small table; numbers to the right."""
        grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        numbers = [
            all(isinstance(row[k], int | float) for row in rows) for k in range(len(columns))
        ]
        for name, number in zip(columns, numbers, strict=True):
            grid.add_column(Text(name), justify="right" if number else "left", no_wrap=True)
        for row in rows:
            grid.add_row(*(Text(_cell(cell)) for cell in row))
        inner = Console(width=WIDTH, quiet=self._console.quiet)
        with inner.capture() as drawn:
            inner.print(grid)
        self.lines(*(line.rstrip() for line in drawn.get().rstrip("\n").splitlines()))

    def done(self, folder: Path, story: Story, seconds: float) -> None:
        """Where everything is; the page last."""
        self.say(
            f"Everything is in {folder}: the rows, {story.declared}, {story.ledger} and the page."
            f" It took {seconds:.1f} s. Look further:"
        )
        self.lines(
            f"takifugu dataset show {folder / story.declared}",
            f"takifugu ledger show {folder / story.ledger}",
            f"takifugu ledger verify {folder / story.ledger}",
        )
        self._console.print(f"\n{folder / 'page.html'}")


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
