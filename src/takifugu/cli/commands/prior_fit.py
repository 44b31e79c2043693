"""``takifugu prior fit``: fit a prior of any kind to a dataset, or a chain to a CSV file."""

import csv
import gzip
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu._core.atomic import refuse_special
from takifugu.cli.declared_flags import Flag, flag, spelled, with_flags
from takifugu.cli.shared_options import (
    AsJson,
    Backend,
    InProject,
    InvalidOption,
    Spinner,
    echo,
    listed,
    print_json,
    prior_facts,
    refuse_given,
    the_project,
    write_and_show,
)
from takifugu.cli.shell_completion import complete_dataset
from takifugu.errors import InvalidFile
from takifugu.fitting.fit_options import FIT_OPTIONS, FitRequest, refuse_other_unit

if TYPE_CHECKING:
    from takifugu.advice.prior_advice import PriorAdvice
    from takifugu.fitting import Fitted
    from takifugu.fitting.goodness import GoodnessOfFit
    from takifugu.priors import Prior, SequencePrior
    from takifugu.project import Project

FLAG_TYPES: dict[str, Any] = {"whole": int, "number": float, "parents": Path}
CSV_NEEDED = "for a CSV file give --state, --entity and --out"
OF_CSV_FILES = ("other", "tau", "length", "confidence", "order")
HELP = {
    "structure": "network: a file of edges, one 'parent -> child' on each line, or a BIF file,"
    " whose tables are left out; by default a Chow-Liu tree.",
    "order": f"{FIT_OPTIONS['order'].metadata['help']} CSV: a column of numbers that orders each"
    " sequence; by default the file order.",
}


def _flag(name: str) -> Flag:
    """The flag of a declared option of a fit."""
    declared = FIT_OPTIONS[name]
    words = HELP.get(name, declared.metadata["help"])
    form, default = declared.metadata["form"], declared.default
    if form == "flag":
        no = f"/{spelled(name, False)}" if default else ""
        return flag(words, bool, default, name=f"{spelled(name)}{no}")
    return flag(words, str | None if name == "order" else FLAG_TYPES.get(form, str) | None)


