"""Rolling releases: "every Monday the counts of the last 7 days".

A schedule stands in the policy, under ``[schedule.NAME]``. Its *periods* end on days of the
calendar of the dataset (or every so many steps), and each is released once, when the rows of its
window are complete. Which periods were released is read from the ledger, by query and window, so a
second run pays nothing, whatever happened to the first one; a window whose rows changed since is
not paid for again either: what was published stays.
"""

import fcntl
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from itertools import count, islice, takewhile
from pathlib import Path
from typing import Any, Literal

from takifugu._core.toml import TomlSection
from takifugu.declarations import InvalidQuery
from takifugu.errors import InvalidFile, Malformed, TakifuguError, UnsoundRequest
from takifugu.ledger import Event
from takifugu.session.cells import rows_of
from takifugu.session.query_options import QueryOptions
from takifugu.session.session import Session

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
EVERY = ("day", *WEEKDAYS, "month")
OWN_KEYS = (
    "dataset", "every", "last", "from", "until", "delay", "analyst", "accept_noise", "folder",
)  # fmt: skip
SPAN = re.compile(r"(\d{1,5}) (day|week|month)s?")
RUN_WAIT_SECONDS = 60.0  # seconds that another run is waited for
MAX_PERIODS = 10_000  # that are over: 27 years of days
PERIODS_AHEAD = 24  # periods to come that the budget is asked for
Place = date | int  # a day, or a step of an order of numbers


@dataclass(frozen=True)
class Span:
    """A length of time on a calendar, or so many steps."""

    number: int
    unit: Literal["day", "week", "month", "step"]

    def before(self, place: Place) -> Place:
        """The place so far back."""
        return self.after(place, -1)

    def after(self, place: Place, times: int = 1) -> Place:
        """The place so far ahead, ``times`` over; a day that a month lacks is its last."""
        many = self.number * times
        if isinstance(place, int):
            return place + many
        if self.unit == "month":
            months = place.year * 12 + place.month - 1 + many
            year, month = divmod(months, 12)
            last = (date(year + (month == 11), (month + 1) % 12 + 1, 1) - timedelta(days=1)).day
            return date(year, month + 1, min(place.day, last))
        return place + timedelta(days=many * (7 if self.unit == "week" else 1))

    def __str__(self) -> str:
        return f"{self.number} {self.unit}{'' if self.number == 1 else 's'}"


@dataclass(frozen=True)
class Period:
    """One release of a schedule: the rows in [start, end)."""

    start: Place
    end: Place

    def __str__(self) -> str:
        return f"{self.start} to before {self.end}"

    @property
    def window(self) -> tuple[str | int, str | int]:
        """As a query has it."""
        ends = (self.start, self.end)
        first, last = (end if isinstance(end, int) else end.isoformat() for end in ends)
        return first, last


@dataclass(frozen=True)
class Schedule:
    """Releases that come round again.

    Attributes:
        name: What it is called in the policy.
        dataset: The dataset that it is about.
        options: The query, without its window.
        every: On which days a period ends: ``day``, ``monday`` …, ``month`` (its first day), or
            every so many steps.
        last: How long a period is.
        start: No row before this place is read.
        until: No period ends after this place; None if it goes on.
        delay: How long rows may be late: a period is complete when the order is so far past it.
        analyst: Who asks.
        accept_noise: Whether answers that are mostly noise are released.
        folder: Where results are written, from the folder of the project; None for nowhere.
    """

    name: str
    dataset: str
    options: QueryOptions
    every: str | int
    last: Span
    start: Place
    until: Place | None = None
    delay: Span | None = None
    analyst: str | None = None
    accept_noise: bool = False
    folder: str | None = None

    def periods(self) -> Iterator[Period]:
        """Its periods in order; without end if `until` is None."""
        ends = (Period(self.last.before(end), end) for end in self._ends())
        whole = (period for period in ends if not period.start < self.start)  # type: ignore[operator]
        if self.until is None:
            return whole
        until = self.until
        return takewhile(lambda period: not period.end > until, whole)  # type: ignore[operator]

    def _ends(self) -> Iterator[Place]:
        """Every place where a period may end, from the start on, up to the last year there is."""
        with suppress(OverflowError, ValueError):
            yield from self._unending()

    def _unending(self) -> Iterator[Place]:
        if isinstance(self.start, int):
            step = int(self.every)
            return (self.start + step * turn for turn in count(1))
        if self.every == "month":
            first = self.start.replace(day=1)
            return (Span(turn, "month").after(first) for turn in count(1))
        if self.every == "day":
            begin, days = self.start, 1
        else:
            ahead = (WEEKDAYS.index(str(self.every)) - self.start.weekday()) % 7
            begin, days = self.start + timedelta(days=ahead), 7
        return (begin + timedelta(days=days * turn) for turn in count())

    def complete_from(self, period: Period) -> Place:
        """The place that the order must have reached before a period is released."""
        try:
            return period.end if self.delay is None else self.delay.after(period.end)
        except (OverflowError, ValueError):  # a day that no calendar has
            return date.max

    def query(self, period: Period) -> QueryOptions:
        """The query of a period."""
        return replace(self.options, window=period.window)


