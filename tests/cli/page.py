"""The part of docs/reference/commands.md that is made of the help of every command.

python -m tests.cli.page      writes it again, after a command or an option has changed
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from takifugu.cli import app

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "commands.md"
MARK = "<!-- From here on made by `python -m tests.cli.page`. -->\n"


def commands(command: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every command that does something, by its words."""
    command = command or typer.main.get_command(app)
    inner = getattr(command, "commands", None)
    if inner is None:
        yield " ".join(path), command
    for name, part in (inner or {}).items():
        yield from commands(part, (*path, name))


def section(name: str, command: Any) -> str:
    """What the page says about one command: its help, and each option with its own."""
    words, rows = [f"takifugu {name}"], []
    for parameter in command.params:
        told = str(parameter.help).replace("|", "\\|")
        if parameter.param_type_name == "argument":
            word = parameter.metavar or parameter.name.upper()
            words.append(word if parameter.required or word.startswith("[") else f"[{word}]")
            rows.append(f"| `{word}` | {told} |")
        elif "--help" not in parameter.opts:
            rows.append(f"| {', '.join(f'`{flag}`' for flag in parameter.opts)} | {told} |")
    parts = [f"## takifugu {name}", f"    {' '.join(words)}", command.help.strip()]
    return "\n\n".join([*parts, "\n".join(["| | |", "|---|---|", *rows])]) + "\n"


def generated() -> str:
    """The sections of all commands."""
    return "\n".join(section(name, command) for name, command in commands())


if __name__ == "__main__":
    head, _, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    PAGE.write_text(f"{head}{MARK}\n{generated()}", encoding="utf-8")
