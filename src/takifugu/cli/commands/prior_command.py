"""``takifugu prior``: make, fit, smooth, show and accept priors."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu.cli.commands.prior_contagion import contacts, household
from takifugu.cli.commands.prior_fit import fit
from takifugu.cli.shared_options import (
    AsJson,
    Backend,
    DatasetName,
    InProject,
    InvalidOption,
    Spinner,
    StrictTyper,
    aligned,
    confirm,
    echo,
    listed,
    print_json,
    prior_facts,
    refuse_outside,
    show_result,
    show_warnings,
    the_project,
    without_project,
    write_and_show,
)
from takifugu.cli.shell_completion import complete_dataset
from takifugu.visible import four_digits, visible

if TYPE_CHECKING:
    from takifugu.priors import Prior
    from takifugu.project.budgets import PriorComparison

app = StrictTyper(no_args_is_help=True, help="Make, fit, smooth, show and accept priors.")


MAX_TABLE_STATES = 10  # of a matrix that is shown whole
MAX_LISTED = 10  # moves, states, edges or values

Out = Annotated[Path, typer.Option("--out", "-o", help="Where to write the prior, as JSON.")]

Length = Annotated[int | None, typer.Option(help="The number of entries; by default unbounded.")]


@app.command()
def compare(
    name: DatasetName,
    priors: Annotated[
        list[Path], typer.Argument(metavar="PRIOR...", help="Other priors, as JSON or BIF.")
    ],
    over: Annotated[
        str | None,
        typer.Option(
            help="What the entries of these priors are; by default, what those of the policy are."
        ),
    ] = None,
    analyst: Annotated[
        str | None, typer.Option(help="Compare what was released to this analyst.")
    ] = None,
    last: Annotated[int, typer.Option(help="The number of latest releases to list.")] = 10,
    folder: InProject = None,
    backend: Backend = None,
    as_json: AsJson = False,
) -> None:
    """Show what an adversary with another prior would learn from the releases made so far.

    What the ledger holds of NAME, by value, window and group, is translated under each PRIOR and
    under the present priors: every release alone, and all together. Nothing is charged, and nothing
    is read but public facts about the rows. A prior that is not about these rows is refused, as one
    of the policy would be.

    JSON: dataset, analyst, delta, budget, count (of all releases), releases (the latest: seq, at,
    analyst, query, window, groups, and losses by prior), totals (by prior; the present ones are
    called "present"), leaks (by prior, what some mechanism with these losses leaks, rounded down;
    null if that is not computed), beyond (the priors under which more than the budget is spent).
    Losses are rounded up; null for an infinite one.
    """
    from takifugu.project.budgets import compare_priors

    refuse_outside("--last", last, 0, 10_000)
    project = the_project(folder)
    with show_warnings(), Spinner("translating"):
        comparison = compare_priors(
            project, name, priors, over=over, analyst=analyst, last=last, backend=backend
        )
    if as_json:
        print_json(comparison.document())
    else:
        _print_comparison(comparison)


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
    """Show a prior: its kind, size, states, fingerprint and numbers; for a dataset, all of them.

    A matrix of up to ten states, or the probabilities of staying and the largest ones of moving;
    the edges of a network; the parameters of a process. The file itself has all numbers.

    JSON: kind, fingerprint, and facts of the kind; for a dataset: dataset, and priors (file,
    statement and those keys of each).
    """
    from takifugu.priors import read_prior

    if "." not in prior and not Path(prior).exists():
        _show_dataset(prior, folder, as_json)
        return
    without_project(folder, "PRIOR")
    model = read_prior(prior)
    facts = prior_facts(model)
    if as_json:
        print_json(facts)
    else:
        _print(facts, model)


def _show_dataset(name: str, folder: Path | None, as_json: bool) -> None:
    from takifugu.priors import read_prior

    project = the_project(folder)
    _ = project.load(name).priors  # an error if one is missing, or not what was fitted
    listed = project.dataset(name).priors
    priors = [read_prior(project.folder / policy.file) for policy in listed]
    documents = [
        {"file": policy.file, "statement": policy.statement} | prior_facts(prior)
        for policy, prior in zip(listed, priors, strict=True)
    ]
    if as_json:
        print_json({"dataset": name, "priors": documents})
        return
    for place, (facts, prior) in enumerate(zip(documents, priors, strict=True)):
        if place:
            echo("")
        _print({key: value for key, value in facts.items() if value is not None}, prior)


def _print(facts: dict[str, Any], prior: "Prior") -> None:
    width = max(map(len, facts))
    for name, value in facts.items():
        echo(f"{name.replace('_', ' '):<{width}}  {value}")
    for line in tables_of(prior):
        echo(line)


@app.command()
def new(
    transition: Annotated[
        str, typer.Argument(help="The matrix, row by row, as '0.9,0.1;0.2,0.8'.")
    ],
    out: Out,
    states: Annotated[
        str | None,
        typer.Option(
            help="Names of the states, as 'home,ward'. Whole numbers, as '1,2', are numbers; a JSON"
            """ list, as '["1", "2"]', says that they are text."""
        ),
    ] = None,
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

    JSON: out, and those of `prior show`.
    """
    from takifugu.priors import from_document
    from takifugu.priors.adversaries import STARTS

    document: dict[str, Any] = {"kind": "markov-chain", "length": length}
    document["transition"] = [_numbers(row, "TRANSITION") for row in transition.split(";")]
    document["start"] = start if start in STARTS else _numbers(start, "--start")
    document["known"] = known
    if states is not None:
        document["states"] = _state_names(states)
    write_and_show(from_document(document), out, as_json)


