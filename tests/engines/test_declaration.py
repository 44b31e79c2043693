"""Declarations: what they say, and that every fault of a file is one clear line."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from takifugu import engines
from takifugu.engines import (
    Amount,
    Category,
    Declaration,
    InvalidDeclaration,
    InvalidQuery,
    Order,
    Scope,
    Share,
    Source,
    open_engine,
    parse_declaration,
    read_declaration,
)
from takifugu.engines.fitting import ByEntity, FirstDays
from takifugu.errors import InvalidFile, Malformed

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
    told = parse_declaration(GOOD).guarantee()
    protected, public = told.split("Not protected")
    for words in ("`label`", "`spent`", "3 labels", "0 … 20.5 in steps of 0.01", "priors"):
        assert words in protected
    for words in ("a row exists", "`user`", "`at`, `row`", "`country`, `age`"):
        assert words in public
    assert "Café" not in told


def test_the_guarantee_tells_every_rule_apart() -> None:
    rules = {
        "drop": "left out",
        "refuse": "refused",
        "other": "counts as 'other'",
    }
    for outside, words in rules.items():
        told = parse_declaration(GOOD.replace('outside = "other"', f'outside = "{outside}"'))
        assert words in told.guarantee().splitlines()[1]
    for missing, words in {'"refuse"': "is refused", "1": "counts as 1"}.items():
        told = parse_declaration(GOOD.replace('missing = "drop"', f"missing = {missing}"))
        assert words in told.guarantee().splitlines()[2]


FAULTS = {
    "not TOML": ("[source", "[source]]["),
    "source is missing": ('[source]\nkind = "parquet"\npath = "visits/*.parquet"', ""),
    "kind is 'xml'": ('kind = "parquet"', 'kind = "xml"'),
    "path is missing": ('path = "visits/*.parquet"', ""),
    "table is given": ('path = "visits/*.parquet"', 'path = "x"\ntable = "y"'),
    "pth is not a key here": ('path = "visits/*.parquet"', 'pth = "x"'),
    "entity, column is missing": ('column = "user"', ""),
    "entity, column is no text": ('column = "user"', "column = 3"),
    "order, kind is 'date'": ('kind = "time"', 'kind = "date"'),
    "order, zone is missing": ('zone = "Asia/Jakarta"', ""),
    "order, zone is 'Asia/Nowhere'": ("Asia/Jakarta", "Asia/Nowhere"),
    "order, zone is '../etc'": ("Asia/Jakarta", "../etc"),
    "order, ties is missing": ('ties = ["row"]', ""),
    "order, ties is no list": ('ties = ["row"]', 'ties = "row"'),
    "label is declared twice": ('ties = ["row"]', 'ties = ["label"]'),
    "at is declared twice": ('column = "user"', 'column = "at"'),
    "values are empty": ('["Café", "home"]', "[]"),
    "values are of several kinds": ('["Café", "home"]', '["Café", 3]'),
    "values repeat a value": ('["Café", "home"]', '["home", "home"]'),
    "values holds a bool": ('["Café", "home"]', "[true, false]"),
    "values is no list": ('["Café", "home"]', '"from the data"'),
    "outside is missing": ('outside = "other"', ""),
    "outside is 'fold'": ('outside = "other"', 'outside = "fold"'),
    "other is given": ('outside = "other"', 'outside = "drop"\nother = "else"'),
    "labels.json does not exist": (
        'outside = "other"',
        'outside = "other"\nlabels = "labels.json"',
    ),
    "bounds are empty": ("[0, 20.5]", "[3, 3]"),
    "bounds is no pair": ("[0, 20.5]", "[0, 1, 2]"),
    "bounds are [0, 20.505]": ("[0, 20.5]", "[0, 20.505]"),
    "bounds are [0, 1e+09] in steps of 0.01": ("[0, 20.5]", "[0, 1e9]"),
    "bounds is Infinity": ("[0, 20.5]", "[0, inf]"),
    "step is 0": ("step = 0.01", "step = 0"),
    "missing is missing": ('missing = "drop"', ""),
    "missing is out of bounds": ('missing = "drop"', "missing = 30"),
    "missing holds a str": ('missing = "drop"', 'missing = "skip"'),
    "outside is not a key here": ("step = 0.01", 'outside = "drop"'),
    "protected is empty": (GOOD[GOOD.index("[protected.label]") :], "[protected]"),
    "protected is no table": (GOOD[GOOD.index("[protected.label]") :], ""),
    "read from the data": (
        'values = "from the data"',
        'values = "from the data"\noutside = "other"',
    ),
}


@pytest.mark.parametrize("told", FAULTS)
def test_a_fault_of_a_file_is_one_clear_line(told: str, tmp_path: Path) -> None:
    before, after = FAULTS[told]
    assert before in GOOD
    written = GOOD.replace(before, after)
    if told == "protected is no table":
        written = "protected = 3\n" + written
    path = tmp_path / "visits.toml"
    path.write_text(written, encoding="utf-8")
    with pytest.raises(InvalidFile) as error:
        read_declaration(path)
    line = str(error.value)
    assert told in line.replace("`", "") and "\n" not in line and "visits.toml" in line


def test_files_that_cannot_be_read_are_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b"title = '\xe9'")
    for name, told in {"none.toml": "does not exist", "latin.toml": "cannot be read"}.items():
        with pytest.raises(InvalidFile, match=told):
            read_declaration(tmp_path / name)
    with pytest.raises(InvalidFile, match="cannot be read"):
        read_declaration(tmp_path)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "is not JSON"),
        ("[1, 2]", "holds something else"),
        ('{"a": 1.5}', "holds something else"),
        ('{"a": "nowhere"}', "lead to 1 labels that are not among"),
        ('{"a": "home", "a": "Café"}', "has the key 'a' twice"),
    ],
)
def test_a_bad_file_of_labels_is_one_clear_line(content: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "labels.json").write_text(content, encoding="utf-8")
    written = GOOD.replace('outside = "other"', 'outside = "other"\nlabels = "labels.json"')
    with pytest.raises(Malformed, match=told):
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
    with pytest.raises(InvalidDeclaration, match="holds a password") as told:
        Source("postgres", table="visits", url=url)
    assert "word@" not in str(told.value) and "=word" not in str(told.value)


def test_a_missing_source_file_is_one_clear_line(tmp_path: Path) -> None:
    for path in ("none.parquet", "none/*.parquet"):
        declaration = parse_declaration(GOOD.replace("visits/*.parquet", path), folder=tmp_path)
        with pytest.raises(InvalidDeclaration, match="name files that exist") as told:
            open_engine(declaration)
        assert path in str(told.value)


def test_a_file_of_another_kind_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "visits.parquet").write_text("no parquet at all")
    declaration = parse_declaration(
        GOOD.replace("visits/*.parquet", "visits.parquet"), folder=tmp_path
    )
    with pytest.raises(
        engines.DatabaseFailed, match=r"^visits.parquet could not be opened"
    ) as told:
        open_engine(declaration)
    assert "no parquet at all" not in str(told.value)


def test_a_backend_that_cannot_read_the_source_is_refused() -> None:
    with pytest.raises(InvalidQuery, match="be duckdb or spark for a parquet source"):
        open_engine(parse_declaration(GOOD), backend="postgres")


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Share("s", Fraction(1, 2), Fraction(1, 2)), "be a share"),
        (lambda: Scope(where={"country": "ID"}), "is no list of keys"),
        (lambda: FirstDays(0), "be a whole number"),
        (lambda: ByEntity(Fraction(1)), "be between 0 and 1"),
    ],
)
def test_scopes_and_splits_that_mean_nothing_are_refused(make: Any, told: str) -> None:
    with pytest.raises(InvalidQuery, match=told):
        make()


def test_every_public_name_is_there() -> None:
    assert all(hasattr(engines, name) for name in engines.__all__)
    assert list(engines.__all__) == sorted(engines.__all__)
