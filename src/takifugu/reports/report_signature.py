"""Signed reports: who stands for which file, as of which event of which ledger.

A signature is a small text file beside the report. Its first lines are the statement that was
signed; two more lines hold the public key and the Ed25519 signature (RFC 8032) over exactly the
bytes of the statement, so that ``openssl pkeyutl -verify -rawin`` checks it, too. The first line
names the purpose: a signature over anything else never passes for one over a report.

Whoever verifies decides whom to trust: the key is given, and the one in the file only says which
key to look for.

Which event of which ledger a report is as of is written into the report for programs: in a
``<meta>`` element of the page, or in a comment after the end of the PDF, where no text of the
report can stand, since text in a page is escaped.
"""

import hashlib
import os
import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from takifugu._core.atomic import write_whole
from takifugu.errors import InvalidFile, TakifuguError
from takifugu.visible import visible

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

PURPOSE = "takifugu report signature 1"
SUFFIX = ".sig"
MAX_NAME_LETTERS = 200  # letters of a signer
LARGEST_SIGNATURE = 10_000  # bytes of a signature file
_STATEMENT = re.compile(
    rb"takifugu report signature 1\n"
    rb"report: sha256 (?P<digest>[0-9a-f]{64})\n"
    rb"size: (?P<size>[0-9]{1,15}) bytes\n"
    rb"ledger: (?P<origin>[0-9a-f]{64})\n"
    rb"as of event: (?P<seq>[0-9]{1,15}) (?P<hash>[0-9a-f]{64})\n"
    rb"signed: (?P<signed>[0-9T:+-]{25})\n"
    rb"signer: (?P<signer>[^\n]{1,800})\n"
)
_LINES = re.compile(
    rb"public key: (?P<key>[A-Za-z0-9+/=]{44})\nsignature: (?P<mark>[A-Za-z0-9+/=]{88})\n"
)
LEDGER_MARK = "takifugu-ledger"
_VALUE = rb"takifugu-ledger ([0-9a-f]{64}) ([0-9]{1,15}) ([0-9a-f]{64})"
_PAGE = re.compile(rb'<meta name="takifugu-ledger" content="' + _VALUE + rb'">')
_PDF = re.compile(rb"%%EOF\n?%" + _VALUE + rb"\n\Z")


class SigningUnavailable(TakifuguError):
    """Reports cannot be signed or verified here: the package `cryptography` is missing."""

    def __init__(self) -> None:
        super().__init__(
            "signing a report needs cryptography, which is missing; pip install"
            " 'takifugu[reports]' installs it. openssl can verify a signature without it"
        )


class SignatureRefused(TakifuguError):
    """A signature that does not hold, or a report that is too old.

    The reason is ``key``, ``signature``, ``report``, ``ledger`` or ``older``.
    """


@dataclass(frozen=True)
class ReportedHead:
    """The event that a report is as of.

    Attributes:
        origin: The hash of the first event of the ledger: no other ledger has it.
        seq: The number of the last event when the report was written.
        hash: The hash of that event, and so of all before it.
    """

    origin: str
    seq: int
    hash: str


def ledger_mark(origin: str, seq: int, hash_: str) -> str:
    """What a report says of its ledger, for programs."""
    return f"{LEDGER_MARK} {origin} {seq} {hash_}"


def reported_head(report: bytes, *, field: str = "report") -> ReportedHead:
    """The event that a report is as of; an error if the file is no report of this version."""
    pattern = _PDF if report.startswith(b"%PDF-") else _PAGE
    marks = {match.groups() for match in pattern.finditer(report)}
    if len(marks) != 1:
        raise InvalidFile(
            field,
            given="does not say which event of a ledger it is as of",
            needed="be a report: `takifugu report` writes one",
            reason="not-a-report",
        )
    origin, seq, hash_ = (part.decode("ascii") for part in marks.pop())
    return ReportedHead(origin, int(seq), hash_)


@dataclass(frozen=True)
class SignedStatement:
    """What a signer states of a report.

    Attributes:
        digest: The SHA-256 of the file.
        size: Its bytes.
        head: The event of the ledger that it is as of.
        signed: When it was signed, by the signer's own clock.
        signer: Who signed, in their own words: what counts is the key.
    """

    digest: str
    size: int
    head: ReportedHead
    signed: datetime
    signer: str

    def text(self) -> bytes:
        """The bytes that are signed."""
        head = self.head
        lines = (
            PURPOSE,
            f"report: sha256 {self.digest}",
            f"size: {self.size} bytes",
            f"ledger: {head.origin}",
            f"as of event: {head.seq} {head.hash}",
            f"signed: {self.signed.astimezone(UTC).isoformat(timespec='seconds')}",
            f"signer: {self.signer}",
        )
        return "".join(f"{line}\n" for line in lines).encode()


def sign_report(
    report: bytes, key: "Ed25519PrivateKey", *, signer: str, at: datetime | None = None
) -> bytes:
    """The signature file of a report."""
    if not signer.strip() or len(signer) > MAX_NAME_LETTERS or visible(signer) != signer:
        raise InvalidFile(
            "signer",
            given=f"is {visible(signer)!r:.80}",
            needed=f"be a name in one line of 1 to {MAX_NAME_LETTERS} letters",
        )
    statement = SignedStatement(
        digest=hashlib.sha256(report).hexdigest(),
        size=len(report),
        head=reported_head(report),
        signed=datetime.now(UTC) if at is None else at,
        signer=signer.strip(),
    )
    text = statement.text()
    public = b64encode(key.public_key().public_bytes_raw()).decode("ascii")
    mark = b64encode(key.sign(text)).decode("ascii")
    return text + f"public key: {public}\nsignature: {mark}\n".encode("ascii")


