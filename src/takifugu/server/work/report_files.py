"""The report of a project as a file to send: HTML or PDF, the same bytes for the same project."""

import base64
import hashlib
import re
from collections.abc import Callable, Sequence
from typing import Any

from takifugu.project import Project

KINDS = {"report.html": "text/html; charset=utf-8", "report.pdf": "application/pdf"}
_STYLE = re.compile(r"<style[^>]*>(.*?)</style>", re.DOTALL)
Progress = Callable[[str], None]


def report_file(
    project: Project, name: str, datasets: Sequence[str], progress: Progress | None = None
) -> dict[str, Any]:
    """A report: its bytes, its kind, the policy for browsers, and the head that it states."""
    from takifugu.project.project_report import project_report
    from takifugu.reports.report_page import report_page

    if name == "report.pdf":
        from takifugu.reports.pdf_file import check_pdf

        check_pdf()  # before the work
    report = project_report(project, tuple(datasets), progress=progress)
    page = report_page(report)
    if name == "report.pdf":
        from takifugu.reports.pdf_file import pdf_of

        if progress is not None:
            progress("making the PDF")
        content = pdf_of(page)
    else:
        content = page.html().encode()
    return {
        "content": content,
        "type": KINDS[name],
        "policy": page_policy(content) if name == "report.html" else None,
        "head": {"seq": report.ledger.seq, "hash": report.ledger.hash},
        "sound": report.ledger.sound,
        "sha256": hashlib.sha256(content).hexdigest(),
    }


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
