"""What owners decide: budgets, the terms that charges are made under, single requests.

*Terms.* A budget is a limit under one prior and one set of secrets. Charges under two priors in
turn would keep to neither guarantee, so exactly one pair of prior and secrets, the *terms*, is in
force for a dataset: those of the last `accepted` event or, in a ledger without one, of the last
charge. A charge under other terms is refused under the ledger's lock. Once the owner accepts new
terms, what was spent is evaluated under them; `Review` shows that beforehand.

An event of kind ``policy`` records what a command entered into a policy: which prior, how it was
fitted, on which rows. It puts nothing in force, unless nothing was ever charged: then the terms are
accepted with it, since there is nothing yet to evaluate differently.

*Approvals.* One query of one analyst, allowed or refused by a second person. A policy may make
releases wait for an owner (`takifugu.project.policy`). The owner's decision is an event of
kind ``approval``, and the charge of the release names it. The ledger writes such a charge only if
the approval

* allows the same query (`charge_values.query_identity`: the rows, the data, the mechanism and its
  loss) of the same dataset to the same analyst;
* was made by another person than the one who charges and the one who asks, however their names are
  spelt;
* was not given for another request: one that names a request (a server's) serves that one alone,
  and the charge names it too;
* was made under the terms and the rules that are still in force: what the owner saw is its price;
* was not refused afterwards (a refusal that names a request withdraws approvals of that request
  alone), and is named by no other charge, also not by one that was lost: where
  an owner accepted that history is lost, no approval before that counts.

All of this is read under the ledger's lock, through the index on queries, so that no two charges
use the same approval. `ApprovedRequests` checks the same when a chain is verified.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from typing import Any, NotRequired, TypedDict

from takifugu._core.exact import Number, exactly
from takifugu.errors import ApprovalRefused, InvalidCharge, LedgerConflict
from takifugu.ledger.account import WHOLE
from takifugu.ledger.canonical_text import (
    canonical_json,
    check_name,
    check_text,
    encode_json,
    folded,
    write_fraction,
)
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.events.event_chain import Event
from takifugu.ledger.frontier import ZERO, Frontier
from takifugu.ledger.limits import spent_epsilon
from takifugu.ledger.storage import account_tables as tables
from takifugu.ledger.storage.database import Connection
from takifugu.ledger.storage.schema import EVENTS, select
from takifugu.translation.protocol import LossTranslation
from takifugu.visible import four_digits

Append = Callable[[str, Mapping[str, Any]], Event]  # writes one event of an actor, at one time
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


def in_force(connection: Connection, dataset: str) -> tuple[Terms | None, Mapping[str, Any] | None]:
    """The terms and the rules that charges must be made under; None where there are none yet.

    Once terms were accepted no charge is written under others, so the last acceptance decides; a
    ledger without one goes by its last charge. Rules are a policy's own, as JSON: which rows are
    released from, what their entries are. Both are read from the event, checked against its hash.
    """
    event = chain.last_of(connection, "accepted", dataset)
    rules = None if event is None else event.body["details"].get("rules")
    if event is None or rules is None:
        charge = chain.last_of(connection, "charge", dataset)
        event = event or charge
        rules = None if charge is None else charge.body.get("rules")
    terms = None if event is None else Terms(event.body["prior"], event.body["secrets"])
    return terms, rules if isinstance(rules, Mapping) else None


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
    terms: Terms,
    seen: Review,
    details: Mapping[str, Any],
    append: Append,
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
        "prior": terms.prior,
        "secrets": terms.secrets,
        "before": None if seen.old is None else vars(seen.old),
        "budget": None if seen.epsilon is None else str(seen.epsilon),
        "budget_delta": str(seen.delta),
        "spent_before": decimal_up(seen.before),
        "spent_after": decimal_up(seen.after),
        "details": _plain(details),
    }
    return append("accepted", content)


def enter_policy(
    connection: Connection,
    dataset: str,
    terms: Terms,
    details: Mapping[str, Any],
    append: Append,
) -> Event:
    """Write down what a command entered into the policy of ``dataset``.

    Before the first charge the terms are accepted with it, unless they are in force already.
    """
    content = {
        "dataset": dataset,
        "prior": terms.prior,
        "secrets": terms.secrets,
        "details": _plain(details),
    }
    event = append("policy", content)
    known = chain.last_of(connection, "accepted", dataset)
    parts = ("prior", "secrets", "details")
    same = known is not None and all(known.body[part] == content[part] for part in parts)
    if not same and chain.last_of(connection, "charge", dataset) is None:
        seen = review(connection, dataset, _NothingCharged(), None)
        accept(connection, terms, seen, details, append)
    return event


def budget_content(
    dataset: str, analyst: str | None, epsilon: Number, delta: Number
) -> tuple[tuple[Fraction, Fraction], dict[str, Any]]:
    """A budget, exactly, and the content of its event."""
    check_name(dataset, "dataset")
    budget = exact_budget(epsilon, delta)
    return budget, {
        "dataset": dataset,
        "analyst": analyst,
        "epsilon": write_fraction(budget[0], "budget"),
        "delta": write_fraction(budget[1], "budget"),
    }


def exact_budget(epsilon: Number, delta: Number) -> tuple[Fraction, Fraction]:
    """ε and δ of a budget, exactly; an error if they cannot be one."""
    budget = exactly(epsilon, "epsilon"), exactly(delta, "delta")
    if budget[0] < 0 or not 0 <= budget[1] < 1:
        shown = f"is ε = {four_digits(budget[0], 'down')}, δ = {four_digits(budget[1], 'down')}"
        raise InvalidCharge(
            "budget", given=shown, needed="have ε of 0 or more and δ from 0 to below 1"
        )
    return budget


class _NothingCharged(LossTranslation):
    """The translation of a dataset without charges: 0, whatever the prior; all else is infinite."""

    def to_pufferfish(self, dp: float, /) -> float:
        return math.inf if dp else 0.0

    def to_dp(self, pufferfish: float, /) -> float:  # noqa: ARG002
        return 0.0


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


APPROVED, REFUSED = "approved", "refused"
BOUND = "bound"  # of a decision on a request: charges name it too, which earlier versions did not
_SINCE = select(
    EVENTS,
    "seq",
    where="question = :question AND seq > :number AND kind IN ('approval', 'charge', 'reuse')"
    " ORDER BY seq",
)
_DECISIONS = select(
    EVENTS,
    "seq",
    where="question = :question AND kind = 'approval' AND body LIKE :naming ORDER BY seq DESC",
)


class Asked(TypedDict):
    """What an owner decides about: one query of one analyst.

    Attributes:
        dataset: The dataset that it is about.
        analyst: Who asks; None if no analyst is named.
        question: What identifies the query: ``charge.body()["question"]``.
        words: The query in words, as the owner saw it.
        epsilon: What it costs alone, as the owner saw it: the Pufferfish ε.
        request: What identifies the request, where the same query may be asked for twice.
        note: What the owner writes about it, for who asked to read.
        check: Called under the lock with the last decision on this request, or None; what it
            raises keeps the event from being written.
    """

    dataset: str
    analyst: str | None
    question: str
    words: str
    epsilon: Number
    request: NotRequired[str | None]
    note: NotRequired[str]
    check: NotRequired[Callable[[Event | None], object] | None]


def approval_content(decision: str, asked: Asked, actor: str) -> dict[str, Any]:
    """The content of a decision on a query; an error if an analyst approves their own."""
    dataset, analyst, request = asked["dataset"], asked["analyst"], asked.get("request")
    names = {"dataset": dataset, "question": asked["question"]}
    names |= {
        name: value
        for name, value in (("analyst", analyst), ("request", request))
        if value is not None
    }
    for field, name in names.items():
        check_name(name, field)
    note = asked.get("note", "")
    check_text(asked["words"], "words")
    check_text(note, "note")
    if decision == APPROVED and same_person(actor, analyst):
        raise ApprovalRefused(None, "person", dataset=dataset)
    content = {
        "dataset": dataset,
        "analyst": analyst,
        "question": asked["question"],
        "decision": decision,
        "words": asked["words"],
        "epsilon": write_fraction(exactly(asked["epsilon"], "epsilon"), "epsilon"),
    }
    content |= {"note": note} if note else {}
    return content if request is None else content | {"request": request, BOUND: True}


def decision_on(connection: Connection, question: str, request: str) -> chain.Event | None:
    """The last decision on a request of a query; None if there is none.

    Only events that may name it are read: analysts can withdraw any number of others.
    """
    named = encode_json(request).replace("\\", "_").replace("%", "_")  # _ is any letter
    values = {"question": question, "naming": f'%"request":{named}%'}
    for row in _DECISIONS.all(connection, values):
        event = chain.one(connection, row.seq)
        if event.body.get("request") == request:
            return event
    return None


def under(connection: Connection, dataset: str) -> int | None:
    """The acceptance that is in force on ``dataset``; None if nothing was ever accepted."""
    event = chain.last_of(connection, "accepted", dataset)
    return None if event is None else event.seq


def same_person(name: str | None, other: str | None) -> bool:
    """Whether two names may be of one person: eyes overlook case, width and spaces."""
    return name is not None and other is not None and folded(name) == folded(other)


def refuse_unfit(connection: Connection, body: Mapping[str, Any]) -> None:
    """Raise if the approval that a charge names does not allow it. The caller holds the lock."""
    number = body.get("approval")
    if number is None:
        return
    approval = _approval(connection, number)
    accepted, lost = under(connection, body["dataset"]), chain.last_loss(connection)
    reason = misfit(approval, body, accepted, lost)
    if reason is None and approval is not None:
        reason = _ended(connection, approval, number)
    if reason is not None:
        raise ApprovalRefused(number, reason, dataset=body["dataset"])


def _ended(connection: Connection, approval: Mapping[str, Any], number: int) -> str | None:
    """Why an approval does not count any more; None if it does."""
    for row in _SINCE.all(connection, {"question": approval["question"], "number": number}):
        later = chain.one(connection, row.seq).body
        if later.get("approval") == number:
            return "used"
        if withdraws(later, approval):
            return "withdrawn"
    return None


def _approval(connection: Connection, number: int) -> Mapping[str, Any] | None:
    if not 0 < number <= chain.head(connection).seq:
        return None
    event = chain.one(connection, number)
    return event.body if event.kind == "approval" else None


def misfit(
    approval: Mapping[str, Any] | None,
    charge: Mapping[str, Any],
    accepted: int | None,
    lost: int = 0,
) -> str | None:
    """Why an approval, by itself, does not allow a charge; None if it does.

    ``accepted`` is the acceptance in force, and ``lost`` the last event by which history was lost.
    """
    if approval is None:
        return "missing"
    if approval["decision"] != APPROVED:
        return "refused"
    for part in ("dataset", "analyst", "question"):
        if approval[part] != charge[part]:
            return part
    people = charge.get("actor"), charge["analyst"]
    if any(same_person(approval["actor"], person) for person in people):
        return "person"
    if approval["under"] != accepted:
        return "terms"
    if charge["approval"] < lost:
        return "lost"
    return None if approval.get("request") in (None, charge.get("request")) else "request"


def withdraws(later: Mapping[str, Any], approval: Mapping[str, Any]) -> bool:
    """Whether an event after an approval refuses it after all.

    One that names no request is about the query, whoever asked for it and however often.
    """
    return (
        later["kind"] == "approval"
        and later["decision"] == REFUSED
        and all(later[part] == approval[part] for part in ("dataset", "analyst", "question"))
        and later.get("request") in (None, approval.get("request"))
    )


class ApprovedRequests:
    """The approvals of a chain, read from its beginning: which charges they allow."""

    def __init__(self) -> None:
        self._approvals: dict[int, Mapping[str, Any]] = {}
        self._open: set[int] = set()  # neither used nor refused since
        self._accepted: dict[str, int] = {}
        self._loss = 0

    def misfit(self, body: Mapping[str, Any]) -> str | None:
        """Why the approval that one more event names does not allow it; None if it does."""
        match body["kind"]:
            case "loss":
                self._loss = body["seq"]
            case "accepted":
                self._accepted[body["dataset"]] = body["seq"]
            case "approval" if body["decision"] == REFUSED:
                self._open -= {n for n in self._open if withdraws(body, self._approvals[n])}
            case "approval":
                self._approvals[body["seq"]] = body
                self._open.add(body["seq"])
            case "charge" | "reuse" if body.get("approval") is not None:
                number, charge = body["approval"], body
                approval = self._approvals.get(number)
                if approval is not None and not approval.get(BOUND):
                    charge = {**body, "request": approval.get("request")}
                reason = misfit(approval, charge, self._accepted.get(body["dataset"]), self._loss)
                if reason is None and number not in self._open:
                    reason = "used"
                self._open.discard(number)
                return reason
        return None
