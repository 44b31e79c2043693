"""The chain of an exported ledger, checked by somebody who has nothing but the file.

An export has one event a line: its hash, and the text that was hashed (`LedgerViews.export`). So
each hash can be computed again from the one before it, without the ledger and without its software.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from takifugu._atomic import read_whole
from takifugu.errors import InvalidFile, LedgerDamaged
from takifugu.ledger.events.event_chain import ROOT, Anchor, link

_BEFORE, _BETWEEN, _AFTER = '{"hash":"', '","body":', "}"
_DIGITS = 64


@dataclass(frozen=True)
class ExportedChain:
    """What an export holds, if every event follows from the one before it.

    Attributes:
        events: How many there are.
        origin: The first of them, which no other ledger has.
        head: The last.
        ledger: The name that the ledger was given when it was made: its witness knows it by that;
            None if the first event does not say.
    """

    events: int
    origin: Anchor
    head: Anchor
    ledger: str | None = None


def check_export(path: Path, anchors: Sequence[Anchor] = ()) -> ExportedChain:
    """The chain of an export, all of it checked; `LedgerDamaged` if it breaks anywhere.

    Args:
        path: What `takifugu ledger export` wrote.
        anchors: Events that must be in it with these hashes.
    """
    wanted = {anchor.seq: anchor.hash for anchor in anchors}
    previous, origin, ledger = ROOT, "", None
    needed = "be as `takifugu ledger export` wrote it"
    *lines, last = read_whole(path, field="export", needed=needed).split("\n")
    if last or not lines:
        raise _unreadable(len(lines) + 1)
    for seq, line in enumerate(lines, 1):
        hash_, text = _parts(line, seq)
        if hash_ != link(previous, text):
            raise LedgerDamaged(
                f"event {seq} of the export does not follow from the one before it: the file was"
                " changed. Ask for the original",
                reason="edited",
                event=seq,
            )
        if wanted.pop(seq, hash_) != hash_:
            raise LedgerDamaged(
                f"event {seq} of the export is another one than the recorded one: it is another"
                " history",
                reason="anchor",
                event=seq,
            )
        if seq == 1:
            origin, ledger = hash_, _ledger_in(text)
        previous = hash_
    if wanted:
        missing = min(wanted)
        raise LedgerDamaged(
            f"the export ends with event {seq} and lacks event {missing}, which was recorded: it"
            " is older, or was cut. Ask for a newer one",
            reason="missing",
            event=missing,
        )
    return ExportedChain(seq, Anchor(1, origin), Anchor(seq, previous), ledger)


def _ledger_in(text: str) -> str | None:
    """The name of a ledger in its first event; None if that does not say."""
    try:
        return str(json.loads(text)["ledger"])
    except (ValueError, KeyError, TypeError):
        return None


def _parts(line: str, seq: int) -> tuple[str, str]:
    """The hash of an event, and the text that was hashed."""
    end = len(_BEFORE) + _DIGITS
    body = end + len(_BETWEEN)
    if not (line.startswith(_BEFORE) and line[end:body] == _BETWEEN and line.endswith(_AFTER)):
        raise _unreadable(seq)
    return line[len(_BEFORE) : end], line[body : -len(_AFTER)]


def _unreadable(seq: int) -> InvalidFile:
    return InvalidFile(
        "export",
        given=f"has no event in line {seq}",
        needed="be as `takifugu ledger export` wrote it",
        reason="not-an-export",
    )
