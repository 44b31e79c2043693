"""No option is dropped without a word: one that takes one value is given once, in every command."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import typer.main

from takifugu.cli import exit_status, program
from takifugu.cli.command_reference import commands
from takifugu.cli.declared_flags import requested
from takifugu.cli.shared_options import InvalidOption, StrictCommand, StrictGroup
from tests.cli.running import call, start
from tests.raising import raises
from tests.session.study import write_data

ROOT = typer.main.get_command(program())
COMMANDS = {"": ROOT} | dict(commands())
OPTIONS = [
    (name, option)
    for name, command in COMMANDS.items()
    for option in command.params
    if option.param_type_name == "option" and "--help" not in option.opts
]


def given(option: Any) -> list[str]:
    """An option as it is typed; which value it has does not matter to a parser."""
    return [option.opts[0]] if option.is_flag else [option.opts[0], "1"]


def test_every_command_and_group_is_strict() -> None:
    waiting: list[Any] = [ROOT]
    while waiting:
        command = waiting.pop()
        inner = getattr(command, "commands", {})
        assert isinstance(command, StrictGroup if inner else StrictCommand)
        waiting += inner.values()
    assert len(OPTIONS) > 100


@pytest.mark.parametrize(
    ("name", "option"), OPTIONS, ids=[f"{name} {option.opts[0]}" for name, option in OPTIONS]
)
def test_an_option_that_is_no_list_is_given_once(name: str, option: Any) -> None:
    command = COMMANDS[name]
    context = command.context_class(command, info_name="takifugu")
    twice = [*given(option), *given(option)]
    command.make_parser(context).parse_args(args=given(option))
    parser = command.make_parser(context)
    if option.multiple:
        assert parser.parse_args(args=twice)[0][option.name] == ["1", "1"]
    else:
        with raises(InvalidOption, field=max(option.opts, key=len)):
            parser.parse_args(args=twice)
    for spelling in option.opts[1:]:  # under two names it is the same option
        other = [spelling] if option.is_flag else [spelling, "2"]
        if not option.multiple:
            with pytest.raises(InvalidOption):
                command.make_parser(context).parse_args(args=[*given(option), *other])


def test_the_whole_program_refuses_it_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = call(tmp_path, monkeypatch, "plan", "a", "histogram", "--k", "1", "--k=2")
    assert (done.status, done.out) == (exit_status.MISTAKE, "")
    assert done.err.startswith("takifugu: `--k` ") and done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("by", "columns"),
    [
        (["zone", "floor"], ["zone", "floor"]),
        (["zone,floor"], ["zone", "floor"]),
        (["zone,floor", '["a,b"]'], ["zone", "floor", "a,b"]),
        (["zone", "zone"], ["zone", "zone"]),  # which the session refuses
    ],
)
def test_columns_to_group_by_are_all_kept(by: list[str], columns: list[str]) -> None:
    asked = requested("stays", "histogram", {"by": by, "epsilon": "1"})
    assert asked.options.by == tuple(columns)


def test_a_column_is_filtered_once() -> None:
    with raises(InvalidOption, field="--where"):
        requested("stays", "histogram", {"where": ["zone=a", "zone=b"]})
    given: dict[str, Any] = {"where": ["zone=a,b", "floor=1"], "epsilon": "1"}
    where = requested("s", "histogram", given).options.where
    assert where == {"zone": ("a", "b"), "floor": ("1",)}


def test_an_option_is_given_once() -> None:
    for name in ("kind", "epsilon"):
        with pytest.raises(InvalidOption):
            requested("stays", "histogram", {"option": [f"{name}=1"], "epsilon": "1"})


# --- stopping ---


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to send")
def test_what_is_stopped_ends_as_shells_expect(tmp_path: Path) -> None:
    """A program that waits for a terminal is interrupted: 130, one line, as the page says."""
    write_data(tmp_path)
    fifo = tmp_path / "waits.toml"
    os.mkfifo(fifo)
    # A shell that runs the tests in the background has SIGINT ignored, by what it starts as well.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = start(tmp_path, "dataset", "show", "waits.toml")
    finally:
        signal.signal(signal.SIGINT, before)
    writer = os.open(fifo, os.O_WRONLY)  # returns once the command has opened it to read
    process.send_signal(signal.SIGINT)
    os.close(writer)  # if the signal came just before the command waits, it waits no longer
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (exit_status.STOPPED, "", "takifugu: stopped\n")
    assert exit_status.STOPPED == 130 and exit_status.STOPPED in exit_status.MEANINGS


@pytest.mark.parametrize("interrupted", [True, False])
def test_no_is_no_and_an_interrupt_at_a_query_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interrupted: bool
) -> None:
    def asked(*_: Any, **__: Any) -> None:
        if not interrupted:
            raise typer.Abort
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise typer.Abort from None

    monkeypatch.setattr("takifugu.cli._called", lambda _: asked)
    done = call(tmp_path, monkeypatch, "init")
    assert done.status == (exit_status.STOPPED if interrupted else exit_status.MISTAKE)
    assert done.err == f"takifugu: {'stopped' if interrupted else 'nothing was changed'}\n"
