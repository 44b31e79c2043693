"""What an owner decides about a dataset: its prior and secrets, and who may ask.

A budget is a limit under one prior and one set of secrets. Under two by turns a ledger would keep
to neither of two guarantees for sure, so exactly one pair of them, the *terms*, is in force for a
dataset: those of the last `accepted` event or, in a ledger without one, of the last charge. A
charge under other terms is refused under the ledger's lock. What was spent is read anew under the
new terms once the owner has accepted them; `Review` is what they see before that.

An event of kind ``policy`` says what a command entered into a policy: which prior, how it was
fitted, on which rows. It puts nothing in force, unless nothing was ever charged: then the terms are
accepted with it, because there is nothing yet that could be read differently.
"""

import math
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_CEILING, Decimal
from difflib import get_close_matches
from fractions import Fraction
from typing import Any

from sqlalchemy import Connection, bindparam, func, literal_column, select

from takifugu.errors import InvalidCharge, LedgerConflict, NotAccepted, UnknownAnalyst
from takifugu.ledger.accounts import budget_limits as view
from takifugu.ledger.accounts.books import WHOLE
from takifugu.ledger.accounts.frontier import ZERO, Frontier
from takifugu.ledger.canonical_text import canonical_json, check_name
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.events.event_chain import Event, Head
from takifugu.ledger.storage import account_tables as tables
from takifugu.ledger.storage.schema import ACCOUNTS, EVENTS
from takifugu.ledger.storage.statement import Statement
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


def _last(kind: str) -> Statement:
    return Statement(
        select(func.max(EVENTS.c.seq).label("seq")).where(
            EVENTS.c.dataset == bindparam("named"),
            EVENTS.c.kind == literal_column(f"'{kind}'"),
        )
    )


_ACCEPTED, _CHARGED = _last("accepted"), _last("charge")


def in_force(connection: Connection, dataset: str) -> Terms | None:
    """The terms that charges must be made under; None if there are none yet.

    Once terms were accepted no charge is written under others, so the last acceptance decides; a
    ledger without one goes by its last charge. Read from the event itself, against its hash.
    """
    event = _event(connection, _ACCEPTED, dataset) or _event(connection, _CHARGED, dataset)
    return None if event is None else Terms(event.body["prior"], event.body["secrets"])


def accepted(connection: Connection, dataset: str) -> Event | None:
    """The last acceptance of terms for ``dataset``."""
    return _event(connection, _ACCEPTED, dataset)


def _event(connection: Connection, last: Statement, dataset: str) -> Event | None:
    row = last.one(connection, {"named": dataset})
    return None if row is None or row.seq is None else chain.one(connection, row.seq)


def charged_before(connection: Connection, dataset: str) -> bool:
    """Whether anything was ever charged on ``dataset``."""
    return _event(connection, _CHARGED, dataset) is not None


def refuse_terms(connection: Connection, dataset: str, terms: Terms) -> None:
    """Raise unless a charge under ``terms`` may be made."""
    known = in_force(connection, dataset)
    if known is None or known == terms:
        return
    both = (("prior", known.prior != terms.prior), ("secrets", known.secrets != terms.secrets))
    raise NotAccepted(dataset, tuple(name for name, differs in both if differs))


def rules_in_force(connection: Connection, dataset: str) -> Mapping[str, Any] | None:
    """What the owner accepted beside the terms or, where no acceptance says, what was charged by.

    They are a policy's own words, as JSON: which rows are released from, what their entries are.
    """
    event = _event(connection, _ACCEPTED, dataset)
    found = None if event is None else event.body["details"].get("rules")
    if found is None:
        event = _event(connection, _CHARGED, dataset)
        found = None if event is None else event.body.get("rules")
    return found if isinstance(found, Mapping) else None


def refuse_rules(connection: Connection, dataset: str, rules: Mapping[str, Any] | None) -> None:
    """Raise unless a charge by these ``rules`` may be made."""
    known = rules_in_force(connection, dataset)
    if known is None or rules is None or known == rules:
        return
    raise NotAccepted(dataset, ("rules",))


# --- what commands enter, and what owners accept ---


