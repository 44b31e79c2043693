"""``takifugu dataset``: add datasets, show what is protected, check the data, accept changes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu.cli.commands.dataset_new import refuse_data_file, run_dataset_new
from takifugu.cli.shared_options import (
    AsJson,
    Backend,
    DatasetName,
    InProject,
    InvalidOption,
    Pairs,
    SecretEntries,
    SecretsWithin,
    Spinner,
    StrictTyper,
    Uncertainty,
    confirm,
    echo,
    print_json,
    read_column_pairs,
    read_secrets,
    show_result,
    the_project,
    without_project,
)
from takifugu.cli.shell_completion import complete_dataset
from takifugu.visible import four_digits

if TYPE_CHECKING:
    from takifugu.declarations import Declaration
    from takifugu.ledger import Event
    from takifugu.project.owner_changes import CellChange
    from takifugu.project.project import Project

app = StrictTyper(
    no_args_is_help=True, help="Add datasets to a project, show and check declared tables."
)

Declared = Annotated[
    str,
    typer.Argument(
        metavar="DATASET",
        help="A declaration (.toml), or the name of a dataset of the project.",
        autocompletion=complete_dataset,
    ),
]


app.command("new")(run_dataset_new)


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="Its name: letters, digits, - and _.")],
    declaration: Annotated[Path, typer.Argument(help="The declaration, as TOML.")],
    about: Annotated[
        str | None, typer.Option(help="The protected column that the priors are about.")
    ] = None,
    prior: Annotated[
        list[Path] | None,
        typer.Option(help="A prior, as JSON or BIF; repeatable: the guarantee holds for all."),
    ] = None,
    over: Annotated[
        str | None,
        typer.Option(
            help="What the prior is over: 'sequence', 'row' (its nodes are columns), 'entities'"
            " (one row each), 'household' or 'entities x sequence'."
        ),
    ] = None,
    household: Annotated[
        str | None,
        typer.Option(help="With --over household: the public column that groups entities."),
    ] = None,
    member: Annotated[
        str | None,
        typer.Option(help="With --over household: the public column with the prior's members."),
    ] = None,
    pairs: Pairs = None,
    entries: SecretEntries = None,
    secrets_within: SecretsWithin = None,
    uncertainty: Uncertainty = 0.0,
    analyst: Annotated[
        list[str] | None, typer.Option(help="Who may query it, repeatable; by default anybody.")
    ] = None,
    folder: InProject = None,
    backend: Backend = None,
    as_json: AsJson = False,
) -> None:
    """Check a declaration against its data and add it to the project as NAME.

    Nothing is added if the data, the priors or the secrets do not fit.

    JSON: dataset, project, and those of `dataset check`.
    """
    from takifugu.tables import check as check_engine
    from takifugu.tables import open_engine

    refuse_data_file(declaration, name)
    project = the_project(folder)
    by_column = read_column_pairs(pairs)
    secrets = read_secrets(None if by_column else pairs, entries, secrets_within)
    project.refuse_taken_name(name)
    with Spinner(f"checking {declaration}"), open_engine(declaration, backend=backend) as engine:
        facts, note = _facts(check_engine(engine)), tie_note(engine.declaration)
        likely = _likely_kind(engine.declaration, facts["longest"])
        order = engine.declaration.order
        unit = "steps" if order.kind == "number" else "days"
        rows = "--share 1/5" if order.absent else f"--first-{unit} N (or --share 1/5)"
        together = _together(engine.declaration)
        project.add_dataset(
            name,
            declaration,
            about=about,
            priors=prior or (),
            over=over,
            household=household,
            member=member,
            pairs=by_column or secrets.pairs,
            entries=secrets.entries,
            within=secrets.within,
            uncertainty=uncertainty,
            analysts=analyst or (),
            engine=engine,
        )
    if as_json:
        print_json({"dataset": name, "project": str(project.file)} | facts)
        return
    _print_facts(facts, note)
    echo(f"{name} was added to {project.file}")
    if not prior:
        echo(
            f"next: takifugu prior fit {name}{likely} {rows}, or name a prior in the file{together}"
        )


@app.command()
def show(dataset: Declared, folder: InProject = None, as_json: AsJson = False) -> None:
    """Show what is protected in DATASET. The data is not read.

    JSON: title, fingerprint, source, entity, order, protected, public, guarantee; for a dataset of
    a project also dataset, about (null if it is about several columns), columns, priors, over,
    pairs, entries, uncertainty, analysts, approval (which releases wait for a second person: above,
    first, words; null for none), linear (queries by name: column, by and weights), released_from
    and released_share (null if all rows may be released from), fitted (statements about fitted
    priors).
    """
    from takifugu.declarations import Amount, read_declaration
    from takifugu.project.owner_changes import declaration_facts, policy_facts

    refuse_data_file(dataset)
    project = _project_of(dataset, folder)
    declared = read_declaration(dataset) if project is None else project.load(dataset).declaration
    policy = {} if project is None else policy_facts(project, dataset)
    if as_json:
        print_json(declaration_facts(declared) | policy)
        return
    if declared.title:
        echo(f"{declared.title}\n")
    for column in (*declared.protected, *declared.public):
        part = "protected" if column in declared.protected else "public"
        if isinstance(column, Amount):
            values = f"{four_digits(column.low)} … {four_digits(column.high)}"
        elif column.values is None:
            values = "keys from the data"
            if column.column in declared.unfitted:
                values = "labels from the rows that its prior is fitted on"
        else:
            values = f"{len(column.keys)} keys"
        echo(f"{part:<9}  {column.column}  {values}")
    if policy:
        echo("")
        secrets = ("pairs", "entries", "secrets_within")
        for name in ("about", "priors", *secrets, "uncertainty", "analysts"):
            if name == "about" and policy["about"] is None:
                echo(f"{name:<11}  {', '.join(policy['columns'])}")
            elif policy[name]:
                echo(f"{name:<11}  {policy[name]}")
        if policy["approval"] is not None:
            echo(f"approval     {policy['approval']['words']}")
        for name, query in policy["linear"].items():
            echo(f"linear       {name}: {query['column']}, weighted by {query['by']}")
        if policy["released_from"] is not None:
            echo(f"released     from {policy['released_from']} on")
        if policy["released_share"] is not None:
            echo(f"released     from {policy['released_share']} of the entities")
    echo(f"\n{declared.guarantee()}{tie_note(declared)}", nl=False)
    for statement in policy.get("fitted", ()):
        echo(f"\n{statement}")


@app.command()
def check(
    dataset: Declared,
    folder: InProject = None,
    backend: Backend = None,
    as_json: AsJson = False,
) -> None:
    """Check that the data is as DATASET declares, and print its public facts.

    For a dataset of a project its priors and secrets must fit as well. No protected value is
    printed. The status is 2 if something does not fit.

    JSON: rows, entities, longest (rows of one entity), first, last, keys.
    """
    from takifugu.tables import check as check_engine
    from takifugu.tables import open_engine

    refuse_data_file(dataset)
    project = _project_of(dataset, folder)
    declared = Path(dataset) if project is None else project.load(dataset).declaration
    with Spinner(f"checking {dataset}"), open_engine(declared, backend=backend) as engine:
        facts, note = _facts(check_engine(engine)), tie_note(engine.declaration)
        if project is not None and project.dataset(dataset).priors:
            loaded = project.load(dataset)
            _ = loaded.releasable
            loaded.refuse_misfit(engine)
            loaded.refuse_unknown_secrets()
    if as_json:
        print_json(facts)
        return
    _print_facts(facts, note)
    echo("The data fits its declaration.")


@app.command()
def accept(
    name: DatasetName,
    unchanged: Annotated[
        bool,
        typer.Option(
            "--unchanged",
            help="State that the declaration is the one used before; its source may have moved.",
        ),
    ] = False,
    separate_from: Annotated[
        str | None,
        typer.Option(help="Instead: count NAME and this dataset separately, although alike."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Accept without confirmation.")] = False,
    folder: InProject = None,
    backend: Backend = None,
    as_json: AsJson = False,
) -> None:
    """Accept a declaration of NAME that differs from the one of earlier releases.

    Under another declaration the same rows may be other cells, and their losses would be counted
    apart. So all earlier releases are then charged to every row; where values have other names,
    those that were charged by value as the most that they tell of any two values. What differs, and
    what is spent before and after, is shown first. The decision is an event of the ledger that
    names this user.

    JSON: dataset, decision (everywhere, unchanged or separate), changes, spent_before (by the rows
    that lost most) and spent_after (by every row; both null without a prior), event.
    """
    project = the_project(folder)
    if separate_from is not None:
        _separate(project, name, separate_from, unchanged=unchanged, yes=yes, as_json=as_json)
        return
    with Spinner(f"comparing {name}"):
        change = project.pending(name, backend=backend)
    if not change.charged:
        raise InvalidOption(
            "NAME",
            given=f"{name} has no releases yet",
            needed="have some, to accept",
        )
    if not as_json:
        _print_pending(change, unchanged=unchanged)
    confirm(
        f"Is the declaration of {name} the one used before?"
        if unchanged
        else f"Charge all earlier releases of {name} to every row?",
        yes=yes,
    )
    event = project.accept(change, unchanged=unchanged)
    after = change.before if unchanged else change.after
    spent = {"spent_before": change.before, "spent_after": after}
    _show_decision(name, event, event.body["how"], list(change.changes), spent, as_json)


def _show_decision(
    name: str,
    event: "Event",
    decision: str,
    changes: list[str],
    spent: dict[str, Any],
    as_json: bool,
) -> None:
    facts = {"dataset": name, "decision": decision, "changes": changes, **spent, "event": event.seq}
    words = f"accepted by {event.body['actor']}: event {event.seq} of the ledger"
    show_result(facts, words, as_json=as_json)


def _print_pending(found: "CellChange", *, unchanged: bool) -> None:
    for change in found.changes:
        echo(f"{found.dataset}: {change}")
    if not found.recorded:
        echo(f"{found.dataset}: the earlier charges do not record their cells")
    elif not found.changes:
        echo(f"{found.dataset}: the declaration is the one of the earlier charges")
    if found.after is not None and not unchanged:
        echo(
            f"spent: {four_digits(found.before or 0.0, 'up')} by the rows that lost most so far;"
            f" once accepted, {four_digits(found.after, 'up')} by every row"
        )


def _separate(
    project: "Project", name: str, other: str, *, unchanged: bool, yes: bool, as_json: bool
) -> None:
    if unchanged:
        raise InvalidOption(
            "--separate-from", given="comes with --unchanged", needed="be a decision of its own"
        )
    project.dataset(name)
    confirm(f"Rows in both {name} and {other} can lose both budgets. Accept?", yes=yes)
    event = project.count_separately(name, other)
    spent = {"spent_before": None, "spent_after": None}
    _show_decision(name, event, "separate", [], spent, as_json)


def _project_of(dataset: str, folder: Path | None) -> "Project | None":
    """The project that a dataset is of; None for a declaration, which is read without one."""
    if _is_file(dataset):
        without_project(folder, "DATASET")
        return None
    return the_project(folder)


def _is_file(dataset: str) -> bool:
    """Whether it is a declaration: names of datasets have no dot."""
    return "." in dataset or "/" in dataset or "\\" in dataset


def _facts(found: Any) -> dict[str, Any]:
    return {
        "rows": found.rows,
        "entities": found.entities,
        "longest": found.longest,
        "first": _place(found.first),
        "last": _place(found.last),
        "keys": found.keys,
    }


def tie_note(declaration: "Declaration") -> str:
    """What to know of the columns that settle ties; empty if there are none."""
    if not declaration.order.ties:
        return ""
    names = ", ".join(declaration.order.ties)
    return (
        f"note: what settles ties in the order is public ({names}): do not name a column that"
        " reveals a protected one\n"
    )


def _together(declaration: "Declaration") -> str:
    """The other kind of fit that a public column of households suggests; empty if there is none."""
    from takifugu.declarations import Amount

    words = ("household", "home", "family", "dwelling")
    homes = [c.column for c in declaration.public if any(w in c.column.lower() for w in words)]
    several = len(declaration.protected) != 1 or isinstance(declaration.protected[0], Amount)
    if not homes or several:
        return ""
    return (
        f"; if people of one `{homes[0]}` depend on each other: --kind household --household"
        f" {homes[0]}"
    )


def _likely_kind(declaration: "Declaration", longest: int) -> str:
    """The option of a fit that suits a table: of numbers, of rows without a sequence, or none."""
    from takifugu.declarations import Amount

    numbers = [isinstance(column, Amount) for column in declaration.protected]
    if len(numbers) == 1:
        return " --kind gaussian" if numbers[0] else ""
    if any(numbers):
        return ""
    names = ",".join(column.column for column in declaration.protected)
    return " --kind network" if longest <= 1 else f" --columns {names}"


def _print_facts(facts: dict[str, Any], note: str) -> None:
    shown = {
        "rows": f"{facts['rows']:,}",
        "entities": f"{facts['entities']:,}, the longest of {facts['longest']:,} rows",
        "order": _span(facts),
        "keys": ", ".join(f"{column} {count:,}" for column, count in facts["keys"].items()),
    }
    for name, value in shown.items():
        echo(f"{name:<8}  {value}")
    echo(note, nl=False)


def _span(facts: dict[str, Any]) -> str:
    if facts["first"] is None:
        return "none: one row for each entity" if facts["rows"] else "no rows"
    return f"from {facts['first']} to {facts['last']}"


def _place(place: object) -> str | None:
    """A place in the order as text; whole numbers without a point."""
    if isinstance(place, float) and place.is_integer():
        return str(int(place))
    return None if place is None else str(place)
