"""Which fields the form of a query has, and what is read from it."""

from typing import Any

import pytest

from takifugu.server.pages.ask_pages import (
    MAX_CHECKBOXES,
    READ_AS,
    fields_of,
    filled_in,
    json_pairs,
    kinds_of,
)
from takifugu.session.query_kinds import KINDS, query_class
from takifugu.session.query_options import KIND_OPTIONS, OPTIONS, QueryOptions


def description(*columns: dict[str, Any], linear: tuple[str, ...] = ()) -> dict[str, Any]:
    """A dataset with these protected columns, as the API describes one."""
    return {
        "protected": list(columns),
        "about": [column["column"] for column in columns],
        "linear": list(linear),
        "queries": [
            {
                "kind": name,
                "several": query_class(name).several,
                "required": list(options.required),
                "optional": [*options.optional, "by", "epsilon"],
                "without": dict(KINDS[name].without),
            }
            for name, options in KIND_OPTIONS.items()
        ],
    }


def label(name: str, labels: int = 3) -> dict[str, Any]:
    """A column of labels."""
    return {"column": name, "kind": "label", "labels": [f"l{k}" for k in range(labels)]}


NUMBER = {"column": "cost", "kind": "number", "lower": "0", "upper": "9", "step": "1"}


def test_every_option_of_some_kinds_has_a_label_and_can_be_read() -> None:
    own = [option for option in OPTIONS.values() if option.kinds]
    assert all(option.label and option.type in READ_AS for option in own)
    every = {
        one.option: one for one in fields_of(description(label("a"), NUMBER, linear=("load",)))
    }
    assert set(every) == {option.name for option in own}
    assert all(one.hint for one in every.values())
    assert every["k"].hint == OPTIONS["k"].help


def test_kinds_are_those_that_the_columns_have_answers_for() -> None:
    def names(found: dict[str, Any]) -> set[str]:
        return {kind.name for kind in kinds_of(found)}

    several = {name for name, kind in KINDS.items() if kind.least_columns > 1}
    labels = {name for name, kind in KINDS.items() if not kind.of_numbers} - several
    numbers = {name for name, kind in KINDS.items() if kind.of_numbers} - {"linear"}
    assert several == {"marginals"}
    assert names(description(label("a"))) == labels
    assert names(description(label("a"), label("b"))) == labels | {"marginals"}
    assert names(description(NUMBER)) == numbers
    assert "linear" in names(description(NUMBER, linear=("weighted",)))


def test_many_labels_are_written_and_few_are_boxes() -> None:
    few = {one.option: one for one in fields_of(description(label("a")))}
    many = {one.option: one for one in fields_of(description(label("a", MAX_CHECKBOXES + 1)))}
    two = {one.option: one for one in fields_of(description(label("a"), label("b")))}
    assert few["values"].choices == ("l0", "l1", "l2") and few["values"].read_as == "list"
    assert not many["values"].choices and many["values"].read_as == "lines"
    assert not two["values"].choices and two["values"].read_as == "lines"
    assert few["k"].required == ("top_k",)


@pytest.mark.parametrize(
    ("form", "document"),
    [
        (
            [("kind", "histogram"), ("by", "zone"), ("epsilon", " 0.10 "), ("within", "5")],
            {"kind": "histogram", "by": ["zone"], "epsilon": "0.10"},
        ),
        (
            [("kind", "histogram"), ("aim", "error"), ("epsilon", "1"), ("within", "5")],
            {"kind": "histogram", "within": "5"},
        ),
        (
            [("kind", "top_k"), ("k", "3"), ("values", "l1"), ("epsilon", "1"), ("gap", "")],
            {"kind": "top_k", "k": 3, "epsilon": "1"},
        ),
        (
            [("kind", "count"), ("values", "l1"), ("values", "l2"), ("epsilon", "1"), ("to", "9")],
            {"kind": "count", "values": ["l1", "l2"], "epsilon": "1", "window": [None, "9"]},
        ),
        (
            [("kind", "count"), ("values", "l1"), ("where:zone", "n"), ("epsilon", "1/3")],
            {"kind": "count", "values": ["l1"], "where": {"zone": ["n"]}, "epsilon": "1/3"},
        ),
        (
            [("kind", "histogram"), ("columns", "a"), ("columns", "b"), ("epsilon", "1")],
            {"kind": "histogram", "column": ["a", "b"], "epsilon": "1"},
        ),
    ],
)
def test_a_form_is_read_as_query_options(
    form: list[tuple[str, str]], document: dict[str, Any]
) -> None:
    read = filled_in(form, fields_of(description(label("a"))))
    assert read == document
    QueryOptions.from_document(read)


def test_a_hidden_field_that_is_no_list_of_pairs_is_left_out() -> None:
    for text in ("", "[" * 100_000, "{}", "[1]", '[["a"]]', "null"):
        assert json_pairs(text) == []
    assert json_pairs('[["by", "zone"], ["k", 3]]') == [("by", "zone"), ("k", "3")]
