"""``takifugu prior``: make, fit, smooth and look at priors."""

import csv
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from takifugu.cli.options import InvalidOption
from takifugu.errors import InvalidFile

app = typer.Typer(no_args_is_help=True, help="Make, fit, smooth and look at priors.")

Out = Annotated[Path, typer.Option("--out", "-o", help="Where to write the prior, as JSON.")]


@app.command()
def show(
    prior: Annotated[Path, typer.Argument(help="The prior: a JSON document, or a BIF file.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """Say what PRIOR is: its kind, size, states and fingerprint."""
    from takifugu.priors import read_prior

    facts = _facts(read_prior(prior))
    if as_json:
        typer.echo(json.dumps(facts, ensure_ascii=False, allow_nan=False))
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        typer.echo(f"{name.replace('_', ' '):<{width}}  {value}")


@app.command()
def new(
    transition: Annotated[
        str, typer.Argument(help="The matrix, row by row, as '0.9,0.1;0.2,0.8'.")
    ],
    out: Out,
    states: Annotated[str | None, typer.Option(help="Names of the states, as 'home,ward'.")] = None,
    length: Annotated[int | None, typer.Option(help="How many entries; default: no end.")] = None,
    start: Annotated[
        str, typer.Option(help="'stationary', or the chances of the first entry, as '1,0'.")
    ] = "stationary",
) -> None:
    """Write a Markov chain from its transition matrix."""
    from takifugu.priors import from_document, write_prior

    document: dict[str, Any] = {"kind": "markov-chain", "length": length}
    document["transition"] = [_numbers(row, "TRANSITION") for row in transition.split(";")]
    document["start"] = start if start == "stationary" else _numbers(start, "--start")
    if states is not None:
        document["states"] = [state.strip() for state in states.split(",")]
    write_prior(from_document(document), out)
    typer.echo(f"wrote {out}", err=True)


@app.command()
def fit(
    data: Annotated[Path, typer.Argument(help="A CSV file, plain or .gz, with a header.")],
    out: Out,
    state: Annotated[str, typer.Option(help="The column that holds the state.")],
    entity: Annotated[str, typer.Option(help="The column that says whose sequence a row is of.")],
    order: Annotated[
        str | None,
        typer.Option(help="A column of numbers that orders each sequence; default: the file's."),
    ] = None,
    other: Annotated[
        str | None, typer.Option(help="Add a state of this name for values not seen here.")
    ] = None,
    tau: Annotated[
        float | None, typer.Option(help="Smooth zeros to this chance, as 1e-5 in the paper.")
    ] = None,
    length: Annotated[int | None, typer.Option(help="How many entries; default: no end.")] = None,
    confidence: Annotated[
        float | None,
        typer.Option(help="Instead, all chains that the counts do not rule out at this level."),
    ] = None,
) -> None:
    """Fit a Markov chain to the sequences of a CSV file.

    A prior fitted on the rows that it is to protect becomes part of the published policy: fit on
    other rows (earlier days, other people) where there are any.
    """
    from takifugu.priors import Transitions, write_prior

    counts = Transitions.of(_sequences(data, state, entity, order))
    if confidence is not None:
        if other is not None or tau is not None:
            raise InvalidOption(
                "--confidence", given="comes with --other or --tau", needed="be given alone"
            )
        belief: Any = counts.intervals(confidence=confidence, length=length)
    else:
        unseen = "uniform" if other is not None or tau is not None else "refuse"
        belief = counts.chain(unseen=unseen, other=other, tau=tau, length=length)  # type: ignore[arg-type]
    write_prior(belief, out)
    steps = int(counts.counts.sum())
    typer.echo(f"wrote {out}: {len(belief.states)} states from {steps:,} steps", err=True)


@app.command()
def smooth(
    prior: Annotated[Path, typer.Argument(help="A Markov chain, as JSON.")],
    out: Out,
    tau: Annotated[float, typer.Option(help="What a zero becomes.")] = 1e-5,
    other: Annotated[str | None, typer.Option(help="First add a state of this name.")] = None,
) -> None:
    """Smooth the zeros of a chain as the paper does: τ each, taken from the rest in proportion."""
    from takifugu.priors import MarkovChain, read_prior, smoothed, with_other, write_prior

    chain = read_prior(prior)
    if not isinstance(chain, MarkovChain):
        raise InvalidOption("PRIOR", given=f"is a {chain.kind}", needed="be a markov-chain")
    grown = chain if other is None else with_other(chain, name=other)
    write_prior(smoothed(grown, tau=tau), out)
    typer.echo(f"wrote {out}", err=True)


def _facts(prior: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {"kind": prior.kind, "fingerprint": prior.fingerprint}
    states = getattr(prior, "states", None)
    if prior.kind in ("markov-chain", "interval-markov-chain"):
        facts["states"] = len(states or ())
        facts["names"] = [str(s) for s in states or ()]
        facts["length"] = prior.length
    elif hasattr(prior, "entries"):
        entries = prior.entries
        facts["entries"] = entries if isinstance(entries, int) else len(entries)
    elif prior.kind == "product":
        facts["people"] = len(prior.parts)
    if prior.kind == "markov-chain":
        facts["zeros"] = int((prior.transition == 0).sum())
        facts["start"] = "stationary" if isinstance(prior.start, str) else "given"
    if getattr(prior, "rescaled_rows", 0):
        facts["rescaled_rows"] = prior.rescaled_rows
    return facts


def _numbers(text: str, what: str) -> list[float]:
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise InvalidOption(
            what, given=f"has {text!r}", needed="hold numbers with commas between them"
        ) from None


def _sequences(data: Path, state: str, entity: str, order: str | None) -> list[list[str]]:
    """The state column cut into one sequence for each entity, in order."""
    found: dict[str, list[tuple[float, int, str]]] = {}
    for number, row in enumerate(_rows(data, [c for c in (state, entity, order) if c])):
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