State = Literal["released", "due", "waiting"]


@dataclass(frozen=True)
class PeriodState:
    """A period, and its outcome.

    Attributes:
        period: The period.
        state: ``released``; ``due``: complete and not released; ``waiting`` for its rows.
        event: The event of its charge in the ledger, if it was released.
        at: When it was released.
        answer: The answer as the ledger has it, if it was released.
    """

    period: Period
    state: State
    event: int | None = None
    at: datetime | None = None
    answer: Any = None

    def describe(self) -> dict[str, Any]:
        """Ready to be written as JSON."""
        return {
            "start": self.period.window[0],
            "end": self.period.window[1],
            "state": self.state,
            "event": self.event,
            "at": None if self.at is None else self.at.isoformat(),
        }


class ScheduleLocked(TakifuguError):
    """Another run of the schedules of a project has not ended."""


def read_schedules(top: TomlSection) -> dict[str, Schedule]:
    """The sections ``[schedule.NAME]`` of a policy."""
    if "schedule" not in top.content:
        return {}
    named = top.section("schedule", None)
    known = (*OWN_KEYS, *(key for key in QueryOptions.__dataclass_fields__ if key != "window"))
    return {name: _schedule(name, named.section(name, known)) for name in named.content}


def query_from(section: TomlSection, without: Sequence[str]) -> QueryOptions:
    """The query that a section describes, beside its keys ``without``."""
    given = {key: value for key, value in section.content.items() if key not in without}
    if isinstance(given.get("window"), list):
        given["window"] = [None if end == "" else end for end in given["window"]]
    try:
        return QueryOptions.from_document(given)
    except InvalidQuery as error:
        first = str(error.field).split(",")[0]
        place = section.at(first) if first in section.content else section.at("kind")
        raise InvalidFile(
            place, given=error.given, needed=error.needed, reason=error.reason
        ) from None


def _schedule(name: str, section: TomlSection) -> Schedule:
    options = query_from(section, OWN_KEYS)
    every, start = section.get("every"), _place(section, "from")
    if isinstance(start, int):
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise section.wrong(
                "every", given=f"is {every!r:.40}", needed="be how many steps, as `from` is a step"
            )
    elif every not in EVERY:
        raise section.wrong(
            "every", given=f"is {every!r:.40}", needed=f"be one of {', '.join(EVERY)}"
        )
    until = _place(section, "until") if "until" in section.content else None
    if until is not None and isinstance(until, int) != isinstance(start, int):
        raise section.wrong("until", given="is of another kind", needed="be as `from` is")
    period = _span(section, "last", start) if "last" in section.content else _period(every)
    if period.number < 1:
        raise section.wrong("last", given="is 0", needed="be 1 or more")
    return Schedule(
        name=name,
        dataset=section.text("dataset"),
        options=options,
        every=every,
        last=period,
        start=start,
        until=until,
        delay=_span(section, "delay", start) if "delay" in section.content else None,
        analyst=section.optional("analyst"),
        accept_noise=section.flag("accept_noise") or False,
        folder=section.optional("folder"),
    )


def _period(every: str | int) -> Span:
    if isinstance(every, int):
        return Span(every, "step")
    return Span(1, "week" if every in WEEKDAYS else "month" if every == "month" else "day")


def _place(section: TomlSection, key: str) -> Place:
    value = section.get(key)
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise section.wrong(
        key, given="is neither", needed="be a day without quotes, as 2012-04-02, or a whole number"
    )


def _span(section: TomlSection, key: str, start: Place) -> Span:
    value = section.content[key]
    if isinstance(start, int):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise section.wrong(key, given=f"is {value!r:.40}", needed="be a number of steps")
        return Span(value, "step")
    match = SPAN.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise section.wrong(
            key, given=f"is {value!r:.40}", needed="be text as '7 days', '2 weeks' or '1 month'"
        )
    return Span(int(match[1]), match[2])  # type: ignore[arg-type]


