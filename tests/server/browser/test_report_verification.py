"""Signed reports are verified in the browser, as `takifugu report verify` does it."""

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("cryptography")

from cryptography.hazmat.primitives.asymmetric import ec, ed448, x25519
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from takifugu.errors import InvalidFile
from takifugu.ledger.events.event_chain import ROOT, link
from takifugu.reports.report_signature import (
    SignatureRefused,
    ledger_mark,
    make_key,
    public_file,
    sign_report,
)
from tests.cli.running import call
from tests.pdf_needs import weasyprint_or_skip
from tests.server.browser.browsing import PATIENCE, Seat, make_tokens, seated
from tests.server.browser.test_access_to_pages import barriers
from tests.server.projects import small_project
from tests.server.running import RunningServer, running_server

pytestmark = pytest.mark.nightly

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

expect = pytest.importorskip("playwright.sync_api").expect
expect.set_options(timeout=PATIENCE)

KEY, OTHER = (Ed25519PrivateKey.from_private_bytes(bytes([k] * 32)) for k in (1, 2))
IN_THE_BROWSER = """async (cases) => {
  const { Refused, WrongFile, verified, words } = await import("/static/report_verification.js");
  const bytes = (text) =>
    text === null ? null : Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
  const found = [];
  for (const [report, signature, key, exported] of cases) {
    const files = { report, signature, key, exported };
    for (const name in files) files[name] = bytes(files[name]);
    try {
      const lines = words(await verified({ ...files, name: "events.jsonl" }));
      found.push(["valid", lines.join("\\n") + "\\n", "", ""]);
    } catch (error) {
      const kind = error instanceof Refused ? "refused" : error instanceof WrongFile ? "file" : "?";
      found.push([kind, error.message, error.field, error.reason]);
    }
  }
  return found;
}"""


def pem(key: Any) -> bytes:
    """The public half of a key."""
    text: bytes = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return text


def exported(*bodies: str) -> bytes:
    """A ledger of these events, as it is exported."""
    lines, previous = "", ROOT
    for body in bodies:
        previous = link(previous, body)
        lines += f'{{"hash":"{previous}","body":{body}}}\n'
    return lines.encode()


def hash_of(export: bytes, seq: int) -> str:
    """The hash of an event of an export."""
    found: str = json.loads(export.splitlines()[seq - 1])["hash"]
    return found


BODIES = [f'{{"seq":{k},"who":"Zoë 𝔸\u2028"}}' for k in range(1, 8)]
EXPORT = exported(*BODIES)
LONG = exported(*BODIES, *(f"{{{k}}}" for k in range(8, 4100)))  # hashed in several turns
HEAD = ledger_mark(hash_of(EXPORT, 1), 5, hash_of(EXPORT, 5))
FIRST = ledger_mark(hash_of(EXPORT, 1), 1, hash_of(EXPORT, 1))
PAGE = f'<!doctype html><meta name="takifugu-ledger" content="{HEAD}"><p>über 5 𝔸'.encode()
PDF = b"%PDF-1.7\n\xff\x80\x00 some bytes\n%%EOF\n%" + HEAD.encode() + b"\n"


@dataclass(frozen=True)
class Files:
    """What somebody chooses."""

    report: bytes = PAGE
    signature: bytes = sign_report(PAGE, KEY, signer="Ana Lyst, Zürich")
    key: bytes = pem(KEY)
    export: bytes | None = EXPORT


def signed(text: bytes, report: bytes = PAGE) -> Files:
    """A statement that the right key signed, whatever it says."""
    public = b64encode(KEY.public_key().public_bytes_raw())
    mark = b64encode(KEY.sign(text))
    return Files(report, text + b"public key: " + public + b"\nsignature: " + mark + b"\n")


