"""``takifugu ledger``: what a ledger holds, whether it was tampered with, a copy of its events.

Only the standard library and typer are imported at the top, so that ``--help`` stays quick.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu.cli.ledger_words import decision
from takifugu.cli.options import AsJson, InProject, InvalidOption, print_json, the_project
from takifugu.cli.strict import Strict
from takifugu.errors import Malformed

if TYPE_CHECKING:
    from fractions import Fraction

    from takifugu.ledger import Anchor, Event, Ledger, Position

app = Strict(name="ledger", no_args_is_help=True, help="Look into a budget ledger.")

WHERE_HELP = "A file, or a sqlite:/// or postgresql:// address; by default the project's ledger."
Where = Annotated[str | None, typer.Argument(metavar="[LEDGER]", help=WHERE_HELP)]


@app.command("show")
def run_show(
    where: Where = None,
    last: Annotated[int, typer.Option(help="How many of the latest events to show.")] = 10,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Print budgets, the worst per-entry totals and the latest events of LEDGER.

    A total is what the most exposed entry has lost so far: DP per entry, not yet translated. Keys
    of the JSON object: ledger, head (seq, hash), accounts (dataset, analyst, budget: epsilon and
    delta, or null; worst: epsilon, delta and rho of each total that no other exceeds), events
    (hash, body without the marks of the data). Exact numbers are strings like "1/10".
    """
    if not 0 <= last <= 10_000:
        raise Malformed("--last", given=f"is {last}", needed="be from 0 to 10000")
    with _opened(where, project) as ledger:
        positions, head = ledger.positions(), ledger.head()
        events = [{"hash": event.hash, "body": shown(event)} for event in ledger.history(last=last)]
        name = ledger.name
    if as_json:
        accounts = [_account(position) for position in positions]
        facts = {"ledger": name, "head": vars(head), "accounts": accounts, "events": events}
        print_json(facts)
        return
    typer.echo(f"ledger {name}: {head.seq} events, head {head.seq}:{head.hash}")
    for position in positions:
        typer.echo(_line(position))
    for event in events:
        typer.echo(_told(event["body"]))


@app.command("verify")
def run_verify(
    where: Where = None,
    anchor: Annotated[
        str, typer.Option(help="A head noted earlier, SEQ:HASH: it must still be there.")
    ] = "",
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Check every event of LEDGER against the chain, and every total against the events.

    Finds edits, deletions, insertions and changes of order. An old copy put back in full is found
    only by --anchor. Ends with status 1 if something is wrong. Keys of the JSON object: ledger,
    sound, events, head (seq, hash), problems.
    """
    noted = _anchor(anchor) if anchor else None
    with _opened(where, project) as ledger:
        report, name = ledger.verify(noted), ledger.name
    if as_json:
        facts = {
            "ledger": name,
            "sound": report.sound,
            "events": report.events,
            "head": vars(report.head),
            "problems": report.problems,
        }
        print_json(facts)
    else:
        word = "sound" if report.sound else "NOT sound"
        typer.echo(f"ledger {name}: {report.events} events, {word}")
        typer.echo(f"head {report.head.seq}:{report.head.hash}")
        for problem in report.problems:
            typer.echo(f"- {problem}")
    if not report.sound:
        raise typer.Exit(1)


@app.command("export")
def run_export(
    places: Annotated[
        list[str],
        typer.Argument(metavar="[LEDGER] FILE", help=f"The ledger: {WHERE_HELP} Then a new file."),
    ],
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Write every event of LEDGER to FILE, a line each: its hash, and the body that was hashed.

    Keys of the JSON object: ledger, events, out.
    """
    if len(places) > 2:
        raise InvalidOption(
            "FILE", given=f"comes with {len(places) - 1} ledgers", needed="follow one at most"
        )
    path = Path(places[-1])
    with _opened(places[0] if len(places) == 2 else None, project) as ledger:
        count, name = ledger.export(path), ledger.name
    if as_json:
        print_json({"ledger": name, "events": count, "out": str(path)})
    else:
        typer.echo(f"{count} events written to {path}", err=True)


@contextmanager
def _opened(where: str | None, project: Path | None) -> "Iterator[Ledger]":
    from takifugu.ledger import open_ledger

    if where is None:
        with the_project(project).ledger(read_only=True) as ledger:
            yield ledger
    else:
        with open_ledger(where, create=False, read_only=True) as ledger:
            yield ledger


def shown(event: "Event") -> dict[str, Any]:
    """What an event says, without hashes over protected bytes: early ones had no key."""
    return {
        name: value
        for name, value in event.body.items()
        if name not in ("data", "question", "marks")
    }


def _anchor(text: str) -> "Anchor":
    from takifugu.ledger import Anchor

    seq, _, mark = text.partition(":")
    if not seq.isdecimal() or len(mark) != 64:
        raise Malformed("--anchor", given=f"is {text!r}", needed="be SEQ:HASH, as `verify` prints")
    return Anchor(int(seq), mark)


def _account(position: "Position") -> dict[str, Any]:
    budget = None
    if position.epsilon is not None:
        budget = {"epsilon": str(position.epsilon), "delta": str(position.delta)}
    return {
        "dataset": position.dataset,
        "analyst": position.analyst,
        "budget": budget,
        "worst": [
            {"epsilon": str(t.epsilon), "delta": str(t.delta), "rho": str(t.rho)}
            for t in position.worst
        ],
    }


def _line(position: "Position") -> str:
    who = (
        f"{position.dataset}, analyst {position.analyst}" if position.analyst else position.dataset
    )
    budget = "no budget"
    if position.epsilon is not None:
        budget = f"Pufferfish budget epsilon = {_short(position.epsilon)}"
        if position.delta:
            budget += f", delta = {_short(position.delta)}"
    losses = []
    for total in position.worst:
        named = {"epsilon": total.epsilon, "delta": total.delta, "rho": total.rho}
        parts = [f"{name} = {_short(value)}" for name, value in named.items() if value]
        losses.append(", ".join(parts) or "nothing")
    return f"{who}: {budget}; worst entry has lost {' or '.join(losses)}"


def _told(body: Any) -> str:
    """One event in one line."""
    words = decision(body)
    if words is not None:
        return "  ".join([str(body["seq"]), body["at"], words])
    loss = body.get("loss", {})
    parts = [str(body["seq"]), body["at"], body["kind"], body.get("dataset"), body.get("analyst")]
    parts += [f"{name}={value}" for name, value in loss.items() if name != "currency"]
    parts += [str(body[name]) for name in ("how", "other") if name in body]
    return "  ".join(part for part in parts if part)


def _short(value: "Fraction") -> str:
    """Up to six digits, for people; --json has it exactly."""
    return f"{float(value):.6g}"
