"""Declarations: what they say, and that every fault of a file is one clear line."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from takifugu import declarations, drafting, fitting, tables
from takifugu.declarations import (
    Amount,
    Category,
    Declaration,
    InvalidDeclaration,
    InvalidQuery,
    Order,
    Source,
    parse_declaration,
    read_declaration,
)
from takifugu.errors import InvalidFile
from takifugu.fitting import ByEntity, FirstDays
from takifugu.tables import Scope, Share, open_engine
from tests.raising import raises

GOOD = """
title = "Check-ins"

[source]
kind = "parquet"
path = "visits/*.parquet"

[entity]
column = "user"

[order]
column = "at"
kind = "time"
zone = "Asia/Jakarta"
ties = ["row"]

[protected.label]
values = ["Café", "home"]
outside = "other"

[protected.spent]
bounds = [0, 20.5]
step = 0.01
missing = "drop"

[public.country]
values = ["ID", "JP"]

[public.age]
values = "from the data"
"""


def test_a_declaration_says_what_its_file_says() -> None:
    assert parse_declaration(GOOD) == Declaration(
        Source("parquet", path="visits/*.parquet"),
        "user",
        Order("at", "time", "Asia/Jakarta", ("row",)),
        (
            Category("label", ("Café", "home"), "other"),
            Amount("spent", Fraction(0), Fraction(41, 2), Fraction(1, 100), "drop"),
        ),
        (Category("country", ("ID", "JP"), "refuse"), Category("age", None, "refuse")),
        "Check-ins",
    )


def test_the_folder_is_no_part_of_the_identity() -> None:
    here, there = parse_declaration(GOOD, folder="a"), parse_declaration(GOOD, folder="b")
    assert here.fingerprint == there.fingerprint and here.folder != there.folder
    changed = parse_declaration(GOOD.replace('"other"', '"drop"'))
    assert changed.fingerprint != here.fingerprint


def test_the_guarantee_names_what_is_protected_and_what_is_not() -> None:
    text = parse_declaration(GOOD).guarantee()
    protected, public = text.split("Not protected")
    for words in ("`label`", "`spent`", "3 labels", "0 … 20.5 in steps of 0.01", "priors"):
        assert words in protected
    for words in ("a row exists", "`user`", "`at`, `row`", "`country`, `age`"):
        assert words in public
    assert "Café" not in text


def test_the_guarantee_tells_every_rule_apart() -> None:
    rules = {
        "drop": "left out",
        "refuse": "refused",
        "other": "counts as 'other'",
    }
    for outside, words in rules.items():
        text = parse_declaration(GOOD.replace('outside = "other"', f'outside = "{outside}"'))
        assert words in text.guarantee().splitlines()[1]
    for missing, words in {'"refuse"': "is refused", "1": "counts as 1"}.items():
        text = parse_declaration(GOOD.replace('missing = "drop"', f"missing = {missing}"))
        assert words in text.guarantee().splitlines()[2]


FAULTS = {
    "not TOML": ("file", "[source", "[source]]["),
    "source is missing": ("source", '[source]\nkind = "parquet"\npath = "visits/*.parquet"', ""),
    "kind is 'xml'": ("source, kind", 'kind = "parquet"', 'kind = "xml"'),
    "path is missing": ("source, path", 'path = "visits/*.parquet"', ""),
    "table is given": ("source, table", 'path = "visits/*.parquet"', 'path = "x"\ntable = "y"'),
    "pth is not a key here": ("source, pth", 'path = "visits/*.parquet"', 'pth = "x"'),
    "entity, column is missing": ("entity, column", 'column = "user"', ""),
    "entity, column is not text": ("entity, column", 'column = "user"', "column = 3"),
    "order, kind is 'date'": ("order, kind", 'kind = "time"', 'kind = "date"'),
    "order, zone is missing": ("order, zone", 'zone = "Asia/Jakarta"', ""),
    "order, zone is 'Asia/Nowhere'": ("order, zone", "Asia/Jakarta", "Asia/Nowhere"),
    "order, zone is '../etc'": ("order, zone", "Asia/Jakarta", "../etc"),
    "order, ties is missing": ("order, ties", 'ties = ["row"]', ""),
    "order, ties is not a list": ("order, ties", 'ties = ["row"]', 'ties = "row"'),
    "label is declared twice": ("label", 'ties = ["row"]', 'ties = ["label"]'),
    "at is declared twice": ("at", 'column = "user"', 'column = "at"'),
    "values are empty": ("label, values", '["Café", "home"]', "[]"),
    "values are of several kinds": ("label, values", '["Café", "home"]', '["Café", 3]'),
    "values repeat a value": ("label, values", '["Café", "home"]', '["home", "home"]'),
    "values holds a bool": ("protected, label, values", '["Café", "home"]', "[true, false]"),
    "values is not a list": ("protected, label, values", '["Café", "home"]', '"from the data"'),
    "outside is missing": ("protected, label, outside", 'outside = "other"', ""),
    "outside is 'fold'": ("label, outside", 'outside = "other"', 'outside = "fold"'),
    "other is given": (
        "protected, label, other",
        'outside = "other"',
        'outside = "drop"\nother = "else"',
    ),
    "labels.json does not exist": (
        "labels.json",
        'outside = "other"',
        'outside = "other"\nlabels = "labels.json"',
    ),
    "bounds are empty": ("spent, bounds", "[0, 20.5]", "[3, 3]"),
    "bounds are not a pair": ("protected, spent, bounds", "[0, 20.5]", "[0, 1, 2]"),
    "bounds are [0, 20.505]": ("spent, bounds", "[0, 20.5]", "[0, 20.505]"),
    "bounds are [0, 1e+09] in steps of 0.01": ("spent, bounds", "[0, 20.5]", "[0, 1e9]"),
    "bounds is Infinity": ("protected, spent, bounds", "[0, 20.5]", "[0, inf]"),
    "step is 0": ("spent, step", "step = 0.01", "step = 0"),
    "missing is missing": ("protected, spent, missing", 'missing = "drop"', ""),
    "missing is out of bounds": ("spent, missing", 'missing = "drop"', "missing = 30"),
    "missing holds a str": ("protected, spent, missing", 'missing = "drop"', 'missing = "skip"'),
    "outside is not a key here": ("protected, spent, outside", "step = 0.01", 'outside = "drop"'),
    "protected is empty": ("protected", GOOD[GOOD.index("[protected.label]") :], "[protected]"),
    "protected is not a table": ("protected", GOOD[GOOD.index("[protected.label]") :], ""),
    "read from the data": (
        "age, values",
        'values = "from the data"',
        'values = "from the data"\noutside = "other"',
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_a_file_is_one_clear_line(fault: str, tmp_path: Path) -> None:
    field, before, after = FAULTS[fault]
    assert before in GOOD
    written = GOOD.replace(before, after)
    if fault == "protected is not a table":
        written = "protected = 3\n" + written
    path = tmp_path / "visits.toml"
    path.write_text(written, encoding="utf-8")
    with raises(InvalidFile, field=f"{path}: {field}") as refused:
        read_declaration(path)
    assert "\n" not in str(refused.value)


def test_files_that_cannot_be_read_are_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b"title = '\xe9'")
    for name, reason in {"none.toml": "missing", "latin.toml": "text", "": "unreadable"}.items():
        with raises(InvalidFile, field=str(tmp_path / name), reason=reason):
            read_declaration(tmp_path / name)


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ("{", "labels.json"),
        ("[1, 2]", "labels.json"),
        ('{"a": 1.5}', "labels.json"),
        ('{"a": "nowhere"}', "label, labels"),
        ('{"a": "home", "a": "Café"}', "labels.json"),
    ],
)
def test_a_bad_file_of_labels_is_one_clear_line(content: str, field: str, tmp_path: Path) -> None:
    (tmp_path / "labels.json").write_text(content, encoding="utf-8")
    written = GOOD.replace('outside = "other"', 'outside = "other"\nlabels = "labels.json"')
    with raises(InvalidDeclaration, field=field):
        parse_declaration(written, folder=tmp_path)


def test_labels_are_read_beside_the_declaration(tmp_path: Path) -> None:
    mapped = {"Coffee Shop": "Café", "Cafe": "Café"}
    (tmp_path / "labels.json").write_text(json.dumps(mapped), encoding="utf-8")
    path = tmp_path / "visits.toml"
    path.write_text(
        GOOD.replace('outside = "other"', 'outside = "other"\nlabels = "labels.json"'),
        encoding="utf-8",
    )
    label = read_declaration(path).category("label")
    assert dict(label.labels) == mapped
    assert label.codes() == {"Café": 0, "home": 1, "Coffee Shop": 0, "Cafe": 0}


@pytest.mark.parametrize(
    "url", ["postgresql://me:word@host/db", "postgresql:///db?user=me&password=word"]
)
def test_a_password_does_not_belong_into_a_declaration(url: str) -> None:
    with raises(InvalidDeclaration, field="source, url") as refused:
        Source("postgres", table="visits", url=url)
    assert "word@" not in str(refused.value) and "=word" not in str(refused.value)


def test_a_missing_source_file_is_one_clear_line(tmp_path: Path) -> None:
    for path in ("none.parquet", "none/*.parquet"):
        declaration = parse_declaration(GOOD.replace("visits/*.parquet", path), folder=tmp_path)
        with raises(InvalidDeclaration, field="source, path") as refused:
            open_engine(declaration)
        assert path in refused.value.given


def test_a_file_of_another_kind_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "visits.parquet").write_text("no parquet at all")
    declaration = parse_declaration(
        GOOD.replace("visits/*.parquet", "visits.parquet"), folder=tmp_path
    )
    with raises(declarations.DatabaseFailed, place="visits.parquet") as refused:
        open_engine(declaration)
    assert "no parquet at all" not in str(refused.value)


def test_a_backend_that_cannot_read_the_source_is_refused() -> None:
    with raises(InvalidQuery, field="backend", needed="be duckdb or spark for a parquet source"):
        open_engine(parse_declaration(GOOD), backend="postgres")


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Share("s", Fraction(1, 2), Fraction(1, 2)), "entities"),
        (lambda: Scope(where={"country": "ID"}), "where, country"),
        (lambda: FirstDays(0), "days"),
        (lambda: ByEntity(Fraction(1)), "share"),
    ],
)
def test_scopes_and_splits_that_mean_nothing_are_refused(make: Any, field: str) -> None:
    with raises(InvalidQuery, field=field):
        make()


def test_every_public_name_is_there() -> None:
    for package in (declarations, drafting, fitting, tables):
        assert all(hasattr(package, name) for name in package.__all__)
        assert list(package.__all__) == sorted(package.__all__)