def verify_report(report: bytes, signature: bytes, key: "Ed25519PublicKey") -> SignedStatement:
    """What was signed, if ``key`` signed it and it is about this report.

    Raises:
        InvalidFile: The file is not a signature.
        SignatureRefused: Another key signed it, the statement was changed, or the report was.
    """
    statement, text, public, mark = _parsed(signature)
    if public != key.public_bytes_raw():
        raise SignatureRefused(
            f"the report was signed with another key ({key_name(public)}) than the given one"
            f" ({key_name(key.public_bytes_raw())}); ask the signer which one is theirs",
            reason="key",
        )
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(mark, text)
    except InvalidSignature:
        raise SignatureRefused(
            "the signature does not fit its statement: the file was changed after it was signed."
            " Ask for the original",
            reason="signature",
        ) from None
    if statement.digest != hashlib.sha256(report).hexdigest() or statement.size != len(report):
        raise SignatureRefused(
            "the signature is about another file: the report was changed after it was signed, or"
            " it is another one. Ask for the original",
            reason="report",
        )
    if reported_head(report) != statement.head:
        raise SignatureRefused(
            "the signature names another event of the ledger than the report; ask for the original",
            reason="ledger",
        )
    return statement


def _parsed(signature: bytes) -> tuple[SignedStatement, bytes, bytes, bytes]:
    """The statement, its bytes, the public key and the signature over it."""
    match = _STATEMENT.match(signature) if len(signature) <= LARGEST_SIGNATURE else None
    rest = None if match is None else _LINES.fullmatch(signature, match.end())
    try:
        if match is None or rest is None:
            raise ValueError
        statement = SignedStatement(
            digest=match["digest"].decode(),
            size=int(match["size"]),
            head=ReportedHead(match["origin"].decode(), int(match["seq"]), match["hash"].decode()),
            signed=datetime.fromisoformat(match["signed"].decode()),
            signer=match["signer"].decode("utf-8"),
        )
        text = statement.text()
        if text != match[0]:
            raise ValueError
        public, mark = b64decode(rest["key"], validate=True), b64decode(rest["mark"], validate=True)
        if (len(public), len(mark)) != (32, 64):
            raise ValueError
        if (b64encode(public), b64encode(mark)) != (rest["key"], rest["mark"]):
            raise ValueError  # the same bytes in another spelling
    except (ValueError, OverflowError, NotBase64):
        raise InvalidFile(
            "signature",
            given="is not the signature of a report",
            needed="be as `takifugu report sign` wrote it",
            reason="not-a-signature",
        ) from None
    return statement, text, public, mark


def key_name(public: bytes) -> str:
    """A short name of a public key, to be compared over the telephone."""
    digits = hashlib.sha256(public).hexdigest()[:32]
    return "-".join(digits[k : k + 4] for k in range(0, 32, 4))


# --- keys ---


def _serialization() -> Any:
    try:
        from cryptography.hazmat.primitives import serialization
    except ModuleNotFoundError:
        raise SigningUnavailable from None
    return serialization


def make_key(path: Path, *, passphrase: bytes | None = None) -> "Ed25519PublicKey":
    """Write a new signing key to ``path``, for its owner alone, and ``path.pub`` beside it."""
    serialization = _serialization()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    locked = (
        serialization.NoEncryption()
        if passphrase is None
        else serialization.BestAvailableEncryption(passphrase)
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    beside = public_file(path)
    if os.path.lexists(beside):
        raise InvalidFile("key", given=f"{str(beside)!r} exists", needed="be a new file")
    write_whole(path, private, field="key", refuse_existing=True, private=True, fsync=True)
    write_whole(beside, public, field="key", refuse_existing=True, fsync=True)
    return key.public_key()


def public_file(path: Path) -> Path:
    """Where the public half of a new key is written."""
    if not path.name:
        raise InvalidFile("key", given=f"{str(path)!r} is a folder", needed="be a new file")
    return path.with_name(f"{path.name}.pub")


def read_private_key(content: bytes, *, passphrase: bytes | None = None) -> "Ed25519PrivateKey":
    """An Ed25519 key from PEM; reason ``passphrase`` if one is needed, or is not this one."""
    serialization = _serialization()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    reason = "not-a-key"
    try:
        key = serialization.load_pem_private_key(content, passphrase)
        if isinstance(key, Ed25519PrivateKey):
            return key
        reason = "algorithm"
    except TypeError:  # a passphrase is missing, or superfluous
        reason = "passphrase"
    except (ValueError, UnsupportedAlgorithm):
        if b"ENCRYPTED" in content and passphrase is not None:
            reason = "passphrase"
    given = {
        "passphrase": "is locked with another passphrase, or with none",
        "algorithm": "is a key for another algorithm",
        "not-a-key": "is not a signing key",
    }[reason]
    raise InvalidFile(
        "key", given=given, needed="be one: `takifugu report key FILE` makes it", reason=reason
    )


def read_public_key(content: bytes) -> "Ed25519PublicKey":
    """An Ed25519 public key from PEM."""
    serialization = _serialization()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        key = serialization.load_pem_public_key(content)
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if isinstance(key, Ed25519PublicKey):
        return key
    private = b"PRIVATE KEY" in content
    raise InvalidFile(
        "key",
        given="is a private key" if private else "is not a public key of a signer",
        needed="be the public one, which `takifugu report key` writes as FILE.pub",
        reason="private" if private else "not-a-key",
    )
