"""``takifugu ledger backup``, ``restore``, ``accept-loss``, ``begin-witness``: lost history."""

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu.cli.shared_options import (
    AsJson,
    InProject,
    InvalidOption,
    echo,
    print_json,
    the_project,
    without_project,
)
from takifugu.visible import four_digits

if TYPE_CHECKING:
    from takifugu.ledger import Event
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
    place, witness = _place(where, folder)
    with open_ledger(place, create=False, read_only=True, witness=witness) as ledger:
        report, name = ledger.backup(path), ledger.name
    if as_json:
        facts = {"ledger": name, "events": report.events, "head": vars(report.head)}
        print_json({**facts, "out": str(path)})
    else:
        echo(f"{report.events} events written to {path}", err=True)


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
    (place, witness), raised = _place(where, folder), _raised(budget)
    priors, columns = _priors(where, folder, same_prior=same_prior), _columns(where, folder)
    terms = LossTerms(priors, raised, columns, costs) if accept_loss else None
    report = restore_ledger(path, place, lossy=accept_loss, witness=witness, terms=terms)
    counted = report.loss
    if as_json:
        facts = {"ledger": str(place), "events": report.events, "head": vars(report.head)}
        print_json({**facts, "counted": None if counted is None else _accounts(counted)})
        return
    echo(f"{report.events} events restored to {place}", err=True)
    if counted is not None:
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
    place, witness = _place(where, folder)
    priors, columns = _priors(where, folder, same_prior=same_prior), _columns(where, folder)
    event = _accept(place, witness, priors, _raised(budget), columns=columns, costs=costs)
    if as_json:
        accounts = _accounts(event)
        print_json({"ledger": str(place), "lost": event.body["lost"], "accounts": accounts})
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

    place, witness = _place(where, folder)
    event = begin_witness(place, witness=witness)
    if as_json:
        print_json({"ledger": str(place), "event": {"seq": event.seq, "hash": event.hash}})
    else:
        echo(f"the head is recorded again, from event {event.seq} on, by {event.body['actor']}")


def _accounts(event: "Event") -> list[dict[str, Any]]:
    accounts: list[dict[str, Any]] = event.body["accounts"]
    return accounts


def _print_loss(event: "Event") -> None:
    from takifugu.costs.cost import Cost

    echo(f"accepted by {event.body['actor']}: everything up to the budgets counts as spent")
    for account in _accounts(event):
        who = f", analyst {account['analyst']}" if account["analyst"] else ""
        by_value = Cost.of_document(account.get("costs", []))
        lost = four_digits(Fraction(account["epsilon"]) + by_value.scalar, "up")
        echo(
            f"{account['dataset']}{who}: epsilon = {lost} per entry is counted; nothing remains"
            " until its budget is raised"
        )


def _place(where: str | None, folder: Path | None) -> tuple[str | Path, str | Path | bool]:
    """The ledger and its witness."""
    if where is not None:
        without_project(folder, "LEDGER")
        return where, True
    project = the_project(folder)
    return project.ledger_place, project.witness


def _raised(given: list[str] | None) -> dict[str, Any]:
    budgets = {}
    for text in given or ():
        name, _, epsilon = text.rpartition("=")
        if not name or not epsilon:
            raise InvalidOption("--budget", given=f"is {text!r}", needed="look like visits=2")
        budgets[name] = epsilon
    return budgets


def _priors(
    where: str | None, folder: Path | None, *, same_prior: bool
) -> "dict[str, LossTranslation]":
    """The translations of the priors that the owner states were in force; by default none."""
    from takifugu.errors import Malformed

    if not same_prior:
        return {}
    if where is not None:
        raise InvalidOption(
            "--same-prior",
            given="is given for a ledger that is named",
            needed="be used in the project of the ledger, which knows the priors",
        )
    project = the_project(folder)
    translations: dict[str, LossTranslation] = {}
    for name in project.policy.datasets:
        try:
            translations[name] = project.load(name).translation
        except Malformed:  # no prior, or none that can be read: epsilon itself is counted
            continue
    return translations


def _columns(where: str | None, folder: Path | None) -> dict[str, tuple[str, ...]]:
    """The columns that each dataset of a project is about; none for a ledger that is named."""
    from takifugu.errors import Malformed

    columns: dict[str, tuple[str, ...]] = {}
    if where is None:
        project = the_project(folder)
        for name in project.policy.datasets:
            try:
                columns[name] = project.load(name).columns
            except Malformed:  # no declaration that can be read
                continue
    return columns


def _accept(
    place: str | Path,
    witness: str | Path | bool,
    priors: "dict[str, LossTranslation]",
    raised: dict[str, Any],
    *,
    columns: dict[str, tuple[str, ...]],
    costs: bool,
) -> "Event":
    from takifugu.ledger import accept_loss

    how: dict[str, Any] = {"witness": witness, "columns": columns, "costs": costs}
    return accept_loss(place, translations=priors, budgets=raised, **how)
