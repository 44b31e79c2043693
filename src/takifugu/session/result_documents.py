"""Results made from their documents: what `Result.document` wrote, exactly.

A result that came as JSON prints, plots and is written to files as the first one. In a document
null stands for what is infinite, and a float is written and read without loss.
"""

from functools import partial
from typing import Any

from takifugu.documents.declared import from_document
from takifugu.documents.reading import (
    DocumentPart,
    InvalidDocument,
    converted,
    json_object,
    json_value,
    listed,
    predicted,
    refuse_unshown,
    scalar,
)
from takifugu.session.provenance import Provenance
from takifugu.session.release_cost import ReleaseCost
from takifugu.session.release_result import Result
from takifugu.session.rows_read import RowsRead
from takifugu.session.saving import Saving

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
        cost=found.read("cost", ReleaseCost.from_document),
        free=found.truth("free"),
        at=found.moment("at"),
        mechanism=found.read("mechanism", json_object),
        guarantee=found.text("guarantee"),
        saving=found.maybe("saving", partial(from_document, Saving)),
        reads=RowsRead.from_document(found),
        provenance=found.maybe("provenance", partial(from_document, Provenance)),
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
