"""The reference of all commands, made of their help texts.

python -m takifugu.cli.command_reference PAGE.md    rewrites the part of the page below the mark
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from takifugu.cli import program
from takifugu.cli.shared_options import help_and_keys

MARK = "<!-- Generated from here on: python -m takifugu.cli.command_reference PAGE.md -->\n"


def commands(command: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every command by its name, such as ``budget set``; groups are left out."""
    command = command or typer.main.get_command(program())
    inner = getattr(command, "commands", None)
    if inner is None:
        yield " ".join(path), command
    for name, part in (inner or {}).items():
        yield from commands(part, (*path, name))


def section(name: str, command: Any) -> str:
    """The section of one command: how to call it, its help, and its arguments and options."""
    usage, rows = [f"takifugu {name}"], []
    for parameter in command.params:
        text = str(parameter.help).replace("|", "\\|")
        if parameter.param_type_name == "argument":
            word = parameter.metavar or parameter.name.upper()
            usage.append(word if parameter.required or word.startswith("[") else f"[{word}]")
            rows.append(f"| `{word}` | {text} |")
        elif "--help" not in parameter.opts:
            rows.append(f"| {', '.join(f'`{flag}`' for flag in parameter.opts)} | {text} |")
    words, keys = help_and_keys(command.callback)
    parts = [f"## takifugu {name}", f"    {' '.join(usage)}", words]
    parts += [f"Keys of the JSON object: {keys}"] if keys else []
    return "\n\n".join([*parts, "\n".join(["| | |", "|---|---|", *rows])]) + "\n"


def reference() -> str:
    """The sections of all commands."""
    return "\n".join(section(name, command) for name, command in commands())


def rewritten(page: str) -> str:
    """A page with the generated part as it is now."""
    head, _, _ = page.partition(MARK)
    return f"{head}{MARK}\n{reference()}"


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(rewritten(file.read_text(encoding="utf-8")), encoding="utf-8")
