"""What declarations may call the two zones of a small table, and which zone each name means."""

from collections.abc import Mapping

from takifugu.declarations import Category

# The column as it is declared, and the name that each raw value then has.
ZONE_NAMINGS: tuple[tuple[Category, Mapping[str, str]], ...] = (
    (Category("zone", ("a", "b"), "refuse"), {"a": "a", "b": "b"}),
    (Category("zone", ("b",), "other", "rest"), {"a": "rest", "b": "b"}),
    (Category("zone", ("a",), "other", "rest"), {"a": "a", "b": "rest"}),
    (Category("zone", ("a", "b"), "refuse", labels=(("a", "b"), ("b", "a"))), {"a": "b", "b": "a"}),
)
