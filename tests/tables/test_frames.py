"""The contract on tables in memory: pandas, Polars and PyArrow."""

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from takifugu.declarations import (
    Category,
    DatabaseFailed,
    Declaration,
    InvalidDeclaration,
    Order,
    Source,
)
from takifugu.drafting import table
from takifugu.tables import open_engine
from tests.contracts.engine_facts import *  # noqa: F403
from tests.contracts.engine_sequences import *  # noqa: F403
from tests.contracts.engines import *  # noqa: F403 - the contract's tests are tests of this module
from tests.contracts.engines import KINDS, LABELS, Store, Stored, opened, rows
from tests.contracts.fits import *  # noqa: F403

pytestmark = pytest.mark.nightly

pyarrow = pytest.importorskip("pyarrow", reason="tables in memory need PyArrow")

PACKAGES = ("pandas", "polars", "pyarrow")


def in_memory(package: str, content: Sequence[Mapping[str, Any]]) -> Any:
    """The rows as a table of one of the packages."""
    types = {
        "text": pyarrow.string(),
        "whole": pyarrow.int64(),
        "real": pyarrow.float64(),
        "time": pyarrow.timestamp("us"),
        "zoned": pyarrow.timestamp("us", "UTC"),
    }
    schema = pyarrow.schema([(name, types[kind]) for name, kind in KINDS.items()])
    arrow = pyarrow.Table.from_pylist(list(content), schema=schema)
    module = pytest.importorskip(package)
    if package == "pandas":
        whole = {pyarrow.int64(): module.Int64Dtype()}  # missing numbers stay missing
        return arrow.to_pandas(types_mapper=whole.get)
    return module.from_arrow(arrow) if package == "polars" else arrow


@pytest.fixture(scope="module", params=PACKAGES)
def store(request: pytest.FixtureRequest) -> Store:
    def stored(name: str, content: Sequence[Mapping[str, Any]], folder: Path) -> Stored:  # noqa: ARG001
        return Source("memory", table=name), {"frame": in_memory(request.param, content)}

    return stored


def test_the_same_rows_have_one_fingerprint_in_any_order_and_any_package() -> None:
    found = set()
    for package in PACKAGES:
        for content in (rows(), rows()[::-1]):
            frame = in_memory(package, content)
            with opened((Source("memory", table="visits"), {"frame": frame})) as engine:
                found.add(engine.fingerprint().fingerprint)
    assert len(found) == 1


@pytest.mark.parametrize("column", ["person", "at", "row", "label", "home land"])
def test_every_declared_value_counts_for_the_fingerprint(column: str) -> None:
    values = {"person": "Dan", "at": rows()[7]["at"], "row": 999, "label": None, "home land": "XX"}
    found = set()
    for content in (rows(), [{**rows()[0], column: values[column]}, *rows()[1:]], rows()[1:]):
        stored = (Source("memory", table="visits"), {"frame": in_memory("pyarrow", content)})
        with opened(stored) as engine:
            found.add(engine.fingerprint().fingerprint)
    assert len(found) == 3


def test_a_frame_that_is_changed_later_changes_no_answer() -> None:
    frame = in_memory("pandas", rows())
    with opened((Source("memory", table="visits"), {"frame": frame})) as engine:
        before = engine.histogram(["label"]), engine.fingerprint()
        frame["label"] = "home"
        assert (engine.histogram(["label"]), engine.fingerprint()) == before
    with opened((Source("memory", table="visits"), {"frame": frame})) as engine:
        assert engine.fingerprint().fingerprint != before[1].fingerprint


def test_a_column_of_several_types_is_refused_and_not_shown() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"who": ["a", "a"], "n": [1, 2], "place": ["a secret", 3]})
    visits = table(
        frame,
        entity="who",
        order="n",
        order_kind="number",
        protected={"place": ["a secret"]},
        name="visits",
    )
    with pytest.raises(DatabaseFailed) as refused:
        visits.open()
    assert "secret" not in str(refused.value) and refused.value.__context__ is None


def test_two_columns_of_one_name_are_refused() -> None:
    frame = in_memory("pandas", rows())
    frame.columns = ["label" if name == "hidden" else name for name in frame.columns]
    with pytest.raises(InvalidDeclaration) as refused:
        opened((Source("memory", table="visits"), {"frame": frame}))
    assert refused.value.field == "label"


def test_categories_and_days_are_read_as_labels_and_times() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "who": pandas.Categorical(["a", "a", "b"]),
            "at": [date(2020, 1, 1), date(2020, 1, 2), date(2020, 1, 1)],
            "place": pandas.Categorical(["home", "ward", "home"]),
        }
    )
    declared = Declaration(
        Source("memory", table="visits"),
        "who",
        Order("at", "time", zone="UTC"),
        (Category("place", ("home", "ward"), "refuse"),),
    )
    with open_engine(declared, frame=frame) as engine:
        assert engine.histogram(["place"]).counts.tolist() == [2, 1]
        assert engine.transitions("place").counts.tolist() == [[0, 1], [0, 0]]


def test_nothing_is_left_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    frame = in_memory("polars", rows() * 50)
    with opened((Source("memory", table="visits"), {"frame": frame})) as engine:
        assert engine.histogram(["label"]).counts.shape == (len(LABELS) + 1,)
        kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert kept == [] and list(tmp_path.iterdir()) == []
