"""The report of a project as a file to send: HTML or PDF, the same bytes for the same project."""

import base64
import hashlib
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from takifugu._atomic import write_whole
from takifugu.errors import InvalidFile
from takifugu.keys import state_folder
from takifugu.project import Project
from takifugu.reports.html_page import Page
from takifugu.reports.report_signature import SUFFIX

KINDS = {"report.html": "text/html; charset=utf-8", "report.pdf": "application/pdf"}
SIGNATURE = "text/plain; charset=utf-8"
MAX_KEPT_PDFS = 32
_STYLE = re.compile(r"<style[^>]*>(.*?)</style>", re.DOTALL)
Progress = Callable[[str], None]


def report_file(
    project: Project,
    name: str,
    datasets: Sequence[str],
    *,
    signing_key: str | None = None,
    signer: str = "",
    progress: Progress | None = None,
) -> dict[str, Any]:
    """A report, or its signature.

    Args:
        project: The project that it is about.
        name: "report.html" or "report.pdf"; with ".sig" at its end, the signature of that file.
        datasets: What it is about; empty for everything.
        signing_key: The file of the Ed25519 key, for a signature.
        signer: Who asks for a signature; the key is the server's.
        progress: Called with what is being done.

    Returns:
        ``content``; ``type``; ``policy`` for browsers, of a page; ``head`` (seq and hash) that the
        report states; ``sound``; and ``sha256`` of the report itself.
    """
    from takifugu.project.project_report import project_report
    from takifugu.reports.report_page import report_page

    file = name.removesuffix(SUFFIX)
    if file == "report.pdf":
        from takifugu.reports.pdf_file import check_pdf

        check_pdf()  # before the work
    report = project_report(project, tuple(datasets), progress=progress)
    page = report_page(report)
    if file == "report.pdf":
        if progress is not None:
            progress("making the PDF")
        content = _kept_pdf(page)
    else:
        content = page.html().encode()
    facts = {
        "head": {"seq": report.ledger.seq, "hash": report.ledger.hash},
        "sound": report.ledger.sound,
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    if file != name:
        from takifugu.reports.report_signature import read_private_key, sign_report

        key = read_private_key(Path(signing_key or "").read_bytes())
        signed = sign_report(content, key, signer=f"the server, as {signer} asked")
        return {"content": signed, "type": SIGNATURE, "policy": None} | facts
    policy = page_policy(content) if file == "report.html" else None
    return {"content": content, "type": KINDS[file], "policy": policy} | facts


def _kept_pdf(page: Page) -> bytes:
    """The PDF of a page, made once, so that what was downloaded is what is signed.

    Fonts or WeasyPrint may be renewed in between, and would give other bytes. A page states the
    head of the ledger, so that another head has another PDF. Where nothing can be kept, the PDF is
    made again.
    """
    from takifugu.reports.pdf_file import pdf_of

    text = page.html(paper=True) + "".join(page.marks.values())
    path = state_folder() / "reports" / f"{hashlib.sha256(text.encode()).hexdigest()}.pdf"
    with suppress(OSError):
        return path.read_bytes()
    content = pdf_of(page)
    with suppress(OSError, InvalidFile):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(path, content, private=True, refuse_existing=True)
        newest_last = sorted(path.parent.glob("*.pdf"), key=lambda kept: kept.stat().st_mtime)
        for old in newest_last[:-MAX_KEPT_PDFS]:
            old.unlink(missing_ok=True)
    with suppress(OSError):  # of two that made it at once, the first was kept
        return path.read_bytes()
    return content


def page_policy(content: bytes) -> str:
    """A content security policy under which a page of ours shows as it does from a file.

    Nothing is fetched, nothing runs, nothing is sent; the only style sheets are those of the page,
    by their hashes. Attributes of elements may set widths, as figures and tables do.
    """
    sheets = dict.fromkeys(_STYLE.findall(content.decode()))
    marks = " ".join(f"'sha256-{_hash(sheet)}'" for sheet in sheets) or "'none'"
    return (
        f"default-src 'none'; style-src 'none'; style-src-elem {marks};"
        " style-src-attr 'unsafe-inline'; base-uri 'none'; form-action 'none';"
        " frame-ancestors 'none'; sandbox"
    )


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
