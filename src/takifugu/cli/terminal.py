"""How a command says something: nothing that was read from a file or a table acts on a terminal."""

import typer

from takifugu.visible import visible


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print text for people, or a JSON document, with marks that do not show written out."""
    typer.echo(visible(text, keep="\n"), err=err, nl=nl)
