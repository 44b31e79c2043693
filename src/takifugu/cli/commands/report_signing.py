"""``takifugu report sign``, ``verify`` and ``key``: who stands for a report."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from takifugu.cli.shared_options import AsJson, InvalidOption, echo, print_json
from takifugu.errors import InvalidFile

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
    facts = _facts(statement, private.public_key())
    if as_json:
        print_json({"out": str(place)} | facts)
    else:
        echo(f"wrote {place}: signed by {facts['signer']} with key {facts['key']}", err=True)


def run_verify(
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
    facts = _facts(statement, public)
    if as_json:
        print_json({"valid": True} | facts | {"events": events, "newest": newest})
        return
    echo(f"valid: signed by {facts['signer']} at {facts['signed']} with key {facts['key']}")
    if events is None:
        echo(f"as of event {facts['seq']} of the ledger ({facts['hash'][:12]}): not compared")
    else:
        echo(f"as of event {facts['seq']} of the ledger, which the export of {events} events has")
        if not newest:
            echo(f"the ledger has gone on since: {events - facts['seq']} later events")


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
    if as_json:
        print_json({"out": str(file), "public": str(public_file(file)), "key": name})
    else:
        echo(f"wrote {file} (keep it to yourself) and {public_file(file)}: key {name}", err=True)


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


def _facts(statement: Any, public: Any) -> dict[str, Any]:
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
