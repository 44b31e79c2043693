"""What the ledger stores of an answer: what was drawn, and the table that was published.

What was drawn decides: from it every later answer to the same query is laid out. The table, the
predicted error and the numbers of rows are copies for readers who have the ledger and not the data,
such as the report of a project. All of it is published, or public, already.
"""

from contextlib import suppress
from typing import Any

from takifugu.errors import TakifuguError
from takifugu.ledger.canonical_text import check_json
from takifugu.session.release_plan import UnpricedPlan
from takifugu.tables import Engine

MOST_ROWS = 5_000  # of a table that is copied; a longer one can be laid out with the data only


def answer_record(made: UnpricedPlan, answer: list[Any], engine: Engine) -> dict[str, Any]:
    """The answer of a plan as JSON: ``drawn`` and, unless it is too long, ``shown``.

    It was paid for and drawn, so that nothing here may fail: without ``shown`` it is complete.
    """
    record: dict[str, Any] = {"drawn": answer}
    with suppress(TakifuguError, ArithmeticError, LookupError, TypeError, ValueError):
        shown = _shown(made, answer, engine)
        if len(shown["rows"]) <= MOST_ROWS:
            check_json(shown, "shown")
            record["shown"] = shown
    return record


def _shown(made: UnpricedPlan, answer: list[Any], engine: Engine) -> dict[str, Any]:
    table = made.query.table(made.mechanism, answer, engine, made.error)
    return {
        "columns": list(table.columns),
        "rows": [list(row) for row in table.rows],
        "notes": list(table.notes),
        "error": _plain(made.error),
        "delta": str(made.delta),
        **made.reads.record(),
    }


def _plain(value: Any) -> Any:
    """Lists for tuples, and null for what is infinite, which JSON has no number for."""
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and value - value != 0 else value
