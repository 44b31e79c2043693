"""Labels that are found on the rows of a fit: those, no others, and not too many."""

from collections import defaultdict
from fractions import Fraction
from hashlib import md5
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.declarations import InvalidDeclaration, InvalidQuery, parse_declaration
from takifugu.drafting import table
from takifugu.errors import TooLarge
from takifugu.fitting import FitOptions, Fitted, fit_prior
from takifugu.fitting.fit_kinds import find_labels
from takifugu.priors import MarkovChain
from takifugu.tables import Engine, check, open_engine
from takifugu.tables import label_lookup as limits
from takifugu.tables.scope import EVERYTHING, Scope
from tests.declared import declared
from tests.raising import raises

Row = tuple[str, int, str | None]
HEAD = declared("visits.csv", "who", "step", {"place": {"values": "from the fitted rows"}})


def states(found: Fitted) -> tuple[Any, ...]:
    """The states of a fitted chain."""
    assert isinstance(found.prior, MarkovChain)
    return found.prior.states


def written(folder: Path, rows: list[Row], extra: str = "") -> Any:
    lines = [f"{who},{step},{place or ''}" for who, step, place in rows]
    (folder / "visits.csv").write_text("\n".join(["who,step,place", *lines]) + "\n")
    return parse_declaration(HEAD + extra, folder=folder)


def kept(rows: list[Row], at_least: int, other: str = "other") -> tuple[tuple[str, ...], int]:
    """The labels of enough people, and how many others there are: one row after the other."""
    who = defaultdict(set)
    for person, _, place in rows:
        if place is not None:
            who[place].add(person)
    enough = sorted(place for place in who if len(who[place]) >= at_least and place != other)
    return tuple(enough), sum(len(people) < at_least for people in who.values())


ROWS = st.lists(
    st.tuples(st.sampled_from("abcde"), st.sampled_from(["home", "bar", "gym", "other", None])),
    min_size=1,
    max_size=30,
)