@with_flags({name: _flag(name) for name in FIT_OPTIONS}, before="plot")
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
    *,
    flags: dict[str, Any],
    plot: Annotated[
        Path | None,
        typer.Option(help="Write these tests as a figure (.pdf, .png or .svg)."),
    ] = None,
    state: Annotated[str | None, typer.Option(help="CSV: the column that holds the state.")] = None,
    entity: Annotated[
        str | None, typer.Option(help="CSV: the column that says whose sequence a row is of.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="CSV: where to write the prior, as JSON.")
    ] = None,
    folder: InProject = None,
    backend: Backend = None,
    as_json: AsJson = False,
) -> None:
    """Fit a prior to a dataset, in its database, or a Markov chain to a CSV file.

    The prior of a dataset is written beside the project file and added to it. A fitted prior is
    part of the published policy, and no loss is accounted for what it reveals about the rows it was
    fitted on: fit on other rows (earlier days, other people) than those to be released from.
    Releases from rows that it was fitted on are refused, except after --all-rows or with
    release_fitted_rows = true in the policy; then they come with a warning.

    Kinds: markov, a Markov chain, of several columns on their joint states, over the ranges of a
    number, or with a matrix for each hour of the day; interval, all chains that the counts do not
    rule out; higher-order, in which an entry depends on several before it; household, a chain on
    the joint states of the people that a public column groups; network, a Bayesian network over the
    columns of a row; gaussian, a Gaussian process over the rows of a column of numbers, by its
    moments.

    A prior that does not fit is a guarantee about another world. So it is tested: chains for their
    order (likelihood ratio) and for transitions that change over the days, networks for pairs of
    columns that they leave out, Gaussian processes for residuals, normality and dependence that
    changes. What is found is said, and refuses nothing.

    JSON: out, and those of `prior show`; for a dataset also dataset, project, steps (how many
    things it rests on), unit (what they are), fitted, released_from, share, statement, notes,
    rests_on (facts of the kind), and goodness (fits, and tests with about, verdict, sentence and
    numbers; null with --no-goodness), remaining (rows to release from), and advice (null with
    --no-advice, or if it cannot be computed: epsilon, allowed per entry at it, pair: the secret
    pair that costs most, hardly_left: states and the probability of leaving them, remedies: kind,
    change, states, length, allowed and factor of each, tried and untried: how many changes were
    computed and were not, rests_on: counted, unit, people, rows, hardly_seen, never_left, and
    few_people: states that fewer than five people left; words).
    """
    if (state, entity, out) != (None, None, None):
        own: dict[str, Any] = {"--project": folder, "--backend": backend, "--plot": plot}
        own |= {spelled(k, v): True for k, v in flags.items() if k not in OF_CSV_FILES}
        refuse_given(own, needed="be left out for a CSV file")
        if state is None or entity is None or out is None:
            raise InvalidOption(
                "--state", given="or --entity or --out is missing", needed="come with a CSV file"
            )
        other, tau, length, confidence, order = map(flags.get, OF_CSV_FILES)
        columns, settings = (state, entity, order), (other, tau, length, confidence)
        fit_csv(Path(data), out, columns, settings, as_json)
        return
    document = _document(flags)
    try:
        request = FitRequest.from_document(document, named=spelled, error=InvalidOption)
    except InvalidOption as error:
        if error.reason == "split":
            error.add_note(CSV_NEEDED)
        raise
    if plot is not None:
        from takifugu.reports import check_target

        if not request.goodness:
            raise InvalidOption("--plot", given="comes with --no-goodness", needed="come without")
        check_target(plot)
    project = the_project(folder)
    if not (rows_order := project.load(data).declaration.order).absent:
        where = (rows_order.column, rows_order.kind)
        refuse_other_unit(document, where, named=spelled, error=InvalidOption)
    before = max((prior.at_least or 0 for prior in project.dataset(data).priors), default=0)
    with Spinner(f"counting the rows of {data}"):
        project, file, prior, fitted = project.fit(
            data,
            request.fit,
            replace=request.replace,
            keep=request.add,
            backend=backend,
            tested=request.goodness,
            publish_rows=request.publish_rows,
        )
    if plot is not None and fitted.goodness is not None:
        _draw(plot, f"{file.name}: {_size(prior)}", fitted.goodness)
    suits = _advice(project, data, fitted) if request.advice else None
    if as_json:
        from takifugu.project.owner_changes import fit_facts

        facts = {"out": str(file)} | prior_facts(prior) | fit_facts(project, data, fitted)
        print_json(facts | {"advice": None if suits is None else suits.document()})
        return
    estimate = fitted.estimate
    echo(f"{file.name}: {_size(prior)} from {estimate.counted:,} {estimate.unit}")
    echo(f"added to {project.file}; {fitted.rows.short}")
    entered = project.dataset(data).priors[-1]
    for key, value in (("start", entered.start), ("known", entered.known)):
        if value is not None:
            echo(f'it keeps {key} = "{value}" of the prior that it replaces')
    if fitted.labels and entered.at_least is not None and before:
        at_least = request.fit.at_least
        if at_least is None:
            echo(f"it keeps at_least = {before} of the prior that it replaces")
        elif at_least < before:
            many = "entity" if entered.at_least == 1 else "entities"
            echo(
                f"labels of at least {at_least} {many} are published now; the prior that it"
                f" replaces needed {before}"
            )
    if fitted.remaining is not None:
        echo(f"{fitted.remaining:,} rows remain to be released from")
    for line in _suits(fitted, suits):
        echo(line)
    for note in estimate.notes:
        if note != estimate.rare_note:  # the lines above say it
            echo(f"note: {note}")
    for test in () if fitted.goodness is None else fitted.goodness.tests:
        echo(f"{test.verdict}: {test.sentence}")
    if project.needs_acceptance(data):
        echo(f"next: takifugu prior accept {data}; nothing is released until then")
    elif project.budget(data) is None:
        echo(f"next: takifugu budget set {data} 1")


