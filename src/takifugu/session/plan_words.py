"""A plan in words and rounded numbers, each by itself: for a page that shows them apart.

`Plan.__str__` says the same in lines. Losses are rounded up and allowances down, so that nobody
who shows them has to know how.
"""

from typing import Any

from takifugu.session.release_plan import Plan, error_words
from takifugu.visible import four_digits, visible

TONES = {"useful": "good", "rough": "warn", "mostly noise": "bad"}


def plan_words(plan: Plan) -> dict[str, Any]:
    """What to show of a plan.

    Keys: ``title``; ``cost``, ``adds`` and ``spent``, amounts in a few letters;
    ``takes``, what a release takes from the budget, for the button that makes it; ``verdict``, its
    ``tone`` and the sentence ``useful``; the sentences ``error`` and ``odds``; ``notes``; ``over``,
    why it is too much, or nothing; ``most``, an ε that would be accepted in its place, and
    ``needed``, one that would make it useful and is accepted, as digits to type, or null;
    ``confirm``, whether it is mostly noise and wants a yes.
    """
    cost, useful = plan.cost, plan.usefulness
    saved = None if plan.stored else plan.saving(cost)
    remedy = useful.remedy
    needed = remedy is not None and remedy.epsilon is not None and remedy.admitted
    over = not cost.fits and not plan.stored
    return {
        "title": f"{plan.query.kind.replace('_', ' ')} of {visible(plan.query.title)}",
        "cost": "nothing"
        if plan.stored
        else cost.words.replace("epsilon", "ε").replace("delta", "δ"),
        "adds": _adds(plan),
        "takes": _takes(plan),
        "spent": cost.spent_words.partition(" is spent")[0],
        "verdict": useful.verdict,
        "tone": TONES[useful.verdict],
        "useful": _after_colon(useful.words),
        "error": error_words(plan.error),
        "odds": cost.odds_words.removeprefix("for one entry: "),
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
    } | _own(plan)


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
    alone = cost.words.replace("epsilon", "ε").replace("delta", "δ")
    if cost.reuse:
        return f"adds nothing ({alone} alone)"
    if cost.marginal is None:
        return f"{alone} alone"
    return f"adds ε = {four_digits(cost.marginal, 'up')} ({alone.removeprefix('ε = ')} alone)"


def _own(plan: Plan) -> dict[str, Any]:
    own = plan.cost.own
    if own is None:
        return {"own": ""}
    return {"own": own.spent_words}


def _after_colon(words: str) -> str:
    """The words of a verdict without the verdict, which stands beside them."""
    return words.partition(": ")[2] or words
