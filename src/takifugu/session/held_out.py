"""Keeping releases away from the rows that a prior was fitted on.

A fitted prior is published with the policy, and no loss is accounted for what it reveals about the
rows behind it. It knows which they are (`FittedRows`): a session whose prior was fitted on the
first days releases from the days after them only, and one whose prior was fitted on some entities
from the others only; unless the owner sets ``release_fitted_rows``, and then every guarantee says
so too. If it is unknown which rows of this table the prior has seen, nothing is released.

The first days are rows of the same people as the later ones, and an adversary may know them all. So
every prior of a session that releases after first days is one against somebody who does
(`takifugu.priors.adversaries.given_earlier_rows`), whatever its file says.

Rows that releases protected and that a prior is fitted on later: published only if confirmed.

A fitted prior is published with the policy, and what it shows about its rows is not charged; the
counts behind a chain can be recovered from its file. A fit on rows that earlier releases protected
takes that protection away. So it is refused until the owner confirms the rows *by name*, as
"before 30". The confirmation is an event of the ledger (``published`` in the details of a policy or
of an acceptance), and every guarantee after it says so.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fractions import Fraction
from math import ceil
from typing import Any

from takifugu._core.fingerprint import fingerprint
from takifugu.declarations import Declaration, InvalidQuery
from takifugu.errors import UnsoundRequest
from takifugu.ledger import Ledger
from takifugu.priors import FittedRows, Secrets
from takifugu.priors.adversaries import given_earlier_rows
from takifugu.priors.independent import Product
from takifugu.priors.prior import Prior
from takifugu.session.cells import rows_of
from takifugu.session.query_options import Bound
from takifugu.tables import DataFingerprint, Engine, Scope, Share
from takifugu.tables.relations import Relation
from takifugu.tables.scope import EVERYTHING, fitted_rows, table_name

SHIFT, MAX_HOUR_SHIFTS = timedelta(hours=1), 3
ALLOW = "have the owner allow it: release_fitted_rows = true"


@dataclass(frozen=True)
class ReleasableRows:
    """The rows that may be released from, and what a guarantee states about them.

    Attributes:
        start: The first place in the order; None if there is no such limit.
        entities: The share of the entities; None for all.
        statements: What readers of the policy need to know.
        warning: Why releases come from rows that a prior was fitted on; None if they do not.
    """

    start: datetime | int | None = None
    entities: Share | None = None
    statements: tuple[str, ...] = ()
    warning: str | None = None

    @property
    def statement(self) -> str:
        """All that a guarantee says about them."""
        note = () if self.warning is None else (f"Note: {self.warning}.",)
        return " ".join((*self.statements, *note))

    def refuse_fitted(self, start: Any, declaration: Declaration) -> None:
        """Raise if some rows from ``start`` on, as an engine takes it, may not be released."""
        if self.start is None:
            return
        if start is None or start < _placed(declaration, self.start):
            raise UnsoundRequest(
                f"the window begins before {self.start}, in rows that the prior was fitted on;"
                f" begin there, or {ALLOW}",
                field="window",
                reason="fitted-rows",
                needed=self.start,
            )

    def opened(self, window: tuple[Bound, Bound] | None) -> tuple[Bound, Bound] | None:
        """A window whose open start is the first row that may be released."""
        if self.start is None:
            return window
        if window is None:
            return (self.start, None)
        return (self.start, window[1]) if window[0] is None else window


def fitted_rows_of(priors: Iterable[Prior]) -> tuple[FittedRows, ...]:
    """Every set of rows that some prior, or a part of one, was fitted on."""
    return tuple(dict.fromkeys(rule for prior in priors for rule in _rules(prior)))


def _rules(prior: Prior) -> Iterator[FittedRows]:
    yield from prior.fitted_on
    if isinstance(prior, Product):
        for part in prior.parts.values():
            yield from _rules(part)


def against_earlier_rows(
    priors: Mapping[str, Prior],
    secrets: Secrets | Mapping[str, Secrets],
    readings: Mapping[str, str | None],
    *,
    release: bool,
) -> dict[str, Prior]:
    """The priors against somebody who knows the rows that some of them were fitted on.

    That is those before some time, of the same people; unless the owner allows to ``release`` them.
    ``readings`` says by name what each prior is over: rows that are independent reveal nothing of
    each other. Secrets of single entries are refused: these count from somebody's first row, and
    how many of their rows are given up differs from one person to another.
    """
    split = any(rule.before is not None for rule in fitted_rows_of(priors.values()))
    if release or not split:
        return dict(priors)
    every = [secrets] if isinstance(secrets, Secrets) else secrets.values()
    if any(kept.entries is not None for kept in every):
        raise UnsoundRequest(
            "secrets are kept of some entries, counted from an entity's first row, and the first"
            " rows are given up to a fitted prior; keep the secrets of all entries, or fit on a"
            " share of the entities",
            field="entries",
            reason="earlier-rows",
        )
    return {
        name: prior if readings.get(name) == "row" else given_earlier_rows(prior)
        for name, prior in priors.items()
    }


def releasable_rows(
    rules: Iterable[FittedRows], declaration: Declaration, *, dataset: str, release: bool = False
) -> ReleasableRows:
    """What no prior has seen: all limits together; all rows, with a warning, if ``release``."""
    rules = tuple(rules)
    statements = tuple(dict.fromkeys(rule.statement for rule in rules))
    if not rules:
        return ReleasableRows()
    if release:
        return ReleasableRows(statements=statements, warning=_warning(rules, declaration, dataset))
    for rule in rules:
        _refuse_unknown(rule, declaration)
    starts = [
        first_releasable(rule.before, declaration) for rule in rules if rule.before is not None
    ]
    shares = [(rule.salt or "", rule.share) for rule in rules if rule.share is not None]
    if len({salt for salt, _ in shares}) > 1:
        raise UnsoundRequest(
            "the priors were fitted on shares of the entities with different salts, so that those"
            " outside all shares are not one share; fit them with one salt",
            field="prior",
            reason="salts-differ",
        )
    entities = None
    if shares:
        entities = Share(shares[0][0], max(share for _, share in shares), Fraction(1))
    start = max(starts, key=lambda place: _placed(declaration, place), default=None)
    return ReleasableRows(start, entities, statements)


def _refuse_unknown(rule: FittedRows, declaration: Declaration) -> None:
    """Raise unless the rows that the prior has not seen are known in this table."""
    if rule.everything:
        raise UnsoundRequest(
            f"the prior was fitted on all rows of {rule.source!r}, which leaves none to release"
            f" from; fit it on the first days or on a share of the entities, or {ALLOW}",
            field="prior",
            reason="fitted-on-all",
            given=rule.source,
        )
    here = fitted_rows(declaration, EVERYTHING)
    timed = declaration.order.kind != "number"
    other = rule.before is not None and isinstance(rule.before, datetime) != timed
    if other or not is_here(rule, here):
        raise UnsoundRequest(
            f"the prior was fitted on {_where(rule)}, and this table is {_where(here)}: which of"
            f" its rows the prior has seen is unknown; fit it on this table, or {ALLOW}",
            field="prior",
            reason="fitted-elsewhere",
            given=_where(rule),
            needed=_where(here),
        )


def is_here(rule: FittedRows, here: FittedRows) -> bool:
    """Whether rows that a prior was fitted on are named as those of a table are."""
    return _where(rule) == _where(here)


def _where(rows: FittedRows) -> str:
    clocks = "" if rows.zone is None else f" in {rows.zone}"
    return f"{rows.source!r} ({rows.entity!r} by {rows.order!r}{clocks})"


def _warning(rules: Iterable[FittedRows], declaration: Declaration, dataset: str) -> str:
    here = table_name(declaration.source)
    others = sorted({rule.source for rule in rules} - {here})
    if any(rule.source == here for rule in rules):
        return (
            f"a prior of {dataset!r} was fitted on rows that are released from; no loss is"
            " accounted for what the prior itself reveals about them"
        )
    return (
        f"a prior of {dataset!r} was fitted on rows of {', '.join(map(repr, others))}; if any of"
        " them is among those released from, no loss is accounted for what the prior itself reveals"
        " about it"
    )


def first_releasable(cut: Any, declaration: Declaration) -> datetime | int:
    """The first place at or after ``cut`` that a window can begin with: later is safe."""
    place: datetime | int = cut if isinstance(cut, datetime) else ceil(cut)
    for _ in range(MAX_HOUR_SHIFTS):
        try:
            rows_of(declaration, (place, None), None)
        except InvalidQuery:  # clocks change in that very hour
            if not isinstance(place, datetime):
                raise
            place += SHIFT
        else:
            return place
    raise InvalidQuery(
        "first days", given=f"end at {cut}, when clocks change", needed="be one more or less"
    )


def _placed(declaration: Declaration, place: Bound) -> Any:
    return rows_of(declaration, (place, None), None).scope.start


class HeldOutEngine(Engine):
    """An engine that sees some of the entities only; all that it counts is about them.

    The ledger does not distinguish entities and charges every one: more than is read, never less.
    """

    def __init__(self, engine: Engine, entities: Share) -> None:
        super().__init__(engine.declaration, engine._backend)
        self._entities, self._whole = entities, engine

    @property
    def whole(self) -> Engine:
        """The engine that sees all entities."""
        return self._whole

    @classmethod
    def of(cls, engine: Engine, entities: Share | None) -> Engine:
        """The engine, kept to a share; as it is if it is kept to that or to less."""
        if entities is None:
            return engine
        if not isinstance(engine, HeldOutEngine):
            return cls(engine, entities)
        had = engine._entities
        if had.salt != entities.salt:
            raise UnsoundRequest(
                "the engine is kept to a share of the entities by another salt than the prior was"
                " fitted with; open it anew"
            )
        low, high = max(had.low, entities.low), min(had.high, entities.high)
        both = Share(had.salt, low, high)
        return engine if both == had else cls(engine.whole, both)

    def fingerprint(self) -> DataFingerprint:
        """The identity of the data and of the share: an answer about all is not one about some."""
        whole = super().fingerprint()
        mark = fingerprint(("held out", whole.fingerprint, self._entities))
        return replace(whole, fingerprint=mark)

    def _within(self, scope: Scope) -> Relation:
        if scope.entities is not None:
            raise InvalidQuery(
                "scope, entities", given="is given", needed="be left to the policy of the project"
            )
        return super()._within(replace(scope, entities=self._entities))


PUBLISHED = "published"  # in the details of an event: the names of the rows


def published_windows(ledger: Ledger, dataset: str) -> tuple[str, ...]:
    """The names of the rows that owners confirmed to be published after they were protected."""
    found: dict[str, None] = {}
    for kind in ("policy", "accepted"):
        for event in ledger.history(dataset, kind=kind):
            names = event.body["details"].get(PUBLISHED, [])
            found |= dict.fromkeys(names if isinstance(names, list) else [])
    return tuple(found)


def published_statement(names: Iterable[str]) -> str:
    """What a guarantee says of them; empty if there are none."""
    listed = " and ".join(names)
    if not listed:
        return ""
    return (
        f"Note: these rows were protected when earlier releases were made, and the owner gave them"
        f" up to a fitted prior later: {listed}. What that prior shows about them is not charged."
    )


def refuse_publishing(
    ledger: Ledger,
    dataset: str,
    rules: Iterable[FittedRows],
    declaration: Declaration,
    *,
    prior: str | None,
    confirmed: Iterable[str] = (),
    how: str,
) -> tuple[str, ...]:
    """Raise if rows that a prior was fitted on were protected before, and nobody confirmed them.

    Args:
        ledger: Where the releases are.
        dataset: Whose.
        rules: The rows that the prior was fitted on.
        declaration: The table.
        prior: The fingerprint of the terms that the prior is part of: what was charged under
            these was known not to protect its rows. None if nothing was.
        confirmed: The names that the owner confirms now, beside those in the ledger.
        how: How to confirm them.

    Returns:
        The names that are confirmed now, and were needed.
    """
    here = fitted_rows(declaration, EVERYTHING)
    rules = tuple(_bound_in_order(rule, declaration) for rule in rules if is_here(rule, here))
    if not rules or _same_terms(ledger, dataset, prior):
        return ()
    known = set(published_windows(ledger, dataset))
    waiting = {_name(rule): rule for rule in rules if _name(rule) not in known}
    protected: dict[str, None] = {}
    for event in ledger.history(dataset, kind="charge") if waiting else ():
        if event.body["prior"] != prior:
            found = [w for w, rule in waiting.items() if _protects(event.body, rule, declaration)]
            protected |= dict.fromkeys(found)
        if len(protected) == len(waiting):
            break
    missing = [name for name in protected if name not in tuple(confirmed)]
    if missing:
        raise UnsoundRequest(
            f"the prior is fitted on rows of {dataset!r} that earlier releases protected"
            f" ({', '.join(missing)}): what it shows about them, exact counts among it, would be"
            " published and is not charged. Fit on rows that were given up before the first"
            f" release, or have the owner confirm these rows by name: {how.format(missing[0])}",
            field="prior",
            reason="publishes-protected-rows",
            given=dataset,
            needed=missing[0],
        )
    return tuple(protected)


def _same_terms(ledger: Ledger, dataset: str, prior: str | None) -> bool:
    """Whether nothing was charged, or all under one prior: events put others in force."""
    first = ledger.events(limit=1, kind="charge", dataset=dataset)
    marks = {event.body["prior"] for event in ledger.history(dataset, kind="accepted")}
    return not first or {*marks, first[0].body["prior"]} == {prior}


def _bound_in_order(rule: FittedRows, declaration: Declaration) -> FittedRows:
    """The rows up to the first one that is released, as a policy has it."""
    if rule.before is None:
        return rule
    return replace(rule, before=first_releasable(rule.before, declaration))


def _name(rule: FittedRows) -> str:
    """The rows by name, as an owner confirms that they are published."""
    before = [] if rule.before is None else [f"before {rule.before}"]
    share = [] if rule.share is None else [f"share {rule.share}"]
    return ", ".join((*before, *share)) or "all rows"


def _protects(charge: Mapping[str, Any], rule: FittedRows, declaration: Declaration) -> bool:
    """Whether a release was from some of these rows, as far as its event tells."""
    stated = charge.get("rules")
    fits = stated.get("fits", []) if isinstance(stated, Mapping) else []
    if any(_covers(fit, rule) for fit in fits):
        return False  # the policy of that time gave them up already
    if rule.before is None or rule.share is not None:
        return True
    window = charge["window"]
    if window is None or window["start"] is None:
        return True
    limit = rows_of(declaration, (rule.before, None), None).window  # type: ignore[arg-type]
    return limit is None or window["start"] < limit.ticks[0]


def _covers(fit: Mapping[str, Any], rule: FittedRows) -> bool:
    """Whether a fit of an earlier policy was on all of these entities, at any time."""
    if fit.get("fitted") == "all-rows":
        return True
    share, salt = fit.get("share"), fit.get("salt")
    if share is None or rule.share is None:
        return False
    return bool(salt == rule.salt and Fraction(share) >= rule.share)
