"""``takifugu quickstart``: from a file to the plan of a first release. Nothing is charged."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu.cli import draft_options
from takifugu.cli.commands.dataset_new import (
    asked,
    dataset_name,
    draft_answers,
    prompt,
    separator_said,
)
from takifugu.cli.shared_options import (
    AsJson,
    InvalidOption,
    Pairs,
    Spinner,
    echo,
    print_json,
    read_column_pairs,
    read_secrets,
)
from takifugu.errors import TakifuguError, pasted
from takifugu.visible import visible

if TYPE_CHECKING:
    from takifugu.declarations import InvalidDeclaration
    from takifugu.drafting.draft import Draft
    from takifugu.project.quickstart import Quickstart
    from takifugu.project.quickstart_choices import Choice, QuickstartOptions


def run_quickstart(
    file: draft_options.DataFile,
    folder: Annotated[
        Path | None,
        typer.Option(help="The folder to make; by default NAME-project, here. It must be new."),
    ] = None,
    name: draft_options.DatasetCalled = None,
    table: draft_options.InDuckDB = None,
    entity: draft_options.EntityColumn = None,
    order: draft_options.OrderColumn = None,
    order_kind: draft_options.OrderKind = None,
    format_: draft_options.TimeFormat = None,
    zone: draft_options.TimeZone = None,
    ties: draft_options.TieColumns = None,
    protected: draft_options.ProtectedColumns = None,
    public: draft_options.PublicColumns = None,
    labels: Annotated[
        list[str] | None,
        typer.Option(
            help="COLUMN=home,work; or COLUMN=codebook.csv (or codebook.csv:its column); by default"
            " those of the rows that the prior is fitted on. Repeatable."
        ),
    ] = None,
    outside: Annotated[
        list[str] | None,
        typer.Option(
            help="What becomes of values that are not in a list, or missing: refuse, other or drop;"
            " COLUMN=drop for one column. Repeatable; by default refuse."
        ),
    ] = None,
    bounds: draft_options.NumberBounds = None,
    secrets_within: Annotated[
        str | None,
        typer.Option(help="Of numbers: which of two values at most this far apart is secret."),
    ] = None,
    pairs: Pairs = None,
    share: Annotated[
        str | None, typer.Option(help="Fit the prior on such a share of the entities, as 1/5.")
    ] = None,
    first_days: Annotated[
        int | None, typer.Option(help="Fit the prior on the first N days.")
    ] = None,
    first_steps: Annotated[
        int | None,
        typer.Option(help="The same where the order is a number: on the first N of it."),
    ] = None,
    at_least: Annotated[
        int | None,
        typer.Option(help="Labels of fewer entities count as other; by default 5."),
    ] = None,
    budget: Annotated[str, typer.Option(help="The lifetime budget, a Pufferfish ε.")] = "1",
    separate_from: Annotated[
        str | None,
        typer.Option(
            help="Another ledger of yours that has charged the same rows, as the refusal names it:"
            " you mean to have a second budget for them."
        ),
    ] = None,
    separator: draft_options.Separator = None,
    encoding: draft_options.FileEncoding = None,
    decimal: draft_options.DecimalMark = None,
    as_json: AsJson = False,
) -> None:
    """Make a project for FILE, up to the plan of a first release. Nothing is charged.

    It drafts the declaration from the names and types of columns, fits a prior on a part of the
    rows that releases then leave alone, sets a budget and plans a first query. Each decision is
    printed with how to change it. On a terminal it asks for what it cannot know; elsewhere it says
    what is open, makes nothing, and returns 2. The last lines are the command that would release.

    Keys of the JSON object: folder (null if points are open), open (key, question, needed, option),
    choices (what, value, reason, change), rows, entities, statement, goodness, plan (as `plan
    --json` has it), verdict, advice (null if it will be useful), guarantee,
    release (the command), next.
    """
    from takifugu.declarations import InvalidDeclaration
    from takifugu.drafting.draft import draft_of
    from takifugu.fitting.fit_options import parse_share
    from takifugu.project.quickstart import prepared, quickstart, refuse_existing
    from takifugu.project.quickstart_choices import QuickstartOptions

    said = {
        "--folder": folder, "--name": name, "--table": table, "--entity": entity,
        "--order": order, "--order-kind": order_kind, "--format": format_, "--zone": zone,
        "--ties": ties, "--protected": protected, "--public": public, "--labels": labels,
        "--outside": outside, "--bounds": bounds, "--secrets-within": secrets_within,
        "--pairs": pairs, "--share": share,
        "--first-days": first_days, "--first-steps": first_steps, "--at-least": at_least,
        "--budget": None if budget == "1" else budget, "--separator": separator,
        "--encoding": encoding, "--decimal": decimal, "--separate-from": separate_from,
    }  # fmt: skip
    called = dataset_name(name, file)
    target = folder if folder is not None else Path(f"{called}-project")
    refuse_existing(target)
    if sum(given is not None for given in (share, first_days, first_steps)) > 1:
        raise InvalidOption(
            "--share",
            given="comes with --first-days or --first-steps, or these with each other",
            needed="be given alone: one split only",
        )
    options = QuickstartOptions(
        budget=_budget(budget),
        first_days=first_steps if first_days is None else first_days,
        share=None if share is None else parse_share(share, "--share", InvalidOption),
        at_least=at_least,
        within=secrets_within,
        pairs=read_column_pairs(pairs) or read_secrets(pairs, None).pairs,
        separate_from=separate_from,
    )
    given = draft_answers(
        target, entity=entity, order=order, order_kind=order_kind, format_=format_, zone=zone,
        ties=ties, protected=protected, public=public, decimal=decimal, labels=labels,
        bounds=bounds, outside=outside,
    )  # fmt: skip
    with Spinner(f"reading the columns of {visible(file)}"):
        draft = draft_of(
            file,
            table=table,
            separator=separator_said(separator),
            encoding=encoding,
            unlisted="refuse",
            **given,
        )
    draft = prepared(draft, options)
    if draft.open and not as_json and sys.stdin.isatty() and sys.stdout.isatty():
        draft, options = _answered(draft, target, options)
    if draft.open:
        _stop(draft, _command(file, said), as_json=as_json)
    _refuse_other_order(draft, first_days, first_steps)
    with Spinner(f"making {target}") as spinner:
        try:
            made = quickstart(draft, target, called, options=options, progress=spinner)
        except InvalidDeclaration as error:
            raise _with_option(error, draft) from None
    if as_json:
        print_json(_document(made))
        return
    _print(made)


def _refuse_other_order(draft: "Draft", first_days: int | None, first_steps: int | None) -> None:
    """A number has steps, and a time has days."""
    number = draft.document.get("order", {}).get("kind") == "number"
    if number and first_days is not None:
        raise InvalidOption(
            "--first-days",
            given="is given, and the order is a number",
            needed=f"be --first-steps {first_days}",
        )
    if not number and first_steps is not None:
        raise InvalidOption(
            "--first-steps",
            given="is given, and the order is not a number",
            needed=f"be --first-days {first_steps}",
        )


def _with_option(error: "InvalidDeclaration", draft: "Draft") -> "InvalidDeclaration":
    """An error about values that are not listed, or missing, with the option that admits them."""
    from takifugu.declarations import InvalidDeclaration

    column = str(error.field)
    declared = {**draft.document["protected"], **draft.document.get("public", {})}
    if error.reason not in ("outside", "missing") or column not in declared:
        return error
    if "bounds" in declared[column]:
        needed = (
            "have none: fill them in or take those rows out of the file, since the prior of numbers"
            " needs one in every row (missing = 'drop' is for declarations with another prior)"
        )
    else:
        rules = ("other", "drop") if error.reason == "outside" else ("drop",)
        options = " or ".join(f"--outside {pasted(f'{column}={rule}')}" for rule in rules)
        needed = f"have none; or come with {options} (`outside` in the declaration)"
    return InvalidDeclaration(column, given=error.given, needed=needed, reason=error.reason)


def _budget(text: str) -> str:
    from takifugu._core.exact import exactly

    if not exactly(text, "--budget") > 0:
        raise InvalidOption("--budget", given=f"is {text!r:.40}", needed="be above 0")
    return text


def _answered(
    draft: "Draft", folder: Path, options: "QuickstartOptions"
) -> tuple["Draft", "QuickstartOptions"]:
    """The draft with what somebody answers; what stays open is refused afterwards."""
    from dataclasses import replace

    from takifugu._core.exact import exactly
    from takifugu.cli.shared_options import listed
    from takifugu.project.quickstart import prepared

    while said := _reply(draft, "protected", "column to protect"):
        try:
            draft = prepared(draft.answered(protected=tuple(map(str, listed(said)))), options)
            break
        except TakifuguError as error:
            echo(f"  {error}", err=True)
    own = ("protected", "secrets_within")
    others = tuple(point for point in draft.open if point.key not in own)
    if others:
        draft = prepared(asked(replace(draft, open=others), folder), options)
    while said := _reply(draft, "secrets_within", "distance"):
        try:
            if exactly(said, "secrets within") > 0:
                options = replace(options, within=said)
                break
        except TakifuguError as error:
            echo(f"  {error}", err=True)
    return prepared(draft, options), options


def _reply(draft: "Draft", key: str, words: str) -> str:
    """What somebody says to an open point; empty if it is not open, or stays so."""
    for point in draft.open:
        if point.key == key:
            echo(f"\n{point.question}\n  {point.needed}", err=True)
            return prompt(words)
    return ""


def _command(file: str, said: dict[str, Any]) -> str:
    """The command as it was given, ready to be pasted."""
    words = ["takifugu", "quickstart", file]
    for option, value in said.items():
        for one in value if isinstance(value, list) else [] if value is None else [value]:
            words += [option, str(one)]
    return " ".join(map(pasted, words))


def _stop(draft: "Draft", command: str, *, as_json: bool) -> None:
    """Say what is open and how to go on; nothing was made."""
    from takifugu.project.quickstart_choices import draft_choices

    again = " ".join((command, *(point.option for point in draft.open)))
    choices = draft_choices(draft)
    if as_json:
        print_json(
            {
                "folder": None,
                "open": [point.describe() for point in draft.open],
                "choices": [choice.describe() for choice in choices],
                "next": again,
            }
        )
    else:
        echo(f"{draft.rows:,} rows\n")
        for choice in choices:
            echo(_line(choice))
        for point in draft.open:
            echo(f"open       {point.question}\n{'':<11}needed: {point.needed}")
            echo(f"{'':<11}option: {point.option}")
    raise InvalidOption(
        "FILE",
        given=f"leaves {len(draft.open)} open point{'s' if len(draft.open) > 1 else ''}",
        needed=f"come with the answers, as in: {again}",
        reason="open",
    )


def _print(made: "Quickstart") -> None:
    echo(f"{made.facts.rows:,} rows of {made.facts.entities:,} entities\n")
    for choice in made.choices:
        echo(_line(choice))
    echo(f"\n{made.fitted.statement}")
    for note in made.fitted.estimate.notes:
        echo(f"note: {note}")
    for test in () if made.fitted.goodness is None else made.fitted.goodness.tests:
        echo(f"{test.verdict}: {test.sentence}")
    folder = made.project.folder
    echo(f"\n{folder} was made. To change it, start again with other options in another --folder;")
    echo(f"or edit {folder / (made.dataset + '.toml')} and fit again: {made.refit()}")
    echo("Nothing is charged yet. What a first release would be:\n")
    echo(f"{made.plan}\n")
    if made.plan.usefulness.verdict == "mostly noise":
        echo("This is not worth its price: think of fewer secret --pairs, fewer labels, a larger")
        echo("--budget, or more rows.")
    if made.advice:
        echo(f"{made.advice}\n")
    echo(f"look at the plan and the guarantee:  {made.command('plan')}")
    echo(f"publish it:                          {made.command('release')}")


def _line(choice: "Choice") -> str:
    change = f"\n{'':<11}change: {choice.change}" if choice.change else ""
    return f"{choice.what:<9}  {choice.value}: {choice.reason}{change}"


def _document(made: "Quickstart") -> dict[str, Any]:
    goodness = made.fitted.goodness
    return {
        "folder": str(made.project.folder),
        "dataset": made.dataset,
        "open": [],
        "choices": [choice.describe() for choice in made.choices],
        "rows": made.facts.rows,
        "entities": made.facts.entities,
        "statement": made.fitted.statement,
        "goodness": None if goodness is None else goodness.document(),
        "plan": made.plan.describe(),
        "verdict": made.plan.usefulness.verdict,
        "advice": made.advice or None,
        "guarantee": made.guarantee,
        "release": made.command("release"),
        "next": made.command("plan"),
    }
