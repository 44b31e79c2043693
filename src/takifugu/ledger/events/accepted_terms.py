"""The terms of a dataset: the prior and the secrets that its owner accepted.

A budget is a limit under one prior and one set of secrets. Charges under two priors in turn would
keep to neither guarantee, so exactly one pair of prior and secrets, the *terms*, is in force for a
dataset: those of the last `accepted` event or, in a ledger without one, of the last charge. A
charge under other terms is refused under the ledger's lock. Once the owner accepts new terms, what
was spent is evaluated under them; `Review` shows that beforehand.

An event of kind ``policy`` records what a command entered into a policy: which prior, how it was
fitted, on which rows. It puts nothing in force, unless nothing was ever charged: then the terms are
accepted with it, since there is nothing yet to evaluate differently.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from typing import Any, Literal

from takifugu.errors import LedgerConflict
from takifugu.ledger.accounts.account import WHOLE
from takifugu.ledger.accounts.frontier import ZERO, Frontier
from takifugu.ledger.accounts.limits import spent_epsilon
from takifugu.ledger.canonical_text import canonical_json, check_name
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.events.event_chain import Event, Head
from takifugu.ledger.storage import account_tables as tables
from takifugu.ledger.storage.schema import EVENTS
from takifugu.ledger.storage.statement import Connection, Statement
from takifugu.translation.protocol import LossTranslation

MICRO = Decimal("0.000001")


@dataclass(frozen=True)
class Terms:
    """What a budget holds under: fingerprints of the prior (with its uncertainty) and secrets."""

    prior: str
    secrets: str

    def __post_init__(self) -> None:
        check_name(self.prior, "prior")
        check_name(self.secrets, "secrets")


@dataclass(frozen=True)
class Review:
    """What an owner sees before new terms are accepted.

    Attributes:
        dataset: Whose terms.
        old: The terms in force; None if there are none yet.
        epsilon: The budget; None if nobody has set one.
        delta: The δ beside it.
        worst: What the most exposed entries have lost, before any translation.
        before: The Pufferfish ε of all releases under the old terms, rounded up; None if the prior
            in force is not at hand any more.
        after: The same under the new terms.
    """

    dataset: str
    old: Terms | None
    epsilon: Fraction | None
    delta: Fraction
    worst: Frontier
    before: float | None
    after: float

    @property
    def within(self) -> bool:
        """Whether what was spent is within the budget under the new terms."""
        if self.epsilon is None or self.after == math.inf:
            return not self.after
        return Fraction(self.after) <= self.epsilon


# --- the terms in force ---


_LAST = {
    kind: Statement(
        f"SELECT max(seq) AS seq FROM {EVENTS} WHERE dataset = :named AND kind = '{kind}'"
    )
    for kind in ("accepted", "charge")
}


def in_force(connection: Connection, dataset: str) -> tuple[Terms | None, Mapping[str, Any] | None]:
    """The terms and the rules that charges must be made under; None where there are none yet.

    Once terms were accepted no charge is written under others, so the last acceptance decides; a
    ledger without one goes by its last charge. Rules are a policy's own, as JSON: which rows are
    released from, what their entries are. Both are read from the event, checked against its hash.
    """
    event = last_event(connection, "accepted", dataset)
    rules = None if event is None else event.body["details"].get("rules")
    if event is None or rules is None:
        charge = last_event(connection, "charge", dataset)
        event = event or charge
        rules = None if charge is None else charge.body.get("rules")
    terms = None if event is None else Terms(event.body["prior"], event.body["secrets"])
    return terms, rules if isinstance(rules, Mapping) else None


def last_event(
    connection: Connection, kind: Literal["accepted", "charge"], dataset: str
) -> Event | None:
    """The last acceptance of terms for ``dataset``, or the last charge on it."""
    row = _LAST[kind].one(connection, {"named": dataset})
    return None if row is None or row.seq is None else chain.one(connection, row.seq)


# --- what commands enter, and what owners accept ---


def review(
    connection: Connection,
    dataset: str,
    new: LossTranslation,
    old: LossTranslation | None,
    as_read: Callable[[Frontier], Frontier] = lambda totals: totals,
) -> Review:
    """What is spent under the terms in force (``old``, if at hand) and under ``new``.

    ``as_read``: what totals are under the names that values have along with the new terms.
    """
    known, _ = in_force(connection, dataset)
    book = tables.find(connection, dataset).get(WHOLE)
    if book is None:
        return Review(dataset, known, None, Fraction(0), (ZERO,), 0.0, 0.0)
    worst, budget = book.account.worst, (book.epsilon, book.delta)
    after = spent_epsilon(new, as_read(worst), *budget)
    before = None if old is None else spent_epsilon(old, worst, *budget)
    if worst == (ZERO,):
        before = 0.0
    return Review(dataset, known, *budget, worst, before, after)


def accept(
    connection: Connection,
    last: Head,
    terms: Terms,
    seen: Review,
    details: Mapping[str, Any],
    actor: str,
    now: datetime,
) -> Event:
    """Put ``terms`` in force, if the dataset still is as it was ``seen``."""
    book = tables.find(connection, seen.dataset).get(WHOLE)
    worst = (ZERO,) if book is None else book.account.worst
    budget = (None, Fraction(0)) if book is None else (book.epsilon, book.delta)
    known, _ = in_force(connection, seen.dataset)
    if (known, worst, budget) != (seen.old, seen.worst, (seen.epsilon, seen.delta)):
        raise LedgerConflict(
            f"dataset {seen.dataset!r} was charged, or its budget or prior changed, while you were"
            " looking at it; nothing was accepted. Look again",
            reason="review",
            dataset=seen.dataset,
        )
    content = {
        "dataset": seen.dataset,
        "analyst": None,
        "prior": terms.prior,
        "secrets": terms.secrets,
        "before": None if seen.old is None else vars(seen.old),
        "budget": None if seen.epsilon is None else str(seen.epsilon),
        "budget_delta": str(seen.delta),
        "spent_before": decimal_up(seen.before),
        "spent_after": decimal_up(seen.after),
        "details": _plain(details),
        "actor": actor,
    }
    return chain.append(connection, last, "accepted", content, now)


def enter_policy(
    connection: Connection,
    last: Head,
    dataset: str,
    terms: Terms,
    details: Mapping[str, Any],
    actor: str,
    now: datetime,
) -> Event:
    """Write down what a command entered into the policy of ``dataset``.

    Before the first charge the terms are accepted with it, unless they are in force already.
    """
    content = {
        "dataset": dataset,
        "analyst": None,
        "prior": terms.prior,
        "secrets": terms.secrets,
        "details": _plain(details),
        "actor": actor,
    }
    event = chain.append(connection, last, "policy", content, now)
    known = last_event(connection, "accepted", dataset)
    same = known is not None and (known.body["prior"], known.body["secrets"]) == (
        terms.prior,
        terms.secrets,
    )
    same = same and known is not None and known.body["details"] == content["details"]
    if not same and last_event(connection, "charge", dataset) is None:
        seen = review(connection, dataset, _NothingCharged(), None)
        accept(connection, after(last, event), terms, seen, details, actor, now)
    return event


class _NothingCharged(LossTranslation):
    """The translation of a dataset without charges: 0, whatever the prior; all else is infinite."""

    def to_pufferfish(self, dp: float, /) -> float:
        return math.inf if dp else 0.0

    def to_dp(self, pufferfish: float, /) -> float:  # noqa: ARG002
        return 0.0


def after(last: Head, event: Event) -> Head:
    """The head once ``event`` was added to ``last``."""
    return Head(event.seq, event.hash, max(last.at, event.at.isoformat()))


def _plain(details: Mapping[str, Any]) -> dict[str, Any]:
    canonical_json(dict(details), "details")
    return dict(details)


def decimal_up(value: float | None) -> str | None:
    """A loss in millionths, rounded up; "infinity" if it is infinite, None if it is unknown."""
    if value is None:
        return None
    if not 0 <= value < math.inf:
        return "infinity"
    return f"{Decimal(value).quantize(MICRO, rounding=ROUND_CEILING).normalize():f}"


class AcceptedTerms:
    """The terms that a chain accepts, read from its beginning: which charges they allow."""

    def __init__(self) -> None:
        self._terms: dict[str, Terms] = {}

    def allows(self, body: Mapping[str, Any]) -> bool:
        """Whether one more event keeps to the terms. Before an acceptance any terms will do."""
        if body["kind"] == "accepted":
            self._terms[body["dataset"]] = Terms(body["prior"], body["secrets"])
        elif body["kind"] in ("charge", "reuse"):
            known = self._terms.get(body["dataset"])
            return known in (None, Terms(body["prior"], body["secrets"]))
        return True
