"""``takifugu prior``: make, fit, smooth, show and accept priors."""

import csv
import gzip
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu._atomic import refuse_special
from takifugu.cli.commands.prior_compare import run_compare
from takifugu.cli.shared_options import (
    AsJson,
    Backend,
    DatasetName,
    InProject,
    InvalidOption,
    Spinner,
    StrictTyper,
    echo,
    print_json,
    the_project,
)
from takifugu.cli.shell_completion import complete_dataset, nearest_project
from takifugu.errors import InvalidFile, Malformed
from takifugu.visible import four_digits

if TYPE_CHECKING:
    from takifugu.priors import Prior, SequencePrior
    from takifugu.project.owner_changes import PolicyChange

app = StrictTyper(no_args_is_help=True, help="Make, fit, smooth, show and accept priors.")

app.command("compare")(run_compare)

Out = Annotated[Path, typer.Option("--out", "-o", help="Where to write the prior, as JSON.")]

Length = Annotated[int | None, typer.Option(help="The number of entries; by default unbounded.")]


@app.command()
def show(
    prior: Annotated[
        str,
        typer.Argument(
            help="A JSON document, a BIF file, or a dataset of the project.",
            autocompletion=complete_dataset,
        ),
    ],
    folder: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Show a prior: its kind, size, states and fingerprint; for a dataset, all its priors.

    Keys of the JSON object: kind, fingerprint, and facts of the kind; for a dataset: dataset, and
    priors (file, statement and those keys of each).
    """
    from takifugu.priors import read_prior

    if "." not in prior and not Path(prior).exists():
        _show_dataset(prior, folder, as_json)
        return
    facts = _facts(read_prior(prior))
    if as_json:
        print_json(facts)
    else:
        _print(facts)


def _show_dataset(name: str, folder: Path | None, as_json: bool) -> None:
    from takifugu.priors import read_prior

    project = the_project(folder)
    _ = project.load(name).priors  # an error if one is missing, or not what was fitted
    found = [
        {"file": prior.file, "statement": prior.statement}
        | _facts(read_prior(project.folder / prior.file))
        for prior in project.dataset(name).priors
    ]
    if as_json:
        print_json({"dataset": name, "priors": found})
        return
    for place, facts in enumerate(found):
        if place:
            echo("")
        _print({key: value for key, value in facts.items() if value is not None})


def _print(facts: dict[str, Any]) -> None:
    width = max(map(len, facts))
    for name, value in facts.items():
        echo(f"{name.replace('_', ' '):<{width}}  {value}")


@app.command()
def new(
    transition: Annotated[
        str, typer.Argument(help="The matrix, row by row, as '0.9,0.1;0.2,0.8'.")
    ],
    out: Out,
    states: Annotated[str | None, typer.Option(help="Names of the states, as 'home,ward'.")] = None,
    length: Annotated[
        int | None, typer.Option(help="The number of entries; by default unbounded.")
    ] = None,
    start: Annotated[
        str,
        typer.Option(
            help="'stationary'; 'unknown', for any; or the distribution of the first entry, as"
            " '1,0'."
        ),
    ] = "stationary",
    known: Annotated[
        str, typer.Option(help="'any', if an adversary may know any other entries; or 'none'.")
    ] = "none",
    as_json: AsJson = False,
) -> None:
    """Write a Markov chain from its transition matrix.

    Keys of the JSON object: out, and those of `prior show`.
    """
    from takifugu.priors import from_document, write_prior
    from takifugu.priors.adversaries import STARTS

    document: dict[str, Any] = {"kind": "markov-chain", "length": length}
    document["transition"] = [_numbers(row, "TRANSITION") for row in transition.split(";")]
    document["start"] = start if start in STARTS else _numbers(start, "--start")
    document["known"] = known
    if states is not None:
        document["states"] = [state.strip() for state in states.split(",")]
    made = from_document(document)
    with _recorded(out):
        write_prior(made, out)
    _print_written(made, out, as_json)


@app.command()
def fit(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="A dataset of the project; or, with --state, --entity and --out, a CSV file,"
            " plain or .gz, with a header.",
            autocompletion=complete_dataset,
        ),
    ],
    first_days: Annotated[
        int | None, typer.Option(help="Fit on the first N days; release from later days only.")
    ] = None,
    share: Annotated[
        str | None,
        typer.Option(help="Fit on a share of the entities, as 1/5; release from the others only."),
    ] = None,
    all_rows: Annotated[
        bool, typer.Option("--all-rows", help="Fit on all rows, including those to be protected.")
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the priors that the dataset has.")
    ] = False,
    add: Annotated[
        bool, typer.Option("--add", help="Add to the priors that the dataset has.")
    ] = False,
    other: Annotated[
        str | None, typer.Option(help="The state for values that do not occur.")
    ] = None,
    tau: Annotated[
        float | None,
        typer.Option(
            help="Smooth zeros to this probability; 0 leaves them. For a dataset the default is"
            " 1e-5, as in the paper."
        ),
    ] = None,
    length: Annotated[
        int | None, typer.Option(help="The number of entries; by default unbounded.")
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(help="Instead, all chains within the confidence intervals at this level."),
    ] = None,
    state: Annotated[str | None, typer.Option(help="CSV: the column that holds the state.")] = None,
    entity: Annotated[
        str | None, typer.Option(help="CSV: the column that says whose sequence a row is of.")
    ] = None,
    order: Annotated[
        str | None,
        typer.Option(
            help="CSV: a column of numbers that orders each sequence; by default the file order."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="CSV: where to write the prior, as JSON.")
    ] = None,
    folder: InProject = None,
    backend: Backend = None,
    as_json: AsJson = False,
) -> None:
    """Fit a Markov chain to the sequences of a dataset, in its database, or of a CSV file.

    The prior of a dataset is written beside the project file and added to it. A fitted prior is
    part of the published policy, and no loss is accounted for what it reveals about the rows it was
    fitted on: fit on other rows (earlier days, other people) than those to be released from.
    Releases from rows that it was fitted on are refused, except after --all-rows or with
    release_fitted_rows = true in the policy; then they come with a warning.

    Keys of the JSON object: out, and those of `prior show`; for a dataset also dataset, project,
    steps, fitted, released_from, share, statement.
    """
    csv_only = {"--state": state, "--entity": entity, "--order": order, "--out": out}
    dataset_only = {
        "--first-days": first_days, "--share": share, "--all-rows": all_rows or None,
        "--replace": replace or None, "--add": add or None, "--project": folder,
        "--backend": backend,
    }  # fmt: skip
    if any(value is not None for value in csv_only.values()):
        _refuse_given(dataset_only, "a CSV file")
        if state is None or entity is None or out is None:
            raise InvalidOption(
                "--state", given="or --entity or --out is missing", needed="come with a CSV file"
            )
        _fit_csv(Path(data), out, (state, entity, order), (other, tau, length, confidence), as_json)
        return
    if (first_days is not None) + (share is not None) + all_rows != 1:
        raise InvalidOption(
            "--first-days",
            given="or --share or --all-rows is missing, or more than one is given",
            needed="name the rows to fit on; for a CSV file give --state, --entity and --out",
        )
    from takifugu.engines import FitOptions
    from takifugu.project.policy import share_of

    options = FitOptions(
        first_days=first_days,
        share=None if share is None else share_of(share, "--share"),
        other=other,
        tau=tau,
        length=length,
        confidence=confidence,
    )
    project = the_project(folder)
    with Spinner(f"counting the steps of {data}"):
        project, file, fitted, found = project.fit(
            data, options, replace=replace, keep=add, backend=backend
        )
    entered = project.dataset(data).priors[-1]
    steps, start = found.estimate.counted, entered.released_from
    if as_json:
        facts: dict[str, Any] = {"dataset": data, "project": str(project.file), "steps": steps}
        facts |= {"fitted": entered.fitted, "share": entered.share and str(entered.share)}
        facts["released_from"] = start if start is None or isinstance(start, int) else str(start)
        facts["statement"] = found.statement
        print_json({"out": str(file)} | _facts(fitted) | facts)
        return
    echo(f"{file.name}: {len(fitted.states)} states from {steps:,} steps")
    echo(f"added to {project.file}")
    echo(found.statement)
    if found.remaining is not None:
        echo(f"{found.remaining:,} rows remain to be released from")
    if project.needs_acceptance(data):
        echo(f"next: takifugu prior accept {data}; nothing is released until then")


def _refuse_given(options: dict[str, Any], whom: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise InvalidOption(name, given="is given", needed=f"be left out for {whom}")


def _fit_csv(
    data: Path,
    out: Path,
    columns: tuple[str, str, str | None],
    settings: tuple[str | None, float | None, int | None, float | None],
    as_json: bool,
) -> None:
    from takifugu.priors import FittedRows, Transitions, write_prior

    other, tau, length, confidence = settings
    _, entity, order = columns
    rows = FittedRows(f"csv {data.name}", entity, order or "")  # all of them
    counts = Transitions.of(_sequences(data, *columns)).also_fitted_on(rows)
    if confidence is not None:
        if other is not None or tau is not None:
            raise InvalidOption(
                "--confidence", given="comes with --other or --tau", needed="be given alone"
            )
        fitted: SequencePrior = counts.intervals(confidence=confidence, length=length)
    else:
        unseen = "uniform" if other is not None or tau is not None else "refuse"
        fitted = counts.chain(unseen=unseen, other=other, tau=tau or None, length=length)  # type: ignore[arg-type]
    with _recorded(out):
        write_prior(fitted, out)
    steps = int(counts.counts.sum())
    _print_written(fitted, out, as_json, f": {len(fitted.states)} states from {steps:,} steps")


@app.command()
def smooth(
    prior: Annotated[Path, typer.Argument(help="A Markov chain, as JSON.")],
    out: Out,
    tau: Annotated[float, typer.Option(help="The probability that a zero becomes.")] = 1e-5,
    other: Annotated[str | None, typer.Option(help="First add a state of this name.")] = None,
    as_json: AsJson = False,
) -> None:
    """Smooth the zeros of a chain as the paper does: τ each, taken from the rest in proportion.

    Keys of the JSON object: out, and those of `prior show`.
    """
    from takifugu.priors import MarkovChain, read_prior, smoothed, with_other, write_prior

    chain = read_prior(prior)
    if not isinstance(chain, MarkovChain):
        raise InvalidOption("PRIOR", given=f"is a {chain.kind}", needed="be a markov-chain")
    grown = chain if other is None else with_other(chain, name=other)
    smooth_chain = smoothed(grown, tau=tau)
    with _recorded(out):
        write_prior(smooth_chain, out)
    _print_written(smooth_chain, out, as_json)


@app.command()
def accept(
    name: DatasetName,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Accept without confirmation.")] = False,
    folder: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Accept, as the owner, the prior and secrets that NAME has now.

    A budget is kept under one prior. After a change of the priors, the secrets, the uncertainty or
    the rows that are released from, nothing is released until this command is run. It shows what
    is spent under both, asks for confirmation (without a terminal --yes is needed), and is an event
    of the ledger. What was spent stays spent, and is translated under the new prior from then on.

    Keys of the JSON object: dataset, accepted (false if there was nothing to accept), prior and
    secrets (fingerprints), uncertainty, budget and delta (exact; null if there is none),
    spent_before (null if the old prior is no longer known) and spent_after (decimals, rounded
    up), analysts (budget and spent_after of each who has one), event (its number, or null), actor.
    """
    from takifugu.cli.shared_options import show_warnings

    project = the_project(folder)
    with show_warnings(), Spinner("translating"):
        change = project.change(name)
    facts = _change_facts(name, project.dataset(name).uncertainty, change)
    if not change.needed:
        if as_json:
            print_json(facts)
        else:
            echo(f"{name}: its prior and secrets are in force; there is nothing to accept")
        return
    lines = list(_change_lines(name, change, facts))
    seen = "; ".join(map(str.strip, lines))
    if not yes:
        if not sys.stdin.isatty():
            raise InvalidOption(
                "--yes",
                given="is missing, and there is no terminal",
                needed=f"be given by an owner who has seen this: {seen}",
            )
        echo("\n".join(lines), err=True)
        typer.confirm(f"Accept this for {name}?", abort=True, err=True)
    event = project.accept_prior(name, change)
    facts |= {"accepted": True, "event": event.seq, "actor": event.body["actor"]}
    if as_json:
        print_json(facts)
    else:
        echo("\n".join(lines))
        echo(f"accepted by {facts['actor']}: event {event.seq} of the ledger")


def _change_facts(name: str, uncertainty: float, change: "PolicyChange") -> dict[str, Any]:
    from takifugu.ledger.events.accepted_terms import decimal_up

    seen = change.seen
    return {
        "dataset": name,
        "accepted": False,
        "prior": change.terms.prior,
        "secrets": change.terms.secrets,
        "uncertainty": uncertainty,
        "budget": None if seen.epsilon is None else str(seen.epsilon),
        "delta": str(seen.delta),
        "spent_before": decimal_up(seen.before),
        "spent_after": decimal_up(seen.after),
        "analysts": {
            who: {"budget": str(budget), "spent_after": decimal_up(spent)}
            for who, (budget, spent) in change.analysts.items()
        },
        "event": None,
        "actor": None,
    }


def _change_lines(name: str, change: "PolicyChange", facts: dict[str, Any]) -> Iterator[str]:
    """What an owner must see: what is spent under both, and the budget."""
    from takifugu.cli.commands.ledger_text import four_up

    seen, old = change.seen, change.seen.old
    parts = ["prior", "secrets"]
    if old is not None:
        parts = [part for part in parts if getattr(old, part) != getattr(change.terms, part)]
    yield f"{name}: new {' and '.join(parts) or 'rows that are released from'}"
    before = facts["spent_before"]
    unknown = "unknown: the prior in force is no longer there"
    yield f"  spent under the old: {unknown if before is None else four_up(before)}"
    yield f"  spent under the new: {four_up(facts['spent_after'])}"
    budget = "none" if seen.epsilon is None else four_digits(seen.epsilon)
    yield f"  budget: {budget}"
    if not seen.within:
        yield "  That is more than the budget: nothing is released until it is raised."
    for who, facts_of in facts["analysts"].items():
        spent, own = four_up(facts_of["spent_after"]), four_digits(change.analysts[who][0])
        yield f"  analyst {who}: {spent} spent under the new, of a budget of {own}"


@contextmanager
def _recorded(out: Path) -> Iterator[None]:
    """Record it in the ledger if ``out`` is a prior of a dataset of the project around it."""
    from takifugu.project.project import open_project

    found = nearest_project(out.parent)
    project = None
    if found is not None:
        with suppress(Malformed):  # a project that cannot be read releases nothing
            project = open_project(found)
    with nullcontext() if project is None else project.recording_prior(out):
        yield


def _print_written(prior: "Prior", out: Path, as_json: bool, details: str = "") -> None:
    if as_json:
        print_json({"out": str(out)} | _facts(prior))
    else:
        echo(f"wrote {out}{details}", err=True)


def _facts(prior: "Prior") -> dict[str, Any]:
    return {"kind": prior.kind, "fingerprint": prior.fingerprint} | prior.facts()


def _numbers(text: str, what: str) -> list[float]:
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise InvalidOption(
            what, given=f"has {text!r}", needed="hold numbers separated by commas"
        ) from None


def _sequences(data: Path, state: str, entity: str, order: str | None) -> list[list[str]]:
    """The state column cut into one sequence for each entity, in order."""
    found: dict[str, list[tuple[float, int, str]]] = {}
    for number, row in enumerate(_rows(data, [c for c in (state, entity, order) if c is not None])):
        try:
            place = float(row[order]) if order is not None else 0.0
        except ValueError:
            raise InvalidFile(
                str(data), given=f"row {number + 1} has no number in {order!r}", needed="have one"
            ) from None
        found.setdefault(row[entity], []).append((place, number, row[state]))
    return [[value for _, _, value in sorted(rows)] for rows in found.values()]


def _rows(data: Path, columns: list[str]) -> Iterator[dict[str, str]]:
    try:
        refuse_special(data)
        zipped = data.suffix == ".gz"
        with (
            gzip.open(data, "rt", encoding="utf-8", newline="")
            if zipped
            else data.open(encoding="utf-8", newline="") as lines
        ):
            reader = csv.DictReader(lines)
            missing = [c for c in columns if c not in (reader.fieldnames or ())]
            if missing:
                raise InvalidFile(
                    str(data),
                    given=f"has no column {missing[0]!r}",
                    needed=f"have the columns {', '.join(columns)}",
                )
            for row in reader:
                if any(row[c] is None for c in columns):
                    raise InvalidFile(
                        str(data), given="has a row that is too short", needed="be complete"
                    )
                yield row
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidFile(
            str(data), given="cannot be read", needed="be a CSV file in UTF-8, plain or gzipped"
        ) from error
