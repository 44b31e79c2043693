"""Parts that the documents of plans and results share: costs, savings, rows read, usefulness.

Each function reads what the ``describe`` of its class wrote.
"""

from typing import Any, get_args

from takifugu.costs.cost import Cost
from takifugu.session.document_reading import (
    DocumentPart,
    InvalidDocument,
    by_name,
    decimal,
    name,
    number,
    text,
    whole,
)
from takifugu.session.release_cost import AnalystCost, ReleaseCost
from takifugu.session.rows_read import RowsRead
from takifugu.session.saving import Saving
from takifugu.session.usefulness import GroupAccuracy, Remedy, Usefulness, Verdict


def cost_from_document(document: Any, path: str = "cost") -> ReleaseCost:
    """What `ReleaseCost.describe` wrote; null is infinite where a number must be."""
    found = DocumentPart.of(document, path)
    by_value, fits = found.maybe("by_value", value_cost), found.truth("fits")
    return ReleaseCost(
        currency=found.text("currency"),
        per_entry=found.fraction("per_entry"),
        delta=found.fraction("delta"),
        alone=found.number("alone"),
        before=found.number("before"),
        after=found.number("after") if fits else None,
        budget=found.fraction("budget"),
        budget_delta=found.fraction("budget_delta"),
        fits=fits,
        most=found.decimal("most"),
        own=_own(found.part("own"), fits) if found.has("own") else None,
        reuse=found.truth("reuse"),
        by_value=by_value,
        # there is one whenever values are told apart: null is infinite then
        without_values=None if by_value is None else found.number("without_values"),
        by_column=found.maybe("by_column", by_name(_or_infinite)),
    )


def _or_infinite(value: Any, path: str) -> float:
    return float("inf") if value is None else number(value, path)


def _own(found: DocumentPart, fits: bool) -> AnalystCost:
    return AnalystCost(
        found.text("analyst"),
        found.fraction("budget"),
        found.number("before"),
        found.number("after") if fits else None,
    )


def value_cost(document: Any, path: str) -> Cost:
    """What `Cost.document` wrote; refused if it is written in another way."""
    if not isinstance(document, list):
        raise InvalidDocument(path, given="is no list", needed="list coefficients and shapes")
    cost = Cost.of_document(document)
    if cost.document() != document:
        raise InvalidDocument(path, given="is in another order", needed="be as it was written")
    return cost


def saving_from_document(document: Any, path: str = "saving") -> Saving:
    """What `Saving.describe` wrote."""
    found = DocumentPart.of(document, path)
    return Saving(
        because=found.text("because"),
        deviation=found.number("deviation"),
        deviation_without_values=found.number("deviation_without_values"),
        alone=found.number("alone"),
        alone_without_values=found.number("alone_without_values"),
    )


def reads_from_document(found: DocumentPart) -> RowsRead | None:
    """How many rows a document says that its query reads; None if it does not say."""
    if not found.has("rows_read"):
        return None
    details = found.part("reads")
    return RowsRead(
        found.whole("rows_read"),
        found.whole("rows_there"),
        details.texts("others"),
        details.text("entity"),
        details.maybe("longest", whole),
        details.maybe("entities", whole),
    )


def usefulness_from_document(document: Any, path: str = "usefulness") -> Usefulness:
    """What `Usefulness.describe` wrote."""
    found = DocumentPart.of(document, path)
    remedy = None
    if found.has("rows_factor"):
        remedy = Remedy(
            found.maybe("epsilon_needed", decimal),
            found.truth("budget_admits_it"),
            found.whole("rows_factor"),
        )
    return Usefulness(
        accuracy=_accuracy(document, path),
        one=found.text("one"),
        many=found.text("many"),
        groups=found.whole("groups"),
        alike=found.truth("alike"),
        worse=found.whole("worse_groups"),
        worst=found.maybe("worst", _accuracy),
        guessed=found.truth("guessed"),
        remedy=remedy,
    )


def _accuracy(document: Any, path: str) -> GroupAccuracy:
    found = DocumentPart.of(document, path)
    bounds = found.read("range", _bounds)
    return GroupAccuracy(
        verdict=found.read("verdict", _verdict),
        half_width=found.number("half_width"),
        low=bounds[0],
        high=bounds[1],
        size=found.number("size"),
        rows=found.whole("rows"),
        group=found.read("group", by_name(name)),
    )


def _verdict(value: Any, path: str) -> Verdict:
    found: Any = text(value, path)
    if found not in get_args(Verdict):
        raise InvalidDocument(
            path, given="is another word", needed=f"be one of {', '.join(get_args(Verdict))}"
        )
    verdict: Verdict = found
    return verdict


def _bounds(value: Any, path: str) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise InvalidDocument(path, given="is no pair", needed="be the least and the greatest")
    return number(value[0], path), number(value[1], path)
