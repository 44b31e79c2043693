"""``takifugu ledger``: what a ledger holds, whether it is sound, copies of it.

Only the standard library and typer are imported at the top, so that ``--help`` stays quick.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu.cli.shared_options import (
    AsJson,
    InProject,
    InvalidOption,
    StrictTyper,
    echo,
    print_json,
    refuse_outside,
    show_result,
    the_project,
    without_project,
)
from takifugu.errors import Malformed
from takifugu.visible import four_digits

if TYPE_CHECKING:
    from takifugu.ledger import Anchor, Event, Ledger, Position
    from takifugu.project.project import Project
    from takifugu.translation.protocol import LossTranslation

WHERE_HELP = "A file, or a sqlite:/// or postgresql:// address; by default the project's ledger."
Where = Annotated[str | None, typer.Argument(metavar="[LEDGER]", help=WHERE_HELP)]
Places = Annotated[
    list[str],
    typer.Argument(metavar="[LEDGER] FILE", help=f"The ledger: {WHERE_HELP} Then a file."),
]
Raised = Annotated[
    list[str] | None,
    typer.Option(
        "--budget",
        metavar="NAME=EPSILON",
        help="The largest budget that a dataset had in the lost part, if it was raised or first set"
        " there; repeatable.",
    ),
]

SamePrior = Annotated[
    bool,
    typer.Option(
        "--same-prior",
        help="The priors of the project were in force throughout the lost part: count what the"
        " budgets admitted under them. Otherwise epsilon itself is counted for every entry.",
    ),
]

Costs = Annotated[
    bool,
    typer.Option(
        "--costs/--no-costs",
        help="Whether queries may have been charged by value in the lost part. With --no-costs"
        " and --same-prior less is counted.",
    ),
]


def split_places(places: list[str]) -> tuple[str | None, Path]:
    """The ledger, if one is named, and the file."""
    if len(places) > 2:
        raise InvalidOption(
            "FILE", given=f"comes with {len(places) - 1} ledgers", needed="follow one at most"
        )
    return (places[0] if len(places) == 2 else None), Path(places[-1])


def run_backup(places: Places, folder: InProject = None, as_json: AsJson = False) -> None:
    """Write a complete, verified copy of LEDGER to FILE, a new one that only you can read.

    A copy of the ledger's own file may miss what is still in its write-ahead log. For a ledger on a
    PostgreSQL server use pg_dump.

    JSON: ledger, events, head (seq, hash), out.
    """
    from takifugu.ledger import open_ledger

    where, path = split_places(places)
    named = _named(where, folder)
    with open_ledger(named.place, create=False, read_only=True, witness=named.witness) as ledger:
        report, name = ledger.backup(path), ledger.name
    facts = {"ledger": name, "events": report.events, "head": vars(report.head), "out": str(path)}
    show_result(facts, f"{report.events} events written to {path}", as_json=as_json, err=True)


def run_restore(
    places: Places,
    accept_loss: Annotated[
        bool, typer.Option(help="Restore an older copy; what is lost counts as spent.")
    ] = False,
    budget: Raised = None,
    same_prior: SamePrior = False,
    costs: Costs = True,
    folder: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Replace LEDGER by the backup FILE, as a whole or not at all.

    The backup is verified first. One that lacks an event of the ledger, or one that the witness of
    its head has seen, is refused; with --accept-loss the owner accepts that, as `accept-loss` says,
    and the largest of the budgets and totals is counted that the backup and LEDGER show. Nobody
    else may have the ledger open.

    JSON: ledger, events, head (seq, hash), counted (null, or what `accept-loss` prints).
    """
    from takifugu.ledger import restore_ledger
    from takifugu.ledger.witnesses.lost_history import LossTerms

    where, path = split_places(places)
    if not accept_loss and (budget or same_prior or not costs):
        raise InvalidOption(
            "--budget" if budget else "--same-prior" if same_prior else "--no-costs",
            given="is given without --accept-loss",
            needed="come with it: nothing is counted otherwise",
        )
    ledger, raised = _named(where, folder), _raised(budget)
    terms = None
    if accept_loss:
        terms = LossTerms(ledger.translations(same_prior), raised, ledger.columns(), costs)
    report = restore_ledger(
        path, ledger.place, lossy=accept_loss, witness=ledger.witness, terms=terms
    )
    counted = report.loss
    facts = {"ledger": str(ledger.place), "events": report.events, "head": vars(report.head)}
    facts |= {"counted": None if counted is None else counted.body["accounts"]}
    show_result(
        facts, f"{report.events} events restored to {ledger.place}", as_json=as_json, err=True
    )
    if counted is not None and not as_json:
        _print_loss(counted)


