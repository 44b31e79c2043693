"""What a prior is about, where rows come from and who asked: each by itself, at its edges."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from takifugu.binding.entries import stated_entries
from takifugu.binding.matched_rows import as_keys, matched_entities, refuse_unmatched
from takifugu.declarations import Category, Declaration, InvalidDeclaration, Order, Source
from takifugu.errors import UnsoundRequest
from takifugu.priors.gaussian import Gaussian
from takifugu.priors.kernels import Covariance
from takifugu.priors.time_of_day import TimeOfDayChain
from takifugu.session import Entries
from takifugu.session.cells import source_of
from takifugu.tables import open_engine
from tests.raising import raises
from tests.session.world import declaration

pytestmark = pytest.mark.nightly


# --- where rows are ---


def of_server(url: str, table: str = "visits") -> Declaration:
    return Declaration(
        Source("postgres", url=url, table=table),
        "person",
        Order("step", "number"),
        (Category("state", ("home", "ward"), "refuse"),),
        (),
    )


def test_the_same_table_of_two_servers_is_two_places() -> None:
    first, second = (of_server(f"postgresql://ann@{host}/clinic") for host in ("a", "b"))
    assert source_of(first, None) == {
        "kind": "postgres",
        "table": "visits",
        "url": "postgresql://ann@a/clinic",
    }
    assert source_of(first, None) != source_of(second, None)
    assert source_of(of_server("postgresql://ann@a/clinic", "stays"), None) != source_of(
        first, None
    )


def test_a_file_counts_by_its_path_from_home(tmp_path: Path) -> None:
    declared = declaration(tmp_path)
    assert source_of(declared, tmp_path) == {"kind": "csv", "path": "visits.csv"}
    elsewhere = tmp_path / "project"
    elsewhere.mkdir()
    whole = str((tmp_path / "visits.csv").resolve())
    assert source_of(declared, elsewhere)["path"] == whole == source_of(declared, None)["path"]
    assert source_of(declared, tmp_path.parent)["path"] == f"{tmp_path.name}/visits.csv"


# --- names and hours ---


def test_names_that_are_numbers_in_the_table_are_numbers(tmp_path: Path) -> None:
    rows = [(str(who), 0, "a", "home", 1.0) for who in range(1, 15)]
    with open_engine(declaration(tmp_path, rows), threads=1) as engine:
        with raises(UnsoundRequest, reason="names-differ", given=()):  # some are not listed
            matched_entities("prior", ("99",), engine)
        with raises(UnsoundRequest, reason="names-differ", given=("99",), needed=("1",)):
            matched_entities("prior", tuple(map(str, (99, *range(2, 15)))), engine)
    numbered: Any = SimpleNamespace(whole_entities=True)
    assert as_keys(("1", "2"), numbered) == (1, 2)
    assert as_keys(("1", 1), numbered) == ("1", 1)  # two names do not become one


def by_hour(hours: int) -> TimeOfDayChain:
    table = np.stack([np.array([[0.8, 0.2], [0.3, 0.7]])] * hours)
    return TimeOfDayChain(table, states=("home", "ward"), length=4)


def test_a_prior_of_any_family_that_repeats_is_held_to_the_hours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain, read = by_hour(24).beginning(0), {"prior": Entries("sequence")}
    with open_engine(declaration(tmp_path), threads=1) as engine:
        refuse_unmatched({"prior": chain}, read, engine)
        monkeypatch.setattr(type(chain), "period", 7)
        with raises(UnsoundRequest, field="prior", reason="hours", given=7, needed=24):
            refuse_unmatched({"prior": chain}, read, engine)


def test_a_prior_by_hour_needs_the_hours_of_a_day_and_rows_one_an_hour(tmp_path: Path) -> None:
    path = tmp_path / "hours.csv"

    def rows(*hours: int) -> Declaration:
        lines = [f"Ann,2020-01-01 0{hour}:00:00,home" for hour in hours]
        path.write_text("\n".join(["person,at,state", *lines]) + "\n")
        return Declaration(
            Source("csv", path=str(path)),
            "person",
            Order("at", "time", "UTC"),
            (Category("state", ("home", "ward"), "refuse"),),
            (),
        )

    read = {"prior": Entries("sequence")}
    with open_engine(rows(1, 2, 3), threads=1) as engine:
        refuse_unmatched({"prior": by_hour(24)}, read, engine)
        with raises(UnsoundRequest, field="prior", reason="hours", given=23, needed=24):
            refuse_unmatched({"prior": by_hour(23)}, read, engine)
    with open_engine(rows(1, 2, 4), threads=1) as engine, raises(InvalidDeclaration, field="order"):
        refuse_unmatched({"prior": by_hour(24)}, read, engine)


# --- words ---


@pytest.mark.parametrize("over", ["row", "entities × sequence"])
def test_rows_and_people_over_time_need_named_entries(over: Any) -> None:
    normal = Gaussian(Covariance(np.eye(4)))
    with raises(UnsoundRequest, field="prior", reason="over", needed=("sequence", "entities")):
        stated_entries({"prior": normal}, over, entity="person")