def _state_names(text: str) -> Sequence[str | int]:
    """Names of states: numbers if all are whole numbers, unless a JSON list says what they are."""
    from takifugu.binding.entries import numbers

    names = listed(text, "--states")
    whole = numbers(tuple(names))
    is_plain = not text.lstrip().startswith("[")
    return whole if is_plain and all(isinstance(name, int) for name in whole) else names


app.command()(household)
app.command()(fit)
app.command()(contacts)


@app.command()
def smooth(
    prior: Annotated[Path, typer.Argument(help="A Markov chain, as JSON.")],
    out: Out,
    tau: Annotated[float, typer.Option(help="The probability that a zero becomes.")] = 1e-5,
    other: Annotated[str | None, typer.Option(help="First add a state of this name.")] = None,
    as_json: AsJson = False,
) -> None:
    """Smooth the zeros of a chain as the paper does: τ each, taken from the rest in proportion.

    JSON: out, and those of `prior show`.
    """
    from takifugu.priors import MarkovChain, read_prior, smoothed, with_other

    chain = read_prior(prior)
    if not isinstance(chain, MarkovChain):
        raise InvalidOption("PRIOR", given=f"is a {chain.kind}", needed="be a markov-chain")
    grown = chain if other is None else with_other(chain, name=other)
    write_and_show(smoothed(grown, tau=tau), out, as_json)


