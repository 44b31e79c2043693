"""When a token ends, as people say it: ``90d``, ``12h``, a date, a time, ``never``."""

import re
from datetime import UTC, date, datetime, timedelta

from takifugu.server.state.state_errors import InvalidToken

DEFAULT = "90d"
NEEDED = "be like 90d, 12h, 2027-06-30 (the day it no longer works, in UTC), or never"
LONGEST_DAYS = 36_500
_SPAN = re.compile(r"([1-9][0-9]{0,6})([dh])")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def expiry_of(text: str, now: datetime) -> datetime | None:
    """When a token ends that is made now; None for never.

    A day is its beginning in UTC: the token works until the day before. A time needs its zone.

    >>> expiry_of("12h", datetime(2027, 1, 1, tzinfo=UTC)).isoformat()
    '2027-01-01T12:00:00+00:00'
    """
    if text == "never":
        return None
    if span := _SPAN.fullmatch(text):
        hours = int(span[1]) * (24 if span[2] == "d" else 1)
        if hours > 24 * LONGEST_DAYS:
            raise _refused(f"is {text!r:.40}", f"be at most {LONGEST_DAYS} days, or never")
        return now + timedelta(hours=hours)
    try:
        if _DAY.fullmatch(text):
            day = date.fromisoformat(text)
            ends = datetime(day.year, day.month, day.day, tzinfo=UTC)
        else:
            ends = datetime.fromisoformat(text)
    except ValueError:
        raise _refused(f"is {text!r:.40}", NEEDED) from None
    if ends.tzinfo is None:
        raise _refused(f"is {text!r:.40}, a time without its zone", "end in +00:00 or another")
    try:
        ends = ends.astimezone(UTC)
    except OverflowError:
        raise _refused(f"is {text!r:.40}", NEEDED) from None
    if ends <= now:
        raise _refused(f"is {text!r:.40}, which has passed", "be in the future")
    return ends


def _refused(given: str, needed: str) -> InvalidToken:
    return InvalidToken("expires", given=given, needed=needed, reason="expires")
