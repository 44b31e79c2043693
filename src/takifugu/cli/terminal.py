"""Printing: nothing that was read from a file or a table acts on a terminal."""

import typer

from takifugu.visible import visible


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print text or JSON, with invisible characters written out."""
    typer.echo(visible(text, keep="\n"), err=err, nl=nl)
