"""``takifugu plan``: what a release would be and cost. Nothing is spent."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu.cli.shared_options import (
    AsJson,
    Backend,
    DatasetName,
    InProject,
    InvalidOption,
    Spinner,
    listed,
    plain,
    print_json,
    the_project,
)
from takifugu.cli.shell_completion import complete_kind
from takifugu.cli.terminal import echo
from takifugu.errors import InvalidFile
from takifugu.strict import parse_json

if TYPE_CHECKING:
    from takifugu.project.requests import Asked
    from takifugu.session.values import Plan

KIND_HELP = "What to ask: histogram, count, top_k, …; a wrong word lists them."
Column = Annotated[
    str | None, typer.Option(help="The protected column; by default what the prior is about.")
]
By = Annotated[
    list[str] | None,
    typer.Option(help="Public columns, as 'country,sex', repeatable; one charge pays for all."),
]
WindowOption = Annotated[
    str | None,
    typer.Option(
        metavar="A..B", help="Rows from A to before B, as 2012-04-03..2012-05-01; A.. and ..B too."
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option(metavar="COL=KEY,…", help="Keep these keys of a public column; repeatable."),
]
Epsilon = Annotated[
    str | None, typer.Option(help="The Pufferfish ε that the release may cost alone.")
]
Delta = Annotated[
    str | None,
    typer.Option(help="The Pufferfish δ beside ε, at most the budget's: noise that adds up less."),
]
Within = Annotated[
    str | None, typer.Option(help="Instead: the least ε that keeps every number this near.")
]
Chance = Annotated[
    float | None,
    typer.Option(help="How often it is to be that near, 0.95 unless told; for a ranking alone."),
]
Values = Annotated[str | None, typer.Option(help="The labels that a count counts, as 'a,b'.")]
K = Annotated[int | None, typer.Option("--k", help="How many labels a top_k names.")]
Level = Annotated[str | None, typer.Option(help="Which quantile, as 0.5 for the median.")]
Grid = Annotated[
    str | None, typer.Option(help="How far apart the numbers are that a quantile is chosen from.")
]
Gap = Annotated[
    float | None, typer.Option(help="For a ranking: the lead of each place over the next.")
]
More = Annotated[
    list[str] | None,
    typer.Option(
        "--option", metavar="NAME=VALUE", help="Any other option of the kind, its value as JSON."
    ),
]
Analyst = Annotated[
    str | None, typer.Option(help="Who asks; their own budget counts beside the whole.")
]
NoTable = Annotated[
    bool, typer.Option("--no-table", help="Translate each number instead of looking it up.")
]


def run_plan(
    name: DatasetName,
    kind: Annotated[str, typer.Argument(help=KIND_HELP, autocompletion=complete_kind)],
    column: Column = None,
    by: By = None,
    window: WindowOption = None,
    where: Where = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    within: Within = None,
    chance: Chance = None,
    values: Values = None,
    k: K = None,
    level: Level = None,
    grid: Grid = None,
    gap: Gap = None,
    option: More = None,
    analyst: Analyst = None,
    no_table: NoTable = False,
    out: Annotated[
        Path | None, typer.Option(help="Also write the plan to a new .json file, for `release`.")
    ] = None,
    project: InProject = None,
    backend: Backend = None,
    as_json: AsJson = False,
) -> None:
    """Say how a query to NAME would be answered, how well and for how much. Spends nothing.

    Keys of the JSON object: form, asked, dataset, query, window, groups, mechanism, error, reason,
    cost (currency and per_entry: the DP loss that is charged; alone, at delta; before; after;
    marginal; budget; budget_delta; left; fits; most: a Pufferfish ε that would be accepted now;
    own: what it costs an analyst with a budget of their own; reuse: whether that is all it costs,
    because another analyst was told the same), stored (answered before, so free), instead (if the
    error costs too much: an epsilon that would be accepted, and its error), cells (the fingerprint
    of what names a cell), notes (what to know before it is released), guarantee (what is protected
    and what is not).
    """
    from takifugu.cli.output_files import OutputFile

    asked = the_query(
        name, kind, analyst, option, column=column, by=by, window=window, where=where,
        epsilon=epsilon, delta=delta, within=within, chance=chance, values=values, k=k,
        level=level, grid=grid, gap=gap,
    )  # fmt: skip
    opening = {"backend": backend, "table": not no_table}
    with nullcontext() if out is None else OutputFile(out, (".json",)) as target:
        plan, document, warning = planned(asked, project, **opening)
        if target is not None:
            target.write(plain(document))
    if warning is not None:
        echo(f"takifugu: {warning}", err=True)
    if as_json:
        print_json(document)
    else:
        _print(plan, document["guarantee"])


def the_query(
    name: str, kind: str, analyst: str | None, option: list[str] | None, **given: Any
) -> "Asked":
    """The query that the options describe."""
    from takifugu.project.requests import Asked

    how = {key: value for key, value in given.items() if value is not None}
    if "by" in how:
        how["by"] = [column for text in how["by"] for column in listed(text)]
    if "values" in how:
        how["values"] = listed(how["values"])
    if "window" in how:
        how["window"] = _window(how["window"])
    if "where" in how:
        how["where"] = _where(how["where"])
    for text in option or ():
        key, equals, value = text.partition("=")
        if not equals or not key or key in how:
            raise InvalidOption(
                "--option", given=f"is {text!r:.80}", needed="be NAME=VALUE, each name once"
            )
        how[key] = _json(value)
    return Asked(name, kind, how, analyst)


def planned(
    asked: "Asked", project: Path | None, **opening: Any
) -> tuple["Plan", dict[str, Any], str | None]:
    """A plan, all that is to be said about it, and a warning if there is one."""
    from takifugu.cli.commands.translate_command import show_warnings
    from takifugu.project.requests import plan_document

    study = the_project(project)
    with (
        show_warnings(),
        Spinner("planning") as tell,
        study.session(asked.dataset, asked.analyst, progress=tell, **opening) as session,
    ):
        plan = asked.plan(session)
        return plan, plan_document(asked, plan, session.guarantee()), session.kept.warning


def _window(text: str) -> list[str | None]:
    start, dots, end = text.partition("..")
    if not dots or not (start.strip() or end.strip()) or ".." in end:
        raise InvalidOption(
            "--window", given=f"is {text!r:.80}", needed="be A..B, or A.. or ..B for an open side"
        )
    return [start.strip() or None, end.strip() or None]


def _where(texts: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for column, keys in map(_kept, texts):
        if column in found:
            raise InvalidOption(
                "--where",
                given=f"names {column!r:.80} twice",
                needed="name each column once, as COLUMN=KEY,KEY",
            )
        found[column] = keys
    return found


def _kept(text: str) -> tuple[str, list[str]]:
    column, equals, keys = text.partition("=")
    if not equals or not column.strip() or not keys.strip():
        raise InvalidOption(
            "--where", given=f"is {text!r:.80}", needed="be COLUMN=KEY, or COLUMN=KEY,KEY"
        )
    return column.strip(), listed(keys)


def _json(text: str) -> Any:
    try:
        return parse_json(text)
    except InvalidFile:
        return text


def _print(plan: "Plan", guarantee: str) -> None:
    echo(str(plan))
    told = ", ".join(
        f"{name.replace('_', ' ')} {value:.6g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in plan.error.items()
        if value is not None
    )
    echo(f"predicted error: {told}")
    echo(f"\n{guarantee}", nl=False)