@app.command()
def accept(
    name: DatasetName,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Accept without confirmation.")] = False,
    folder: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Accept, as the owner, the prior and secrets that NAME has now.

    A budget is kept under one prior. After a change of the priors, the secrets, the uncertainty or
    the rows that are released from, nothing is released until this command is run. It shows what is
    spent under both, asks for confirmation (without a terminal --yes is needed), and is an event of
    the ledger. What was spent stays spent, and is translated under the new prior from then on.

    JSON: dataset, accepted (false if there was nothing to accept), prior and secrets
    (fingerprints), uncertainty, budget and delta (exact; null if there is none), spent_before (null
    if the old prior is no longer known) and spent_after (decimals, rounded up), analysts (budget
    and spent_after of each who has one), event (its number, or null), actor.
    """
    from takifugu.cli.shared_options import show_warnings
    from takifugu.project.owner_changes import change_facts, change_lines

    project = the_project(folder)
    with show_warnings(), Spinner("translating"):
        change = project.change(name)
    facts = change_facts(name, project.dataset(name).uncertainty, change)
    if not change.needed:
        words = f"{name}: its prior and secrets are in force; there is nothing to accept"
        show_result(facts, words, as_json=as_json)
        return
    lines = list(change_lines(name, change, facts))
    seen = "; ".join(map(str.strip, lines))
    if sys.stdin.isatty() and not yes:
        echo("\n".join(lines), err=True)
    confirm(f"Accept this for {name}?", yes=yes, seen=seen)
    event = project.accept_prior(name, change)
    facts |= {"accepted": True, "event": event.seq, "actor": event.body["actor"]}
    lines.append(f"accepted by {facts['actor']}: event {event.seq} of the ledger")
    show_result(facts, *lines, as_json=as_json)


def _numbers(text: str, what: str) -> list[float]:
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise InvalidOption(
            what, given=f"has {text!r}", needed="hold numbers separated by commas"
        ) from None


def _print_comparison(comparison: "PriorComparison") -> None:
    from takifugu.ledger.event_documents import query_words

    whose = (
        comparison.dataset
        if comparison.analyst is None
        else f"{comparison.dataset}, {comparison.analyst}"
    )
    at = f", at delta = {four_digits(comparison.delta)}" if comparison.delta else ""
    many = "release" if comparison.count == 1 else "releases"
    echo(f"{whose}: {comparison.count} {many}; Pufferfish epsilon of each alone, and together{at}")
    names = list(comparison.totals)
    rows = [["", *names]]
    for release in comparison.releases:
        losses = (four_digits(loss, "up") for loss in release.losses.values())
        rows.append([f"event {release.seq}, {query_words(release.body)}", *losses])
    totals = (four_digits(total, "up") for total in comparison.totals.values())
    rows.append(["all together", *totals])
    if comparison.count and any(leak is not None for leak in comparison.leaks.values()):
        leaks = ("?" if x is None else four_digits(x, "down") for x in comparison.leaks.values())
        rows.append(["leaked by some mechanism with that loss", *leaks])
    for line in aligned(rows, right=range(1, len(names) + 1)):
        echo(f"  {line}")
    if comparison.count > len(comparison.releases):
        echo(f"  ({comparison.count - len(comparison.releases)} earlier releases are not listed)")
    for beyond in comparison.beyond:
        budget = four_digits(comparison.budget or 0, "down")
        echo(
            f"under {beyond} that is more than the budget of {budget}: the guarantee says nothing"
            " about an adversary who believes it"
        )
    echo("nothing was charged")


# --- the numbers of a prior: all, or the largest ---


def tables_of(prior: "Prior") -> Iterator[str]:
    """Lines with the matrix of a chain, the edges of a network or the means of a process."""
    from takifugu.priors import (
        BayesianNetwork,
        Gaussian,
        IntervalMarkovChain,
        MarkovChain,
        MarkovRandomField,
    )
    from takifugu.priors.prior import state_text

    if isinstance(prior, MarkovChain) and prior.homogeneous:
        yield from _chain([state_text(state) for state in prior.states], prior.kernel())
    elif isinstance(prior, IntervalMarkovChain):
        names = [state_text(state) for state in prior.states]
        if len(names) <= MAX_TABLE_STATES:
            cells = [
                [f"{four_digits(low)}–{four_digits(high)}" for low, high in zip(a, b, strict=True)]
                for a, b in zip(prior.lower.tolist(), prior.upper.tolist(), strict=True)
            ]
            yield "each step, from the row to the column, between"
            yield from _table(names, cells)
    elif isinstance(prior, BayesianNetwork):
        edges = [
            (above, entry)
            for entry, parents in zip(prior.entries, prior.parents, strict=True)
            for above in parents
        ]
        yield from _edges(edges, " -> ", len(prior.entries))
    elif isinstance(prior, MarkovRandomField):
        yield from _edges(prior.edges, " -- ", len(prior.entries))
    elif isinstance(prior, Gaussian):
        yield from _means(prior)


def _chain(names: Sequence[str], kernel: Any) -> Iterator[str]:
    if len(names) <= MAX_TABLE_STATES:
        yield "each step, from the row to the column"
        yield from _table(names, [[four_digits(p) for p in row] for row in kernel.tolist()])
        return
    stays = sorted(((float(kernel[k, k]), name) for k, name in enumerate(names)), reverse=True)
    yield f"stays, the {MAX_LISTED} most likely of {len(names):,}"
    for p, name in stays[:MAX_LISTED]:
        yield f"  {_shown(name)}  {four_digits(p)}"
    moves = sorted(
        (
            (float(kernel[x, y]), before, after)
            for x, before in enumerate(names)
            for y, after in enumerate(names)
            if x != y
        ),
        key=lambda move: (-move[0], move[1], move[2]),
    )
    yield f"moves, the {MAX_LISTED} most likely of {len(moves):,}"
    for p, before, after in moves[:MAX_LISTED]:
        yield f"  {_shown(before)} -> {_shown(after)}  {four_digits(p)}"


def _table(names: Sequence[str], cells: Sequence[Sequence[str]]) -> Iterator[str]:
    shown = [_shown(name) for name in names]
    rows = [["", *shown], *([name, *row] for name, row in zip(shown, cells, strict=True))]
    yield from (f"  {line}" for line in aligned(rows, right=range(1, len(names) + 1)))


def _edges(edges: Sequence[tuple[Any, Any]], arrow: str, nodes: int) -> Iterator[str]:
    few = "" if len(edges) <= MAX_LISTED else f", the first {MAX_LISTED}"
    yield f"{len(edges):,} edges between {nodes:,} entries{few}"
    for one, other in edges[:MAX_LISTED]:
        yield f"  {_shown(str(one))}{arrow}{_shown(str(other))}"


def _means(prior: Any) -> Iterator[str]:
    means = prior.mean
    if getattr(means, "ndim", 0) == 0:
        return
    numbers = [float(value) for value in means]
    low, high = four_digits(min(numbers)), four_digits(max(numbers))
    yield f"means of {len(numbers):,} entries, from {low} to {high}"


def _shown(name: str) -> str:
    text = visible(name)
    return text if len(text) <= 24 else f"{text[:23]}…"
