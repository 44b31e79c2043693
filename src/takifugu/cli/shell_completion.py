"""Shell completion. Nothing heavy is imported, and nothing is ever raised."""

import os
from pathlib import Path
from typing import Literal

import typer

from takifugu._core.toml import parse_toml

FILE = "takifugu.toml"
Shell = Literal["bash", "zsh", "fish", "powershell", "pwsh"]


def prepare() -> None:
    """Register the shells; typer does so by itself only for its own options."""
    if "_TAKIFUGU_COMPLETE" in os.environ:
        from typer.completion import get_completion_inspect_parameters

        get_completion_inspect_parameters()


def nearest_project(folder: Path) -> Path | None:
    """The project file in ``folder`` or in the nearest folder above it."""
    try:
        for place in (folder, *folder.absolute().parents):
            if (place / FILE).is_file():
                return place / FILE
    except OSError:
        return None
    return None


def complete_dataset(incomplete: str) -> list[str]:
    """The datasets of the nearest project."""
    file = nearest_project(Path())
    try:
        names = parse_toml(file.read_text(encoding="utf-8"))["dataset"] if file else {}
        return [name for name in names if name.startswith(incomplete)]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def complete_kind(incomplete: str) -> list[str]:
    """The kinds of query."""
    from takifugu.session.query_kinds import KINDS

    return [kind for kind in KINDS if kind.startswith(incomplete)]


def show(ctx: typer.Context, param: typer.CallbackParam, shell: str | None) -> str | None:
    """Print the script that makes a shell complete our commands, and stop."""
    from typer.completion import show_callback

    return show_callback(ctx, param, shell)  # type: ignore[no-any-return]


def install(ctx: typer.Context, param: typer.CallbackParam, shell: str | None) -> str | None:
    """Install completion of our commands in a shell, and stop."""
    from typer.completion import install_callback

    return install_callback(ctx, param, shell)  # type: ignore[no-any-return]
