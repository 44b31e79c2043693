"""What a prior is about, where rows come from and who asked: each by itself, at its edges."""

from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from takifugu.engines import (
    Category,
    Declaration,
    InvalidDeclaration,
    InvalidQuery,
    Order,
    Source,
    open_engine,
)
from takifugu.errors import UnsoundRequest
from takifugu.fingerprint import fingerprint
from takifugu.ledger import Anchor
from takifugu.priors import MarkovChain
from takifugu.priors.gaussian import Gaussian
from takifugu.priors.higher_order import HigherOrderChain
from takifugu.priors.kernels import AR1, Covariance
from takifugu.priors.secrets import Secrets
from takifugu.priors.time_of_day import TimeOfDayChain
from takifugu.session import Entries, held_out
from takifugu.session.cells import source_of
from takifugu.session.entity_names import as_keys, matched_entities
from takifugu.session.entries import stated_entries
from takifugu.session.held_out import first_releasable
from takifugu.session.matched_rows import refuse_unmatched
from takifugu.session.prior_numbers import main_numbers
from takifugu.session.prior_reading import row_translation, translates_rows
from takifugu.session.provenance import PriorUsed, Provenance, priors_used, software
from takifugu.session.release_errors import MostlyNoise
from takifugu.session.release_plan import error_words
from takifugu.session.usefulness import candidates_above, rows_factor
from tests.raising import raises
from tests.session.world import CHAIN, TRANSLATION, declaration, opened

pytestmark = pytest.mark.nightly

ROWS_OF_COLUMNS = MarkovChain(
    np.array([[0.8, 0.2], [0.3, 0.7]]), states=(("a", "c"), ("b", "d")), columns=("x", "y")
)


@pytest.mark.parametrize(
    ("over", "rows"),
    [
        ("row", True),
        ("household", True),
        ("sequence", False),
        (None, False),
        (Entries("household", household="home"), True),
        (Entries("sequence"), False),
        ({"prior": "row"}, True),
        ({"prior": "household"}, True),
        ({"other": "row"}, False),
        ({"other": "sequence", "prior": Entries("row")}, True),
    ],
)
def test_rows_and_households_are_translated_as_rows(over: Any, rows: bool) -> None:
    assert translates_rows({"other": CHAIN, "prior": CHAIN}, over) is (
        rows or over == {"other": "row"}
    )
    assert translates_rows({"prior": CHAIN}, over) is rows


def test_a_chain_of_columns_can_be_about_nothing_but_rows() -> None:
    assert translates_rows({"prior": ROWS_OF_COLUMNS}, None)
    assert translates_rows({"first": CHAIN, "second": ROWS_OF_COLUMNS}, None)


def test_what_is_no_reading_of_rows_has_no_translation() -> None:
    with raises(UnsoundRequest, field="over", given="entities"):
        row_translation("entities", {"prior": CHAIN}, {"state": Secrets()}, 0.0)


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


def test_entities_and_names_are_the_same_in_any_order(tmp_path: Path) -> None:
    with open_engine(declaration(tmp_path), threads=1) as engine:
        assert matched_entities("prior", ("Bea", "Ann"), engine) == {"Ann": 4, "Bea": 2}
        with raises(
            UnsoundRequest,
            field="prior",
            reason="names-differ",
            given=("Cem",),
            needed=("Bea",),
        ):
            matched_entities("prior", ("Ann", "Cem"), engine)
        assert as_keys(("1", "x"), engine) == ("1", "x")  # people have names here


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


