"""``takifugu report``: what a project publishes and protects, for a data protection officer.

``takifugu report`` alone, or with names of datasets, writes one: it is short for ``report write``.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu.cli.shared_options import (
    AsJson,
    InProject,
    InvalidOption,
    Spinner,
    StrictGroup,
    StrictTyper,
    echo,
    show_result,
    show_warnings,
    the_project,
)
from takifugu.cli.shell_completion import complete_dataset
from takifugu.errors import InvalidFile

if TYPE_CHECKING:
    from takifugu.reports.report_values import PrivacyReport

ReportFile = Annotated[
    Path, typer.Argument(metavar="REPORT", help="A report, as `takifugu report` wrote it.")
]
NEEDED = "be a report: `takifugu report` writes one"
SIGNATURE_HELP = "The signature; by default REPORT.sig."


def run_sign(
    report: ReportFile,
    key: Annotated[
        Path, typer.Option(help="Your signing key; `takifugu report key` makes one.")
    ] = Path("report.key"),
    signer: Annotated[
        str | None, typer.Option(help="Who signs, for readers; by default your user name.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help=SIGNATURE_HELP)] = None,
    as_json: AsJson = False,
) -> None:
    """Sign REPORT: you state that this file, as of its event of the ledger, is the one you mean.

    The signature is a text file that says what was signed. A passphrase is asked for if the key has
    one.

    JSON: out, key (its name), signer, signed, sha256, ledger, seq, hash.
    """
    from takifugu._core.atomic import read_bytes, write_whole
    from takifugu.ledger.lifecycle import current_actor
    from takifugu.reports.report_signature import sign_report, verify_report

    place = _beside(report) if out is None else out
    content = read_bytes(report, field="REPORT", needed=NEEDED)
    private = _private_key(key)
    signature = sign_report(content, private, signer=current_actor() if signer is None else signer)
    statement = verify_report(content, signature, private.public_key())
    write_whole(place, signature, field="--out", refuse_existing=True, fsync=True)
    facts = _signature_facts(statement, private.public_key())
    words = f"wrote {place}: signed by {facts['signer']} with key {facts['key']}"
    show_result({"out": str(place)} | facts, words, as_json=as_json, err=True)


def run_verify_signature(
    report: ReportFile,
    key: Annotated[
        Path, typer.Option(help="The signer's public key, which you had from the signer.")
    ],
    signature: Annotated[Path | None, typer.Option(help=SIGNATURE_HELP)] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(help="An export of the ledger, which must hold the event of the report."),
    ] = None,
    since: Annotated[
        int | None,
        typer.Option(help="An event that the report must not be older than, as one noted before."),
    ] = None,
    witness: Annotated[
        str | None,
        typer.Option(
            help="The witness of the ledger, a file or an address as in takifugu.toml: the report"
            " must be as of the last event that it has seen. Goes with --ledger."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Verify that REPORT is what the holder of a key signed; and, with an export, its ledger.

    A report stays valid when the ledger goes on, so an older one may be shown in place of the
    newest: --since and --witness refuse that, and an export tells it. The status is 1 if anything
    does not hold. Needs nothing of the project.

    JSON: valid, key (its name), signer, signed, sha256, ledger, seq, hash (the event it is as of),
    events (of the export; null without one), newest (whether the export has no later event; null
    without one).
    """
    from takifugu._core.atomic import read_bytes
    from takifugu.reports.report_signature import read_public_key, verify_report

    content = read_bytes(report, field="REPORT", needed=NEEDED)
    place = _beside(report) if signature is None else signature
    needed = "be its signature: `takifugu report sign` writes one"
    signed = read_bytes(place, field="--signature", needed=needed)
    needed = "be a public key: `takifugu report key` writes it as FILE.pub"
    public = read_public_key(read_bytes(key, field="--key", needed=needed))
    statement = verify_report(content, signed, public)
    if witness is not None and ledger is None:
        raise InvalidOption(
            "--witness",
            given="is given without --ledger",
            needed="go with an export, by which the witness knows the ledger",
        )
    chain = None if ledger is None else _chain(ledger, statement.head)
    events = None if chain is None else chain.events
    if since is not None:
        _refuse_older(statement.head, since, "you asked for")
    if witness is not None and chain is not None:
        _refuse_older(statement.head, _seen(witness, chain), f"{witness} has seen")
    newest = None if events is None else statement.head.seq == events
    facts = _signature_facts(statement, public)
    words = [f"valid: signed by {facts['signer']} at {facts['signed']} with key {facts['key']}"]
    as_of = f"as of event {facts['seq']} of the ledger"
    if events is None:
        words.append(f"{as_of} ({facts['hash'][:12]}): not compared")
    else:
        words.append(f"{as_of}, which the export of {events} events has")
    if events is not None and not newest:
        words.append(f"the ledger has gone on since: {events - facts['seq']} later events")
    facts = {"valid": True} | facts | {"events": events, "newest": newest}
    show_result(facts, *words, as_json=as_json)