FINE = Files()
TEXT = FINE.signature[: FINE.signature.index(b"public key: ")]
TIME = re.search(rb"signed: (.{25})\n", TEXT)[1]  # type: ignore[index]
TWICE = PAGE.replace(b"<p>", f'<meta name="takifugu-ledger" content="{FIRST}">'.encode())
LINES = EXPORT.splitlines(keepends=True)
PUBLIC = pem(KEY)
TABLE: dict[str, Files] = {
    "fine": FINE,
    "without an export": replace(FINE, export=None),
    "a PDF": Files(PDF, sign_report(PDF, KEY, signer="Ana")),
    "a PDF of the first event": Files(
        PDF.replace(HEAD.encode(), FIRST.encode()),
        sign_report(PDF.replace(HEAD.encode(), FIRST.encode()), KEY, signer="Ana"),
    ),
    "another key": replace(FINE, key=pem(OTHER)),
    "signed by another": replace(FINE, signature=sign_report(PAGE, OTHER, signer="Ana Lyst")),
    "a changed report": replace(FINE, report=PAGE.replace(b"5", b"6")),
    "a longer report": replace(FINE, report=PAGE + b"\n"),
    "an empty report": replace(FINE, report=b""),
    "the signature of another file": replace(FINE, signature=sign_report(PDF, KEY, signer="A")),
    "another signer": replace(FINE, signature=FINE.signature.replace(b"Ana", b"Bob")),
    "another size": replace(FINE, signature=FINE.signature.replace(b"size: ", b"size: 1")),
    "a false size, signed": signed(TEXT.replace(b"size: ", b"size: 1")),
    "a false digest, signed": signed(re.sub(rb"sha256 .{4}", b"sha256 0000", TEXT)),
    "another event, signed": signed(TEXT.replace(b"event: 5", b"event: 4")),
    "another ledger, signed": signed(re.sub(rb"ledger: .{4}", b"ledger: 0000", TEXT)),
    "zeros before a number": signed(TEXT.replace(b"event: 5", b"event: 05")),
    "zeros before the size": signed(TEXT.replace(b"size: ", b"size: 0")),
    "no event": signed(TEXT.replace(b"event: 5", b"event: 0"), PAGE),
    "half a letter in the name": signed(TEXT.replace("ü".encode(), b"\xc3")),
    "a mark that reverses": signed(TEXT.replace("ü".encode(), "\u202e\x1b[2J\u200b".encode())),
    "other hidden marks": signed(
        TEXT.replace(b"Ana", "\ue000\U000e0100\U000e0fff\ufdd0\U0001ffff\ufff1\ufeff".encode())
    ),
    "markup in the name": signed(TEXT.replace(b"Ana", b"<img src=x onerror=alert(1)>`Ana")),
    "a name of 800 bytes": signed(re.sub(rb"signer: .*", b"signer: " + b"x" * 800, TEXT)),
    "a name of 801 bytes": signed(re.sub(rb"signer: .*", b"signer: " + b"x" * 801, TEXT)),
    "no name": signed(re.sub(rb"signer: .*", b"signer: ", TEXT)),
    "another purpose": signed(TEXT.replace(b"signature 1", b"signature 2")),
    "lines of Windows": replace(FINE, signature=FINE.signature.replace(b"\n", b"\r\n")),
    "something after it": replace(FINE, signature=FINE.signature + b"\n"),
    "something before it": replace(FINE, signature=b"\xef\xbb\xbf" + FINE.signature),
    "no signature": replace(FINE, signature=b""),
    "a huge signature": replace(FINE, signature=FINE.signature + b"x" * 10_000),
    "not base64": replace(FINE, signature=re.sub(rb"y: ..", b"y: ==", FINE.signature)),
    "a report that is none": signed(TEXT, b"<p>"),
    "marks of two events": Files(TWICE, sign_report(PAGE, KEY, signer="A")),
    "a private key": replace(FINE, key=PUBLIC.replace(b"PUBLIC", b"PRIVATE")),
    "no key": replace(FINE, key=b""),
    "half a key": replace(FINE, key=PUBLIC[:60]),
    "a key in DER": replace(
        FINE, key=KEY.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    ),
    "a key of SSH": replace(
        FINE, key=KEY.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    ),
    "a key of Windows": replace(FINE, key=PUBLIC.replace(b"\n", b"\r\n")),
    "a key without its last line break": replace(FINE, key=PUBLIC.strip()),
    "a key with words": replace(FINE, key=b"The key of Ana\xff:\n" + PUBLIC + b"thanks\n"),
    "a key in two lines": replace(FINE, key=PUBLIC[:40] + b"\n  " + PUBLIC[40:]),
    "two keys": replace(FINE, key=PUBLIC + pem(OTHER)),
    "two keys, the other first": replace(FINE, key=pem(OTHER) + PUBLIC),
    "a key after something else": replace(FINE, key=PUBLIC.replace(b"PUBLIC", b"MY") + PUBLIC),
    "a key that begins twice": replace(FINE, key=PUBLIC.splitlines()[0] + PUBLIC),
    "a key without its end": replace(FINE, key=PUBLIC.replace(b"=", b"")),
    "a key of ECDSA": replace(FINE, key=pem(ec.generate_private_key(ec.SECP256R1()))),
    "a key of X25519": replace(FINE, key=pem(x25519.X25519PrivateKey.generate())),
    "a key of Ed448": replace(FINE, key=pem(ed448.Ed448PrivateKey.generate())),
    "a cut export": replace(FINE, export=b"".join(LINES[:4])),
    "an export just long enough": replace(FINE, export=b"".join(LINES[:5])),
    "an export cut within a line": replace(FINE, export=EXPORT[:-5]),
    "an export without its last line break": replace(FINE, export=EXPORT[:-1]),
    "no export": replace(FINE, export=b""),
    "an export of one empty line": replace(FINE, export=b"\n"),
    "an export of Windows": replace(FINE, export=EXPORT.replace(b"\n", b"\r\n")),
    "an export of old machines": replace(FINE, export=EXPORT.replace(b"\n", b"\r")),
    "an export with a first mark": replace(FINE, export=b"\xef\xbb\xbf" + EXPORT),
    "an export that is no text": replace(FINE, export=EXPORT.replace("ë".encode(), b"\xff")),
    "a changed event": replace(FINE, export=EXPORT.replace(b'"seq":3', b'"seq":9')),
    "a changed last event": replace(FINE, export=EXPORT.replace(b'"seq":7', b'"seq":9')),
    "an event left out": replace(FINE, export=b"".join(LINES[:2] + LINES[3:])),
    "events in another order": replace(FINE, export=b"".join([*LINES[:3], LINES[4], LINES[3]])),
    "a line between": replace(FINE, export=b"".join([*LINES[:3], b"{}\n", *LINES[3:]])),
    "another ledger": replace(FINE, export=exported(*"abcdefg")),
    "another history": replace(FINE, export=exported(BODIES[0], *"bcdefg")),
    "letters in place of a hash": replace(
        FINE, export=EXPORT.replace(hash_of(EXPORT, 2).encode(), "𝔸".encode() * 64)
    ),
    "a long export": replace(FINE, export=LONG),
    "a long export, changed late": replace(FINE, export=LONG.replace(b"{3999}", b"{9}")),
    "a long export, cut late": replace(FINE, export=LONG[:-20]),
    "a long export with a line that is none": replace(FINE, export=LONG.replace(b"}}", b"}", 3000)),
}