def test_a_window_begins_at_the_first_place_that_can_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A share of numbered rows ends between two of them; a clock that changes is passed."""
    declared = declaration(tmp_path)
    assert first_releasable(2.25, declared) == 3 and first_releasable(3, declared) == 3
    began = datetime(2020, 3, 29, 1, tzinfo=UTC)
    asked: list[Any] = []

    def refused(often: int) -> Any:
        def rows_of(_: object, window: Any, __: object) -> None:
            asked.append(window[0])
            if len(asked) <= often:
                raise InvalidQuery("window", given="is no moment", needed="be one")

        return rows_of

    monkeypatch.setattr(held_out, "rows_of", refused(2))
    assert first_releasable(began, declared) == asked[-1] == began.replace(hour=3)
    asked.clear()
    monkeypatch.setattr(held_out, "rows_of", refused(99))
    with raises(InvalidQuery, field="first days"):
        first_releasable(began, declared)
    with raises(InvalidQuery, field="window"):
        first_releasable(3, declared)


# --- words ---


def provenance(analyst: str | None, *priors: PriorUsed) -> dict[str, str]:
    return Provenance(
        dataset="visits",
        analyst=analyst,
        asked="a count",
        priors=priors,
        translation="cd" * 32,
        charge=Anchor(3, "ef" * 32),
        answer=Anchor(4, "01" * 32),
        released=datetime(2020, 1, 1, tzinfo=UTC),
        software={},
    ).facts()


def test_a_result_names_who_asked_and_each_prior() -> None:
    one, two = (
        PriorUsed("p", "a chain", "ab" * 32),
        PriorUsed("q", "a field", "cd" * 32, ("Then.",)),
    )
    alone = provenance(None, one)
    assert "analyst" not in alone and alone["software"] == "not recorded"
    assert alone["prior"].startswith("a chain, fingerprint abab") and "prior, fitted" not in alone
    both = provenance("Ann", one, two)
    assert both["analyst"] == "Ann" and both["prior q, fitted"] == "Then." and "prior p" in both


def test_a_package_that_is_not_installed_has_an_unknown_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> str:
        if name == "takifugu":
            raise metadata.PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(metadata, "version", missing)
    engine: Any = SimpleNamespace(dialect="duckdb")
    found = software(engine)
    assert found["takifugu"] == "unknown" and found["opendp"] == "1.0" == found["duckdb"]


def test_one_of_a_batch_says_which_and_where_to_confirm_it() -> None:
    error = MostlyNoise(
        "mostly noise",
        half_width=9.0,
        range=(0.0, 7.0),
        size=3.0,
        epsilon_needed=Decimal("1.5"),
        rows_factor=12,
    )
    named = error.of("first")
    assert (error.name, named.name) == (None, "first") and named.words == error.words
    assert (named.half_width, named.range, named.size) == (9.0, (0.0, 7.0), 3.0)
    assert (named.epsilon_needed, named.rows_factor) == (Decimal("1.5"), 12)
    assert "'first'" in str(named) and "[[release]]" in str(named) and "--yes" in str(named)


def test_an_answer_without_any_size_needs_more_rows_than_there_are() -> None:
    assert rows_factor(1.0, 0.0) == rows_factor(float("inf"), 1.0) == 10**15
    assert rows_factor(1.0, 1.0) == 2 and rows_factor(2.5, 1.0) == 3 and rows_factor(0.5, 1.0) == 1
    assert rows_factor(98.5, 1.0) == 99 and rows_factor(100.5, 1.0) == 110


def test_the_numbers_of_a_chain_that_looks_back_further() -> None:
    chain = HigherOrderChain(
        np.array([[[0.9, 0.1], [0.4, 0.6]], [[0.7, 0.3], [0.25, 0.75]]]),
        states=("dry", "wet"),
        length=30,
    )
    words = main_numbers({"weather": chain})
    assert "2 states" in words and "the last 2" in words and words.endswith("probability 0.1.")
    both = main_numbers({"weather": chain, "stays": CHAIN})
    assert "weather, 2 states" in both and "stays, 2 states" in both and "0.7 to 0.8" in both
    assert main_numbers({}) == ""


def test_a_prior_is_named_in_words_and_by_its_fingerprint() -> None:
    (used,) = priors_used(TRANSLATION)
    assert used == PriorUsed("prior", "a Markov chain of 4 entries", fingerprint(CHAIN), ())


def test_the_numbers_of_a_gaussian_are_those_of_its_rule() -> None:
    by_rule, written_out = Gaussian(AR1(0.9), variance=100), Gaussian(Covariance(np.eye(4)))
    words = "covariance ar1 (rho 0.9), variance 100"
    assert main_numbers({"flow": by_rule}) == f"The prior in numbers: {words}."
    assert main_numbers({"flow": written_out}) == ""  # as many as there are pairs of entries
    both = main_numbers({"flow": by_rule, "heat": written_out})
    assert both == f"The priors in numbers: flow, {words}."


def test_a_ranking_says_how_many_places_of_a_reference_are_right() -> None:
    told: dict[str, Any] = {"gap": 3.00001, "deviation": 1.5, "right": [0.5, 1.0]}
    assert error_words(told).endswith("; for the reference, 75 % of the places right")
    assert "leads the next by 3.001" in error_words(told)
    assert "reference" not in error_words({**told, "right": None})
    assert "within ±2.001" in error_words({"ranks": 2.00001})
    assert "within ±3.001" in error_words({"interval": 3.00001, "deviation": 1.5})
    assert "less than one unit" in error_words({"interval": 0, "deviation": 0.1})


def test_a_guarantee_without_a_budget_says_so(tmp_path: Path) -> None:
    with opened(tmp_path) as (session, _, _):
        known, unknown = (
            session._guarantee(Fraction(10), Fraction(0)),
            session._guarantee(None, Fraction(0)),
        )
        assert session.guarantee() == known != unknown


@pytest.mark.parametrize("over", ["row", "entities × sequence"])
def test_rows_and_people_over_time_need_named_entries(over: Any) -> None:
    normal = Gaussian(Covariance(np.eye(4)))
    with raises(UnsoundRequest, field="prior", reason="over", needed=("sequence", "entities")):
        stated_entries({"prior": normal}, over, entity="person")


@pytest.mark.parametrize("price", [0.0123, 0.5, 1.0, 7.77])
def test_candidates_go_up_from_a_price_and_do_not_leap(price: float) -> None:
    found = list(candidates_above(price))
    assert found == sorted(found) and Fraction(found[0]) >= Fraction(price)
    assert all(later <= 2 * earlier for earlier, later in pairwise(found))
    assert found[0] <= Decimal(price) * Decimal("1.1") and found[-1] >= 2 * Decimal(price)
    assert not list(candidates_above(0.0)) and not list(candidates_above(float("inf")))
