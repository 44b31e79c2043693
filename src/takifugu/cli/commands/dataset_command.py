"""``takifugu dataset``: what a declaration guarantees, and whether the data fits it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu.cli.shared_options import (
    ENTRIES_HELP,
    PAIRS_HELP,
    AsJson,
    Backend,
    DatasetName,
    InProject,
    InvalidOption,
    Working,
    print_json,
    read_secrets,
    the_project,
)
from takifugu.cli.shell_completion import complete_dataset
from takifugu.cli.strict_options import Strict
from takifugu.cli.terminal import echo

if TYPE_CHECKING:
    from takifugu.engines import Declaration
    from takifugu.project.cell_changes import Pending
    from takifugu.project.project import Project

app = Strict(
    no_args_is_help=True, help="Add datasets to a project, look at declared tables, check them."
)

Declared = Annotated[
    str,
    typer.Argument(
        metavar="DATASET",
        help="A declaration (.toml), or the name of a dataset of the project.",
        autocompletion=complete_dataset,
    ),
]


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="What to call it: letters, digits, - and _.")],
    declaration: Annotated[Path, typer.Argument(help="The declaration, as TOML.")],
    about: Annotated[
        str | None, typer.Option(help="The protected column that the priors are about.")
    ] = None,
    prior: Annotated[
        list[Path] | None,
        typer.Option(help="A prior, as JSON or BIF; repeatable: all of them are kept to."),
    ] = None,
    over: Annotated[
        str | None,
        typer.Option(
            help="What the entries of a network are: 'entities', with one row each, or 'sequence'."
        ),
    ] = None,
    pairs: Annotated[str | None, typer.Option(help=PAIRS_HELP)] = None,
    entries: Annotated[str | None, typer.Option(help=ENTRIES_HELP)] = None,
    uncertainty: Annotated[
        float, typer.Option(help="Relative error of every joint probability, as 0.2 for 20 %.")
    ] = 0.0,
    analyst: Annotated[
        list[str] | None, typer.Option(help="Who may ask, repeatable; by default anybody.")
    ] = None,
    project: InProject = None,
    backend: Backend = None,
    as_json: AsJson = False,
) -> None:
    """Check a declaration against its data and enter it into the project under NAME.

    Nothing is entered if something does not fit: the data, the priors or the secrets. Keys of the
    JSON object: dataset, project, and those of `dataset check`.
    """
    from takifugu.engines import check as check_engine
    from takifugu.engines import open_engine

    study = the_project(project)
    secrets = read_secrets(pairs, entries)
    study.refuse_known(name)
    with Working(f"checking {declaration}"), open_engine(declaration, backend=backend) as engine:
        facts = _facts(check_engine(engine))
        study.add_dataset(
            name,
            declaration,
            about=about,
            priors=prior or (),
            over=over,
            pairs=secrets.pairs,
            entries=secrets.entries,
            uncertainty=uncertainty,
            analysts=analyst or (),
            engine=engine,
        )
    if as_json:
        print_json({"dataset": name, "project": str(study.file)} | facts)
        return
    _print_facts(facts)
    echo(f"{name} was entered into {study.file}")
    if not prior:
        echo(
            f"next: takifugu prior fit {name} --first-days N (or --share 1/5), or name a prior in"
            " the file"
        )


@app.command()
def show(dataset: Declared, project: InProject = None, as_json: AsJson = False) -> None:
    """Say what DATASET guarantees. The data is not looked at.

    Keys of the JSON object: title, fingerprint, source, entity, order, protected, public,
    guarantee; for a dataset of a project also dataset, about, priors, pairs, entries, uncertainty,
    analysts, released_from and released_share (null if all rows may be released from), fitted
    (what is said about fitted priors).
    """
    from takifugu.engines import Amount, read_declaration

    study = None if _is_file(dataset) else the_project(project)
    found = read_declaration(dataset) if study is None else study.declaration(dataset)
    policy = {} if study is None else _policy(study, dataset)
    if as_json:
        print_json(_declared(found) | policy)
        return
    if found.title:
        echo(f"{found.title}\n")
    for column in (*found.protected, *found.public):
        part = "protected" if column in found.protected else "public"
        if isinstance(column, Amount):
            told = f"{float(column.low):g} … {float(column.high):g}"
        elif column.values is None:
            told = "keys from the data"
        else:
            told = f"{len(column.keys)} keys"
        echo(f"{part:<9}  {column.column}  {told}")
    if policy:
        echo("")
        for name in ("about", "priors", "pairs", "entries", "uncertainty", "analysts"):
            if policy[name]:
                echo(f"{name:<11}  {policy[name]}")
        if policy["released_from"] is not None:
            echo(f"released     from {policy['released_from']} on")
        if policy["released_share"] is not None:
            echo(f"released     from {policy['released_share']} of the entities")
    echo(f"\n{found.guarantee()}", nl=False)
    for statement in policy.get("fitted", ()):
        echo(f"\n{statement}")


@app.command()
def check(
    dataset: Declared,
    project: InProject = None,
    backend: Backend = None,
    as_json: AsJson = False,
) -> None:
    """Read the data and see that it is as DATASET says; print its public facts.

    For a dataset of a project its priors and secrets must fit as well. No protected value is
    printed. Status 2 and one line if something does not fit. Keys of the JSON object: rows,
    entities, longest, first, last, keys.
    """
    from takifugu.engines import check as check_engine
    from takifugu.engines import open_engine

    study = None if _is_file(dataset) else the_project(project)
    declared = Path(dataset) if study is None else study.declaration(dataset)
    with Working(f"checking {dataset}"), open_engine(declared, backend=backend) as engine:
        facts = _facts(check_engine(engine))
        if study is not None and study.dataset(dataset).priors:
            study.kept(dataset)
            study.refuse_misfit(dataset, engine)
    if as_json:
        print_json(facts)
        return
    _print_facts(facts)
    echo("The data fits its declaration.")


@app.command()
def accept(
    name: DatasetName,
    unchanged: Annotated[
        bool,
        typer.Option(
            "--unchanged",
            help="Say that the declaration is the one used before; only its source may have moved.",
        ),
    ] = False,
    separate_from: Annotated[
        str | None,
        typer.Option(help="Instead: count NAME and this dataset separately, although alike."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask back.")] = False,
    project: InProject = None,
    backend: Backend = None,
    as_json: AsJson = False,
) -> None:
    """Go on with a declaration of NAME that is not the one it was released from under.

    The same rows would be other cells, and what they lost would be counted twice apart. So all
    earlier releases are then counted on every row; windows and groups start from there. What
    differs, and what is spent before and after, is shown first. The decision is written in the
    ledger with the name of this user. Keys of the JSON object: dataset, decision (everywhere,
    unchanged or separate), changes, spent_before (of the rows that lost most) and spent_after (of
    every row; both null without a prior), event.
    """
    study = the_project(project)
    if separate_from is not None:
        _separate(study, name, separate_from, unchanged=unchanged, yes=yes, as_json=as_json)
        return
    with Working(f"comparing {name}"):
        found = study.pending(name, backend=backend)
    if not found.charged:
        raise InvalidOption(
            "NAME", given=f"{name} has no releases yet", needed="have some: there is nothing to do"
        )
    if not as_json:
        _print_pending(found, unchanged=unchanged)
    _ask(
        f"Is the declaration of {name} the one used before?"
        if unchanged
        else f"Count all earlier releases of {name} on every row?",
        yes=yes,
    )
    event = study.accept(found, unchanged=unchanged)
    if as_json:
        print_json(
            {
                "dataset": name,
                "decision": event.body["how"],
                "changes": list(found.changes),
                "spent_before": found.before,
                "spent_after": found.before if unchanged else found.after,
                "event": event.seq,
            }
        )
        return
    echo(f"accepted by {event.body['actor']}: event {event.seq} of the ledger")


def _print_pending(found: "Pending", *, unchanged: bool) -> None:
    for change in found.changes:
        echo(f"{found.dataset}: {change}")
    if not found.told:
        echo(f"{found.dataset}: the earlier charges do not say what named their cells")
    elif not found.changes:
        echo(f"{found.dataset}: the declaration is the one that was charged under")
    if found.after is not None and not unchanged:
        echo(
            f"spent: {found.before:.6g} on the rows that lost most so far; once accepted,"
            f" {found.after:.6g} on every row"
        )


def _separate(
    study: "Project", name: str, other: str, *, unchanged: bool, yes: bool, as_json: bool
) -> None:
    if unchanged:
        raise InvalidOption(
            "--separate-from", given="comes with --unchanged", needed="be a decision of its own"
        )
    study.dataset(name)
    _ask(f"Rows that are in both {name} and {other} lose both budgets. Count them so?", yes=yes)
    event = study.count_separately(name, other)
    if as_json:
        print_json(
            {
                "dataset": name,
                "decision": "separate",
                "changes": [],
                "spent_before": None,
                "spent_after": None,
                "event": event.seq,
            }
        )
        return
    echo(f"accepted by {event.body['actor']}: event {event.seq} of the ledger")


def _ask(query: str, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidOption(
            "--yes", given="is missing", needed="be given where nobody can be asked"
        )
    typer.confirm(query, abort=True, err=True)


def _is_file(dataset: str) -> bool:
    """Whether a declaration is meant: names of datasets have no dot."""
    return "." in dataset or "/" in dataset or "\\" in dataset


def _declared(found: "Declaration") -> dict[str, Any]:
    return {
        "title": found.title,
        "fingerprint": found.fingerprint,
        "source": found.source.place,
        "entity": found.entity,
        "order": [found.order.column, *found.order.ties],
        "protected": [column.column for column in found.protected],
        "public": [column.column for column in found.public],
        "guarantee": found.guarantee(),
    }


def _policy(study: "Project", name: str) -> dict[str, Any]:
    policy, kept = study.dataset(name), study.kept(name)
    start, share = kept.start, kept.entities
    return {
        "dataset": name,
        "about": study.about(name),
        "priors": [prior.file for prior in policy.priors],
        "pairs": policy.pairs and [[list(a), list(b)] for a, b in policy.pairs],
        "entries": policy.entries and list(policy.entries),
        "uncertainty": policy.uncertainty,
        "analysts": list(policy.analysts),
        "released_from": start if start is None or isinstance(start, int) else start.isoformat(),
        "released_share": None if share is None else str(share.high - share.low),
        "fitted": list(kept.statements),
    }


def _facts(found: Any) -> dict[str, Any]:
    return {
        "rows": found.rows,
        "entities": found.entities,
        "longest": found.longest,
        "first": _place(found.first),
        "last": _place(found.last),
        "keys": found.keys,
    }


def _print_facts(facts: dict[str, Any]) -> None:
    shown = {
        "rows": f"{facts['rows']:,}",
        "entities": f"{facts['entities']:,}, the longest of {facts['longest']:,} rows",
        "order": f"from {facts['first']} to {facts['last']}" if facts["rows"] else "no rows",
        "keys": ", ".join(f"{column} {count:,}" for column, count in facts["keys"].items()),
    }
    for name, value in shown.items():
        echo(f"{name:<8}  {value}")


def _place(place: object) -> str | None:
    """A place in the order, in words; whole numbers without a point."""
    if isinstance(place, float) and place.is_integer():
        return str(int(place))
    return None if place is None else str(place)