def run_key(
    file: Annotated[
        Path, typer.Argument(help="A new file for the key; FILE.pub is its public half.")
    ],
    passphrase: Annotated[
        bool, typer.Option("--passphrase", help="Ask for a passphrase that locks the key.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make a key to sign reports with: FILE, for you alone, and FILE.pub, for everybody else.

    JSON: out, public, key (its name).
    """
    from takifugu.reports.report_signature import key_name, make_key, public_file

    locked = None
    if passphrase and not sys.stdin.isatty():
        raise InvalidOption(
            "--passphrase", given="is given without a terminal", needed="be used where one can type"
        )
    if passphrase:
        locked = typer.prompt("Passphrase", hide_input=True, confirmation_prompt=True, err=True)
    signing_key = make_key(file, passphrase=None if locked is None else locked.encode())
    name = key_name(signing_key.public_bytes_raw())
    facts = {"out": str(file), "public": str(public_file(file)), "key": name}
    words = f"wrote {file} (keep it to yourself) and {public_file(file)}: key {name}"
    show_result(facts, words, as_json=as_json, err=True)


def _beside(report: Path) -> Path:
    from takifugu.reports.report_signature import SUFFIX

    return Path(f"{report}{SUFFIX}")


def _private_key(path: Path) -> Any:
    """The signing key in a file; a passphrase is asked for on a terminal if it needs one."""
    from takifugu._core.atomic import read_bytes
    from takifugu.reports.report_signature import read_private_key

    needed = "be a signing key: `takifugu report key FILE` makes one"
    content = read_bytes(path, field="--key", needed=needed)
    try:
        return read_private_key(content)
    except InvalidFile as error:
        if error.reason != "passphrase" or not sys.stdin.isatty():
            raise
    answer = typer.prompt("Passphrase", hide_input=True, err=True)
    return read_private_key(content, passphrase=answer.encode())


def _refuse_older(head: Any, least: int, why: str) -> None:
    """Raise if a report is as of an event before ``least``."""
    from takifugu.reports.report_signature import SignatureRefused

    if head.seq < least:
        raise SignatureRefused(
            f"the report is as of event {head.seq} of the ledger, and {why} event {least}: it is"
            " older. Ask for a newer one",
            reason="older",
        )


def _seen(place: str, chain: Any) -> int:
    """The last event that a witness has seen of the ledger of an export."""
    from takifugu.ledger.lifecycle import open_witness
    from takifugu.reports.report_signature import SignatureRefused

    witness = open_witness(place)
    recorded = None if witness is None or chain.ledger is None else witness.read(chain.ledger)
    if witness is not None:
        witness.close()
    if recorded is None:
        raise SignatureRefused(
            f"the witness {place} has no record of this ledger; name the one in takifugu.toml",
            reason="ledger",
        )
    return recorded.seq


def _chain(export: Path, head: Any) -> Any:
    """The chain of an export that holds the event of a report."""
    from takifugu.errors import LedgerDamaged
    from takifugu.ledger.event_documents import check_export
    from takifugu.ledger.events.event_chain import Anchor
    from takifugu.reports.report_signature import SignatureRefused

    anchors = [Anchor(1, head.origin), Anchor(head.seq, head.hash)]
    try:
        return check_export(export, anchors)
    except LedgerDamaged as error:
        raise SignatureRefused(str(error), reason="ledger") from None


def _signature_facts(statement: Any, public: Any) -> dict[str, Any]:
    from takifugu.reports.report_signature import key_name

    return {
        "key": key_name(public.public_bytes_raw()),
        "signer": statement.signer,
        "signed": statement.signed.isoformat(),
        "sha256": statement.digest,
        "ledger": statement.head.origin,
        "seq": statement.head.seq,
        "hash": statement.head.hash,
    }


SUFFIXES = (".html", ".pdf")


class ReportGroup(StrictGroup):
    """A group whose first word may be left out: it is then ``write``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments, with ``write`` before them unless they name a command."""
        if not args or (args[0] not in self.commands and args[0] != "--help"):
            args = ["write", *args]
        parsed: list[str] = super().parse_args(ctx, args)
        return parsed


app = StrictTyper(
    help="Write a report on the project, sign it, verify one. Without a command: write.",
    rich_markup_mode=None,
    group=ReportGroup,
)


@app.command("write")
def run_report(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Datasets of the project; by default all of them.",
            autocompletion=complete_dataset,
        ),
    ] = None,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="The file to write: .html, or .pdf (extra `reports`)."),
    ] = Path("report.html"),
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the file if there is one.")
    ] = False,
    folder: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Write a report on the project for a data protection officer.

    What is protected and from whom, the prior and its figures, the budget over time, every release
    with its figure and its intervals, the owner's decisions, the state of the ledger, and a
    glossary; in one file that fetches nothing. It charges nothing and opens no table: answers are
    those that the ledger has stored. The same project gives the same bytes.

    The status is 1 if the ledger is not sound; the report then says so.

    JSON: out, datasets (name, budget, delta, spent, left, releases), head (seq, hash), sound.
    """
    from takifugu._core.atomic import PendingFile
    from takifugu.project.project_report import project_report
    from takifugu.reports.report_page import report_page

    suffix = out.suffix.lower()
    if suffix not in SUFFIXES:
        raise InvalidFile(
            "--out", given=f"is {str(out)!r}", needed=f"end in {' or '.join(SUFFIXES)}"
        )
    if suffix == ".pdf":
        from takifugu.reports.pdf_file import check_pdf, pdf_of

        check_pdf()
    project = the_project(folder)
    pending = PendingFile(out, field="--out", refuse_existing=not replace)
    try:
        with show_warnings(), Spinner("gathering") as spinner:
            report = project_report(project, names or (), progress=spinner)
            page = report_page(report)
            content = pdf_of(page) if suffix == ".pdf" else page.html().encode()
        pending.part.write_bytes(content)
        pending.keep(fsync=True)
    finally:
        pending.discard()
    words = f"wrote {out}: results in it are published numbers"
    show_result({"out": str(out)} | _facts(report), words, as_json=as_json, err=True)
    if not report.ledger.sound:
        echo("takifugu: the ledger is not sound; see `takifugu ledger verify`", err=True)
        raise typer.Exit(1)


def _facts(report: "PrivacyReport") -> dict[str, Any]:
    datasets = []
    for dataset in report.datasets:
        facts: dict[str, Any] = {"name": dataset.name, "budget": None, "delta": None}
        facts |= {"spent": None, "left": None, "releases": len(dataset.releases)}
        if budget := dataset.budget:
            facts["budget"] = None if budget.epsilon is None else str(budget.epsilon)
            facts |= {"delta": str(budget.delta), "spent": budget.spent, "left": budget.left}
        datasets.append(facts)
    head = {"seq": report.ledger.seq, "hash": report.ledger.hash}
    return {"datasets": datasets, "head": head, "sound": report.ledger.sound}


for _name, _run in (("sign", run_sign), ("verify", run_verify_signature), ("key", run_key)):
    app.command(_name)(_run)