@pytest.mark.nightly
@settings(max_examples=20)
@given(cells=ROWS, at_least=st.integers(1, 4))
def test_the_list_is_what_a_loop_over_the_fitted_rows_finds(
    cells: list[tuple[str, str | None]], at_least: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rows = [(who, step, place) for step, (who, place) in enumerate(cells)]
    folder = tmp_path_factory.mktemp("found")
    with open_engine(written(folder, rows)) as engine:
        half = Scope(end=len(rows) / 2)
        for scope, there in ((EVERYTHING, rows), (half, [r for r in rows if r[1] < len(rows) / 2])):
            expected, left_out = kept(there, at_least)
            if not expected:
                with raises(InvalidQuery, reason="no-labels"):
                    find_labels(engine, ["place"], scope, at_least)
                continue
            (found,) = find_labels(engine, ["place"], scope, at_least)
            assert (found.labels, found.left_out) == (expected, left_out)


def people(share: Fraction) -> tuple[str, str]:
    """Somebody who is in the share that is fitted on, and somebody who is not."""
    names = [f"p{k}" for k in range(100)]
    hashes = {n: md5(f"takifugu{n}".encode(), usedforsecurity=False).hexdigest() for n in names}
    inside = {n: int(hashes[n], 16) < share * 16**32 for n in names}
    return next(n for n in names if inside[n]), next(n for n in names if not inside[n])


def test_a_label_of_the_other_rows_is_never_found(tmp_path: Path) -> None:
    fitted, released = people(Fraction(1, 2))
    rows: list[Row] = [(fitted, step, ("home", "bar")[step % 2]) for step in range(10)]
    rows += [(released, step, "a secret place") for step in range(10)]
    declaration = written(tmp_path, rows)
    with open_engine(declaration) as engine:
        found = fit_prior(engine, ("place",), FitOptions(share=Fraction(1, 2)))
        early = fit_prior(engine, ("place",), FitOptions(first_days=5))
    assert states(found) == ("bar", "home", "other")
    assert "a secret place" in states(early)  # those rows are fitted on here
    assert "secret" not in found.statement and "2 labels" in found.statement
    assert found.estimate.facts["found_labels"] == [
        {"column": "place", "labels": 2, "left_out": 0, "at_least": 1, "other": "other"}
    ]
    resolved = declaration.with_labels({"place": states(found)})
    with open_engine(resolved) as engine:
        assert engine.histogram(["place"]).counts.tolist() == [5, 5, 10]


def test_rare_labels_count_as_other(tmp_path: Path) -> None:
    rows: list[Row] = [(who, step, "home") for who in "abc" for step in range(4)]
    rows += [("a", 4, "clinic"), ("b", 4, "gym"), ("c", 4, "gym"), ("a", 5, "other")]
    with open_engine(written(tmp_path, rows, 'other = "other"\n')) as engine:
        found = fit_prior(engine, ("place",), FitOptions(at_least=2))
    assert states(found) == ("gym", "home", "other")
    (facts,) = found.estimate.facts["found_labels"]
    assert (facts["left_out"], facts["at_least"]) == (2, 2)


def test_nothing_is_answered_before_the_labels_are_found(tmp_path: Path) -> None:
    rows: list[Row] = [("a", 0, "home"), ("a", 1, "bar")]
    with open_engine(written(tmp_path, rows)) as engine:
        assert check(engine).keys == {}
        for query in (engine.keys, lambda c: engine.histogram([c]), engine.transitions):
            with raises(InvalidDeclaration, reason="labels-not-fitted"):
                query("place")
        assert engine.declaration.guarantee()
        with raises(InvalidQuery, field="at least"):
            find_labels(engine, ["place"], EVERYTHING, 0)


def test_at_least_is_for_labels_that_are_found(tmp_path: Path) -> None:
    written(tmp_path, [("a", 0, "home"), ("a", 1, "bar")])
    text = HEAD.replace('"from the fitted rows"', '["home", "bar"]\noutside = "refuse"')
    with (
        open_engine(parse_declaration(text, folder=tmp_path)) as engine,
        raises(InvalidQuery, field="at least", reason="superfluous"),
    ):
        fit_prior(engine, ("place",), FitOptions(at_least=2))


@pytest.mark.parametrize("rule", ['outside = "drop"', 'outside = "refuse"', 'labels = "map.json"'])
def test_values_outside_the_list_are_other(tmp_path: Path, rule: str) -> None:
    with pytest.raises(InvalidDeclaration):
        written(tmp_path, [], rule)


def test_a_public_column_has_no_fitted_labels(tmp_path: Path) -> None:
    text = HEAD.replace("protected.place", "public.place") + "[protected.x]\nbounds=[0,1]\n"
    with pytest.raises(InvalidDeclaration):
        parse_declaration(text + 'missing = "drop"\n', folder=tmp_path)


def many(folder: Path, labels: int) -> Any:
    return written(folder, [("a", step, f"l{step}") for step in range(labels)])


def test_too_many_labels_are_refused_before_anything_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = []
    monkeypatch.setattr(Engine, "transitions", lambda *_: counted.append(1))
    declaration = many(tmp_path, 5_000)
    with open_engine(declaration) as engine:
        with raises(TooLarge, reason="labels", field="place", size=5_001, limit=2_000) as refused:
            fit_prior(engine, ("place",), FitOptions())
        assert "codebook" in str(refused.value) and "--at-least" in str(refused.value)
        with raises(TooLarge, limit=500):
            fit_prior(engine, ("place",), FitOptions(), every_pair=True)
    listed = declaration.with_labels({"place": [f"l{k}" for k in range(5_000)]})
    with open_engine(listed) as engine, raises(TooLarge, size=5_001, limit=2_000):
        fit_prior(engine, ("place",), FitOptions())
    assert not counted


def test_as_many_labels_as_the_limit_are_fitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_LABELS", 8)
    with open_engine(many(tmp_path, 7)) as engine:  # and other
        assert len(states(fit_prior(engine, ("place",), FitOptions()))) == 8
    with open_engine(many(tmp_path, 8)) as engine, raises(TooLarge, size=9, limit=8):
        fit_prior(engine, ("place",), FitOptions())


def test_a_table_in_a_program_and_its_file_say_the_same(tmp_path: Path) -> None:
    written(tmp_path, [("a", 0, "home"), ("a", 1, "bar")])
    made = table(
        tmp_path / "visits.csv",
        entity="who",
        order="step",
        order_kind="number",
        protected={"place": "from the fitted rows"},
    )
    made.to_toml(tmp_path / "visits.toml")
    again = table(tmp_path / "visits.toml")
    assert again.declaration.unfitted == made.declaration.unfitted == ("place",)
    assert again.declaration.protected == made.declaration.protected
