"""What `takifugu serve --check` finds: everything at once, each with what to do."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from takifugu.errors import TakifuguError

Level = Literal["ok", "warning", "wrong"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        name: What was looked at: a short name that does not change.
        level: "ok"; "warning", which may be meant so; or "wrong", which must be mended.
        found: What is there.
        advice: What to do; empty if nothing.
    """

    name: str
    level: Level
    found: str
    advice: str = ""


def ok(name: str, found: str) -> Finding:
    """Nothing is to be done."""
    return Finding(name, "ok", found)


def warning(name: str, found: str, advice: str) -> Finding:
    """Look at it: it may be meant so."""
    return Finding(name, "warning", found, advice)


def wrong(name: str, found: str, advice: str) -> Finding:
    """It must be mended."""
    return Finding(name, "wrong", found, advice)


def gathered(name: str, look: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """What one look finds; an error is a finding too, and does not end the others."""
    try:
        return list(look())
    except TakifuguError as error:
        message, _, advice = str(error).partition("; it must ")
        return [wrong(name, message, f"it must {advice}" if advice else "mend it, and check again")]
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        where = "" if error.filename is None else f"{str(error.filename)!r}: "
        return [wrong(name, f"{where}{reason}", "let this user read it, or name another")]
