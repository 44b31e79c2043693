"""Tasks of pages: the history of a budget as a picture, and results in words."""

from datetime import datetime
from fractions import Fraction
from typing import Any

from takifugu.reports.spending_figure import BudgetEvent, spending_figure
from takifugu.reports.standalone_svg import standalone_svg
from takifugu.server.work.dataset_tasks import budget, dataset_of
from takifugu.server.work.tasks import Task, task
from takifugu.server.work.worker_host import WorkerHost
from takifugu.session.result_documents import result_from_document
from takifugu.visible import four_digits


@task("budget-figure")
def budget_figure(host: WorkerHost, asked: Task) -> bytes:
    """What was spent after each event, and what was allowed, as an SVG file.

    It shows what the task ``budget`` says of the dataset as a whole, and when the owner set which
    budget.
    """
    opened = dataset_of(host, asked)
    whole = next(one for one in budget(host, asked)["budgets"] if one["analyst"] is None)
    events = _events(whole, opened)
    spent = four_digits(whole["spent"] or 0.0, "up")
    return standalone_svg(
        spending_figure(events), f"What was spent of the budget of {opened.name}: now {spent}"
    )


@task("result-words")
def result_words(_: WorkerHost, asked: Task) -> dict[str, Any]:
    """What a result is, in words: its ``title``, and the ``facts`` about it by name."""
    result = result_from_document(asked.options["document"])
    return {"title": result.title, "facts": result.facts()}


def _events(whole: dict[str, Any], opened: Any) -> list[BudgetEvent]:
    """Charges and the budgets that were set between them, in order."""
    set_at = [
        (event.seq, event.at, float(Fraction(event.body["epsilon"])))
        for event in opened.ledger.events(kind="budget", dataset=opened.name)
        if event.body.get("analyst") is None
    ]
    charged = [
        (one["seq"], datetime.fromisoformat(one["at"]), one["spent"]) for one in whole["history"]
    ]
    first = charged[0][0] if charged else 0
    before = [one for one in set_at if one[0] < first]  # older ones are left out with their charges
    kept = [*before[-1:], *(one for one in set_at if one[0] >= first)]
    known: float | None = None
    spent, found = 0.0, []
    for seq, at, amount, is_charge in sorted(
        [(*one, True) for one in charged] + [(*one, False) for one in kept]
    ):
        if is_charge:
            spent = amount
        else:
            known = amount
        found.append(BudgetEvent(seq, at, spent, known, released=is_charge))
    return found