def tampered(rng: Random) -> Iterator[Files]:
    """Files with a byte changed, each of the signature and some of the others."""
    for place in range(len(FINE.signature)):
        yield replace(FINE, signature=changed(FINE.signature, place, rng))
    for name in ("report", "key", "export"):
        whole: bytes = getattr(FINE, name)
        for place in rng.sample(range(len(whole)), min(len(whole), 150)):
            yield replace(FINE, **{name: changed(whole, place, rng)})


def changed(content: bytes, place: int, rng: Random) -> bytes:
    """One byte is another one: any, or one that may stand there."""
    other = rng.choice([rng.randrange(256), *b"0123456789abcdefABCDEF\n =+/"])
    return content[:place] + bytes([other]) + content[place + 1 :]


def by_python(files: Files, folder: Path, patch: pytest.MonkeyPatch) -> list[str]:
    """What the command says: the kind of its answer, the words, field and reason."""
    content = {"r.html": files.report, "r.sig": files.signature, "k.pub": files.key}
    for name, given in (content | {"events.jsonl": files.export or b""}).items():
        (folder / name).write_bytes(given)
    more = () if files.export is None else ("--ledger", "events.jsonl")
    command = ("report", "verify", "r.html", "--signature", "r.sig", "--key", "k.pub", *more)
    ran = call(folder, patch, *command)
    if ran.status == 0:
        return ["valid", ran.out, "", ""]
    assert isinstance(ran.error, SignatureRefused | InvalidFile), ran.error
    kind = "refused" if isinstance(ran.error, SignatureRefused) else "file"
    return [kind, str(ran.error), ran.error.field, ran.error.reason]


def by_browser(page: "Page", several: list[Files]) -> list[list[str]]:
    """The same by the script of the page."""

    def sent(content: bytes | None) -> str | None:
        return None if content is None else b64encode(content).decode()

    rows = [[sent(one) for one in (f.report, f.signature, f.key, f.export)] for f in several]
    found: list[list[str]] = page.evaluate(IN_THE_BROWSER, rows)
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that signs its reports; its public key lies beside the project's folder."""
    folder = tmp_path_factory.mktemp("signed")
    project = small_project(folder / "a study")
    make_key(folder / "server.key")
    settings: dict[str, Any] = {
        "signing_key": str(folder / "server.key"),
        "rate": 60_000,
        "burst": 5_000,
    }
    with running_server(project, **settings) as running:
        yield running


@pytest.fixture(scope="module")
def tokens(server: RunningServer) -> dict[str, str]:
    """A token for each role."""
    return make_tokens(server.project)