def run_accept_loss(
    where: Where = None,
    budget: Raised = None,
    same_prior: SamePrior = False,
    costs: Costs = True,
    folder: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Accept, as the owner, that events which the witness of LEDGER has seen are lost.

    All that the budgets admitted counts as spent from then on: nothing more is released from these
    datasets until a budget is raised, and then only what exceeds the earlier one. The decision is
    an event of the ledger that names you. The epsilon of the budget is counted for every entry,
    which no prior can have exceeded; less with --same-prior --no-costs, in a project whose priors
    were not replaced in the lost part and where no query was charged by value there. In the project
    of a dataset of several columns it is counted for each; name no ledger then.

    JSON: ledger, lost (seq, hash), accounts (dataset, analyst, epsilon, delta, rho and, if there
    are any, costs: counted for every entry).
    """
    from takifugu.ledger import accept_loss

    ledger = _named(where, folder)
    event = accept_loss(
        ledger.place,
        translations=ledger.translations(same_prior),
        budgets=_raised(budget),
        witness=ledger.witness,
        columns=ledger.columns(),
        costs=costs,
    )
    if as_json:
        lost, accounts = event.body["lost"], event.body["accounts"]
        print_json({"ledger": str(ledger.place), "lost": lost, "accounts": accounts})
    else:
        _print_loss(event)


def run_begin_witness(
    where: Where = None, folder: InProject = None, as_json: AsJson = False
) -> None:
    """Begin a new record of the head of LEDGER, as its owner: the earlier one is missing.

    A ledger whose record is missing is refused, since it may be an older copy: compare its head
    with one that was noted first (`takifugu ledger verify --anchor`). It is an event of the ledger
    that names you.

    JSON: ledger, event (seq, hash).
    """
    from takifugu.ledger import begin_witness

    ledger = _named(where, folder)
    event = begin_witness(ledger.place, witness=ledger.witness)
    facts = {"ledger": str(ledger.place), "event": {"seq": event.seq, "hash": event.hash}}
    words = f"the head is recorded again, from event {event.seq} on, by {event.body['actor']}"
    show_result(facts, words, as_json=as_json)


def _print_loss(event: "Event") -> None:
    from takifugu.costs.cost import Cost

    echo(f"accepted by {event.body['actor']}: everything up to the budgets counts as spent")
    for account in event.body["accounts"]:
        who = f", analyst {account['analyst']}" if account["analyst"] else ""
        by_value = Cost.of_document(account.get("costs", []))
        lost = four_digits(Fraction(account["epsilon"]) + by_value.scalar, "up")
        echo(
            f"{account['dataset']}{who}: epsilon = {lost} per entry is counted; nothing remains"
            " until its budget is raised"
        )


def _raised(given: list[str] | None) -> dict[str, Any]:
    budgets = {}
    for text in given or ():
        name, _, epsilon = text.rpartition("=")
        if not name or not epsilon:
            raise InvalidOption("--budget", given=f"is {text!r}", needed="look like visits=2")
        budgets[name] = epsilon
    return budgets


@dataclass(frozen=True)
class NamedLedger:
    """A ledger that a command is about.

    Attributes:
        place: Where it is.
        witness: Where its witness is, or whether it has one.
        project: The project that it is of; None if it is named without one.
    """

    place: str | Path
    witness: str | Path | bool = True
    project: "Project | None" = None

    def columns(self) -> dict[str, tuple[str, ...]]:
        """The columns that each dataset of the project is about."""
        return dict(self._loaded(lambda project, name: project.load(name).columns))

    def translations(self, same_prior: bool) -> "dict[str, LossTranslation]":
        """The translations of the priors that the owner states were in force; by default none."""
        if not same_prior:
            return {}
        if self.project is None:
            raise InvalidOption(
                "--same-prior",
                given="is given for a ledger that is named",
                needed="be used in the project of the ledger, which knows the priors",
            )
        return dict(self._loaded(lambda project, name: project.load(name).translation))

    def _loaded(self, read: "Callable[[Project, str], Any]") -> Iterator[tuple[str, Any]]:
        """What can be read of each dataset; nothing of one whose files cannot be."""
        for name in () if self.project is None else self.project.policy.datasets:
            with suppress(Malformed):
                yield name, read(self.project, name)  # type: ignore[arg-type]


def _named(where: str | None, folder: Path | None) -> NamedLedger:
    """The ledger that is named, or that of the project."""
    if where is not None:
        without_project(folder, "LEDGER")
        return NamedLedger(where)
    project = the_project(folder)
    return NamedLedger(project.ledger_place, project.witness, project)


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
    facts = {"ledger": name, "events": count, "out": str(path)}
    show_result(facts, f"{count} events written to {path}", as_json=as_json, err=True)


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
