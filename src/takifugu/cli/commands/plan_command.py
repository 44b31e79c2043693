"""``takifugu plan``: what a release would be and cost. Nothing is spent."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from takifugu.cli.commands.batch_text import plan_batch, refuse_beside
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


@with_query_flags
def run_plan(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="A dataset of the project.", autocompletion=complete_dataset
        ),
    ] = None,
    kind: Annotated[
        str | None, typer.Argument(help=KIND_HELP, autocompletion=complete_kind)
    ] = None,
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
    from takifugu.cli.output_files import OutputFile
    from takifugu.cli.shared_options import show_warnings
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
        show_warnings(),
        Spinner("planning") as spinner,
        project.session(
            name, query.analyst, progress=spinner, backend=backend, table=not no_table
        ) as session,
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
