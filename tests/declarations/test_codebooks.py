"""Label lists from a codebook: every format, and what cannot be read in one way only."""

from pathlib import Path

import pytest

from takifugu.declarations import InvalidDeclaration, parse_declaration
from takifugu.declarations.columns import Category
from takifugu.declarations.declaration import Declaration
from takifugu.drafting import table
from takifugu.tables import open_engine
from tests.raising import raises

HEAD = """\
[source]
kind = "csv"
path = "visits.csv"
[entity]
column = "who"
[order]
column = "step"
kind = "number"
ties = "refuse"
[protected.place]
outside = "other"
"""


def declared(folder: Path, values: str) -> Declaration:
    return parse_declaration(f"{HEAD}values = {values}\n", folder=folder)


def place(declaration: Declaration) -> Category:
    (column,) = declaration.protected
    assert isinstance(column, Category)
    return column


LISTS = {
    "codes.csv": ("label,about\nhome,x\nbar,y\nhome,z\n", ', column = "label"'),
    "semicolon.csv": ("about;label\nx, y;home\n;bar\n", ', column = "label"'),
    "tabs.tsv": ("about\tlabel\nx\thome\ny\tbar\n", ', column = "label"'),
    "bars.CSV": ("\ufeffabout|label\nx|home\n\ny|bar\n", ', column = "label"'),
    "one.csv": ("label\nhome\nbar\n", ', column = "label"'),
    "commas.csv": ('label\n"home"\nbar\n', ', column = "label"'),
    "list.json": ('["home", "bar", "home"]', ""),
    "object.json": ('{"place": ["home", "bar"]}', ', column = "place"'),
    "list.toml": ('place = ["home", "bar"]', ', column = "place"'),
    "list.txt": ("home\nbar\n", ""),
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_of_labels_is_as_if_it_stood_in_the_declaration(tmp_path: Path, name: str) -> None:
    content, keys = LISTS[name]
    (tmp_path / name).write_text(content, encoding="utf-8")
    found = declared(tmp_path, f'{{ codebook = "{name}"{keys} }}')
    assert found == declared(tmp_path, '["home", "bar"]')
    assert place(found).keys == ("home", "bar", "other")


def test_a_list_in_one_column_may_hold_separators(tmp_path: Path) -> None:
    (tmp_path / "codes.csv").write_text("label\nfood, drinks\na;b\n")
    found = place(declared(tmp_path, '{ codebook = "codes.csv", column = "label" }'))
    assert found.values == ("food, drinks", "a;b")


def test_a_codebook_is_pinned_by_its_content(tmp_path: Path) -> None:
    file = tmp_path / "codes.csv"
    values = '{ codebook = "codes.csv", column = "label" }'
    file.write_text("label,note\nhome,a\nbar,b\n")
    before = declared(tmp_path, values).fingerprint
    file.write_text("label,note\nhome,another note\nbar,b\n")
    assert declared(tmp_path, values).fingerprint == before
    file.write_text("label,note\nhome,a\npub,b\n")
    assert declared(tmp_path, values).fingerprint != before


def test_raw_values_are_merged_into_labels(tmp_path: Path) -> None:
    (tmp_path / "map.csv").write_text('raw,label\n"Joe\'s, Diner",food\nPizza,food\nflat,home\n')
    (tmp_path / "visits.csv").write_text(
        'who,step,place\na,0,"Joe\'s, Diner"\na,1,Pizza\na,2,flat\na,3,food\na,4,elsewhere\n'
    )
    found = declared(tmp_path, '{ codebook = "map.csv", column = "label", raw = "raw" }')
    with open_engine(found) as engine:
        counts = engine.histogram(["place"])
    assert counts.keys == (("food", "home", "other"),)
    assert counts.counts.tolist() == [3, 1, 1]


@pytest.mark.parametrize("codes", ["code,label\n1,home\n-2,bar\n", "code,label\n1,1\n-2,-2\n"])
def test_codes_that_are_whole_numbers_are_found_in_such_a_column(
    tmp_path: Path, codes: str
) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    (tmp_path / "codes.csv").write_text(codes)
    frame = pyarrow.table({"who": ["a"] * 4, "step": [0, 1, 2, 3], "place": [1, -2, 1, 7]})
    path = str(tmp_path / "codes.csv")
    for values in (
        {"codebook": path, "column": "label", "raw": "code"},
        {"codebook": path, "column": "code"},
    ):
        visits = table(
            frame,
            entity="who",
            order="step",
            order_kind="number",
            protected={"place": {"values": values, "outside": "other"}},
            name="visits",
        )
        with visits.open() as engine:
            assert engine.histogram(["place"]).counts.tolist() == [2, 1, 1]


MISTAKES = {
    "no such file": ('{ codebook = "none.csv", column = "label" }', "codebook", "missing"),
    "no column": ('{ codebook = "codes.csv" }', "column", ""),
    "another column": ('{ codebook = "codes.csv", column = "Label" }', "column", "column"),
    "the column twice": ('{ codebook = "twice.csv", column = "label" }', "column", "column"),
    "short rows": ('{ codebook = "short.csv", column = "label" }', "codebook", "rows"),
    "empty cells": ('{ codebook = "empty.csv", column = "label" }', "codebook", "rows"),
    "two labels": (
        '{ codebook = "two.csv", column = "label", raw = "raw" }',
        "raw",
        "two-labels",
    ),
    "another kind": ('{ codebook = "codes.xlsx", column = "label" }', "codebook", ""),
    "not JSON": ('{ codebook = "bad.json" }', "codebook", ""),
    "nested": ('{ codebook = "nested.json" }', "codebook", ""),
    "true": ('{ codebook = "true.json" }', "codebook", ""),
    "not UTF-8": ('{ codebook = "latin.csv", column = "label" }', "codebook", "text"),
    "superfluous": ('{ codebook = "list.txt", column = "label" }', "column", "superfluous"),
    "unknown key": ('{ codebook = "codes.csv", colum = "label" }', "colum", "unknown key"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_codebook_that_cannot_be_read_in_one_way_is_refused(tmp_path: Path, mistake: str) -> None:
    for name, content in {
        "codes.csv": "label,about\nhome,x\n",
        "twice.csv": "label,label\nhome,bar\n",
        "short.csv": "label,about\nhome\n",
        "empty.csv": "label,about\n,x\n",
        "two.csv": "raw,label\na,home\na,bar\n",
        "bad.json": "[",
        "nested.json": '[["home"]]',
        "true.json": "[true]",
        "list.txt": "home\n",
    }.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "latin.csv").write_bytes("label\ncafé\n".encode("latin-1"))
    values, key, reason = MISTAKES[mistake]
    with raises(
        InvalidDeclaration, field=f"protected, place, values, {key}", reason=reason
    ) as refused:
        declared(tmp_path, values)
    assert "\n" not in str(refused.value)


def test_labels_beside_a_codebook_are_refused(tmp_path: Path) -> None:
    (tmp_path / "codes.csv").write_text("label\nhome\n")
    (tmp_path / "map.json").write_text('{"flat": "home"}')
    values = '{ codebook = "codes.csv", column = "label" }\nlabels = "map.json"'
    with raises(InvalidDeclaration, field="protected, place, labels"):
        declared(tmp_path, values)
