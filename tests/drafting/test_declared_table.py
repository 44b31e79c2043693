"""`table`: a table and its declaration in one step."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import takifugu
from takifugu.declarations import (
    Amount,
    Category,
    Declaration,
    InvalidDeclaration,
    InvalidQuery,
    Order,
    Source,
    read_declaration,
)
from takifugu.drafting import table
from takifugu.drafting.declared_table import UnfinishedTable
from takifugu.errors import InvalidFile
from takifugu.fitting import fit_markov
from takifugu.priors import IntervalMarkovChain, MarkovChain
from takifugu.tables import check
from tests.raising import raises
from tests.session.study import write_data

VISITS: dict[str, Any] = {"entity": "user", "order": "at", "protected": {"place": ["home", "ward"]}}
STAYS: dict[str, Any] = {
    "entity": "person",
    "order": "step",
    "order_kind": "number",
    "protected": {"state": ["home", "ward"]},
}


def test_a_table_is_the_declaration_that_its_arguments_say() -> None:
    found = table(
        "visits/*.csv.gz",
        entity="user",
        order="at",
        protected={
            "place": ["home", "ward"],
            "code": range(3),
            "kind": {"values": list(np.array(["a", "b"])), "outside": "other", "other": "rest"},
            "spent": {"bounds": (0, 20.5), "step": 0.1, "missing": "drop"},
        },
        public={"country": ["ID", "JP"], "age": "from the data"},
        name="visits",
        zone="Asia/Jakarta",
        ties=["row"],
        title="Visits",
    )
    assert found.name == "visits"
    assert found.declaration == Declaration(
        Source("csv", path="visits/*.csv.gz"),
        "user",
        Order("at", "time", "Asia/Jakarta", ("row",)),
        (
            Category("place", ("home", "ward"), "refuse"),
            Category("code", (0, 1, 2), "refuse"),
            Category("kind", ("a", "b"), "other", "rest"),
            Amount("spent", Fraction(0), Fraction(41, 2), Fraction(1, 10), "drop"),
        ),
        (Category("country", ("ID", "JP"), "refuse"), Category("age", None, "refuse")),
        "Visits",
    )


def test_public_columns_have_the_keys_that_the_data_has(tmp_path: Path) -> None:
    write_data(tmp_path)
    stays = table(tmp_path / "stays.csv", **STAYS, public=["zone"])
    assert stays.name == "stays" and stays.declaration.public == (Category("zone", None, "refuse"),)
    with stays.open(threads=1) as engine:
        assert engine.keys("zone") == ("north", "south")
        assert check(engine).entities == 24


@pytest.mark.parametrize(
    ("source", "changes", "field"),
    [
        ("visits.parquet", {"entity": None}, "entity"),
        ("visits.parquet", {"entity": ...}, "entity"),
        ("visits.parquet", {"order": ...}, "order"),
        ("visits.parquet", {"order": None, "ties": ["row"]}, "order"),
        ("visits.parquet", {"order": None, "zone": "UTC"}, "order"),
        ("visits.parquet", {"order": "(no order)"}, "order, column"),
        ("visits.parquet", {"entity": None, "protected": None}, "entity; protected"),
        ("visits.parquet", {"protected": {"place": ...}}, "protected, place"),
        ("visits.parquet", {"separator": ";"}, "source, separator"),
        ("visits.csv", {"separator": "x"}, "source, separator"),
        ("visits.csv", {"decimal": ","}, "source, decimal"),
        ("visits.csv", {"encoding": "utf-16"}, "source, encoding"),
        ("visits.csv", {"format": "%H:%M"}, "order, format"),
        ("visits.csv", {"format": "%d/%m/%Y %Q"}, "order, format"),
        ("visits.csv", {"format": "%d/%m/%Y", "order_kind": "unix"}, "order, format"),
        ("visits.parquet", {"protected": None}, "protected"),
        ("visits.parquet", {"protected": ["place"]}, "protected"),
        ("visits.parquet", {"protected": {}}, "protected"),
        ("visits.parquet", {"protected": {"place": "home"}}, "protected, place"),
        ("visits.parquet", {"protected": {"place": "from the data"}}, "protected, place, values"),
        ("visits.parquet", {"protected": {"place": [True, False]}}, "protected, place, values"),
        ("visits.parquet", {"protected": {"place": [0.5]}}, "protected, place, values"),
        (
            "visits.parquet",
            {"protected": {"place": {"values": ["a"]}}},
            "protected, place, outside",
        ),
        ("visits.parquet", {"protected": {"n": {"bounds": [0, 1]}}}, "protected, n, missing"),
        ("visits.parquet", {"public": "country"}, "public"),
        ("visits.parquet", {"public": ["place"]}, "place"),
        ("visits.parquet", {"ties": "row"}, "order, ties"),
        ("visits.parquet", {"order_kind": "number", "zone": "UTC"}, "order, zone"),
        ("visits.parquet", {"zone": "Nowhere"}, "order, zone"),
        ("visits.parquet", {"name": "my visits"}, "name"),
        ("visits.parquet", {"name": 5}, "name"),
        ("visits.parquet", {"protected": {"place": {"home", "work"}}}, "protected, place"),
        ("*.parquet", {}, "name"),
        ("visits.xlsx", {}, "source"),
        ("postgresql://host/db", {}, "source"),
        ([1, 2], {}, "source"),
    ],
)
def test_what_cannot_be_understood_is_refused(
    source: Any, changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidDeclaration) as refused:
        table(source, **(VISITS | changes))
    assert refused.value.field == field


def test_a_declaration_is_given_alone(tmp_path: Path) -> None:
    path = write_data(tmp_path)
    stays = table(path)
    assert stays.declaration == read_declaration(path) and stays.name == "stays"
    changes: tuple[dict[str, Any], ...] = (
        {"name": "other"},
        {"zone": "UTC"},
        {"entity": "person"},
        {"public": ["floor"]},
    )
    for more in changes:
        with pytest.raises(InvalidDeclaration) as refused:
            table(path, **more)
        assert refused.value.field == "source"
    with pytest.raises(InvalidFile):
        table(tmp_path / "nothing.toml")


def test_a_declaration_that_is_written_down_is_read_as_the_same(tmp_path: Path) -> None:
    odd = ["a\\b'c\"d", "東京", "x\x7fy", "new\nline", "tab\t"]
    found = table(
        "data/visits.parquet",
        entity="the user",
        order="at",
        protected={
            "home land": {"values": odd, "outside": "other", "other": "else"},
            "spent": {"bounds": [-1, 0.125], "step": 1e-3, "missing": 0.001},
            "n": {"bounds": [0, 10**6], "missing": "refuse"},
        },
        public={"a.b": [1, 2], "c": {"values": "from the data", "outside": "drop"}},
        ties=["row", "c"],
        title='"Visits"',
    )
    here = tmp_path / "visits.toml"
    object.__setattr__(found.declaration, "folder", tmp_path)
    found.to_toml(here)
    assert read_declaration(here) == found.declaration
    with pytest.raises(InvalidFile):
        found.to_toml(here)  # it is there now


def test_a_declaration_names_the_same_files_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("data", "b[1]", "b1"):
        (tmp_path / folder).mkdir()
        write_data(tmp_path / folder)
    monkeypatch.chdir(tmp_path)
    stays = table("data/stays.csv", **STAYS)
    monkeypatch.chdir(tmp_path / "b[1]")
    with stays.open(threads=1) as engine:  # of the folder where it was declared
        assert engine.files == (tmp_path / "data" / "stays.csv",)
    for folder, path in (("data", "stays.csv"), ("b[1]", f"{tmp_path}/data/stays.csv")):
        stays.to_toml(tmp_path / folder / "new.toml")
        moved = table(tmp_path / folder / "new.toml")
        assert moved.declaration.source.path == path
        with moved.open(threads=1) as engine:
            assert engine.files == (tmp_path / "data" / "stays.csv",)
    odd = table("stays.csv", **STAYS)
    with pytest.raises(InvalidDeclaration):
        odd.to_toml(tmp_path / "new.toml")  # b[1] would be taken for a pattern there
    with pytest.raises(InvalidFile):
        stays.to_toml(tmp_path / "none" / "stays.toml")


def test_a_table_in_memory_is_written_down_without_its_rows(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    frame = pyarrow.table({"person": ["a"], "step": [0], "state": ["home"]})
    stays = table(frame, **STAYS, name="stays")
    with stays.open() as engine:
        assert engine.count() == 1 and engine.files == ()
    stays.to_toml(tmp_path / "stays.toml")
    written = table(tmp_path / "stays.toml")
    assert written.declaration == stays.declaration
    with pytest.raises(InvalidDeclaration) as refused:
        written.open()
    assert refused.value.field == "source, kind"
    with pytest.raises(InvalidDeclaration) as refused:
        table(frame, **STAYS)
    assert refused.value.field == "name"


@pytest.mark.parametrize(
    "stream",
    [
        lambda pyarrow, table: table.to_reader(),  # noqa: ARG005
        lambda pyarrow, table: table.to_batches()[0],  # noqa: ARG005
        lambda pyarrow, table: {"state": ["home"]},  # noqa: ARG005
    ],
)
def test_what_can_be_read_only_once_is_no_table(stream: Callable[[Any, Any], Any]) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    frame = pyarrow.table({"person": ["a"], "step": [0], "state": ["home"]})
    with pytest.raises(InvalidDeclaration) as refused:
        table(stream(pyarrow, frame), **STAYS, name="stays")
    assert refused.value.field == "source"


def test_a_fitted_prior_knows_its_rows(tmp_path: Path) -> None:
    write_data(tmp_path)
    stays = table(tmp_path / "stays.csv", **STAYS)
    early = fit_markov(stays, "state", first_days=8)
    assert isinstance(early, MarkovChain) and early.fitted_on[0].before == 8
    assert early.states == ("home", "ward") and early.fitted_on[0].days == 8
    some = fit_markov(stays, "state", share=0.2, length=12, tau=0)
    assert some.fitted_on[0].share == Fraction(1, 5) and some.length == 12
    assert fit_markov(stays, "state", share="1/5", length=12, tau=0) == some
    wide = fit_markov(stays, "state", first_days=8, confidence=0.9)
    assert isinstance(wide, IntervalMarkovChain) and wide.fitted_on == early.fitted_on
    with stays.open(threads=1) as engine:
        assert fit_markov(engine, "state", first_days=8) == early
    wrong: dict[str, dict[str, Any]] = {
        "split": {"first_days": 99},
        "share": {"share": "a fifth"},
        "first days": {"first_days": 3, "share": 0.5},
        "other": {"other": "elsewhere"},
    }
    for field, options in [
        *wrong.items(),
        ("share", {"share": "1e-9_999_999_999"}),
        ("split", {"first_days": 10**9}),
    ]:
        with pytest.raises(InvalidQuery) as refused:
            fit_markov(stays, "state", **options)
        assert refused.value.field == field


def test_a_table_without_arguments_says_all_that_is_missing_and_a_call_to_paste(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_data(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnfinishedTable) as refused:
        table("stays.csv")
    found = refused.value
    assert found.missing == ("entity", "protected") and found.call in str(found)
    assert found.draft is not None and "ward" not in str(found)
    with pytest.raises(UnfinishedTable) as again:  # as pasted: the labels are still to be named
        eval(found.call, {"tf": takifugu})  # noqa: S307 - our own text
    assert again.value.missing == ("protected, state",)
    labels = "{'state': ['home', 'ward']}"
    done = eval(found.call.replace("{'state': ...}", labels), {"tf": takifugu})  # noqa: S307
    with done.open(threads=1) as engine:
        assert check(engine).entities == 24


@pytest.mark.nightly
def test_a_frame_without_arguments_asks_for_a_name_too() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"user": ["a"], "at": [1], "place": ["secret"]})
    with pytest.raises(UnfinishedTable) as refused:
        table(frame)
    assert refused.value.missing == ("entity", "protected", "name")
    assert "secret" not in str(refused.value)


def test_one_row_for_each_entity_needs_no_order(tmp_path: Path) -> None:
    path = tmp_path / "survey.csv"
    path.write_text("person,job\na,x\nb,y\nc,y\n")
    survey = table(path, entity="person", protected={"job": ["x", "y"]})
    assert survey.declaration.order == Order.none()
    with survey.open(threads=1) as engine:
        found = check(engine)
        assert (found.rows, found.first, found.last) == (3, None, None)
        assert engine.histogram(["job"]).counts.tolist() == [1, 2]
    survey.to_toml(tmp_path / "survey.toml")
    assert read_declaration(tmp_path / "survey.toml") == replace(
        survey.declaration, source=Source("csv", path="survey.csv")
    )
    with path.open("a") as file:
        file.write("a,y\n")
    with survey.open(threads=1) as engine, raises(InvalidDeclaration, field="order"):
        check(engine)
    with raises(InvalidQuery, reason="no order"):
        fit_markov(survey, "job", first_days=1)
