"""What a case must not do: end in a traceback, tell a canary, leave something behind."""

import csv
import io
import re
import struct
import traceback
from collections.abc import Iterable
from dataclasses import dataclass

from takifugu.cli import exit_status
from takifugu.visible import visible
from torture.inputs.canary_study import CANARIES, LABEL, NUMBER, PERSON, STATE
from torture.inputs.case import Case
from torture.inputs.unpacked import unpacked
from torture.inputs.workplace import PASSING

CACHE = ".takifugu/"  # what was computed is kept, whatever becomes of the command
LONGEST = 3_000  # letters of a message
PUBLISHING = (
    "public",
    "state",
    "labels",
    "ties",
    "columns",
    "household",
    "member",
    "profile",
    "by",
    "order",
)
COLUMNS = {"person": PERSON, "illness": LABEL, "score": NUMBER}
OWNERS = ("quickstart", "dataset new", "prior fit", "dataset add")
FOUND_LABELS = "wards"  # the dataset that takes the labels of illness from the fitted rows
UNFINISHED = exit_status.UNDELIVERED  # released and charged: the ledger has changed, as documented


@dataclass(frozen=True)
class Said:
    """What a command said.

    Attributes:
        status: Its exit status.
        out: On standard output.
        err: On standard error.
        error: What it ended with, if that was a deliberate error.
        log: Whatever was logged.
        beside: On file descriptors 1 and 2, past Python's streams.
    """

    status: int
    out: str
    err: str
    error: BaseException | None
    log: str
    beside: bytes = b""


def wrong_words(case: Case, said: Said) -> list[str]:
    """What is wrong with what a command said, whatever it was about."""
    found = []
    shows_first = (  # what is open, or what one is to say yes to; then 2, as their help says
        case.words[:1] == ("quickstart",) or getattr(said.error, "field", "") == "--yes"
    )
    if said.status not in exit_status.MEANINGS:
        found.append(f"status {said.status} is not documented")
    lines = said.err.splitlines()
    if said.status and said.status != exit_status.FAILED:
        if not lines or not all(line.startswith("takifugu: ") for line in lines[-1:]):
            found.append(f"status {said.status} without a line that says why: {said.err[:200]!r}")
        if said.out and not shows_first:
            found.append(f"status {said.status} with output on stdout: {said.out[:200]!r}")
    beside = said.beside.decode("utf-8", "replace").splitlines()
    found += [f"a warning of Python: {line[:200]!r}" for line in lines + beside if _is_python(line)]
    if any(len(line) > LONGEST for line in lines):
        found.append(f"a line of {max(map(len, lines))} letters")
    if any(visible(text, keep="\n") != text for text in (said.out, said.err)):
        found.append("characters that act on a terminal")
    return found


def _is_python(line: str) -> bool:
    return bool(re.search(r"\.py:\d+:|Traceback \(most|\w(?:Warning|Error):", line))


def chain_text(error: BaseException | None) -> str:
    """An error as Python shows it, with those that it came from; what a notebook would show."""
    if error is None:
        return ""
    return "".join(traceback.format_exception(error)) + repr(vars(error))


def forms(canary: str) -> tuple[bytes, ...]:
    """A canary as bytes: as text, and a number as processors and databases keep it."""
    texts = (canary.encode(), canary.encode("utf-16-le"))
    if canary != NUMBER:
        return texts
    return (*texts, struct.pack("<d", float(canary)), struct.pack(">d", float(canary)))


FORMS = {canary: forms(canary) for canary in CANARIES}


def told(case: Case, places: Iterable[tuple[str, str | bytes]]) -> list[str]:
    """The canaries in these places, or packed in them, that the case did not ask to publish."""
    found: dict[str, str] = {}
    for place, content in places:
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        for part in unpacked(data):
            for canary, written in FORMS.items():
                if any(form in part for form in written):
                    found[f"the canary {canary} is in {place}"] = canary
    public = published(case) if found else set()
    return [what for what, canary in found.items() if canary not in public]


def published(case: Case) -> set[str]:
    """The canaries that a case publishes by intent: a column is declared public, or its labels."""
    name = " ".join(case.words[:2])
    found = {canary for canary in CANARIES if any(canary in word for word in case.words)}
    if name == "prior fit":
        found |= _fitted(case)
    if not name.startswith(OWNERS):
        return found
    for option, value in pairs(case.words):
        if option.lstrip("-") in PUBLISHING:
            found |= {canary for column, canary in COLUMNS.items() if column in value}
    return found


def _fitted(case: Case) -> set[str]:
    """What a fit publishes as its labels: those that it finds on the rows, as its help says."""
    options = dict(pairs(case.words))
    found = set()
    if FOUND_LABELS in case.words and options.get("--at-least", "1").strip() in ("", "0", "1"):
        found.add(LABEL)  # it is of one person
    for name, put in case.files.items():
        if name in case.words and "--state" in options:
            cells = _cells(put.content, options["--state"])
            found |= {canary for canary in CANARIES if any(canary in cell for cell in cells)}
    return found


def _cells(data: bytes, column: str) -> list[str]:
    """The cells of a column of spoiled rows, whatever their commas have become."""
    *_, text = unpacked(data, 1)
    reader = csv.DictReader(io.StringIO(text.decode("utf-8-sig", "replace"), newline=""))
    try:
        return [str(row.get(column) or "") for row in reader]
    except csv.Error:
        return []


def pairs(words: tuple[str, ...]) -> Iterable[tuple[str, str]]:
    """Options and their values, written as ``--a=b`` or as ``--a b``."""
    for number, word in enumerate(words):
        if word.startswith("--"):
            option, mark, value = word.partition("=")
            yield option, value if mark else "".join(words[number + 1 : number + 2])


def same_database(before: bytes, after: bytes) -> bool:
    """Whether two files of SQLite differ in nothing but how they were last opened.

    Opening one for writing notes in its head that there may be a log beside it.
    """
    if not before.startswith(b"SQLite format 3\0") or len(before) != len(after):
        return False
    return _without_marks(before) == _without_marks(after)


def _without_marks(database: bytes) -> bytes:
    return database[:18] + database[20:24] + database[28:92] + database[100:]


def left_behind(status: int, changed: Iterable[str]) -> list[str]:
    """What a command that failed has left, or any command half-written."""
    names = [
        name
        for name in changed
        if not name.startswith((STATE, CACHE)) and not name.endswith(PASSING)
    ]
    found = [f"left a half-written file: {name}" for name in names if name.endswith(".part")]
    found += [f"left a temporary file: {name}" for name in names if name.startswith("../tmp/")]
    if status not in (exit_status.DONE, UNFINISHED) and names:
        found.append(f"status {status}, but changed {', '.join(names[:5])}")
    return found
