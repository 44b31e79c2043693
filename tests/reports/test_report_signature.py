"""Signed reports: what is refused, and that openssl agrees."""

import hashlib
import shutil
import subprocess
from base64 import b64decode
from datetime import UTC, datetime
from pathlib import Path

import pytest

pytest.importorskip("cryptography")

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from takifugu.errors import InvalidFile
from takifugu.reports.html_page import Page, Paragraphs, Section
from takifugu.reports.pdf_file import pdf_of
from takifugu.reports.report_signature import (
    LEDGER_MARK,
    ReportedHead,
    SignatureRefused,
    ledger_mark,
    make_key,
    public_file,
    read_private_key,
    read_public_key,
    reported_head,
    sign_report,
    verify_report,
)
from tests.pdf_needs import weasyprint_or_skip
from tests.raising import raises

ORIGIN, LAST = "ab" * 32, "cd" * 32
HEAD = ReportedHead(ORIGIN, 7, LAST)
AT = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))


def page(text: str = "Nothing was released yet.") -> Page:
    parts = [Section("Releases", [Paragraphs(text)])]
    return Page("Report", "Lead.", parts, marks={LEDGER_MARK: ledger_mark(ORIGIN, 7, LAST)})


REPORT = page().html().encode()
SIGNED = sign_report(REPORT, KEY, signer="Ana Lyst", at=AT)


def test_a_report_says_which_event_it_is_as_of() -> None:
    assert reported_head(REPORT) == HEAD


@pytest.mark.nightly
def test_a_pdf_says_it_too() -> None:
    weasyprint_or_skip()
    made = pdf_of(page())
    assert reported_head(made) == HEAD and made == pdf_of(page())
    statement = verify_report(made, sign_report(made, KEY, signer="Ana", at=AT), KEY.public_key())
    assert statement.head == HEAD


@pytest.mark.parametrize("forged", ['<meta name="takifugu-ledger" content="', "%%EOF\n%"])
def test_text_of_a_report_cannot_name_another_event(forged: str) -> None:
    text = f'{forged}{ledger_mark("00" * 32, 1, "00" * 32)}">)'
    assert reported_head(page(text).html().encode()) == HEAD


def test_a_file_that_is_no_report_is_refused() -> None:
    other = REPORT.replace(LAST.encode(), b"ef" * 32)
    for content in (b"", b"%PDF-1.7", b"<!DOCTYPE html>", REPORT + other):
        with raises(InvalidFile, field="report", reason="not-a-report"):
            sign_report(content, KEY, signer="Ana")


def test_what_was_signed_comes_out_again() -> None:
    found = verify_report(REPORT, SIGNED, KEY.public_key())
    assert (found.signer, found.signed, found.head) == ("Ana Lyst", AT, HEAD)
    assert found.digest == hashlib.sha256(REPORT).hexdigest() and found.size == len(REPORT)


def test_another_key_another_report_and_another_statement_are_refused() -> None:
    with raises(SignatureRefused, reason="key"):
        verify_report(REPORT, SIGNED, Ed25519PrivateKey.generate().public_key())
    with raises(SignatureRefused, reason="report"):
        verify_report(REPORT.replace(b"Nothing", b"Much"), SIGNED, KEY.public_key())
    with raises(SignatureRefused, reason="signature"):
        verify_report(REPORT, SIGNED.replace(b"Ana", b"Bob"), KEY.public_key())


def test_there_is_one_way_to_write_a_signature() -> None:
    letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    for end in (b"=\nsignature: ", b"==\n"):
        place = SIGNED.rindex(end) - 1  # its last bits belong to no byte
        for letter in set(letters) - {SIGNED[place]}:
            changed = SIGNED[:place] + bytes([letter]) + SIGNED[place + 1 :]
            with pytest.raises((SignatureRefused, InvalidFile)):
                verify_report(REPORT, changed, KEY.public_key())


@given(st.integers(0, len(SIGNED) - 1), st.integers(1, 255))
def test_no_byte_of_a_signature_can_be_changed(place: int, change: int) -> None:
    changed = bytearray(SIGNED)
    changed[place] ^= change
    with pytest.raises((SignatureRefused, InvalidFile)):
        verify_report(REPORT, bytes(changed), KEY.public_key())


@given(st.integers(0, len(SIGNED)), st.binary(min_size=1, max_size=20))
def test_nothing_can_be_inserted_or_left_out(place: int, more: bytes) -> None:
    for changed in (SIGNED[:place] + more + SIGNED[place:], SIGNED[:place]):
        if changed != SIGNED:
            with pytest.raises((SignatureRefused, InvalidFile)):
                verify_report(REPORT, changed, KEY.public_key())


@pytest.mark.parametrize("signer", ["", "  ", "a\nb", "x" * 201, "a\u202eb", "a\x00"])
def test_a_signer_is_named_in_one_visible_line(signer: str) -> None:
    with raises(InvalidFile, field="signer"):
        sign_report(REPORT, KEY, signer=signer)


def test_keys_are_private_and_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "own.key"
    public = make_key(path)
    assert path.stat().st_mode & 0o077 == 0
    assert read_private_key(path.read_bytes()).public_key() == public
    assert read_public_key(public_file(path).read_bytes()) == public
    before = path.read_bytes()
    with raises(InvalidFile):
        make_key(path)
    public_file(path).unlink()
    with raises(InvalidFile):
        make_key(path)
    assert path.read_bytes() == before and not public_file(path).exists()


def test_a_locked_key_needs_its_passphrase(tmp_path: Path) -> None:
    path = tmp_path / "locked.key"
    public = make_key(path, passphrase=b"one two three")
    assert read_private_key(path.read_bytes(), passphrase=b"one two three").public_key() == public
    for given_ in (None, b"another"):
        with raises(InvalidFile, reason="passphrase"):
            read_private_key(path.read_bytes(), passphrase=given_)


def test_a_private_key_is_not_taken_for_a_public_one(tmp_path: Path) -> None:
    make_key(tmp_path / "k")
    with raises(InvalidFile, reason="private"):
        read_public_key((tmp_path / "k").read_bytes())
    for content in (b"", b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"):
        with raises(InvalidFile, reason="not-a-key"):
            read_public_key(content)
        with raises(InvalidFile, reason="not-a-key"):
            read_private_key(content)


def test_openssl_agrees(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl")
    pem = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    lines = SIGNED.splitlines(keepends=True)
    (tmp_path / "key.pem").write_bytes(pem)
    (tmp_path / "signature").write_bytes(b64decode(lines[-1].split()[-1]))
    command = "openssl pkeyutl -verify -pubin -inkey key.pem -rawin -in text -sigfile signature"
    for text, status in ((b"".join(lines[:-2]), 0), (b"".join(lines[:-2]) + b"\n", 1)):
        (tmp_path / "text").write_bytes(text)
        ran = subprocess.run(command.split(), cwd=tmp_path, capture_output=True, check=False)  # noqa: S603
        assert ran.returncode == status, ran.stderr
