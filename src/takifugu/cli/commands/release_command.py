"""``takifugu release``: charge, then release. The same query again is free."""

import os
import sys
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu.cli.commands.batch_text import refuse_beside, release_batch
from takifugu.cli.query_flags import KIND_HELP, requested, with_query_flags
from takifugu.cli.shared_options import (
    AsJson,
    Backend,
    BatchFile,
    InProject,
    InvalidOption,
    NoTable,
    Spinner,
    echo,
    plain,
    print_json,
    the_project,
)
from takifugu.cli.shell_completion import complete_dataset, complete_kind
from takifugu.errors import InvalidFile

if TYPE_CHECKING:
    from takifugu.session.plan_documents import PlanFile
    from takifugu.session.release_plan import Plan
    from takifugu.session.release_result import Result
    from takifugu.session.result_files import ResultFile


@with_query_flags
def run_release(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="A dataset of the project; or, alone, a plan that `takifugu plan --out` wrote.",
            autocompletion=complete_dataset,
        ),
    ] = None,
    kind: Annotated[
        str | None, typer.Argument(help=KIND_HELP, autocompletion=complete_kind)
    ] = None,
    *,
    flags: dict[str, Any],
    no_table: NoTable = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Release even if the answer is mostly noise.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="A new .csv, .json, .parquet, .xlsx or .html file for the result. Beside a CSV"
            " file goes FILE.csv-metadata.json, which says what it is about."
        ),
    ] = None,
    approval: Annotated[
        str | None,  # not a number: typer would import pydantic to check it
        typer.Option(
            metavar="NUMBER",
            help="The number of the approval, where a second person has to allow the release.",
        ),
    ] = None,
    file: BatchFile = None,
    folder: InProject = None,
    backend: Backend = None,
    as_json: AsJson = False,
) -> None:
    """Release the result of a query to NAME: charge it to the ledger, then draw and print it.

    The same query again gives the same result and costs nothing. If the answer is mostly noise, it
    asks for confirmation before it charges (without a terminal --yes is needed). A query that the
    budget does not admit, or that waits for the approval of a second person (`takifugu approve`),
    ends with status 3.

    JSON: dataset, query, window, groups, rows_read of the rows_there, columns, rows (of the
    result), error, cost, saving, free, at, mechanism, guarantee, provenance (priors, events of the
    ledger, software); with --out also out.
    """
    from takifugu.cli.shared_options import show_warnings
    from takifugu.session.result_files import ResultFile

    refuse_beside(file, name, {"kind": kind, **flags, "out": out, "approval": approval})
    if file is not None:
        return release_batch(
            file, folder=folder, backend=backend, table=not no_table, as_json=as_json, yes=yes
        )
    query = _planned(name, flags) if kind is None else requested(str(name), kind, flags)
    allowed = None if approval is None else _event_number(approval)
    project = the_project(folder)
    with nullcontext() if out is None else ResultFile(out, field="--out") as target:
        with (
            show_warnings(),
            Spinner("releasing") as spinner,
            project.session(
                query.dataset,
                query.analyst,
                progress=spinner,
                backend=backend,
                table=not no_table,
            ) as session,
        ):
            query = replace(query, options=session.resolved(query.options))
            plan = session.replan(query) if query.document else session.plan(query.options)
            for note in plan.notes:  # before it is charged
                echo(f"takifugu: {note}", err=True)
            accepted = yes or _accepted(plan, spinner)
            result = session.release(plan, accept_noise=accepted, approval=allowed)
            warning = session.releasable.warning
        _deliver(result, target, as_json)
    if warning is not None:
        echo(f"takifugu: {warning}", err=True)


def _event_number(text: str) -> int:
    """The number of an event, from the command line."""
    digits = text.isascii() and text.isdecimal() and len(text) < 19
    if not (digits and int(text) > 0):
        raise InvalidOption(
            "--approval", given=f"is {text!r:.40}", needed="be the number of an event"
        )
    return int(text)


def _accepted(plan: "Plan", spinner: Spinner) -> bool:
    """Whether somebody at the terminal accepts an answer that is mostly noise; say if it is."""
    if plan.stored or not plan.cost.fits or plan.usefulness.verdict == "useful":
        return False
    if not plan.needs_confirmation:
        echo(f"takifugu: {plan.usefulness.words}", err=True)
        return False
    if not sys.stdin.isatty():
        return False  # the session refuses it, and says what to do
    with spinner.paused():
        echo(f"takifugu: {plan.usefulness.words}", err=True)
        typer.confirm(f"Release it all the same, for {plan.cost.words}?", abort=True, err=True)
    return True


def _planned(name: str | None, flags: dict[str, Any]) -> "PlanFile":
    """The query of a plan file."""
    from takifugu.session.plan_documents import read_plan

    if flags or name is None or "." not in name:
        raise InvalidOption(
            "KIND",
            given="is missing",
            needed="follow NAME; or NAME be a plan file (.json), without options of a query",
        )
    return read_plan(Path(name))


def _deliver(result: "Result", target: "ResultFile | None", as_json: bool) -> None:
    """Write and print a result that is charged; an error says that it is not lost."""
    from takifugu.cli.output_files import Undelivered

    where = "standard output"
    try:
        document = plain(result.document())
        if target is not None:
            where = str(target.path)
            target.write(result)
            document["out"] = where
            where = "standard output"
        if as_json:
            print_json(document)
        else:
            _print(result, target)
    except (OSError, ValueError, InvalidFile) as error:
        reason = error.strerror if isinstance(error, OSError) else type(error).__name__
        if isinstance(error, InvalidFile):
            reason = str(error)
        if where == "standard output":
            _drop_stdout()
        raise Undelivered(where, (reason or "cannot be written").lower()) from None


def _drop_stdout() -> None:
    """Drop its buffer, which would fail again at exit and hide our status."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _print(result: "Result", target: "ResultFile | None") -> None:
    if target is None:
        echo(str(result))
    else:
        price = "free: answered before" if result.free else f"cost {result.cost.words} alone"
        if result.cost.reuse and result.cost.own is not None:
            price = f"cost {result.cost.words} of the budget of {result.cost.own.analyst}"
        echo(f"{len(result.rows)} rows written to {target.path}; {price}")
        for line in () if result.reads is None else result.reads.lines:
            echo(line)
    if not result.free and not result.cost.reuse:
        echo(f"{result.cost.spent_of_budget} spent")
