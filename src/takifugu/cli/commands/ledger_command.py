"""``takifugu ledger``: what a ledger holds, whether it is sound, copies of it.

Only the standard library and typer are imported at the top, so that ``--help`` stays quick.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu.cli.commands.ledger_copies import (
    Places,
    Where,
    run_accept_loss,
    run_backup,
    run_begin_witness,
    run_restore,
    split_places,
)
from takifugu.cli.shared_options import (
    AsJson,
    InProject,
    StrictTyper,
    echo,
    print_json,
    refuse_outside,
    the_project,
    without_project,
)
from takifugu.errors import Malformed
from takifugu.visible import four_digits

if TYPE_CHECKING:
    from takifugu.ledger import Anchor, Ledger, Position

app = StrictTyper(name="ledger", no_args_is_help=True, help="Show, verify and copy a ledger.")


@app.command("show")
def run_show(
    where: Where = None,
    last: Annotated[int, typer.Option(help="The number of latest events to show.")] = 10,
    folder: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Print budgets, the worst per-entry totals and the latest events of LEDGER.

    Each event is one line: what was released, to whom, when, and what it cost each entry that it
    read. A total is what the most exposed entry has lost so far: DP per entry, not translated.
    Numbers have four significant digits, losses rounded up; --json has all digits.

    JSON: ledger, head (seq, hash), accounts (dataset, analyst, budget: epsilon and delta, or null;
    worst: epsilon, delta, rho and, where there are any, costs of each total that no other exceeds;
    a cost is a list of coefficients and shapes), events (hash, body without the hashes of the
    data). Exact numbers are strings like "1/10".
    """
    from takifugu.ledger.event_documents import account_document, public_body

    refuse_outside("--last", last, 0, 10_000)
    with _opened(where, folder) as ledger:
        positions, head = ledger.positions(), ledger.head()
        events = [
            {"hash": event.hash, "body": public_body(event)} for event in ledger.history(last=last)
        ]
        name = ledger.name
    if as_json:
        accounts = [account_document(position) for position in positions]
        facts = {"ledger": name, "head": vars(head), "accounts": accounts, "events": events}
        print_json(facts)
        return
    echo(f"ledger {name}: {head.seq} events, head {head.seq}:{head.hash}")
    for position in positions:
        echo(_account_line(position))
    for event in events:
        echo(_event_line(event["body"]))


@app.command("verify")
def run_verify(
    where: Where = None,
    anchor: Annotated[
        str, typer.Option(help="A head noted earlier, SEQ:HASH, that must still be there.")
    ] = "",
    folder: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Verify the hash chain of LEDGER, every total against the events, and every budget.

    Finds edits, deletions, insertions and changes of order. An older copy put back as a whole is
    found by the witness of the head, which is kept in a second place, and by --anchor. An entry
    that lost more than its budget is found, too; in a project each charge is judged again under its
    prior. The status is 1 if something is wrong.

    JSON: ledger, sound, events, head (seq, hash), witness (place, and noted: seq and hash, or
    null), problems, unproven (datasets with charges under a prior that is not at hand; null without
    a project).
    """
    noted_head = _anchor(anchor) if anchor else None
    under = None if where is not None else the_project(folder).translation_under
    with _opened(where, folder) as ledger:
        report = ledger.verify(noted_head, translation_under=under)
        name, witness = ledger.name, ledger.witness
    seen = report.witness
    if as_json:
        facts = {
            "ledger": name,
            "sound": report.sound,
            "events": report.events,
            "head": vars(report.head),
            "witness": {"place": witness, "noted": None if seen is None else vars(seen)},
            "problems": list(map(str, report.problems)),
            "unproven": report.unproven,
        }
        print_json(facts)
    else:
        word = "sound" if report.sound else "NOT sound"
        echo(f"ledger {name}: {report.events} events, {word}")
        echo(f"head {report.head.seq}:{report.head.hash}")
        noted_event = "nothing noted" if seen is None else f"event {seen.seq}"
        echo(f"witness {witness}: {noted_event}" if witness else "witness: none, by choice")
        if report.unproven:
            names = ", ".join(report.unproven)
            echo(f"not judged again, since the prior is not at hand: charges on {names}")
        for problem in report.problems:
            echo(f"- {problem}")
    if not report.sound:
        raise typer.Exit(1)


@app.command("export")
def run_export(places: Places, folder: InProject = None, as_json: AsJson = False) -> None:
    """Write every event of LEDGER to FILE, one line each: its hash, and the body that was hashed.

    JSON: ledger, events, out.
    """
    where, path = split_places(places)
    with _opened(where, folder) as ledger:
        count, name = ledger.export(path), ledger.name
    if as_json:
        print_json({"ledger": name, "events": count, "out": str(path)})
    else:
        echo(f"{count} events written to {path}", err=True)


app.command("backup")(run_backup)
app.command("restore")(run_restore)
app.command("accept-loss")(run_accept_loss)
app.command("begin-witness")(run_begin_witness)


@contextmanager
def _opened(where: str | None, folder: Path | None) -> "Iterator[Ledger]":
    from takifugu.ledger import open_ledger

    if where is None:
        with the_project(folder).ledger(inspect=True) as ledger:
            yield ledger
    else:
        without_project(folder, "LEDGER")
        with open_ledger(where, create=False, inspect=True) as ledger:
            yield ledger


def _anchor(text: str) -> "Anchor":
    from takifugu.ledger import Anchor

    seq, _, mark = text.partition(":")
    if not seq.isdecimal() or len(mark) != 64:
        raise Malformed("--anchor", given=f"is {text!r}", needed="be SEQ:HASH, as `verify` prints")
    return Anchor(int(seq), mark)


def _account_line(position: "Position") -> str:
    from takifugu.costs.cost import cost_words

    who = (
        f"{position.dataset}, analyst {position.analyst}" if position.analyst else position.dataset
    )
    budget = "no budget"
    if position.epsilon is not None:
        budget = f"Pufferfish budget epsilon = {four_digits(position.epsilon, 'down')}"
        if position.delta:
            budget += f", delta = {four_digits(position.delta, 'down')}"
    losses = []
    for total in position.worst:
        named = {"epsilon": total.epsilon, "delta": total.delta, "rho": total.rho}
        parts = [f"{name} = {four_digits(value, 'up')}" for name, value in named.items() if value]
        parts += [cost_words(total.costs)] if total.costs else []
        losses.append(", ".join(parts) or "nothing")
    return f"{who}: {budget}; worst entry has lost {' or '.join(losses)}"


def _event_line(body: Any) -> str:
    from takifugu.ledger.event_documents import event_words

    when = body["at"][:19].replace("T", " ")
    return f"{body['seq']:>4}  {when}  {event_words(body)}"
