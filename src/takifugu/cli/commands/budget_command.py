"""``takifugu budget``: set a budget, and see what is spent and what remains."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from takifugu.cli.shared_options import (
    AsJson,
    DatasetName,
    InProject,
    NoTable,
    Spinner,
    StrictTyper,
    echo,
    print_json,
    refuse_outside,
    show_result,
    the_project,
)
from takifugu.errors import pasted
from takifugu.visible import four_digits, visible

if TYPE_CHECKING:
    from takifugu.project.budgets import BudgetStanding

app = StrictTyper(no_args_is_help=True, help="Set the budget of a dataset, and see what remains.")


@app.command("set")
def run_set(
    name: DatasetName,
    epsilon: Annotated[
        str, typer.Argument(help="The Pufferfish ε of all releases together: 2, 0.5 or 1/3.")
    ],
    delta: Annotated[str, typer.Option(help="The Pufferfish δ beside it.")] = "0",
    analyst: Annotated[
        str | None,
        typer.Option(help="For releases to this analyst, within the budget of the dataset."),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Raise a budget without confirmation.")
    ] = False,
    folder: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Set the lifetime budget of NAME. What was spent stays spent.

    On a terminal it asks for confirmation before it raises a budget.

    JSON: dataset, analyst, epsilon, delta, before (null if there was none). Exact numbers are
    strings like "1/2".
    """
    from takifugu._core.exact import exactly

    project = the_project(folder)
    new, new_delta = exactly(epsilon, "epsilon"), exactly(delta, "delta")
    if analyst is not None:
        project.refuse_unlisted(name, analyst)
    before = project.budget(name, analyst)
    whose = name if analyst is None else f"{analyst} on {name}"
    if before is not None and new > before and not yes and sys.stdin.isatty():
        old, more = four_digits(before, "down"), four_digits(new, "down")
        typer.confirm(f"Raise the budget of {whose} from {old} to {more}?", abort=True, err=True)
    project.set_budget(name, epsilon, analyst=analyst, delta=delta)
    facts = {"dataset": name, "analyst": analyst, "epsilon": str(new), "delta": str(new_delta)}
    facts["before"] = None if before is None else str(before)
    was = "" if before is None else f" (was {four_digits(before, 'down')})"
    beside = f", delta = {four_digits(new_delta, 'down')}" if new_delta else ""
    words = f"budget of {whose}: Pufferfish epsilon = {four_digits(new, 'down')}{beside}{was}"
    show_result(facts, words, as_json=as_json)


@app.command("show")
def run_show(
    name: DatasetName,
    last: Annotated[int, typer.Option(help="The number of latest charges to show.")] = 10,
    no_table: NoTable = False,
    folder: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Print what is spent of the budget of NAME and what remains, under its present prior.

    JSON: dataset, budgets (analyst: null for the whole dataset; epsilon, delta; spent; left and
    most: a Pufferfish ε that would be accepted on all rows now; by_column: what is spent of each
    protected column, where there are several; history: seq, at and spent after each of the latest
    charges; stretches: start, end and spent of each interval of the order), note (why nothing can
    be translated or released, or null). Spent is rounded up, left and most down.
    """
    from takifugu.cli.shared_options import show_warnings
    from takifugu.project.budgets import budget_standings
    from takifugu.translation.accounting.tables import TabledTranslation
    from takifugu.translation.protocol import LossTranslation
    from takifugu.translation.translation import Translation

    refuse_outside("--last", last, 0, 10_000)
    project = the_project(folder)
    policy = project.dataset(name)
    note = None if policy.priors else "no prior yet, so nothing can be translated"
    if policy.priors and project.needs_acceptance(name):
        note = (
            "nothing is released until the owner accepts the present prior, secrets or rules:"
            f" `takifugu prior accept {pasted(name)}`"
        )
    loaded = project.load(name)
    instants = loaded.declaration.order.kind != "number"
    with (
        show_warnings(),
        Spinner("translating") as spinner,
        project.ledger(read_only=True) as ledger,
    ):
        view: LossTranslation | None = None
        if policy.priors:
            view = translation = loaded.translation
            if not no_table and isinstance(translation, Translation):
                table = project.table(name, translation, ledger, progress=spinner)
                view = view if table is None else TabledTranslation(translation, table, least=0)
        cells = loaded.protected_cells
        standings = budget_standings(ledger, name, view, last=last, cells=cells)
        if note is None and ledger.renames_values(name, cells):
            note = (
                "nothing is released until the owner accepts the present declaration, and what is"
                f" spent is shown as it will be then: `takifugu dataset accept {pasted(name)}`"
            )
    if as_json:
        budgets = [standing.document(instants=instants) for standing in standings]
        print_json({"dataset": name, "budgets": budgets, "note": note})
        return
    if not any(standing.analyst is None and standing.budget is not None for standing in standings):
        echo(f"{name}: no budget; set one with `takifugu budget set {name} EPSILON`")
    for standing in standings:
        _print(name, standing, instants)
    if note is not None:
        echo(note)


def _print(name: str, standing: "BudgetStanding", instants: bool) -> None:
    who = name if standing.analyst is None else f"{name}, analyst {standing.analyst}"
    budget = "no budget of its own"
    if standing.budget is not None:
        budget = f"budget {four_digits(standing.budget, 'down')}"
        if standing.delta:
            budget += f" (delta {four_digits(standing.delta, 'down')})"
    parts = [budget]
    if standing.spent is not None:
        parts.append(f"spent {four_digits(standing.spent, 'up')}")
    if standing.most is not None:
        parts.append(
            f"left {four_digits(standing.most, 'down')} for the next release on all rows"
            f"{standing.beside_what_is_left}"
        )
    echo(f"{who}: {', '.join(parts)}")
    for column, loss in (standing.by_column or {}).items():
        echo(f"  {visible(column):<24}  spent {four_digits(loss, 'up')}")
    if len(standing.stretches) > 1:
        for part in standing.stretches:
            start, end = part.ends(instants=instants)
            window = f"{'' if start is None else start}..{'' if end is None else end}"
            echo(f"  {window:<24}  spent {four_digits(part.spent, 'up')}")
    for reading in standing.history:
        at = reading.at.strftime("%Y-%m-%d %H:%M:%S")
        echo(f"  {at}  event {reading.seq}: {four_digits(reading.epsilon, 'up')} spent so far")