def review(
    connection: Connection, dataset: str, new: LossTranslation, old: LossTranslation | None
) -> Review:
    """What is spent under the terms in force (``old``, if at hand) and under ``new``."""
    known = in_force(connection, dataset)
    book = tables.find(connection, dataset).get(WHOLE)
    if book is None:
        return Review(dataset, known, None, Fraction(0), (ZERO,), 0.0, 0.0)
    worst, budget = book.account.worst, (book.epsilon, book.delta)
    after = view.read(new, worst, *budget)
    before = None if old is None else view.read(old, worst, *budget)
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
    now_so = (in_force(connection, seen.dataset), worst, budget)
    if now_so != (seen.old, seen.worst, (seen.epsilon, seen.delta)):
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


def enter(
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
    known = accepted(connection, dataset)
    same = known is not None and (known.body["prior"], known.body["secrets"]) == (
        terms.prior,
        terms.secrets,
    )
    same = same and known is not None and known.body["details"] == content["details"]
    if not same and not charged_before(connection, dataset):
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
    """A loss in millionths, rounded up; "infinity" if it has no end, None if it is not known."""
    if value is None:
        return None
    if not 0 <= value < math.inf:
        return "infinity"
    return f"{Decimal(value).quantize(MICRO, rounding=ROUND_CEILING).normalize():f}"


class Decided:
    """The decisions of a chain, read from its beginning: which charges they do not allow."""

    def __init__(self) -> None:
        self._terms: dict[str, Terms] = {}

    def problems(self, body: Mapping[str, Any]) -> list[str]:
        """What is wrong with one more event. Before anything was accepted any terms would do."""
        if body["kind"] == "accepted":
            self._terms[body["dataset"]] = Terms(body["prior"], body["secrets"])
        elif body["kind"] in ("charge", "reuse"):
            known = self._terms.get(body["dataset"])
            if known not in (None, Terms(body["prior"], body["secrets"])):
                return [f"event {body['seq']} was charged under terms that were not accepted"]
        return []


# --- who may ask ---

_ANALYSTS = Statement(
    select(ACCOUNTS.c.analyst).where(
        ACCOUNTS.c.dataset == bindparam("named"),
        ACCOUNTS.c.analyst != literal_column("''"),
        ACCOUNTS.c.epsilon.is_not(None),
    )
)


def refuse_stranger(connection: Connection, dataset: str, analyst: str | None) -> None:
    """Raise if analysts have budgets on ``dataset`` and ``analyst`` is none of them, to the letter.

    A name that is misspelt would otherwise be somebody else, whom no budget of their own bounds.
    """
    names = sorted(row.analyst for row in _ANALYSTS.all(connection, {"named": dataset}))
    if not names or analyst in names:
        return
    similar = () if analyst is None else tuple(alike(analyst, names))
    raise UnknownAnalyst(dataset, analyst, tuple(names), similar)


def refuse_double(connection: Connection, dataset: str, analyst: str) -> None:
    """Raise if a new name looks like one that has an account: it would be a second budget."""
    if analyst != analyst.strip() or not analyst.isprintable():
        raise InvalidCharge(
            "analyst", given=f"is {analyst!r:.80}", needed="be printable, without spaces around it"
        )
    found = select(ACCOUNTS.c.analyst).where(
        ACCOUNTS.c.dataset == dataset, ACCOUNTS.c.analyst != WHOLE
    )
    names = connection.execute(found).scalars().all()
    double = [name for name in names if name != analyst and folded(name) == folded(analyst)]
    if double and analyst not in names:
        raise InvalidCharge(
            "analyst",
            given=f"is {analyst!r:.80} and {double[0]!r:.80} has an account already",
            needed="be written the same way: two spellings would have two budgets",
        )


def folded(name: str) -> str:
    """A name without what eyes overlook: case, width, accents' form, spaces."""
    wide = unicodedata.normalize("NFKC", name).casefold()
    kept = (c for c in wide if not c.isspace() and unicodedata.category(c) != "Cf")
    return unicodedata.normalize("NFKC", "".join(kept))


def alike(name: str, names: list[str]) -> list[str]:
    """The names that ``name`` was probably meant to be."""
    same = [known for known in names if folded(known) == folded(name)]
    if same:
        return same[:3]
    by_folded = {folded(known): known for known in names}
    return [by_folded[one] for one in get_close_matches(folded(name), by_folded, n=3, cutoff=0.6)]
