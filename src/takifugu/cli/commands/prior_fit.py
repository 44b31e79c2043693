"""``takifugu prior fit``: fit a prior of any kind to a dataset, or a chain to a CSV file."""

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu.cli.commands.prior_output import prior_facts
from takifugu.cli.shared_options import (
    AsJson,
    Backend,
    InProject,
    InvalidOption,
    Spinner,
    echo,
    listed,
    print_json,
    the_project,
)
from takifugu.cli.shell_completion import complete_dataset

if TYPE_CHECKING:
    from takifugu.advice.prior_advice import PriorAdvice
    from takifugu.fitting import Fitted
    from takifugu.fitting.goodness import GoodnessOfFit
    from takifugu.priors import Prior
    from takifugu.project import Project

KINDS = "markov, interval, higher-order, household, network or gaussian"


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
    kind: Annotated[
        str | None,
        typer.Option(help=f"What to fit: {KINDS}; by default a Markov chain."),
    ] = None,
    first_days: Annotated[
        int | None,
        typer.Option(help="Fit on the first N days; release from later ones only."),
    ] = None,
    first_steps: Annotated[
        int | None,
        typer.Option(
            help="The same where the order is a number: fit on the rows within N of the smallest."
        ),
    ] = None,
    share: Annotated[
        str | None,
        typer.Option(help="Fit on a share of the entities, as 1/5; release from the others only."),
    ] = None,
    all_rows: Annotated[
        bool, typer.Option("--all-rows", help="Fit on all rows, including those to be protected.")
    ] = False,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="Replace the priors that the dataset has; `start` and `known` are kept, and files"
            " of fitted ones are removed unless there was a budget under them.",
        ),
    ] = False,
    add: Annotated[
        bool, typer.Option("--add", help="Add to the priors that the dataset has.")
    ] = False,
    publish_rows: Annotated[
        str | None,
        typer.Option(
            help="Where releases were made from the rows that are fitted on: confirm by name, as"
            " 'before 30', that these are given up. It is an event of the ledger."
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            help="The columns that the prior is about, as 'place,health': several are the joint"
            " states of a Markov chain, or the nodes of a network, for which all protected columns"
            " of labels are the default."
        ),
    ] = None,
    at_least: Annotated[
        int | None,
        typer.Option(
            help='Where the labels are found on the fitted rows (values = "from the fitted rows"):'
            " keep those of at least N entities; fewer count as other. The list is published. By"
            " default what the prior that is replaced needed, else 1."
        ),
    ] = None,
    other: Annotated[
        str | None, typer.Option(help="markov: the state for values that do not occur.")
    ] = None,
    tau: Annotated[
        float | None,
        typer.Option(
            help="Chains: smooth zeros to this probability; 0 leaves them. For a dataset the"
            " default is 1e-5, as in the paper."
        ),
    ] = None,
    length: Annotated[
        int | None, typer.Option(help="The number of entries; by default unbounded.")
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(
            help="interval: all chains within the confidence intervals at this level; by default"
            " 0.95."
        ),
    ] = None,
    cuts: Annotated[
        str | None,
        typer.Option(
            help="Chains over ranges of a column of numbers: where they begin, and the upper"
            " bound, as '0,0.5,1,2'."
        ),
    ] = None,
    by_hour: Annotated[
        bool,
        typer.Option(
            "--by-hour",
            help="markov: a matrix for each hour of the day, where rows are one an hour.",
        ),
    ] = False,
    structure: Annotated[
        Path | None,
        typer.Option(
            help="network: a file of edges, one 'parent -> child' on each line, or a BIF file,"
            " whose tables are left out; by default a Chow-Liu tree."
        ),
    ] = None,
    smoothing: Annotated[
        float | None, typer.Option(help="network: what is added to every count; by default 1.")
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option(
            help="gaussian: ar1, matern-1/2, matern-3/2, matern-5/2 or squared-exponential; by"
            " default the one that fits best."
        ),
    ] = None,
    lags: Annotated[
        int | None, typer.Option(help="gaussian: how many lags it is fitted to.")
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(help="gaussian: raise the correlation by so many standard errors."),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(help="gaussian: a public column, each of whose keys has a mean of its own."),
    ] = None,
    own_levels: Annotated[
        bool, typer.Option("--own-levels", help="gaussian: each entity has a mean of its own.")
    ] = False,
    household: Annotated[
        str | None, typer.Option(help="household: the public column that groups entities.")
    ] = None,
    member: Annotated[
        str | None,
        typer.Option(help="household: the public column that says who is which member."),
    ] = None,
    goodness: Annotated[
        bool,
        typer.Option(
            "--goodness/--no-goodness",
            help="Test whether a prior of this kind describes the rows that it was fitted on.",
        ),
    ] = True,
    advice: Annotated[
        bool,
        typer.Option(
            "--advice/--no-advice",
            help="Compute what the budget (or ε = 1) allows under the prior, and what would allow"
            " more: some seconds for many states.",
        ),
    ] = True,
    plot: Annotated[
        Path | None,
        typer.Option(help="Write these tests as a figure (.pdf, .png or .svg)."),
    ] = None,
    state: Annotated[str | None, typer.Option(help="CSV: the column that holds the state.")] = None,
    entity: Annotated[
        str | None, typer.Option(help="CSV: the column that says whose sequence a row is of.")
    ] = None,
    order: Annotated[
        str | None,
        typer.Option(
            help="higher-order: how many entries before it an entry depends on, by default 2. CSV:"
            " a column of numbers that orders each sequence; by default the file order."
        ),
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

    Keys of the JSON object: out, and those of `prior show`; for a dataset also dataset, project,
    steps (how many things it rests on), unit (what they are), fitted, released_from, share,
    statement, notes, rests_on (facts of the kind), and goodness (fits, and tests with about,
    verdict, sentence and numbers; null with --no-goodness), remaining (rows to release from), and
    advice (null with --no-advice, or if it cannot be computed: epsilon, allowed per entry at it,
    pair: the secret pair that costs most, hardly_left: states and the probability of leaving them,
    remedies: kind, change, states, length, allowed and factor of each, tried and untried: how many
    changes were computed and were not, rests_on: counted, unit, people, rows,
    hardly_seen, never_left, and few_people: states that fewer than five people left; words).
    """
    csv_only = {"--state": state, "--entity": entity, "--out": out}
    if any(value is not None for value in csv_only.values()):
        dataset_only = {
            "--kind": kind, "--first-days": first_days, "--first-steps": first_steps,
            "--share": share, "--publish-rows": publish_rows,
            "--all-rows": all_rows or None, "--replace": replace or None, "--add": add or None,
            "--columns": columns, "--cuts": cuts, "--by-hour": by_hour or None,
            "--structure": structure, "--smoothing": smoothing, "--kernel": kernel, "--lags": lags,
            "--margin": margin, "--profile": profile, "--own-levels": own_levels or None,
            "--household": household, "--member": member, "--at-least": at_least,
            "--project": folder, "--backend": backend, "--plot": plot,
            "--no-goodness": None if goodness else True,
            "--no-advice": None if advice else True,
        }  # fmt: skip
        _refuse_given(dataset_only, "a CSV file")
        if state is None or entity is None or out is None:
            raise InvalidOption(
                "--state", given="or --entity or --out is missing", needed="come with a CSV file"
            )
        from takifugu.cli.commands.prior_csv import fit_csv

        fit_csv(Path(data), out, (state, entity, order), (other, tau, length, confidence), as_json)
        return
    splits = (first_days, first_steps, share, all_rows or None)
    if sum(given is not None for given in splits) != 1:
        raise InvalidOption(
            "--first-days",
            given="or --first-steps, --share or --all-rows is missing, or more than one is given",
            needed="name the rows to fit on; for a CSV file give --state, --entity and --out",
        )
    if plot is not None:
        from takifugu.reports import check_target

        if not goodness:
            raise InvalidOption("--plot", given="comes with --no-goodness", needed="come without")
        check_target(plot)
    from takifugu.fitting import FitOptions
    from takifugu.priors.network_structure import read_structure
    from takifugu.project.policy import share_of
    from takifugu.project.policy_facts import fit_facts

    options = FitOptions(
        first_days=first_steps if first_days is None else first_days,
        share=None if share is None else share_of(share, "--share"),
        kind=kind,
        columns=() if columns is None else _names(columns),
        other=other,
        tau=tau,
        length=length,
        confidence=confidence,
        order=None if order is None else _whole(order),
        cuts=None if cuts is None else _cuts(cuts),
        by_hour=by_hour,
        structure=None if structure is None else read_structure(structure),
        smoothing=smoothing,
        kernel=kernel,
        lags=lags,
        margin=margin,
        profile=profile,
        own_levels=own_levels,
        household=household,
        member=member,
        at_least=at_least,
    )
    project = the_project(folder)
    _refuse_other_order(project, data, first_days, first_steps)
    before = max((prior.at_least or 0 for prior in project.dataset(data).priors), default=0)
    with Spinner(f"counting the rows of {data}"):
        project, file, fitted, found = project.fit(
            data,
            options,
            replace=replace,
            keep=add,
            backend=backend,
            tested=goodness,
            publish_rows=publish_rows,
        )
    if plot is not None and found.goodness is not None:
        _draw(plot, f"{file.name}: {_size(fitted)}", found.goodness)
    suits = _advice(project, data, found) if advice else None
    if as_json:
        facts = fit_facts(project, data, found) | {
            "advice": None if suits is None else suits.document()
        }
        print_json({"out": str(file)} | prior_facts(fitted) | facts)
        return
    estimate = found.estimate
    echo(f"{file.name}: {_size(fitted)} from {estimate.counted:,} {estimate.unit}")
    echo(f"added to {project.file}; {found.rows.short}")
    kept = project.dataset(data).priors[-1]
    for key, value in (("start", kept.start), ("known", kept.known)):
        if value is not None:
            echo(f'it keeps {key} = "{value}" of the prior that it replaces')
    if found.labels and kept.at_least is not None and before:
        many = "entity" if kept.at_least == 1 else "entities"
        if at_least is None:
            echo(f"it keeps at_least = {before} of the prior that it replaces")
        elif at_least < before:
            echo(
                f"labels of at least {at_least} {many} are published now; the prior that it"
                f" replaces needed {before}"
            )
    if found.remaining is not None:
        echo(f"{found.remaining:,} rows remain to be released from")
    for said in _suits(found, suits):
        echo(said)
    for note in estimate.notes:
        if not estimate.rare or not note.startswith("hardly seen"):
            echo(f"note: {note}")
    for test in () if found.goodness is None else found.goodness.tests:
        echo(f"{test.verdict}: {test.sentence}")
    if project.needs_acceptance(data):
        echo(f"next: takifugu prior accept {data}; nothing is released until then")
    elif project.budget(data) is None:
        echo(f"next: takifugu budget set {data} 1")


def _suits(found: "Fitted", advice: "PriorAdvice | None") -> list[str]:
    """What the prior rests on and whether it suits: a line, or two where it is not a chain."""
    from dataclasses import replace

    if found.estimate.unit == "steps":
        return [found.evidence.words if advice is None else advice.words]
    price = "" if advice is None else replace(advice, evidence=None).words
    return [line for line in (" ".join(found.estimate.rests), price) if line]


def _refuse_other_order(
    project: "Project", data: str, first_days: int | None, first_steps: int | None
) -> None:
    """Raise if days are counted where the order is a number, or steps where it is a time."""
    if first_days is None and first_steps is None:
        return
    order = project.load(data).declaration.order
    if order.absent:
        return  # refused by the fit, which says that there is no order
    if first_days is not None and order.kind == "number":
        raise InvalidOption(
            "--first-days",
            given=f"is given, and the order, `{order.column}`, is a number",
            needed=f"be --first-steps {first_days}: the rows within {first_days} of its smallest"
            " number",
            reason="order-is-a-number",
        )
    if first_steps is not None and order.kind != "number":
        raise InvalidOption(
            "--first-steps",
            given=f"is given, and the order, `{order.column}`, is a time",
            needed="be --first-days N, for days",
            reason="order-is-a-time",
        )


def _advice(project: "Project", data: str, found: "Fitted") -> "PriorAdvice | None":
    """Whether the prior suits; None, and why, if that cannot be computed: the fit stands."""
    from takifugu.errors import TakifuguError

    try:
        with Spinner("what the prior allows") as spinner:
            return project.advice(data, found, progress=spinner)
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
    from takifugu.priors.factors import NetworkPrior

    if isinstance(prior, SequencePrior):
        return f"{len(prior.states)} states"
    if isinstance(prior, NetworkPrior):
        return f"a network of {prior.size} columns"
    return f"a {prior.kind}"


def _refuse_given(options: dict[str, Any], whom: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise InvalidOption(name, given="is given", needed=f"be left out for {whom}")


def _names(text: str) -> tuple[str, ...]:
    return tuple(map(str, listed(text, "--columns")))


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 4):
        raise InvalidOption(
            "--order",
            given=f"has {text!r:.80}",
            needed="be a whole number, the order of a chain of --kind higher-order; for a CSV file"
            " give --state, --entity and --out",
        )
    return int(text)


def _cuts(text: str) -> tuple[Fraction, ...]:
    from takifugu.errors import InvalidPrior
    from takifugu.priors.ranges import exact_cuts

    try:
        return exact_cuts([word.strip() for word in text.split(",")])
    except InvalidPrior as error:
        raise InvalidOption("--cuts", given=error.given, needed=error.needed) from None
