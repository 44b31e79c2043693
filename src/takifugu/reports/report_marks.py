"""Which event of which ledger a report is as of, written into its file for programs.

It stands in a ``<meta>`` element of the page, and in a comment after the end of the PDF, where no
text of the report can stand: text in a page is escaped.
"""

import re
from dataclasses import dataclass

from takifugu.errors import InvalidFile

LEDGER_MARK = "takifugu-ledger"
_VALUE = rb"takifugu-ledger ([0-9a-f]{64}) ([0-9]{1,15}) ([0-9a-f]{64})"
_PAGE = re.compile(rb'<meta name="takifugu-ledger" content="' + _VALUE + rb'">')
_PDF = re.compile(rb"%%EOF\n?%" + _VALUE + rb"\n\Z")


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