def test_the_script_says_what_the_command_says(
    browser: "Browser", server: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with seated(browser, server) as seat:
        seat.open("/sign-in")
        found = by_browser(seat.page, list(TABLE.values()))
    for (name, files), told in zip(TABLE.items(), found, strict=True):
        assert told == by_python(files, tmp_path, monkeypatch), name
    kinds = [kind for kind, *_ in found]
    assert kinds[:4] == ["valid"] * 4 and kinds.count("refused") >= 15 and "?" not in kinds


def test_no_changed_byte_is_judged_otherwise(
    browser: "Browser", server: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = list(tampered(Random(20261116)))  # noqa: S311 - which bytes to change
    with seated(browser, server) as seat:
        seat.open("/sign-in")
        found = by_browser(seat.page, cases)
    for files, told in zip(cases, found, strict=True):
        assert told == by_python(files, tmp_path, monkeypatch), files
        if (files.report, files.signature, files.export) != (PAGE, FINE.signature, EXPORT):
            assert told[0] != "valid"


def download(seat: Seat, path: str, link_name: str, folder: Path) -> Path:
    """Download by a link of a page, under the name that the server gives."""
    seat.open(path)
    with seat.page.expect_download(timeout=5 * PATIENCE) as downloading:  # it is being made
        seat.page.get_by_role("link", name=re.compile(f"^{link_name}")).click()
    place = folder / downloading.value.suggested_filename
    downloading.value.save_as(place)
    return place


def verify(seat: Seat, report: Path, signature: Path, key: Path, export: Path | None = None) -> Any:
    """Choose files on the page and verify them; the answer that it shows."""
    page = seat.page
    page.get_by_label("Report", exact=True).set_input_files(report)
    page.get_by_label("Signature", exact=True).set_input_files(signature)
    page.get_by_label("Public key of the signer").set_input_files(key)
    page.get_by_label("Export of the ledger").set_input_files([] if export is None else export)
    answer = page.locator("#verify-answer")
    expect(answer).to_be_empty()  # what was said of other files is gone
    page.get_by_role("button", name="Verify", exact=True).click()
    expect(answer.locator(".notice.good, .notice.alarm")).to_be_visible()
    return answer


@pytest.mark.parametrize("kind", ["HTML", "PDF"])
def test_an_auditor_verifies_what_was_downloaded(
    browser: "Browser", server: RunningServer, tokens: dict[str, str], kind: str, tmp_path: Path
) -> None:
    if kind == "PDF":
        weasyprint_or_skip()
    key = public_file(server.project.parents[1] / "server.key")
    with seated(browser, server, tokens["auditor"]) as aude:
        report = download(aude, "/reports", kind, tmp_path)
        signature = download(aude, "/reports", f"Signature of the {kind}", tmp_path)
        export = download(aude, "/ledger", "Export", tmp_path)
        assert signature.name == f"{report.name}.sig"
        aude.open("/reports")
        aude.page.wait_for_load_state("networkidle")
        sent = list[str]()
        aude.page.on("request", lambda one: sent.append(one.url))
        answer = verify(aude, report, signature, key)
        expect(answer).to_contain_text("Valid.")
        expect(answer).to_contain_text("Signed by the server, as aude asked at 20")
        expect(answer).to_contain_text("not compared")
        answer = verify(aude, report, signature, key, export)
        expect(answer).to_contain_text("which the export of")
        cut = tmp_path / "cut.jsonl"
        cut.write_bytes(b"".join(export.read_bytes().splitlines(keepends=True)[:-1]))
        answer = verify(aude, report, signature, key, cut)
        expect(answer).to_contain_text("Not valid.")
        expect(answer).to_contain_text("it is older, or was cut. Ask for a newer one")
        content = bytearray(report.read_bytes())
        content[len(content) // 2] ^= 1
        other = tmp_path / f"other{report.suffix}"
        other.write_bytes(content)
        answer = verify(aude, other, signature, key)
        expect(answer).to_contain_text("Not valid.")
        expect(answer).to_contain_text("the report was changed after it was signed")
        make_key(tmp_path / "else.key")
        answer = verify(aude, report, signature, public_file(tmp_path / "else.key"))
        expect(answer).to_contain_text("Not valid.")
        expect(answer).to_contain_text("signed with another key")
        answer = verify(aude, report, signature, tmp_path / "else.key")
        expect(answer).to_contain_text("Not verified.")
        expect(answer).to_contain_text("is a private key")
        expect(aude.page.get_by_label("Public key of the signer")).to_have_attribute(
            "aria-invalid", "true"
        )
        assert sent == []  # all of it happened in the browser


def test_a_signature_of_another_report_and_a_changed_one_are_refused(
    browser: "Browser", server: RunningServer, tokens: dict[str, str], tmp_path: Path
) -> None:
    key = public_file(server.project.parents[1] / "server.key")
    with seated(browser, server, tokens["auditor"]) as aude:
        report = download(aude, "/reports", "HTML", tmp_path)
        signature = download(aude, "/reports", "Signature of the HTML", tmp_path)
        aude.open("/reports")
        private = Ed25519PrivateKey.generate()
        later = report.read_bytes() + b"\n"
        other = tmp_path / "other.sig"
        other.write_bytes(sign_report(later, private, signer="Ana"))
        (tmp_path / "own.pub").write_bytes(pem(private))
        answer = verify(aude, report, other, tmp_path / "own.pub")
        expect(answer).to_contain_text("The signature is about another file")
        other.write_bytes(signature.read_bytes().replace(b"aude", b"anna"))
        answer = verify(aude, report, other, key)
        expect(answer).to_contain_text("The signature does not fit its statement")
        other.write_bytes(signature.read_bytes()[:-2])
        answer = verify(aude, report, other, key)
        expect(answer).to_contain_text("is not the signature of a report")
        other.write_bytes(signature.read_bytes())
        expect(verify(aude, report, other, key)).to_contain_text("Valid.")


def test_nothing_is_checked_before_the_files_are_chosen_and_the_keyboard_does_it(
    browser: "Browser", server: RunningServer, tokens: dict[str, str], tmp_path: Path
) -> None:
    for name, content in (("r.html", PAGE), ("r.html.sig", FINE.signature), ("k.pub", PUBLIC)):
        (tmp_path / name).write_bytes(content)
    with seated(browser, server, tokens["auditor"]) as aude:
        aude.open("/reports")
        page = aude.page
        button = page.get_by_role("button", name="Verify", exact=True)
        button.click()
        assert page.evaluate("document.activeElement.id") == "verify-report-file"
        expect(page.locator("#verify-answer")).to_be_empty()
        page.get_by_label("Report", exact=True).set_input_files(tmp_path / "r.html")
        page.get_by_label("Signature", exact=True).set_input_files(tmp_path / "r.html.sig")
        page.get_by_label("Public key of the signer").set_input_files(tmp_path / "k.pub")
        button.focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("status")).to_contain_text("Signed by Ana Lyst, Zürich")


@pytest.mark.nightly
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [375, 1280])
def test_what_is_said_keeps_nobody_out(
    browser: "Browser",
    server: RunningServer,
    tokens: dict[str, str],
    tmp_path: Path,
    width: int,
    scheme: str,
) -> None:
    names = ("report.html", "report.html.sig", "server.key.pub", "other.pub", "ledger.jsonl")
    report, signature, key, other, export = (tmp_path / name for name in names)
    for place, content in (
        (report, PAGE),
        (signature, FINE.signature),
        (key, PUBLIC),
        (other, pem(OTHER)),
        (export, EXPORT),
    ):
        place.write_bytes(content)
    with seated(browser, server, tokens["auditor"], width=width, scheme=scheme) as aude:
        aude.open("/reports")
        for key_file, words in ((key, "Valid."), (other, "Not valid."), (report, "Not verified.")):
            expect(verify(aude, report, signature, key_file, export)).to_contain_text(words)
            assert barriers(aude) == []
            assert aude.width() <= width


@pytest.mark.nightly
def test_without_https_or_scripts_it_says_so(
    browser: "Browser", server: RunningServer, tokens: dict[str, str]
) -> None:
    with seated(browser, server, tokens["auditor"], scripts=False) as aude:
        aude.open("/reports")
        expect(aude.page.get_by_text("This needs scripts")).to_be_visible()
        expect(aude.page.get_by_role("button", name="Verify", exact=True)).to_be_hidden()
    with seated(browser, server, tokens["auditor"]) as aude:
        aude.open("/reports")
        expect(aude.page.get_by_role("button", name="Verify", exact=True)).to_be_visible()
        expect(aude.page.get_by_text("This needs scripts")).to_be_hidden()
    insecure = "Object.defineProperty(window, 'isSecureContext', {get: () => false})"
    with seated(browser, server, tokens["auditor"]) as aude:
        aude.page.add_init_script(insecure)  # a name that is not this machine's is not answered
        aude.open("/reports")
        assert aude.page.evaluate("isSecureContext") is False
        expect(aude.page.get_by_role("status")).to_contain_text("came over https")
