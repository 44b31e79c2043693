"""What takes long is shown in a notebook and, if asked for, in a terminal; elsewhere nothing is."""

import sys
import time
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from takifugu.errors import UnsoundRequest
from takifugu.session import Session, activity
from takifugu.session.activity import Activity, NotebookBar, TerminalSpinner, in_notebook, screen
from tests.notebooks import kernel_settings
from tests.raising import raises
from tests.session.world import opened

WORK = """
import time
import takifugu.session.activity as activity
activity.DELAY, activity.TICK = 0.05, 0.05
assert activity.in_notebook()
print("before")
with activity.Activity("planning <b>", activity.screen(None)) as say:
    say("state 3 of 78")
    time.sleep(0.6)
print("after")
"""
QUICK = """
import takifugu.session.activity as activity
with activity.Activity("planning", activity.screen(None)):
    pass
"""


class Noted:
    """A screen that remembers."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.cleared, self.seen = 0, Event()

    def show(self, text: str) -> None:
        """Note it."""
        self.texts.append(text)
        self.seen.set()

    def clear(self) -> None:
        """Count it."""
        self.cleared += 1


def test_long_work_is_shown_with_its_detail_and_then_cleared(monkeypatch: Any) -> None:
    monkeypatch.setattr(activity, "DELAY", 0.0)
    shown = Noted()
    with Activity("planning", shown) as say:
        say("state 3")
        assert shown.seen.wait(60)
    assert shown.texts[0] in ("planning: state 3, 0 s", "planning, 0 s") and shown.cleared == 1


def test_short_work_is_not_shown_and_an_error_passes(monkeypatch: Any) -> None:
    monkeypatch.setattr(activity, "DELAY", 3600.0)
    shown = Noted()
    began = time.monotonic()
    with pytest.raises(ZeroDivisionError), Activity("planning", shown):
        _ = 1 / 0
    assert not shown.texts and not shown.cleared and time.monotonic() - began < 3600


def test_nothing_is_shown_where_nobody_looks(monkeypatch: Any) -> None:
    assert not in_notebook() and screen(None) is None and screen(False) is None
    assert screen(True) is None  # standard error is no terminal here
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert isinstance(screen(True), TerminalSpinner) and screen(None) is None


def test_a_notebook_shows_a_bar_unless_it_is_told_not_to(monkeypatch: Any) -> None:
    monkeypatch.setattr(activity, "in_notebook", lambda: True)
    assert isinstance(screen(None), NotebookBar) and isinstance(screen(True), NotebookBar)
    assert screen(False) is None


def test_a_spinner_writes_markup_as_text(capsys: Any) -> None:
    spinner = TerminalSpinner()
    spinner.show("[bold]planning\x1b[2J")
    spinner.show("again")
    spinner.clear()
    TerminalSpinner().clear()  # never shown
    assert "\x1b[2J" not in capsys.readouterr().err


def test_a_bar_is_displayed_once_then_replaced_and_left_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By IPython itself, in this process: what its shell publishes."""
    pytest.importorskip("IPython", reason="a package of the developers")
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output
    from traitlets.config import Config

    kernel_settings(tmp_path, monkeypatch)
    shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    try:
        bar = NotebookBar()
        with capture_output() as seen:
            bar.clear()  # nothing was shown yet
            bar.show("planning <b>")
            bar.show("again")
            bar.clear()
        assert not in_notebook()  # a shell, and no kernel
    finally:
        InteractiveShell.clear_instance()
        del shell
    said = [output.data["text/html"] for output in seen.outputs]
    assert ["progress" in text for text in said] == [True, True, False] and said[2] == ""
    assert "planning &lt;b&gt;" in said[0] and "again" in said[1]
    assert [output.update for output in seen.outputs] == [False, True, True]
    assert len({output.transient["display_id"] for output in seen.outputs}) == 1


def test_progress_is_true_or_false(tmp_path: Path) -> None:
    with opened(tmp_path) as (session, ledger, engine):
        with raises(UnsoundRequest, field="progress"):
            Session(engine, session._open.prior, ledger=ledger, dataset="visits", progress="no")  # type: ignore[arg-type]
        quiet = Session(
            engine, session._open.prior, ledger=ledger, dataset="visits", progress=False
        )
        assert quiet.plan.histogram(epsilon=1).cost.alone <= 1


@pytest.mark.nightly
def test_a_kernel_shows_a_bar_in_the_cell_that_runs_and_takes_it_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel_settings(tmp_path, monkeypatch)
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(text) for text in (WORK, QUICK)]
    )
    seen: list[str] = []

    class Watched(NotebookClient):
        def process_message(self, message: Any, cell: Any, index: int) -> Any:
            data = message["content"].get("data", {})
            if message["msg_type"] in ("display_data", "update_display_data"):
                seen.append(f"{index} {data['text/html']}")
            return super().process_message(message, cell, index)

    Watched(book, kernel_name="python3", timeout=600).execute()
    assert "planning &lt;b&gt;: state 3 of 78" in seen[0] and seen[0].startswith("0 <progress")
    assert seen[-1] == "0 "  # cleared, and the quick cell shows nothing
    assert [output["output_type"] for output in book.cells[1].outputs] == []
