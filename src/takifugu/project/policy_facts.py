"""What owners see of a policy, of a change to it and of a fit, as JSON."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from takifugu.ledger.event_documents import four_up
from takifugu.ledger.events.decisions import decimal_up
from takifugu.visible import four_digits

if TYPE_CHECKING:
    from takifugu.declarations import Declaration
    from takifugu.fitting import Fitted
    from takifugu.project.owner_changes import PolicyChange
    from takifugu.project.project import Project


def declaration_facts(found: "Declaration") -> dict[str, Any]:
    """What a declaration says, its source among it."""
    return {
        "title": found.title,
        "fingerprint": found.fingerprint,
        "source": found.source.place,
        "entity": found.entity,
        "order": [] if found.order.absent else [found.order.column, *found.order.ties],
        "protected": [column.column for column in found.protected],
        "public": [column.column for column in found.public],
        "guarantee": found.guarantee(),
    }


def policy_facts(project: "Project", name: str) -> dict[str, Any]:
    """The policy of a dataset, with the files that it names."""
    loaded = project.load(name)
    policy, releasable = loaded.policy, loaded.releasable
    start, share = releasable.start, releasable.entities
    return {
        "dataset": name,
        "about": loaded.about,
        "priors": [prior.file for prior in policy.priors],
        "columns": list(loaded.columns),
        "over": [prior.over for prior in policy.priors],
        "pairs": _pairs(policy.pairs),
        "entries": policy.entries and list(policy.entries),
        "secrets_within": None if policy.within is None else str(policy.within),
        "uncertainty": policy.uncertainty,
        "analysts": list(policy.analysts),
        "approval": None if policy.approval is None else policy.approval.document(),
        "linear": {
            query: {
                "column": one.column,
                "by": one.by,
                "weights": {str(key): str(weight) for key, weight in one.weights},
            }
            for query, one in policy.linear.items()
        },
        "released_from": start if start is None or isinstance(start, int) else start.isoformat(),
        "released_share": None if share is None else str(share.high - share.low),
        "fitted": list(releasable.statements),
    }


def _pairs(pairs: Any) -> Any:
    """Secret pairs as JSON, by column if the policy has them so."""
    if isinstance(pairs, Mapping):
        return {column: _pairs(column_pairs) for column, column_pairs in pairs.items()}
    return pairs and [[list(left), list(right)] for left, right in pairs]


def change_facts(name: str, uncertainty: float, change: "PolicyChange") -> dict[str, Any]:
    """What is spent of a dataset under the terms in force and under those of the policy."""
    seen = change.seen
    return {
        "dataset": name,
        "accepted": False,
        "prior": change.terms.prior,
        "secrets": change.terms.secrets,
        "uncertainty": uncertainty,
        "budget": None if seen.epsilon is None else str(seen.epsilon),
        "delta": str(seen.delta),
        "spent_before": decimal_up(seen.before),
        "spent_after": decimal_up(seen.after),
        "analysts": {
            who: {"budget": str(budget), "spent_after": decimal_up(spent)}
            for who, (budget, spent) in change.analysts.items()
        },
        "event": None,
        "actor": None,
    }


def change_lines(name: str, change: "PolicyChange", facts: Mapping[str, Any]) -> Iterator[str]:
    """What an owner must see: what is spent under both, and the budget."""
    seen, old = change.seen, change.seen.old
    parts = ["prior", "secrets"]
    if old is not None:
        parts = [part for part in parts if getattr(old, part) != getattr(change.terms, part)]
    yield f"{name}: new {' and '.join(parts) or 'rows that are released from'}"
    before = facts["spent_before"]
    unknown = "unknown: the prior in force is no longer there"
    yield f"  spent under the old: {unknown if before is None else four_up(before)}"
    yield f"  spent under the new: {four_up(facts['spent_after'])}"
    budget = "none" if seen.epsilon is None else four_digits(seen.epsilon, "down")
    yield f"  budget: {budget}"
    if not seen.within:
        yield "  That is more than the budget: nothing is released until it is raised."
    for who, facts_of in facts["analysts"].items():
        spent, own = four_up(facts_of["spent_after"]), four_digits(change.analysts[who][0], "down")
        yield f"  analyst {who}: {spent} spent under the new, of a budget of {own}"


def fit_facts(project: "Project", name: str, found: "Fitted") -> dict[str, Any]:
    """What a prior was fitted on that was entered last, and whether it describes its rows."""
    entered = project.dataset(name).priors[-1]
    start = entered.released_from
    return {
        "dataset": name,
        "project": str(project.file),
        "steps": found.estimate.counted,
        "unit": found.estimate.unit,
        "fitted": entered.fitted,
        "share": entered.share and str(entered.share),
        "released_from": start if start is None or isinstance(start, int) else str(start),
        "statement": found.statement,
        "notes": list(found.estimate.notes),
        "remaining": found.remaining,
        "rests_on": dict(found.estimate.facts),
        "goodness": None if found.goodness is None else found.goodness.document(),
    }
