"""``takifugu plan``, ``approve`` and ``release``: what a query costs, and its result.

``plan`` spends nothing. ``release`` charges, then releases; the same query again is free. With
``--file`` both take several queries from one file.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu._core.atomic import PendingFile
from takifugu._core.closing import Closing
from takifugu.cli.declared_flags import KIND_HELP, QUERY_FLAGS, requested, with_flags
from takifugu.cli.shared_options import (
    AsJson,
    Backend,
    BatchFile,
    InProject,
    InvalidOption,
    NoTable,
    Spinner,
    echo,
    open_session,
    plain,
    print_json,
    show_result,
    show_warnings,
    the_project,
)
from takifugu.cli.shell_completion import complete_dataset, complete_kind
from takifugu.errors import InvalidFile, TakifuguError
from takifugu.visible import four_digits, visible

if TYPE_CHECKING:
    from takifugu.project.batches import Batch, BatchPlan
    from takifugu.session.plan_documents import PlanFile
    from takifugu.session.release_plan import Plan
    from takifugu.session.release_result import Result
    from takifugu.session.result_files import ResultFile


QueryKind = Annotated[str | None, typer.Argument(help=KIND_HELP, autocompletion=complete_kind)]


class Undelivered(TakifuguError):
    """A result was released and charged, and could not be written."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(
            f"the result was released and charged but not written to {where} ({reason}); it is"
            " stored in the ledger: the same query again returns it and costs nothing"
        )