def states(
    schedule: Schedule, session: Session, events: Mapping[int, Event], *, as_of: Place | None
) -> Iterator[PeriodState]:
    """Every period of a schedule so far, and the first one that is still waiting.

    Args:
        schedule: The schedule.
        session: The session of its dataset.
        events: The events of the dataset, by number.
        as_of: Up to which place the rows are complete; by default to that of the last row.
    """
    if isinstance(schedule.start, int) != (session.declaration.order.kind == "number"):
        raise InvalidFile(
            f"schedule, {schedule.name}, from",
            given="is a step" if isinstance(schedule.start, int) else "is a day",
            needed=f"be as the order of dataset {schedule.dataset!r} is",
        )
    reached: Place = as_of if as_of is not None else _reached(session.latest())
    _refuse_too_many(schedule, reached)
    done = _answered(events, schedule.analyst)
    for period in schedule.periods():
        key = _key(session.identity(session_options(session, schedule, period)))
        if key in done:
            charge, answer = done[key]
            yield PeriodState(period, "released", charge.seq, answer.at, answer.body["answer"])
        elif not reached < schedule.complete_from(period):  # type: ignore[operator]
            yield PeriodState(period, "due")
        else:
            yield PeriodState(period, "waiting")
            return


def _refuse_too_many(schedule: Schedule, reached: Place) -> None:
    """Raise if more periods are over than anybody waits for: the place is probably mistaken."""
    after = next(islice(schedule.periods(), MAX_PERIODS, None), None)
    if after is not None and not reached < schedule.complete_from(after):  # type: ignore[operator]
        raise UnsoundRequest(
            f"more than {MAX_PERIODS:,} periods of schedule {schedule.name!r} are over at"
            f" {reached!s:.40}; name an earlier place with --as-of, or let `from` of the schedule"
            " be later",
            field="as_of",
        )


def session_options(session: Session, schedule: Schedule, period: Period) -> QueryOptions:
    """The query of a period, with keys as the columns have them."""
    options = schedule.query(period)
    resolved: Callable[[QueryOptions], QueryOptions] = getattr(session, "resolved", lambda o: o)
    return resolved(options)


def _reached(last: datetime | int) -> Place:
    """The place that is complete: the day of the last row has begun, the last step is there."""
    return last.date() if isinstance(last, datetime) else last + 1


def _answered(events: Mapping[int, Event], analyst: str | None) -> dict[str, tuple[Event, Event]]:
    """The first answered charge of every query, by what tells it from others."""
    answered: dict[str, tuple[Event, Event]] = {}
    for event in events.values():
        if event.kind == "answer":
            charge = events[event.body["charge"]]
            if analyst is None or charge.body["analyst"] == analyst:
                answered.setdefault(_key(charge.body), (charge, event))
    return answered


def _key(body: Mapping[str, Any]) -> str:
    return json.dumps({name: body[name] for name in ("query", "window", "groups")}, sort_keys=True)


def admitted_ahead(
    schedule: Schedule, session: Session, period: Period, *, most: int = PERIODS_AHEAD
) -> int | None:
    """How many periods after ``period`` the budget admits at this pace, up to ``most``.

    Each is charged as ``period`` is, on its own window, after those before it; None if what that
    would be is not known, because there are no rows to plan with.
    """
    try:
        plan = session.planned(session_options(session, schedule, period), advice=False)
    except Malformed:
        return None
    charge, translation = session.chargeable(plan)
    ahead = (one for one in schedule.periods() if one.end > period.end)  # type: ignore[operator]
    charges = []
    for one in islice(ahead, most):
        rows = rows_of(session.declaration, one.window, schedule.options.where)
        charges.append((replace(charge, window=rows.window, sources=()), translation))
    rehearsed = session.rehearse(charges)
    return len(list(takewhile(lambda one: one.admitted, rehearsed)))


@contextmanager
def only_run(folder: Path) -> Iterator[None]:
    """Keep other runs of the schedules of a project out, on this machine; killed ones let go."""
    place = folder / ".takifugu"
    place.mkdir(exist_ok=True)
    handle = os.open(place / "schedule.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    until = time.monotonic() + RUN_WAIT_SECONDS
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise ScheduleLocked(
                        "another `takifugu schedule run` of this project has not ended; nothing was"
                        " released. Wait for it, then run this again",
                        reason="locked",
                    ) from None
                time.sleep(0.05)
        yield
    finally:
        os.close(handle)
