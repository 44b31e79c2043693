"""``takifugu dataset``: what a declaration promises, and whether the data fits it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu.cli.completion import complete_dataset
from takifugu.cli.options import (
    ENTRIES_HELP,
    PAIRS_HELP,
    AsJson,
    Backend,
    InProject,
    Working,
    print_json,
    read_secrets,
    the_project,
)
from takifugu.cli.telling import echo

if TYPE_CHECKING:
    from takifugu.engines import Declaration
    from takifugu.session.project import Project

app = typer.Typer(
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

    Nothing is entered if something does not fit. Keys of the JSON object: dataset, project, and
    those of `dataset check`.
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
        pairs=secrets.pairs,
        entries=secrets.entries,
        uncertainty=uncertainty,
        analysts=analyst or (),
    )
    if as_json:
        print_json({"dataset": name, "project": str(study.file)} | facts)
        return
    _print_facts(facts)
    echo(f"{name} was entered into {study.file}")
    if not prior:
        echo(f"next: takifugu prior fit {name} --first-days N, or name a prior in the file")


@app.command()
def show(dataset: Declared, project: InProject = None, as_json: AsJson = False) -> None:
    """Say what DATASET promises. The data is not looked at.

    Keys of the JSON object: title, fingerprint, source, entity, order, protected, public, promise;
    for a dataset of a project also dataset, about, priors, pairs, entries, uncertainty, analysts,
    released_from and released_share (null if all rows may be released from), fitted (what is said
    about fitted priors).
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
    echo(f"\n{found.promise()}", nl=False)
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
    entities, longest, first, last, keys, data, covers.
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
        "promise": found.promise(),
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
        "data": found.data.fingerprint,
        "covers": found.data.covers,
    }


def _print_facts(facts: dict[str, Any]) -> None:
    shown = {
        "rows": f"{facts['rows']:,}",
        "entities": f"{facts['entities']:,}, the longest of {facts['longest']:,} rows",
        "order": f"from {facts['first']} to {facts['last']}" if facts["rows"] else "no rows",
        "keys": ", ".join(f"{column} {count:,}" for column, count in facts["keys"].items()),
        "data": facts["data"],
        "covers": facts["covers"],
    }
    for name, value in shown.items():
        echo(f"{name:<8}  {value}")


def _place(place: object) -> str | None:
    """A place in the order, in words; whole numbers without a point."""
    if isinstance(place, float) and place.is_integer():
        return str(int(place))
    return None if place is None else str(place)
