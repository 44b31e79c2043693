"""Which part a column probably plays, by its name and type alone. Every guess has a reason.

A guess is only ever a proposal: no column is guessed to be public, and what nobody chose is left
out, which is safe, since a column that is not declared is not read.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from takifugu.drafting.source_schema import SchemaColumn
from takifugu.tables.backends.duckdb_backend import BOOLEAN


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PEOPLE = _words(
    "user person people participant patient subject customer client member respondent student "
    "pupil employee worker driver passenger rider resident citizen voter donor volunteer "
    "individual consumer subscriber player author child mother household meter device card "
    "account owner tenant visitor guest nurse doctor recording animal vehicle sensor login "
    "nutzer kunde patientin proband teilnehmer usuario utilisateur"
)
IDENTIFIERS = _words("id idx index uid uuid guid key no nr num hash pseudonym")
ALONE = _words("id uid pid uuid guid pseudonym")
MOMENTS = _words("timestamp datetime at unix utc ts")
TIMES = _words(
    "time date day epoch when moment begin start started created step seq sequence order row "
    "position interval"
)
CLOCKS = _words("t hour week month year minute second wave visit round slot period index line")
UNIX = _words("unix ts timestamp")
SENSITIVE = _words(
    "place location venue category cat activity stage state status label diagnosis disease "
    "condition symptom result outcome event class mode job occupation religion party vote "
    "drug treatment medication room behaviour behavior action purchase product item topic "
    "mood answer response choice offence crime infection test level type annotation sleep"
)
NUMBERS = _words(
    "kwh consumption reading value amount power load temperature temp glucose pulse heart hr "
    "bpm rate pressure weight income salary usage energy demand score dose price spent spend"
)
GROUPS = _words(
    "country city region state sex gender age group cohort site school hospital department "
    "block zone ward arm wave dataset district county province class year"
)
STRANGE = _words(
    "name email mail phone address comment note notes text description url lat lon latitude "
    "longitude lng geometry zip postcode file path"
)
ROWS = _words("row rowid rowname rownames rownum rownumber index idx line unnamed obs observation")
KNOWN = PEOPLE | SENSITIVE | NUMBERS | GROUPS | CLOCKS | TIMES | IDENTIFIERS


@dataclass(frozen=True)
class Guess:
    """A column for a part of the declaration, and why.

    Attributes:
        column: The column; None if several, or none, would do.
        reason: Why, in words.
        others: Other columns that would do.
    """

    column: str | None
    reason: str
    others: tuple[str, ...] = ()


def words_of(name: str) -> tuple[str, ...]:
    """The words of a name, one of each: ``userId`` and ``user_ids`` are "user", "id"."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    words = [word for word in re.split(r"[\W_]+", apart.lower()) if word]
    return tuple(word[:-1] if word.endswith("s") and word[:-1] in KNOWN else word for word in words)


def guess_entity(columns: Sequence[SchemaColumn]) -> Guess:
    """The column that says whose row it is."""
    scores = {
        c.name: _entity(c) for c in columns if c.kind in ("text", "whole") and c.type != BOOLEAN
    }
    return _best(scores, "by its name, whose row it is", "no name of a column says whose row it is")


def _entity(column: SchemaColumn) -> int:
    words = words_of(column.name)
    if set(words) & PEOPLE:
        if set(words) & STRANGE:
            return 1
        return (
            5 if words[-1:] == ("id",) or len(words) == 1 else 4 if set(words) & IDENTIFIERS else 3
        )
    return 2 if len(words) == 1 and words[0] in ALONE else 0


def likely_entities(columns: Sequence[SchemaColumn]) -> tuple[str, ...]:
    """Columns that may say whose row it is, where no name says so: numbers of things, not of rows.

    Those that are called a number of something come alone, if there are any.
    """
    free = [c for c in columns if c.kind in ("text", "whole") and c.type != BOOLEAN]
    likely = [c for c in free if not {*words_of(c.name)} & (ROWS | STRANGE | MOMENTS | TIMES)]
    numbered = [c.name for c in likely if {*words_of(c.name)} & IDENTIFIERS]
    return tuple(numbered or (c.name for c in likely))


def likely_public(columns: Sequence[SchemaColumn]) -> tuple[str, ...]:
    """Columns that everyone may know, perhaps: no numbers of people or of rows, groups first."""
    free = [c for c in columns if c.kind in ("text", "whole")]
    never = ROWS | STRANGE | IDENTIFIERS | PEOPLE
    likely = [c.name for c in free if not {*words_of(c.name)} & never]
    return tuple(sorted(likely, key=lambda name: not {*words_of(name)} & GROUPS))


def guess_order(columns: Sequence[SchemaColumn], taken: str | None) -> Guess:
    """The column that puts the rows of an entity in order."""
    scores = {c.name: _order(c) for c in columns if c.name != taken}
    return _best(
        scores, "by its name and type, a time or a position", "no column is a time or a position"
    )


def _order(column: SchemaColumn) -> int:
    words = set(words_of(column.name))
    named = 4 if words & MOMENTS else 3 if words & TIMES else 2 if words & CLOCKS else 0
    if column.kind in ("time", "zoned"):
        return 10 + named
    if column.kind == "text":  # a time as it is often written in CSV
        return named if named >= 3 and not words & IDENTIFIERS and "row" not in words else 0
    if words & PEOPLE or words & (IDENTIFIERS - {"index"}) or column.kind not in ("whole", "real"):
        return 0
    others = words - MOMENTS - TIMES - CLOCKS - {"s", "ms", "of", "idx"}
    return max(0, 2 * named - 2 * len(others) if "index" in words or others else 2 * named)


def guess_protected(columns: Sequence[SchemaColumn], taken: Sequence[str]) -> dict[str, str]:
    """The columns to protect, each with the reason: labels before numbers, where both would do."""
    free = [c for c in columns if c.name not in taken]
    labels = {c.name: _label(c) for c in free if c.kind == "text"}
    numbers = {c.name: _number(c) for c in free if c.kind in ("whole", "real")}
    for best in (2, 1):
        for scores, what in ((labels, "text"), (numbers, "numbers")):
            names = [name for name, score in scores.items() if score == best]
            if names:
                why = f"{what}, by its name something to protect" if best > 1 else f"holds {what}"
                return dict.fromkeys(names, why)
    return {}


def _label(column: SchemaColumn) -> int:
    words = set(words_of(column.name))
    if column.categories is not None and column.type != BOOLEAN and not words & GROUPS:
        return 2
    if words & IDENTIFIERS:
        return 0
    if words & SENSITIVE and not words & (GROUPS - SENSITIVE):
        return 2
    return 0 if words & (GROUPS | STRANGE) else 1


def _number(column: SchemaColumn) -> int:
    words = set(words_of(column.name))
    if words & (STRANGE | IDENTIFIERS | PEOPLE):
        return 0
    if words & NUMBERS:
        return 2
    return 0 if words & (GROUPS | CLOCKS | TIMES) else 1


def _best(scores: dict[str, int], why: str, why_not: str) -> Guess:
    most = max(scores.values(), default=0)
    best = tuple(name for name, score in scores.items() if score == most)
    if most <= 0:
        return Guess(None, why_not)
    if len(best) > 1:
        return Guess(None, f"{' and '.join(best)} would all do", best)
    others = sorted((n for n, s in scores.items() if 0 < s < most), key=lambda n: -scores[n])
    return Guess(best[0], why, tuple(others))
