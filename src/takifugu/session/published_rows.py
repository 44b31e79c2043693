"""Rows that releases protected and that a prior is fitted on later: published only if confirmed.

A fitted prior is published with the policy, and what it shows about its rows is not charged; the
counts behind a chain can be recovered from its file. A fit on rows that earlier releases protected
takes that protection away. So it is refused until the owner confirms the rows *by name*, as
"before 30". The confirmation is an event of the ledger (``published`` in the details of a policy or
of an acceptance), and every guarantee after it says so.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from takifugu.declarations import Declaration
from takifugu.errors import UnsoundRequest
from takifugu.ledger import Ledger
from takifugu.priors import FittedRows
from takifugu.session.cells import rows_of
from takifugu.session.held_out import first_releasable, is_here
from takifugu.tables.scope import EVERYTHING, fitted_rows

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
    rules = tuple(_placed(rule, declaration) for rule in rules if is_here(rule, here))
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


def _placed(rule: FittedRows, declaration: Declaration) -> FittedRows:
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
