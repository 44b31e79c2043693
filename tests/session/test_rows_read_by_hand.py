"""How many rows are read, of how many, and in which words, by an engine that counts what is told.

Each number differs from every other one, so that none can stand in for another.
"""

from types import SimpleNamespace
from typing import Any

import pytest

from takifugu.engines import InvalidQuery
from takifugu.session.held_out import ReleasableRows
from takifugu.session.rows_read import COUNTING, RowsRead, _either, rows_read
from tests.raising import raises

pytestmark = pytest.mark.nightly

EVERYTHING = ReleasableRows()
FULL = RowsRead(30, 4000, ("outside the window", "of weight 0"), "person", 7, 90)


class Counted:
    """An engine of so many rows; another one is its whole table, if it is a part."""

    def __init__(
        self, read: int, size: tuple[int, int, int] | None, whole: "Counted | None" = None
    ) -> None:
        self.read, self.size, self.scopes = read, size, list[Any]()
        self.whole = whole or self
        self.declaration = SimpleNamespace(entity="person")
        self.sized = 0

    def count(self, scope: Any) -> int:
        """What was told."""
        self.scopes.append(scope)
        return self.read

    def known_size(self) -> tuple[int, int, int] | None:
        """Rows, the most of an entity, entities."""
        self.sized += 1
        return self.size


def asked(
    engine: Counted,
    kind: str = "histogram",
    *,
    releasable: ReleasableRows = EVERYTHING,
    chosen: dict[str, Any] | None = None,
    **options: Any,
) -> RowsRead:
    """The rows of a query whose scope chooses ``chosen``."""
    where = options.get("where") or {}
    scope = SimpleNamespace(where=where if chosen is None else chosen)
    query: Any = SimpleNamespace(kind=kind, rows=SimpleNamespace(scope=scope))
    given: Any = SimpleNamespace(window=options.get("window"), where=where)
    found = rows_read(query, given, engine, releasable)  # type: ignore[arg-type]
    assert engine.scopes == [scope]
    return found


def test_a_query_of_all_rows_has_no_others() -> None:
    found = asked(Counted(30, (4000, 7, 90)))
    assert found == RowsRead(30, 30, (), "person", 7, 90)
    assert asked(Counted(30, (4000, 7, 90)), window=(None, None)) == found
    engine = Counted(30, (4000, 7, 90))
    assert asked(engine, "top_k") == RowsRead(30, 30, (), "person", None, None)
    assert engine.sized == 0  # nothing is asked that is not told


@pytest.mark.parametrize("kind", ["histogram", "top_k"])
def test_a_query_of_some_rows_tells_the_size_of_the_table(kind: str) -> None:
    longest = 7 if kind in COUNTING else None
    others = ("outside the window",)
    found = asked(Counted(30, (4000, 7, 90)), kind, window=(1, None))
    assert found == RowsRead(30, 4000, others, "person", longest, 90)
    found = asked(Counted(30, (20, 7, 90)), kind, window=(None, 5))  # fewer than are read
    assert found == RowsRead(30, 30, others, "person", longest, 90)
    found = asked(Counted(30, None), kind, window=(1, 5))
    assert found == RowsRead(30, 30, others, "person", None, None)


def test_everything_that_keeps_rows_from_being_read_is_told_in_turn() -> None:
    engine = Counted(30, (5, 1, 1), whole=Counted(0, (4000, 7, 90)))
    found = asked(
        engine,
        window=(1, None),
        where={"zone": ["a"]},
        chosen={"zone": ["a"], "place": ["home"]},
        releasable=ReleasableRows(start=12),
    )
    assert found.others == (
        "outside the window",
        "left out by `where`",
        "of weight 0",
        "before 12, where a prior was fitted",
        "of the share of `person` that a prior was fitted on",
    )
    assert (found.there, found.longest, found.entities) == (4000, 7, 90)  # of the whole table
    only_where = asked(Counted(30, None), where={"zone": ["a"], "floor": [1]}, chosen={"zone": 1})
    assert only_where.others == ("left out by `where`",)
    assert asked(Counted(30, None), chosen={"zone": 1}).others == ("of weight 0",)
    first = asked(Counted(30, None), releasable=ReleasableRows(start=0))
    assert first.others == ("before 0, where a prior was fitted",)


@pytest.mark.parametrize(
    ("options", "field", "needed"),
    [
        ({}, "window", "hold at least one"),
        ({"window": (1, 2)}, "window", "hold at least one; all rows are outside the window"),
        ({"where": {"a": 1}}, "where", "hold at least one; all rows are left out by `where`"),
        ({"where": {"a": 1}, "window": (None, None)}, "where",
         "hold at least one; all rows are left out by `where`"),
        ({"where": {"a": 1}, "window": (1, 2)}, "window",
         "hold at least one; all rows are outside the window, or left out by `where`"),
    ],
)  # fmt: skip
def test_no_rows_are_refused_by_what_left_them_out(
    options: dict[str, Any], field: str, needed: str
) -> None:
    engine = Counted(0, (4000, 7, 90))
    with raises(InvalidQuery, field=field) as caught:
        asked(engine, **options)
    assert needed in str(caught.value) and "holds no rows" in str(caught.value)
    assert ("; all rows" in str(caught.value)) == bool(options) and engine.sized == 0


def test_one_of_several_reasons_is_joined_by_or() -> None:
    assert _either(("a",)) == "a"
    assert _either(("a", "b")) == "a, or b" and _either(("a", "b", "c")) == "a, b, or c"


def test_what_is_known_of_rows_as_json() -> None:
    assert FULL.describe() == {"rows_read": 30, "rows_there": 4000}
    others = ["outside the window", "of weight 0"]
    assert FULL.details() == {"others": others, "entity": "person", "longest": 7, "entities": 90}
    assert FULL.record() == {
        "rows_read": 30,
        "rows_there": 4000,
        "rows_others": others,
        "entities_there": 90,
    }
    assert RowsRead(3, 5).record() == {"rows_read": 3, "rows_there": 5}
    assert RowsRead(3, 5, entities=0).record()["entities_there"] == 0
    assert RowsRead(3, 5) == RowsRead(3, 5, (), "", None, None)


def test_a_table_of_so_many_rows() -> None:
    assert FULL.of_table(9000) == RowsRead(30, 9000, FULL.others, "person", 7, 90)
    assert FULL.of_table(29).there == 30 and FULL.of_table(0).there == 30
    assert FULL.of_table(None) is FULL


@pytest.mark.parametrize(
    ("reads", "lines"),
    [
        (RowsRead(5, 5), ()),
        (RowsRead(5, 5, ("of weight 0",)), ()),
        (RowsRead(1000, 4000), ("reads 1,000 of 4,000 rows",)),
        (RowsRead(5, 6, ("of weight 0",)), ("reads 5 of 6 rows: the others are of weight 0",)),
        (RowsRead(5, 5, (), "person", 1), ()),
        (RowsRead(5, 5, (), "person", 2), ("counts rows, up to 2 of each `person`",)),
        (
            RowsRead(5, 6, ("a", "b"), "person", 1234),
            (
                "reads 5 of 6 rows: the others are a, or b",
                "counts rows, of which the table has up to 1,234 of each `person`",
            ),
        ),
    ],
)
def test_what_is_not_to_be_expected_is_said(reads: RowsRead, lines: tuple[str, ...]) -> None:
    assert reads.lines == lines
