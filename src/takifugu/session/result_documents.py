"""Results made from their documents: what `Result.document` wrote, exactly.

A result that came as JSON prints, plots and is written to files as the first one. In a document
null stands for what is infinite, and a float is written and read without loss.
"""

from typing import Any

from takifugu.ledger import Anchor
from takifugu.session.document_reading import (
    DocumentPart,
    InvalidDocument,
    by_name,
    converted,
    json_object,
    json_value,
    listed,
    predicted,
    refuse_unshown,
    scalar,
    text,
)
from takifugu.session.price_documents import (
    cost_from_document,
    reads_from_document,
    saving_from_document,
)
from takifugu.session.provenance import PriorUsed, Provenance
from takifugu.session.release_result import Result

QUERY = ("dataset", "query", "window", "groups")  # what was asked, and of which rows


def result_from_document(document: Any) -> Result:
    """The result that `Result.document` wrote."""

    def read(given: Any, _: str) -> Result:
        result = _result(DocumentPart.of(given))
        refuse_unshown(lambda: (result.document(), str(result)))
        return result

    return converted(document, "document", read)


def _result(found: DocumentPart) -> Result:
    columns = found.texts("columns")
    asked = found.read("query", json_object)
    for key in ("name", "column", "by"):
        if key not in asked:
            raise InvalidDocument(f"query, {key}", given="is missing", needed="be given")
    found.text("dataset")
    return Result(
        query={key: found.read(key, json_value) for key in QUERY},
        columns=columns,
        rows=_rows(found, "rows", columns),
        error=found.read("error", lambda value, path: predicted(value, path) if value else {}),
        cost=found.read("cost", cost_from_document),
        free=found.truth("free"),
        at=found.moment("at"),
        mechanism=found.read("mechanism", json_object),
        guarantee=found.text("guarantee"),
        saving=found.maybe("saving", saving_from_document),
        reads=reads_from_document(found),
        provenance=found.maybe("provenance", provenance_from_document),
        raw=_rows(found, "raw", columns) if found.has("raw") else None,
        shown=found.texts("shown"),
    )


def _rows(
    found: DocumentPart, key: str, columns: tuple[str, ...]
) -> tuple[tuple[str | int | float | bool | None, ...], ...]:
    rows = found.read(key, listed(listed(scalar)))
    if any(len(row) != len(columns) for row in rows):
        raise InvalidDocument(
            found.named(key),
            given="has a row of another length",
            needed=f"have {len(columns)} cells in each row",
        )
    return rows


def provenance_from_document(document: Any, path: str = "provenance") -> Provenance:
    """What `Provenance.describe` wrote."""
    found = DocumentPart.of(document, path)
    return Provenance(
        dataset=found.text("dataset"),
        analyst=found.maybe("analyst", text),
        asked=found.text("asked"),
        priors=found.read("priors", listed(_prior)),
        translation=found.text("translation"),
        charge=_anchor(found.part("charge")),
        answer=_anchor(found.part("answer")),
        released=found.moment("released"),
        software=found.read("software", by_name(text)),
    )


def _prior(document: Any, path: str) -> PriorUsed:
    found = DocumentPart.of(document, path)
    return PriorUsed(
        found.text("name"),
        found.text("words"),
        found.text("fingerprint"),
        found.texts("fitted_on"),
    )


def _anchor(found: DocumentPart) -> Anchor:
    return Anchor(found.whole("event"), found.text("hash"))