class OutputFile(Closing):
    """A new JSON file in a writable folder; it appears complete, or not at all."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.suffix.lower() != ".json":
            raise InvalidFile("--out", given=f"is {str(path)!r}", needed="end in .json")
        self._pending = PendingFile(path, field="--out", refuse_existing=True)

    def write(self, document: dict[str, Any]) -> None:
        """Write a document."""
        text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2)
        self._pending.part.write_text(visible(text, keep="\n") + "\n", encoding="utf-8")
        self._pending.keep(fsync=True)

    def close(self) -> None:
        """Leave nothing of a file that was not written."""
        self._pending.discard()


def refuse_beside(file: Path | None, name: str | None, others: dict[str, Any]) -> None:
    """Refuse a file beside a query, or neither: one of them says what is asked."""
    given = [f"--{key.replace('_', '-')}" for key, value in others.items() if value]
    if file is not None and (name is not None or given):
        beside = "NAME" if name is not None else given[0]
        raise InvalidOption(
            "--file", given=f"stands beside {beside}", needed="be alone: the file has the queries"
        )
    if file is None and name is None:
        raise InvalidOption(
            "NAME", given="is missing", needed="be a dataset; or give --file PLANS.toml"
        )


@contextmanager
def _opened_batch(
    file: Path, folder: Path | None, activity: str, *, backend: Any, table: bool, yes: bool = False
) -> "Iterator[tuple[Batch, Spinner]]":
    """The queries of a file; with ``yes`` also those whose answers are mostly noise."""
    from takifugu.project.batches import Batch, read_batch

    items, project = read_batch(file), the_project(folder)
    if yes:
        items = tuple(replace(item, accept_noise=True) for item in items)
    with (
        show_warnings(),
        Spinner(activity) as spinner,
        Batch(project, items, backend=backend, table=table, progress=spinner) as batch,
    ):
        yield batch, spinner


def plan_batch(
    file: Path, *, folder: Path | None, backend: Any, table: bool, as_json: bool
) -> None:
    """Print what every release of a file costs, one after another. Nothing is spent."""
    with _opened_batch(file, folder, "planning", backend=backend, table=table) as (batch, _):
        plans = batch.plans()
    if as_json:
        print_json({"releases": [part.describe() for part in plans]})
        return
    for part in plans:
        echo(f"{part.item.name}: {part.plan.query.kind} of {part.plan.query.title}")
        if not part.plan.stored:
            echo(f"  {part.plan.usefulness.words}")
        echo(f"  {_price(part)}")


def release_batch(
    file: Path, *, folder: Path | None, backend: Any, table: bool, as_json: bool, yes: bool
) -> None:
    """Release all of a file, one by one; what was released before is free."""
    documents = []
    opened = _opened_batch(file, folder, "releasing", backend=backend, table=table, yes=yes)
    with opened as (batch, spinner):
        try:
            for part, result, out in batch.release():
                spinner(part.item.name)
                written = {"out": None if out is None else str(out)}
                documents.append({"name": part.item.name} | plain(result.document()) | written)
                if not as_json:
                    echo(_line(part, result, out))
        except OSError as error:
            reason = (error.strerror or "cannot be written").lower()
            named = (
                error.filename2 or error.filename or "a file"
            )  # of a link the second is the name
            raise Undelivered(str(named), reason) from None
    if as_json:
        print_json({"releases": documents})


def _line(part: "BatchPlan", result: "Result", out: Path | None) -> str:
    rows = f"{len(result.rows):,} rows"
    where = f", written to {out}" if out is not None else ""
    if out is None and part.item.out is not None:
        where = f"; {part.item.out} is there from an earlier run"
    return f"{part.item.name}: {rows}, {result.price}{where}"


def _price(part: "BatchPlan") -> str:
    if part.met is None:
        return "free: it was answered before"
    cost = part.plan.cost
    spent = four_digits(part.met.spent, "up")
    of = four_digits(cost.budget, "down")
    if not part.met.admitted:
        return f"{cost.words} alone: too much after those before it ({spent} of {of} spent)"
    return f"{cost.words} alone; {spent} of {of} spent with it and those before it"


@with_flags(QUERY_FLAGS, before="no_table")
def run_release(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="A dataset of the project; or, alone, a plan that `takifugu plan --out` wrote.",
            autocompletion=complete_dataset,
        ),
    ] = None,
    kind: QueryKind = None,
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
    refuse_beside(file, name, {"kind": kind, **flags, "out": out, "approval": approval})
    if file is not None:
        return release_batch(
            file, folder=folder, backend=backend, table=not no_table, as_json=as_json, yes=yes
        )
    query = _planned(name, flags) if kind is None else requested(str(name), kind, flags)
    allowed = None if approval is None else _event_number(approval)
    project = the_project(folder)
    with _result_file(out) as target:
        with open_session(
            project, query.dataset, query.analyst, "releasing", backend=backend, table=not no_table
        ) as (session, spinner):
            query = replace(query, options=session.resolved(query.options))
            plan = (
                session.replan(query, advice=not yes)
                if query.document
                else session.planned(query.options, advice=not yes)
            )
            for note in plan.notes:  # before it is charged
                echo(f"takifugu: {note}", err=True)
            accepted = yes or _accepted(plan, spinner)
            result = session.release(plan, accept_noise=accepted, approval=allowed)
            warning = session.releasable.warning
        _deliver(result, target, as_json)
    if warning is not None:
        echo(f"takifugu: {warning}", err=True)


def _result_file(out: Path | None) -> "AbstractContextManager[ResultFile | None]":
    """The file for the result, found to be writable; None if there is none."""
    if out is None:
        return nullcontext()
    from takifugu.session.result_files import ResultFile

    return ResultFile(out, field="--out")


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
    where = "standard output"
    try:
        if target is not None:
            where = str(target.path)
            target.write(result)
            where = "standard output"
        if as_json:
            written = {} if target is None else {"out": str(target.path)}
            print_json(plain(result.document()) | written)
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


@with_flags(QUERY_FLAGS, before="no_table")
def run_plan(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="A dataset of the project.", autocompletion=complete_dataset
        ),
    ] = None,
    kind: QueryKind = None,
    *,
    flags: dict[str, Any],
    no_table: NoTable = False,
    out: Annotated[
        Path | None, typer.Option(help="Also write the plan to a new .json file, for `release`.")
    ] = None,
    file: BatchFile = None,
    folder: InProject = None,
    backend: Backend = None,
    as_json: AsJson = False,
) -> None:
    """Show whether the answer to a query to NAME is useful, and its cost. Nothing is spent.

    JSON: form, asked, dataset, query, window, groups, rows_read (of the rows_there in the table),
    usefulness (verdict: useful, rough or mostly noise; half_width of an answer in the group that
    decides; range of the possible answers; their size; single_numbers_are_noise; rows; group;
    words; groups; worse_groups and worst; epsilon_needed, budget_admits_it and rows_factor: what
    would make it useful, null if it is), mechanism, error, reason, cost (currency and per_entry:
    the DP loss that is charged; alone, at delta; before; after; marginal; budget; budget_delta;
    left; fits; most: a Pufferfish ε that would be accepted now; own: what it costs an analyst with
    a budget of their own; reuse: whether that is all it costs, because the result was released to
    another analyst; by_value: what is charged where that is less than per_entry between some
    values; without_values: what alone would be otherwise; by_column: what alone is for each column,
    where there are several; odds: what alone and the whole budget mean for one entry), saving (less
    noise or a lower price by value; null if there is none), stored (released before, so free),
    instead (if the error costs too much: an epsilon that would be accepted, and its error), cells
    (the fingerprint of the cells), notes (what to know before the release), guarantee (what is
    protected and what is not).
    """
    from takifugu.session.plan_documents import plan_document

    refuse_beside(file, name, {"kind": kind, **flags, "out": out})
    if file is not None:
        return plan_batch(file, folder=folder, backend=backend, table=not no_table, as_json=as_json)
    if name is None or kind is None:
        raise InvalidOption("KIND", given="is missing", needed="follow NAME")
    query = requested(name, kind, flags)
    project = the_project(folder)
    with (
        nullcontext() if out is None else OutputFile(out) as target,
        open_session(
            project, name, query.analyst, "planning", backend=backend, table=not no_table
        ) as (session, _),
    ):
        plan = session.plan(session.resolved(query.options))
        document = plan_document(name, query.analyst, plan, session.guarantee())
        warning = session.releasable.warning
        if target is not None:
            target.write(plain(document))
    if warning is not None:
        echo(f"takifugu: {warning}", err=True)
    if as_json:
        print_json(document)
    else:
        echo(f"{plan}\n\n{document['guarantee']}", nl=False)


def run_approve(
    plan: Annotated[
        Path,
        typer.Argument(
            metavar="PLAN", help="What `takifugu plan --out` wrote.", show_default=False
        ),
    ],
    refuse: Annotated[
        bool,
        typer.Option("--refuse", help="Refuse it instead; an unused approval of it is withdrawn."),
    ] = False,
    no_table: NoTable = False,
    folder: InProject = None,
    backend: Backend = None,
    as_json: AsJson = False,
) -> None:
    """Allow the release of a plan, where the policy makes it wait for a second person.

    The plan is made anew and must be the same. The ledger records who approved it; its number goes
    to `takifugu release PLAN --approval NUMBER`, once, by another user than the one who approved.

    JSON: dataset, analyst, decision, epsilon (what the release costs alone), query (in words),
    approval (the number of the event), actor.
    """
    from takifugu.ledger.event_documents import asked_words
    from takifugu.session.plan_documents import read_plan
    from takifugu.session.release_plan import query_body

    asked, project = read_plan(plan), the_project(folder)
    with (
        open_session(
            project, asked.dataset, asked.analyst, "planning", backend=backend, table=not no_table
        ) as (session, _),
        project.ledger() as ledger,
    ):
        asked = replace(asked, options=session.resolved(asked.options))
        plan_again = session.replan(asked, advice=False)
        words = asked_words(query_body(plan_again.charge))
        decide = ledger.refuse_request if refuse else ledger.approve
        event = decide(
            dataset=asked.dataset,
            analyst=asked.analyst,
            question=plan_again.charge.body()["question"],
            words=words,
            epsilon=plan_again.cost.alone,
        )
    facts = {
        "dataset": asked.dataset,
        "analyst": asked.analyst,
        "decision": event.body["decision"],
        "epsilon": plan_again.cost.alone,
        "query": words,
        "approval": event.seq,
        "actor": event.body["actor"],
    }
    cost = four_digits(plan_again.cost.alone, "up")
    lines = [
        f"{event.body['decision']}: {visible(words)} of {asked.dataset}, epsilon = {cost} alone"
    ]
    if not refuse:
        lines.append(f"next, as another user: takifugu release {plan} --approval {event.seq}")
    show_result(facts, *lines, as_json=as_json)
