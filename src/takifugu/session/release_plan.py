"""Plans: priced queries, as frozen values that print and turn into JSON.

Beside its price a plan says how many rows the query reads, of how many and why not all (public, by
declaration: an answer about some of the rows looks like one about all of them), and what its charge
by value saves against one as telling everything of an entry. `Plan.__str__` says all of it in
lines; `plan_words` in parts, for a page that shows them apart. Losses are rounded up and allowances
down, so that nobody who shows them has to know how.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from html import escape
from typing import Any

from takifugu._core.keys import same_key
from takifugu._core.rounding import float_down
from takifugu.binding.protected_values import telling
from takifugu.costs.cost import Cost
from takifugu.declarations import InvalidQuery
from takifugu.documents.declared import NullFloat, parts_from, to_document
from takifugu.documents.reading import DocumentPart
from takifugu.ledger import Charge, Event
from takifugu.ledger.charge_values import groups_body, window_body
from takifugu.mechanisms import Mechanism
from takifugu.session.held_out import ReleasableRows
from takifugu.session.query.query import CONFIDENCE, Query
from takifugu.session.query_options import QueryOptions
from takifugu.session.release_cost import ReleaseCost, beside_what_is_left
from takifugu.session.usefulness import Usefulness
from takifugu.tables import Engine
from takifugu.visible import four_digits, visible


@dataclass(frozen=True)
class RowsRead:
    """How many rows a query reads, of how many.

    Attributes:
        read: The rows that it reads.
        there: The rows of the table, among them those that a prior was fitted on.
        others: What keeps rows from being read, in words; none if nothing does.
        entity: The column of the entities.
        longest: The most rows that an entity of the table has, of a query that counts rows; None
            if it is another, or if counting them would take one more scan of a table that others
            may write to.
        entities: How many entities the table has, where that is known as ``longest`` is.
    """

    read: int
    there: int
    others: tuple[str, ...] = ()
    entity: str = ""
    longest: int | None = None
    entities: int | None = None

    def describe(self) -> dict[str, Any]:
        """Both numbers as JSON."""
        return {"rows_read": self.read, "rows_there": self.there}

    def details(self) -> dict[str, Any]:
        """All but the numbers of rows as JSON: what the words about them are made of."""
        document: dict[str, Any] = to_document(self)
        return {key: document[key] for key in ("others", "entity", "longest", "entities")}

    @classmethod
    def from_document(cls, found: DocumentPart) -> "RowsRead | None":
        """The rows that the query of a plan or a result reads; None if it does not say."""
        if not found.has("rows_read"):
            return None
        details = parts_from(cls, found.part("reads"), without=("read", "there"))
        return cls(found.whole("rows_read"), found.whole("rows_there"), **details)

    def record(self) -> dict[str, Any]:
        """The same with what else a reader of the ledger has to know, who has no table."""
        return {
            **self.describe(),
            **({"rows_others": list(self.others)} if self.others else {}),
            **({} if self.entities is None else {"entities_there": self.entities}),
        }

    def of_table(self, rows: int | None) -> "RowsRead":
        """The same of a table of so many rows, where they are known from its fingerprint."""
        return self if rows is None else replace(self, there=max(self.read, rows))

    @property
    def lines(self) -> tuple[str, ...]:
        """What to know of it, if it is not that every row counts and is of another entity."""
        found, fewer = [], self.read < self.there
        if fewer:
            why = f": the others are {_either(self.others)}" if self.others else ""
            found.append(f"reads {self.read:,} of {self.there:,} rows{why}")
        if self.longest is not None and self.longest > 1:
            has = "of which the table has up to" if fewer else "up to"
            found.append(f"counts rows, {has} {self.longest:,} of each `{visible(self.entity)}`")
        return tuple(found)


def rows_read(
    query: Query, options: QueryOptions, engine: Engine, releasable: ReleasableRows
) -> RowsRead:
    """The rows that a query reads; refused if they are none, before anything is charged.

    An engine remembers what it counted in files. Of a table that others may write to, ``there`` is
    left at what is read: its fingerprint says how many rows there are (`RowsRead.of_table`).
    """
    read = engine.count(query.rows.scope)  # refuses rows that cannot be chosen
    others = tuple(_others(query, options, engine, releasable))
    if read == 0:
        raise _no_rows(query.rows.scope.where, options, others)
    counts = query.counts_rows
    size = engine.whole.known_size() if others or counts else None
    there = read if size is None or not others else max(read, size[0])
    longest = None if size is None or not counts else size[1]
    entities = None if size is None else size[2]
    return RowsRead(read, there, others, engine.declaration.entity, longest, entities)


def _others(
    query: Query, options: QueryOptions, engine: Engine, releasable: ReleasableRows
) -> Iterator[str]:
    """What keeps rows from being read."""
    if options.window is not None and options.window != (None, None):
        yield "outside the window"
    if options.where:
        yield "left out by `where`"
    if not set(query.rows.scope.where) <= set(options.where):
        yield "of weight 0"
    if releasable.start is not None:
        yield f"before {releasable.start}, where a prior was fitted"
    if engine.whole is not engine:
        yield f"of the share of `{visible(engine.declaration.entity)}` that a prior was fitted on"


def _no_rows(
    where: Mapping[str, Any], options: QueryOptions, others: tuple[str, ...]
) -> InvalidQuery:
    field = "where" if where and options.window in (None, (None, None)) else "window"
    why = f"; all rows are {_either(others)}" if others else ""
    return InvalidQuery(
        field, given="holds no rows", needed=f"hold at least one{why}", reason="no-rows"
    )


def _either(parts: tuple[str, ...]) -> str:
    *most, last = parts
    return f"{', '.join(most)}, or {last}" if most else last


@dataclass(frozen=True)
class Saving:
    """Less noise for the ε that was asked for, or a lower price for the error that was.

    Attributes:
        because: Why, in words.
        deviation: The standard deviation of its noise, in the unit of the answer.
        deviation_without_values: That at the same price, if it were charged without values.
        alone: Its Pufferfish ε, if nothing else were ever released.
        alone_without_values: That of the same noise, if it were charged without values.
    """

    because: str
    deviation: float
    deviation_without_values: float
    alone: float
    alone_without_values: NullFloat

    @property
    def noise_ratio(self) -> float:
        """How many times more noise there would be."""
        return self.deviation_without_values / self.deviation

    def describe(self) -> dict[str, Any]:
        """Ready to be written as JSON; null for what is infinite."""
        ratio = {"noise_ratio": self.noise_ratio}
        document: dict[str, Any] = to_document(self, after={"deviation_without_values": ratio})
        return document

    def __str__(self) -> str:
        """As one line."""
        other = self.alone_without_values
        price = four_digits(other, "up") if other < float("inf") else "infinity"
        here, there = four_digits(self.deviation), four_digits(self.deviation_without_values)
        if self.noise_ratio > 1 and here != there:
            gain = f"noise with standard deviation {here} instead of {there}"
            cost = f"; without values this noise would cost epsilon = {price}"
        else:
            gain, cost = f"epsilon = {four_digits(self.alone, 'up')} instead of {price}", ""
        return f"{gain}, because {self.because}{cost}"


CHANGED = (
    "the data changed since the last release ({at}). What was released then stays spent, and a"
    " query that was answered then is charged again. If rows were edited in their order or public"
    " columns, not only added, have the owner count the earlier releases on every row first"
)
OTHER_KEY = (
    "the last release ({at}) was marked with another key than this one, or without one: whether"
    " the same was answered before on the same data is unknown, and it is charged again"
)


@dataclass(frozen=True)
class UnpricedPlan:
    """How a query would be answered: all of a plan that does not change with the ledger.

    Attributes:
        options: What was asked for.
        query: The query that the options describe, on these rows.
        mechanism: How the answer is protected.
        error: What is predicted of the answer.
        reason: Why this mechanism.
        delta: The Pufferfish δ that its price is read at; 0 for a loss in ε.
        unit: What it tells of an entry for each 1 of its per-entry loss, value by value.
        otherwise: The error at the same ε if it were charged as telling everything of an entry;
            None if that is how it is charged.
        charge: What will be written in the ledger first. It holds the mark of the data, which is
            the owner's, and so is not printed.
        reads: How many rows it reads, of how many. Two plans that differ in nothing else are the
            same: whether the data changed is for the mark of the data to say.
    """

    options: QueryOptions
    query: Query
    mechanism: Mechanism
    error: Mapping[str, Any]
    reason: str
    delta: Fraction
    unit: Cost
    otherwise: Mapping[str, Any] | None
    charge: Charge = field(repr=False)
    reads: RowsRead = field(compare=False)

    def differences(self, made: "UnpricedPlan") -> tuple[str, ...]:
        """The parts in which this plan is not the one that was made from its options now."""
        return tuple(
            part.name
            for part in fields(UnpricedPlan)
            if part.compare and getattr(self, part.name) != getattr(made, part.name)
        )

    @property
    def rows_read(self) -> int:
        """How many rows it reads: public."""
        return self.reads.read

    @property
    def rows_there(self) -> int:
        """How many rows the table has, those that a prior was fitted on among them: public."""
        return self.reads.there

    def saving(self, cost: ReleaseCost) -> Saving | None:
        """What the charge by value saves at this cost; None if values make no difference."""
        if cost.by_value is None or cost.without_values is None or self.otherwise is None:
            return None
        here, there = self.error["deviation"], self.otherwise["deviation"]
        less_noise = there > here and four_digits(there) != four_digits(here)
        if not less_noise and four_digits(cost.without_values, "up") == four_digits(
            cost.alone, "up"
        ):
            return None  # no digit that anybody sees
        return Saving(
            because=telling(self.unit),
            deviation=self.error["deviation"],
            deviation_without_values=self.otherwise["deviation"],
            alone=cost.alone,
            alone_without_values=cost.without_values,
        )


@dataclass(frozen=True)
class Plan(UnpricedPlan):
    """What a release would be and cost. Nothing was spent and nothing protected was read.

    Attributes:
        cost: What it costs now.
        usefulness: Whether the answer will be worth having, by what is public.
        stored: Whether the answer is stored already, and so free.
        instead: If the requested error costs too much: an ``epsilon`` that would be accepted and
            the ``error`` that is predicted for it.
        notes: What to know before it is released: that the data changed, for one.
    """

    cost: ReleaseCost
    usefulness: Usefulness
    stored: bool
    instead: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()

    @property
    def needs_confirmation(self) -> bool:
        """Whether it is mostly noise and would be charged: `Session.release` then wants a yes."""
        return self.usefulness.needs_confirmation and self.cost.fits and not self.stored

    def describe(self) -> dict[str, Any]:
        """Ready to be written as JSON. The mark of the data is the owner's and left out."""
        saved = self.saving(self.cost)
        return {
            **query_body(self.charge),
            **self.reads.describe(),
            "usefulness": self.usefulness.describe(),
            "mechanism": self.mechanism.describe(),
            "error": dict(self.error),
            "reason": self.reason,
            "cost": self.cost.describe(),
            "saving": None if saved is None else saved.describe(),
            "stored": self.stored,
            "instead": None if self.instead is None else dict(self.instead),
            "cells": self.charge.cells.fingerprint,
            "notes": list(self.notes),
        }

    @property
    def price(self) -> str:
        """What it costs, in words."""
        cost = self.cost
        if self.stored:
            return "free: it was answered before, and the same answer will be given"
        if not cost.fits:
            return f"{cost.words}: too much{_accepted(cost, self.instead)}"
        if cost.reuse:
            return cost.reuse_words
        return (
            f"{cost.alone_words}; adds {four_digits(cost.marginal or 0, 'up')} to the"
            f" {four_digits(cost.before, 'up')} spent before, so that {cost.spent_words}"
        )

    @property
    def _whose(self) -> list[str]:
        """Who asks, where the price does not say so: a misspelt name can be seen."""
        who = self.charge.analyst
        if who is None or self.cost.own is not None:
            return []
        return [f"asked by analyst {visible(who)!r}, who has no budget of their own"]

    @property
    def all_rows(self) -> tuple[str, ...]:
        """What this release tells of all rows of an entity together, if it has many: group DP.

        Rows that differ in m entries are m steps of one replaced entry each, so that the answer is
        at most e^(m times the per-entry loss) times as probable, whatever is believed of the rows.
        """
        many = self.reads.longest or 0
        if many < 2 or self.cost.currency != "epsilon" or self.cost.delta:
            return ()
        together = four_digits(float(many * self.cost.per_entry), "up")
        return (
            f"for all rows of one `{visible(self.reads.entity)}` together, up to {many:,}: at most"
            f" ε = {together} from this release, {many:,} times the loss of a replaced entry",
        )

    def __str__(self) -> str:
        saved = None if self.stored else self.saving(self.cost)
        lines = [
            f"{self.query.kind} of {visible(self.query.title)}",
            self.usefulness.words,
            *self.reads.lines,
            self.price if self.stored else f"costs {self.price}",
            *self._whose,
            self.cost.odds_words,
            *self.all_rows,
            f"predicted error: {error_words(self.error)}",
            self.reason,
            *([] if saved is None else [f"saved: {visible(str(saved))}"]),
            *(f"note: {note}" for note in self.notes),
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        title, *lines = (escape(line) for line in str(self).splitlines())
        return f"<strong>{title}</strong><br>\n" + "<br>\n".join(lines)


def _accepted(cost: ReleaseCost, instead: Mapping[str, Any] | None) -> str:
    """What would be accepted in place of a plan that costs too much."""
    if not cost.most > 0:
        return "; nothing more is accepted on these rows. Have the owner raise the budget"
    text = f"; a release on these rows may cost at most {four_digits(cost.most, 'down')} alone"
    if cost.own is None and cost.by_value is None and not cost.delta and not cost.before:
        text += beside_what_is_left(cost.most, float_down(cost.budget), cost.before)
    if instead is not None:
        text += f", with this error: {error_words(instead['error'])}"
    return text


def error_words(error: Mapping[str, Any]) -> str:
    """What is predicted of an answer, in words: of its numbers, its rank or its ranking."""
    with_probability = f"with probability {CONFIDENCE:g}"
    if "ranks" in error:
        ranks = four_digits(error["ranks"], "up")
        return f"the rank of the answer within ±{ranks} of the requested one {with_probability}"
    deviation = f"(standard deviation {four_digits(error['deviation'])})"
    if "interval" in error:
        half = error["interval"]
        within = f"within ±{four_digits(half, 'up')}" if half else "off by less than one unit"
        return f"each number {within} {with_probability} {deviation}"
    text = (
        f"each place right {with_probability} if each leads the next by"
        f" {four_digits(error['gap'], 'up')} {deviation}"
    )
    if error["right"] is not None:
        right = sum(error["right"]) / len(error["right"])
        text += f"; for the reference, {100 * right:.4g} % of the places right"
    return text


def query_body(charge: Charge) -> dict[str, Any]:
    """The query of a charge as JSON: what is asked, and of which rows."""
    return {
        "dataset": charge.dataset,
        "query": dict(charge.query),
        "window": window_body(charge.window),
        "groups": groups_body(charge.groups),
    }


def notes_before_paying(charge: Charge, last: Event | None) -> tuple[str, ...]:
    """What to know before paying: that the data changed, or that this is unknown."""
    if last is None:
        return ()
    before, at = str(last.body["data"]), f"{last.at:%Y-%m-%d %H:%M} UTC"
    if not same_key(before, charge.data):
        return (OTHER_KEY.format(at=at),)
    return (CHANGED.format(at=at),) if before != charge.data else ()


TONES = {"useful": "good", "rough": "warn", "mostly noise": "bad"}


def plan_words(plan: Plan) -> dict[str, Any]:
    """What to show of a plan.

    Keys: ``title``; ``cost``, ``adds`` and ``spent``, amounts in a few letters;
    ``takes``, what a release takes from the budget, for the button that makes it; ``verdict``, its
    ``tone`` and the sentence ``useful``; the sentences ``error`` and ``odds``; ``notes``; ``over``,
    why it is too much, or nothing; ``most``, an ε that would be accepted in its place, and
    ``needed``, one that would make it useful and is accepted, as digits to type, or null;
    ``confirm``, whether it is mostly noise and wants a yes; ``own``, how much of a budget of their
    own the analyst has spent.
    """
    cost, useful = plan.cost, plan.usefulness
    saved = None if plan.stored else plan.saving(cost)
    remedy = useful.remedy
    needed = remedy is not None and remedy.epsilon is not None and remedy.admitted
    over = not cost.fits and not plan.stored
    return {
        "title": f"{plan.query.kind.replace('_', ' ')} of {visible(plan.query.title)}",
        "cost": "nothing" if plan.stored else cost.symbols,
        "adds": _adds(plan),
        "takes": _takes(plan),
        "spent": cost.spent_of_budget,
        "verdict": useful.verdict,
        "tone": TONES[useful.verdict],
        "useful": useful.explanation,
        "error": error_words(plan.error),
        "odds": cost.odds_of_entry,
        "notes": [
            *([plan.price] if plan.stored else []),
            *plan.reads.lines,
            *plan.all_rows,
            plan.reason,
            *([] if saved is None else [f"saved: {visible(str(saved))}"]),
            *plan.notes,
        ],
        "over": plan.price if over else "",
        "most": four_digits(cost.most, "down") if over and cost.most > 0 else None,
        "needed": str(remedy.epsilon) if needed and remedy is not None else None,
        "confirm": plan.needs_confirmation,
        "own": "" if cost.own is None else cost.own.spent_words,
    }


def _adds(plan: Plan) -> str:
    cost = plan.cost
    if plan.stored or cost.reuse:
        return "0"
    return "–" if cost.marginal is None else four_digits(cost.marginal, "up")


def _takes(plan: Plan) -> str:
    """What is taken from the budget: prices do not simply add up, so both are named."""
    cost = plan.cost
    if plan.stored:
        return "free"
    if cost.reuse:
        return f"adds nothing ({cost.symbols} alone)"
    if cost.marginal is None:
        return f"{cost.symbols} alone"
    alone = cost.symbols.removeprefix("ε = ")
    return f"adds ε = {four_digits(cost.marginal, 'up')} ({alone} alone)"
