"""``takifugu dataset``: what a declaration promises, and whether the data fits it."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

app = typer.Typer(no_args_is_help=True, help="Look at declared tables and check them.")

Declared = Annotated[Path, typer.Argument(help="The declaration, as TOML.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]


@app.command()
def show(declaration: Declared, as_json: AsJson = False) -> None:
    """Say what DECLARATION promises. The data is not looked at."""
    from takifugu.engines import Amount, read_declaration

    found = read_declaration(declaration)
    if as_json:
        facts = {
            "title": found.title,
            "fingerprint": found.fingerprint,
            "source": found.source.place,
            "entity": found.entity,
            "order": [found.order.column, *found.order.ties],
            "protected": [column.column for column in found.protected],
            "public": [column.column for column in found.public],
            "promise": found.promise(),
        }
        typer.echo(json.dumps(facts, ensure_ascii=False))
        return
    if found.title:
        typer.echo(f"{found.title}\n")
    for column in (*found.protected, *found.public):
        part = "protected" if column in found.protected else "public"
        if isinstance(column, Amount):
            told = f"{float(column.low):g} … {float(column.high):g}"
        elif column.values is None:
            told = "keys from the data"
        else:
            told = f"{len(column.keys)} keys"
        typer.echo(f"{part:<9}  {column.column}  {told}")
    typer.echo(f"\n{found.promise()}", nl=False)


@app.command()
def check(
    declaration: Declared,
    as_json: AsJson = False,
    backend: Annotated[
        Literal["duckdb", "postgres", "spark"] | None,
        typer.Option(help="What reads the data; by default what the source needs."),
    ] = None,
) -> None:
    """Read the data and see that it is as DECLARATION says; print its public facts.

    No protected value is printed. Status 2 and one line if something does not fit.
    """
    from takifugu.cli.options import Working
    from takifugu.engines import check as check_engine
    from takifugu.engines import open_engine

    with Working(f"checking {declaration}"), open_engine(declaration, backend=backend) as engine:
        found = check_engine(engine)
    facts: dict[str, Any] = {
        "rows": found.rows,
        "entities": found.entities,
        "longest": found.longest,
        "first": _place(found.first),
        "last": _place(found.last),
        "keys": found.keys,
        "data": found.data.fingerprint,
        "covers": found.data.covers,
    }
    if as_json:
        typer.echo(json.dumps(facts, ensure_ascii=False))
        return
    keys = ", ".join(f"{column} {count:,}" for column, count in found.keys.items())
    shown = {
        "rows": f"{found.rows:,}",
        "entities": f"{found.entities:,}, the longest of {found.longest:,} rows",
        "order": f"from {facts['first']} to {facts['last']}" if found.rows else "no rows",
        "keys": keys,
        "data": f"{found.data.fingerprint}",
        "covers": found.data.covers,
    }
    for name, value in shown.items():
        typer.echo(f"{name:<8}  {value}")
    typer.echo("The data fits its declaration.")


def _place(place: object) -> str | None:
    """A place in the order, in words; whole numbers without a point."""
    if isinstance(place, float) and place.is_integer():
        return str(int(place))
    return None if place is None else str(place)
