"""What a session is doing, shown in a notebook or a terminal while it takes long.

A first price under a wide prior, or the table of a translation, can take seconds to minutes. In a
notebook a bar with the seconds then appears by itself, and goes when the work is done; in a
terminal a spinner, on standard error and only if it was asked for. Elsewhere nothing is shown: the
output of a script stays what it prints.
"""

import sys
from contextlib import AbstractContextManager
from contextvars import copy_context
from html import escape
from importlib import import_module
from threading import Event, Thread
from time import monotonic
from typing import Any, Protocol, Self

from takifugu.visible import visible

DELAY = 1.0  # seconds that are not worth a word
TICK = 0.5  # between two looks at the clock


class Screen(Protocol):
    """Where an activity is shown. Implementers: `NotebookBar` and `TerminalSpinner`."""

    def show(self, text: str) -> None:
        """Show what is being done, in place of what was shown before."""

    def clear(self) -> None:
        """Leave nothing."""


class NotebookBar:
    """A bar of the browser's own, without widgets: IPython replaces what it displayed."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, text: str) -> None:
        """The bar and the text."""
        shown, said = import_module("IPython.display"), escape(visible(text))
        bar = shown.HTML(f'<progress aria-label="{said}"></progress> <span>{said}</span>')
        if self._handle is None:
            self._handle = shown.display(bar, display_id=True)
        else:
            self._handle.update(bar)

    def clear(self) -> None:
        """An empty line in its place."""
        if self._handle is not None:
            self._handle.update(import_module("IPython.display").HTML(""))


class TerminalSpinner:
    """A spinner on standard error."""

    def __init__(self) -> None:
        from rich.console import Console

        self._status = Console(stderr=True).status("")
        self._started = False

    def show(self, text: str) -> None:
        """The spinner and the text."""
        from rich.markup import escape as plain

        self._status.update(plain(visible(text)))
        if not self._started:
            self._started = True
            self._status.start()

    def clear(self) -> None:
        """Stop it."""
        if self._started:
            self._status.stop()


def in_notebook() -> bool:
    """Whether a kernel runs this, whose outputs a browser shows."""
    interactive = sys.modules.get("IPython")
    shell = None if interactive is None else interactive.get_ipython()
    return shell is not None and getattr(shell, "kernel", None) is not None


def screen(progress: bool | None) -> Screen | None:
    """Where to show an activity: None for nowhere.

    Args:
        progress: True for a notebook or a terminal, False for nowhere, None for a notebook.
    """
    if progress is False:
        return None
    if in_notebook():
        return NotebookBar()
    return TerminalSpinner() if progress and sys.stderr.isatty() else None


class Activity(AbstractContextManager["Activity"]):
    """What is being done, shown once it has taken a second; call it with a detail.

    Args:
        name: What is being done.
        shown: Where; None for nowhere.
    """

    def __init__(self, name: str, shown: Screen | None) -> None:
        self._name, self._detail, self._screen = name, "", shown
        self._done = Event()
        self._thread: Thread | None = None

    def __enter__(self) -> Self:
        if self._screen is not None:
            context = copy_context()  # IPython keeps there which cell is running
            self._thread = Thread(target=context.run, args=(self._watch,), daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join()

    def __call__(self, detail: str) -> None:
        """Say what is being done in detail."""
        self._detail = f": {detail}"

    def _watch(self) -> None:
        """Show what is being done, with the seconds, until it is done."""
        began, shown = monotonic(), self._screen
        if shown is None or self._done.wait(DELAY):
            return
        try:
            while True:
                shown.show(f"{self._name}{self._detail}, {monotonic() - began:.0f} s")
                if self._done.wait(TICK):
                    break
        finally:
            shown.clear()
