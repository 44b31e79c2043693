"""``takifugu quickstart``: from a file to the plan of a first release. Nothing is charged."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu.cli.commands.dataset_new import (
    DRAFT_FLAGS,
    DataFile,
    ask_open_points,
    dataset_name,
    prompt,
    read_draft,
)
from takifugu.cli.declared_flags import Flag, flag, spelled, with_flags
from takifugu.cli.shared_options import (
    AsJson,
    InvalidOption,
    Pairs,
    Spinner,
    echo,
    print_json,
    read_column_pairs,
    read_secrets,
    show_result,
)
from takifugu.errors import TakifuguError, pasted

if TYPE_CHECKING:
    from takifugu.declarations import InvalidDeclaration
    from takifugu.drafting.draft import Draft
    from takifugu.project.quickstart import Choice, Quickstart, QuickstartOptions


def run_init(
    folder: Annotated[Path, typer.Argument(help="The folder; it is made if needed.")] = Path(),
    ledger: Annotated[
        str,
        typer.Option(
            help="Where the ledger is: a file, relative to FOLDER, or a postgresql:// address"
            " without a password."
        ),
    ] = "takifugu.ledger",
    as_json: AsJson = False,
) -> None:
    """Make a project in FOLDER: the file takifugu.toml, to be edited, and a ledger.

    A ledger that exists is used as it is.

    JSON: project, ledger, ledger_id (its first event; the project accepts no other ledger).
    """
    from takifugu.project.project import init_project

    project = init_project(folder, ledger=ledger)
    policy = project.policy
    facts = {"project": str(project.file), "ledger": policy.ledger, "ledger_id": policy.ledger_id}
    show_result(
        facts,
        f"made {project.file}, with the ledger {policy.ledger}",
        "next: takifugu dataset add NAME DECLARATION.toml",
        as_json=as_json,
    )


QUICKSTART_FLAGS: dict[str, Flag] = DRAFT_FLAGS | {
    "labels": flag(
        "COLUMN=home,work; or COLUMN=codebook.csv (or codebook.csv:its column); by default those of"
        " the rows that the prior is fitted on. Repeatable.",
        list[str] | None,
    ),
    "outside": flag(
        "What becomes of values that are not in a list, or missing: refuse, other or drop;"
        " COLUMN=drop for one column. Repeatable; by default refuse.",
        list[str] | None,
    ),
    "secrets_within": flag("Of numbers: which of two values at most this far apart is secret."),
    "pairs": (Pairs, None),
    "share": flag("Fit the prior on such a share of the entities, as 1/5."),
    "first_days": flag("Fit the prior on the first N days.", int | None),
    "first_steps": flag("The same where the order is a number: on the first N of it.", int | None),
    "at_least": flag("Labels of fewer entities count as other; by default 5.", int | None),
    "budget": flag("The lifetime budget, a Pufferfish ε.", str, "1"),
    "separate_from": flag(
        "Another ledger of yours that has charged the same rows, as the refusal names it: you mean"
        " to have a second budget for them."
    ),
}


@with_flags(QUICKSTART_FLAGS, before="as_json")
def run_quickstart(
    file: DataFile,
    folder: Annotated[
        Path | None,
        typer.Option(help="The folder to make; by default NAME-project, here. It must be new."),
    ] = None,
    *,
    flags: dict[str, Any],
    as_json: AsJson = False,
) -> None:
    """Make a project for FILE, up to the plan of a first release. Nothing is charged.

    It drafts the declaration from the names and types of columns, fits a prior on a part of the
    rows that releases then leave alone, sets a budget and plans a first query. Each decision is
    printed with how to change it. On a terminal it asks for what it cannot know; elsewhere it says
    what is open, makes nothing, and returns 2. The last lines are the command that would release.

    JSON: folder (null if points are open), open (key, question, needed, option), choices (what,
    value, reason, change), rows, entities, statement, goodness, plan (as `plan --json` has it),
    verdict, advice (null if it will be useful), guarantee, release (the command), next.
    """
    from takifugu.declarations import InvalidDeclaration
    from takifugu.fitting.fit_options import parse_share, refuse_other_unit
    from takifugu.project.quickstart import QuickstartOptions, prepared, quickstart, refuse_existing

    called = dataset_name(flags.get("name"), file)
    target = folder if folder is not None else Path(f"{called}-project")
    refuse_existing(target)
    splits = [flags.get(name) for name in ("share", "first_days", "first_steps")]
    if sum(given is not None for given in splits) > 1:
        raise InvalidOption(
            "--share",
            given="comes with --first-days or --first-steps, or these with each other",
            needed="be given alone: one split only",
        )
    share, first_days, first_steps = splits
    pairs = flags.get("pairs")
    options = QuickstartOptions(
        budget=_budget(flags.get("budget", "1")),
        first_days=first_steps if first_days is None else first_days,
        share=None if share is None else parse_share(share, "--share", InvalidOption),
        at_least=flags.get("at_least"),
        within=flags.get("secrets_within"),
        pairs=read_column_pairs(pairs) or read_secrets(pairs, None).pairs,
        separate_from=flags.get("separate_from"),
    )
    draft = read_draft(file, flags, target, unlisted="refuse")
    draft = prepared(draft, options)
    if draft.open and not as_json and sys.stdin.isatty() and sys.stdout.isatty():
        draft, options = _answered(draft, target, options)
    if draft.open:
        given = ({} if folder is None else {"folder": folder}) | flags
        asked = {point.option.split()[0] for point in draft.open}
        kept = {  # what is asked for again replaces an option that may be given once
            name: value
            for name, value in given.items()
            if isinstance(value, list) or spelled(name) not in asked
        }
        _stop(draft, _command(file, kept), as_json=as_json)
    if order := draft.document.get("order"):
        where = (order["column"], order["kind"])
        refuse_other_unit(flags, where, named=spelled, error=InvalidOption)
    with Spinner(f"making {target}") as spinner:
        try:
            result = quickstart(draft, target, called, options=options, progress=spinner)
        except InvalidDeclaration as error:
            raise _with_option(error, draft) from None
    if as_json:
        print_json(_document(result))
        return
    _print(result)


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

    while answer := _reply(draft, "protected", "column to protect"):
        try:
            draft = prepared(draft.answered(protected=tuple(map(str, listed(answer)))), options)
            break
        except TakifuguError as error:
            echo(f"  {error}", err=True)
    own = ("protected", "secrets_within")
    others = tuple(point for point in draft.open if point.key not in own)
    if others:
        draft = prepared(ask_open_points(replace(draft, open=others), folder), options)
    while answer := _reply(draft, "secrets_within", "distance"):
        try:
            if exactly(answer, "secrets within") > 0:
                options = replace(options, within=answer)
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


def _command(file: str, given: dict[str, Any]) -> str:
    """The command as it was given, ready to be pasted."""
    words = ["takifugu", "quickstart", file]
    for name, value in given.items():
        for each in value if isinstance(value, list) else [value]:
            words += [spelled(name), str(each)]
    return " ".join(map(pasted, words))


def _stop(draft: "Draft", command: str, *, as_json: bool) -> None:
    """Say what is open and how to go on; nothing was made."""
    from takifugu.project.quickstart import draft_choices

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
        needed=f"be read with options that decide them, as in: {again}",
        reason="open",
    )


def _print(result: "Quickstart") -> None:
    echo(f"{result.facts.rows:,} rows of {result.facts.entities:,} entities\n")
    for choice in result.choices:
        echo(_line(choice))
    echo(f"\n{result.fitted.statement}")
    for note in result.fitted.estimate.notes:
        echo(f"note: {note}")
    for test in () if result.fitted.goodness is None else result.fitted.goodness.tests:
        echo(f"{test.verdict}: {test.sentence}")
    folder = result.project.folder
    echo(f"\n{folder} was made. To change it, start again with other options in another --folder;")
    echo(f"or edit {folder / (result.dataset + '.toml')} and fit again: {result.refit()}")
    echo("Nothing is charged yet. What a first release would be:\n")
    echo(f"{result.plan}\n")
    if result.plan.usefulness.verdict == "mostly noise":
        echo("This is not worth its price: think of fewer secret --pairs, fewer labels, a larger")
        echo("--budget, or more rows.")
    if result.advice:
        echo(f"{result.advice}\n")
    echo(f"look at the plan and the guarantee:  {result.command('plan')}")
    echo(f"publish it:                          {result.command('release')}")


def _line(choice: "Choice") -> str:
    change = f"\n{'':<11}change: {choice.change}" if choice.change else ""
    return f"{choice.what:<9}  {choice.value}: {choice.reason}{change}"


def _document(result: "Quickstart") -> dict[str, Any]:
    goodness = result.fitted.goodness
    return {
        "folder": str(result.project.folder),
        "dataset": result.dataset,
        "open": [],
        "choices": [choice.describe() for choice in result.choices],
        "rows": result.facts.rows,
        "entities": result.facts.entities,
        "statement": result.fitted.statement,
        "goodness": None if goodness is None else goodness.document(),
        "plan": result.plan.describe(),
        "verdict": result.plan.usefulness.verdict,
        "advice": result.advice or None,
        "guarantee": result.guarantee,
        "release": result.command("release"),
        "next": result.command("plan"),
    }
