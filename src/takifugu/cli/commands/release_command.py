"""``takifugu release``: pay, then answer. The same query again is free."""

import os
import sys
from contextlib import nullcontext, suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu.cli.commands import plan_command as options
from takifugu.cli.shared_options import (
    AsJson,
    Backend,
    InProject,
    InvalidOption,
    Spinner,
    plain,
    print_json,
    the_project,
)
from takifugu.cli.shell_completion import complete_dataset, complete_kind
from takifugu.cli.terminal import echo

if TYPE_CHECKING:
    from takifugu.cli.output_files import OutputFile
    from takifugu.project.requests import Asked
    from takifugu.session.values import Result


def run_release(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A dataset of the project; or, alone, a plan that `takifugu plan --out` wrote.",
            autocompletion=complete_dataset,
        ),
    ],
    kind: Annotated[
        str | None, typer.Argument(help=options.KIND_HELP, autocompletion=complete_kind)
    ] = None,
    column: options.Column = None,
    by: options.By = None,
    window: options.WindowOption = None,
    where: options.Where = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    within: options.Within = None,
    chance: options.Chance = None,
    values: options.Values = None,
    k: options.K = None,
    level: options.Level = None,
    grid: options.Grid = None,
    gap: options.Gap = None,
    option: options.More = None,
    analyst: options.Analyst = None,
    no_table: options.NoTable = False,
    out: Annotated[
        Path | None, typer.Option(help="A new .csv, .json or .parquet file for the answer.")
    ] = None,
    project: InProject = None,
    backend: Backend = None,
    as_json: AsJson = False,
) -> None:
    """Answer a query to NAME: charge it to the ledger, then draw the answer and print it.

    Nothing is asked back. The same query again gives the same answer and costs nothing. A
    query that the budget does not admit ends with status 3. Keys of the JSON object: dataset,
    query, window, groups, columns, rows, error, cost, free, at, mechanism, guarantee; with --out
    also out.
    """
    from takifugu.cli.output_files import OutputFile

    given = {
        "column": column, "by": by, "window": window, "where": where, "epsilon": epsilon,
        "delta": delta, "within": within, "chance": chance, "values": values, "k": k,
        "level": level, "grid": grid, "gap": gap,
    }  # fmt: skip
    asked, document = _asked(name, kind, analyst, option, given)
    opening = {"backend": backend, "table": not no_table}
    with nullcontext() if out is None else OutputFile(out) as target:
        result, warning = _released(asked, document, project, opening)
        _deliver(result, target, as_json)
    if warning is not None:
        echo(f"takifugu: {warning}", err=True)


def _asked(
    name: str,
    kind: str | None,
    analyst: str | None,
    option: list[str] | None,
    given: dict[str, Any],
) -> tuple["Asked", Any]:
    from takifugu.project.requests import read_plan

    if kind is not None:
        return options.the_query(name, kind, analyst, option, **given), None
    if option or analyst is not None or any(value is not None for value in given.values()):
        raise InvalidOption(
            "KIND", given="is missing", needed="follow NAME; a plan file has no options beside it"
        )
    if "." not in name:
        raise InvalidOption(
            "KIND", given="is missing", needed="follow NAME, or NAME be a plan file (.json)"
        )
    return read_plan(Path(name))


def _released(
    asked: "Asked", document: Any, project: Path | None, opening: dict[str, Any]
) -> tuple["Result", str | None]:
    from takifugu.cli.commands.translate_command import show_warnings
    from takifugu.project.requests import refuse_stale

    study = the_project(project)
    with (
        show_warnings(),
        Spinner("releasing") as tell,
        study.session(asked.dataset, asked.analyst, progress=tell, **opening) as session,
    ):
        plan = asked.plan(session)
        if document is not None:
            refuse_stale(document, plan)
        for note in plan.notes:  # before it is charged
            echo(f"takifugu: {note}", err=True)
        return session.release(plan), session.kept.warning


def _deliver(result: "Result", target: "OutputFile | None", as_json: bool) -> None:
    """Write and print an answer that is paid for; a failure says that it is not lost."""
    from takifugu.cli.output_files import Undelivered

    where = "standard output"
    try:
        document = _document(result)
        if target is not None:
            where = str(target.path)
            target.write(document)
            document["out"] = where
            where = "standard output"
        if as_json:
            print_json(document)
        else:
            _print(result, target)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else type(error).__name__
        if where == "standard output":
            _let_go_of_stdout()
        raise Undelivered(where, (reason or "cannot be written").lower()) from None


def _let_go_of_stdout() -> None:
    """Leave nothing in its buffer that would fail again, and hide our status, at the end."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _document(result: "Result") -> dict[str, Any]:
    """All of a result as JSON."""
    told = {field.name: getattr(result, field.name) for field in fields(result)}
    query = dict(told.pop("query"))
    told |= {"cost": result.cost.describe(), "at": result.at.isoformat()}
    told |= {"error": dict(result.error), "mechanism": dict(result.mechanism)}
    document: dict[str, Any] = plain(query | told)
    return document


def _print(result: "Result", target: "OutputFile | None") -> None:
    if target is None:
        echo(str(result))
    else:
        price = "free: answered before" if result.free else f"cost {result.cost.words} alone"
        if result.cost.reuse and result.cost.own is not None:
            price = f"cost {result.cost.words} of the budget of {result.cost.own.analyst}"
        echo(f"{len(result.rows)} rows written to {target.path}; {price}")
    if not result.free and not result.cost.reuse:
        echo(f"left {result.cost.left:.6g} of {float(result.cost.budget):g}")