def _suits(fitted: "Fitted", advice: "PriorAdvice | None") -> list[str]:
    """What the prior rests on and whether it suits: a line, or two where it is not a chain."""
    from dataclasses import replace

    if fitted.estimate.unit == "steps":
        return [fitted.evidence.words if advice is None else advice.words]
    price = "" if advice is None else replace(advice, evidence=None).words
    return [line for line in (" ".join(fitted.estimate.rests), price) if line]


def _advice(project: "Project", data: str, fitted: "Fitted") -> "PriorAdvice | None":
    """Whether the prior suits; None, and why, if that cannot be computed: the fit stands."""
    from takifugu.errors import TakifuguError

    try:
        with Spinner("what the prior allows") as spinner:
            return project.advice(data, fitted, progress=spinner)
    except TakifuguError as error:
        echo(f"takifugu: whether this prior suits was not computed: {error}", err=True)
        return None


def _draw(path: Path, title: str, goodness: "GoodnessOfFit") -> None:
    from takifugu.reports import save
    from takifugu.reports.goodness_figure import goodness_figure

    save(goodness_figure(goodness.document(), title=title), path)
    echo(f"figure written to {path}", err=True)


def _size(prior: "Prior") -> str:
    """How large a prior is, in words."""
    from takifugu.priors import SequencePrior
    from takifugu.priors.networks import NetworkPrior

    if isinstance(prior, SequencePrior):
        return f"{len(prior.states)} states"
    if isinstance(prior, NetworkPrior):
        return f"a network of {prior.size} columns"
    return f"a {prior.kind}"


def _document(flags: dict[str, Any]) -> dict[str, Any]:
    """The options of a fit as `FitRequest` reads them, from the texts of the command line."""
    from takifugu.priors.network_structure import read_structure

    readers: dict[str, Callable[[Any], Any]] = {
        "names": lambda text: [str(name) for name in listed(text, "--columns")],
        "cuts": lambda text: [word.strip() for word in text.split(",")],
        "parents": read_structure,
    }
    document = {
        name: readers.get(FIT_OPTIONS[name].metadata["form"], _as_given)(value)
        for name, value in flags.items()
    }
    return document | ({"order": _order(flags["order"])} if "order" in flags else {})


def _as_given(value: Any) -> Any:
    return value


def _order(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 4):
        raise InvalidOption(
            "--order",
            given=f"has {text!r:.80}",
            needed=f"be a whole number, the order of a chain of --kind higher-order; {CSV_NEEDED}",
        )
    return int(text)


# --- a CSV file that belongs to no project ---


def fit_csv(
    data: Path,
    out: Path,
    columns: tuple[str, str, str | None],
    settings: tuple[str | None, float | None, int | None, float | None],
    as_json: bool,
) -> None:
    """Fit a chain to the sequences of a file and write it."""
    from takifugu.priors import FittedRows, Transitions

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
    steps = int(counts.counts.sum())
    details = f": {len(fitted.states)} states from {steps:,} steps"
    write_and_show(fitted, out, as_json, details)


def _sequences(data: Path, state: str, entity: str, order: str | None) -> list[list[str]]:
    """The state column cut into one sequence for each entity, in order."""
    by_entity: dict[str, list[tuple[float, int, str]]] = {}
    for number, row in enumerate(_rows(data, [c for c in (state, entity, order) if c is not None])):
        try:
            place = float(row[order]) if order is not None else 0.0
        except ValueError:
            raise InvalidFile(
                str(data), given=f"row {number + 1} has no number in {order!r}", needed="have one"
            ) from None
        by_entity.setdefault(row[entity], []).append((place, number, row[state]))
    return [[value for _, _, value in sorted(rows)] for rows in by_entity.values()]


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
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise InvalidFile(
            str(data), given="cannot be read", needed="be a CSV file in UTF-8, plain or gzipped"
        ) from error
