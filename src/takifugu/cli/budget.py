"""``takifugu budget``: what the owner allows, and what became of it."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu.cli.options import (
    AsJson,
    DatasetName,
    InProject,
    InvalidOption,
    Working,
    print_json,
    the_project,
)
from takifugu.cli.strict import Strict
from takifugu.cli.telling import echo
from takifugu.errors import pasted

if TYPE_CHECKING:
    from takifugu.project.budgets import Standing

app = Strict(no_args_is_help=True, help="Set the budget of a dataset, and see what is left.")


@app.command("set")
def run_set(
    name: DatasetName,
    epsilon: Annotated[
        str, typer.Argument(help="The Pufferfish ε of all releases together, as 2 or 0.5 or 1/3.")
    ],
    delta: Annotated[str, typer.Option(help="The Pufferfish δ beside it.")] = "0",
    analyst: Annotated[
        str | None, typer.Option(help="For the releases of this analyst alone, beside the whole.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask before a budget is raised.")
    ] = False,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Set what all releases from NAME may lose together. What was spent stays spent.

    On a terminal it asks before it raises a budget. Keys of the JSON object: dataset, analyst,
    epsilon, delta, before (null if there was none). Exact numbers are strings like "1/2".
    """
    from takifugu.losses import exactly

    study = the_project(project)
    amount, chance = exactly(epsilon, "epsilon"), exactly(delta, "delta")
    if analyst is not None:
        study.refuse_stranger(name, analyst)
    before = study.budget(name, analyst)
    whose = name if analyst is None else f"{analyst} on {name}"
    if before is not None and amount > before and not yes and sys.stdin.isatty():
        query = f"Raise the budget of {whose} from {float(before):g} to {float(amount):g}?"
        typer.confirm(query, abort=True, err=True)
    study.set_budget(name, epsilon, analyst=analyst, delta=delta)
    if as_json:
        facts = {"dataset": name, "analyst": analyst, "epsilon": str(amount), "delta": str(chance)}
        print_json(facts | {"before": None if before is None else str(before)})
        return
    was = "" if before is None else f" (was {float(before):g})"
    spare = f", delta = {float(chance):g}" if chance else ""
    echo(f"budget of {whose}: Pufferfish epsilon = {float(amount):g}{spare}{was}")


@app.command("show")
def run_show(
    name: DatasetName,
    last: Annotated[int, typer.Option(help="How many of the latest charges to show.")] = 10,
    no_table: Annotated[
        bool, typer.Option("--no-table", help="Translate each number instead of looking it up.")
    ] = False,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Print what was spent from NAME and what is left, by its present prior and secrets.

    Keys of the JSON object: dataset, budgets (analyst: null for the whole; epsilon, delta; spent;
    left; most: a Pufferfish ε that would be accepted on all rows now; history: seq, at and spent
    after each of the latest charges; stretches: start, end and spent of each stretch of the
    order), note (why nothing could be translated or would be released, or null). Spent is rounded
    up, left and most down.
    """
    from takifugu.cli.translate import warned
    from takifugu.project.budgets import standings
    from takifugu.translation.accounting.tabled_translation import TabledTranslation
    from takifugu.translation.protocol import LossTranslation

    if not 0 <= last <= 10_000:
        raise InvalidOption("--last", given=f"is {last}", needed="be from 0 to 10000")
    study = the_project(project)
    policy = study.dataset(name)
    note = None if policy.priors else "there is no prior yet, so that nothing can be translated"
    if policy.priors and study.awaits(name):
        note = (
            "nothing is released before the owner accepts the present prior, secrets or rules:"
            f" `takifugu prior accept {pasted(name)}`"
        )
    instants = study.declaration(name).order.kind != "number"
    with warned(), Working("translating") as tell, study.ledger(read_only=True) as ledger:
        view: LossTranslation | None = None
        if policy.priors:
            belief = study.translation(name)
            table = None if no_table else study.table(name, belief, ledger, progress=tell)
            view = belief if table is None else TabledTranslation(belief, table, least=0)
        found = standings(ledger, name, view, last=last)
    if as_json:
        budgets = [_facts(standing, instants) for standing in found]
        print_json({"dataset": name, "budgets": budgets, "note": note})
        return
    if not any(standing.analyst is None and standing.budget is not None for standing in found):
        echo(f"{name}: no budget; set one with `takifugu budget set {name} EPSILON`")
    for standing in found:
        _print(name, standing, instants)
    if note is not None:
        echo(note)


def _facts(standing: "Standing", instants: bool) -> dict[str, Any]:
    return {
        "analyst": standing.analyst,
        "epsilon": None if standing.budget is None else str(standing.budget),
        "delta": str(standing.delta),
        "spent": standing.spent,
        "left": standing.left,
        "most": None if standing.most is None else str(standing.most),
        "history": [
            {"seq": reading.seq, "at": reading.at.isoformat(), "spent": reading.epsilon}
            for reading in standing.history
        ],
        "stretches": [
            {
                "start": _moment(part.start, instants),
                "end": _moment(part.end, instants),
                "spent": part.spent,
            }
            for part in standing.stretches
        ],
    }


def _moment(tick: int | None, instants: bool) -> str | int | None:
    from takifugu.project.budgets import at_tick

    place = at_tick(tick, instants=instants)
    return place if place is None or isinstance(place, int) else place.isoformat()


def _print(name: str, standing: "Standing", instants: bool) -> None:
    who = name if standing.analyst is None else f"{name}, analyst {standing.analyst}"
    budget = "no budget of its own"
    if standing.budget is not None:
        budget = f"budget {float(standing.budget):g}"
        if standing.delta:
            budget += f" (delta {float(standing.delta):g})"
    parts = [budget]
    if standing.spent is not None:
        parts.append(f"spent {standing.spent:.6g}")
    if standing.left is not None:
        parts.append(f"left {standing.left:.6g}")
    if standing.most is not None:
        parts.append(f"at most {standing.most:f} would be accepted on all rows now")
    echo(f"{who}: {', '.join(parts)}")
    if len(standing.stretches) > 1:
        for part in standing.stretches:
            start, end = (_moment(tick, instants) for tick in (part.start, part.end))
            window = f"{'' if start is None else start}..{'' if end is None else end}"
            echo(f"  {window:<24}  spent {part.spent:.6g}")
    for reading in standing.history:
        at = reading.at.strftime("%Y-%m-%d %H:%M:%S")
        echo(f"  {at}  event {reading.seq}: {reading.epsilon:.6g} spent")
