"""Secrets are true where they say, and pairs go both ways."""

from typing import Any

import pytest
from hypothesis import given, settings

from takifugu._core.fingerprint import fingerprint
from takifugu.errors import InvalidWorld
from takifugu.priors import (
    EntryIs,
    Holds,
    OneOf,
    SecretPair,
    Secrets,
    Tables,
    Universe,
    both_ways,
    entry_pairs,
)
from tests.raising import raises
from tests.strategies import tables


@settings(max_examples=30)
@given(tables())
def test_an_entry_secret_is_true_of_the_tables_with_that_value(universe: Tables) -> None:
    for column, entry in enumerate(universe.entries):
        values = universe.values[column]
        for chosen in (values[:1], values[1:], values):
            mask = EntryIs(entry, chosen).mask(universe)
            expected = [dataset[column] in chosen for dataset in universe.datasets]  # type: ignore[index]
            assert mask.tolist() == expected


def test_statements_by_predicate_and_by_list_agree() -> None:
    universe = Universe((1, 2, 3, 4))
    even = Holds("even", lambda d: d % 2 == 0)
    assert even.mask(universe).tolist() == [False, True, False, True]
    assert OneOf("even", (2, 4)).mask(universe).tolist() == even.mask(universe).tolist()
    assert str(even) == "even" and str(OneOf("odd", (1, 3))) == "odd"
    assert str(EntryIs("mon", ("home", "away"))) == "mon=home|away"


@settings(max_examples=30)
@given(tables())
def test_entry_pairs_are_all_ordered_pairs_of_values_of_every_entry(universe: Tables) -> None:
    pairs = entry_pairs(universe)
    assert len(pairs) == len(set(pairs)) == sum(n * (n - 1) for n in universe.shape)
    assert {pair.reversed for pair in pairs} == set(pairs)
    for pair in pairs:
        assert not (pair.left.mask(universe) & pair.right.mask(universe)).any()


def test_entry_pairs_of_some_entries_and_values() -> None:
    week = Tables.of({"mon": ("home", "ward", "away"), "tue": ("home", "ward")})
    assert len(entry_pairs(week, entries=["tue"])) == 2
    some = entry_pairs(week, entries=["mon"], values={"mon": [("home", "ward")]})
    assert [str(pair) for pair in some] == ["mon=home / mon=ward", "mon=ward / mon=home"]


def test_both_ways_adds_the_reverse_once() -> None:
    a, b = OneOf("a", (1,)), OneOf("b", (2,))
    pair = SecretPair(a, b)
    assert both_ways([pair]) == (pair, SecretPair(b, a)) == both_ways([pair, pair.reversed, pair])


def test_secrets_that_name_nothing_are_refused() -> None:
    bits = Tables.bits(2)
    with raises(InvalidWorld, field="secret"):
        EntryIs("x", (0,)).mask(Universe((1, 2)))
    with raises(InvalidWorld, field="entry"):
        EntryIs("x", (0,)).mask(bits)
    with raises(InvalidWorld, field="secret"):
        EntryIs(0, (5,)).mask(bits)
    with raises(InvalidWorld, field="dataset"):
        OneOf("z", ("z",)).mask(bits)
    with raises(InvalidWorld, field="entry"):
        entry_pairs(bits, entries=[7])


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("secrets, pairs", {"pairs": ()}),  # nothing would be protected, at any loss
        ("secrets, entries", {"entries": ()}),
        ("secrets, entries", {"entries": 5}),
        ("secrets, entries", {"entries": "ward"}),
        ("secrets, entries", {"entries": (True,)}),
        ("secrets, pairs", {"pairs": "ward"}),
        ("secrets, pairs", {"pairs": (("home", "ward"),)}),  # letters are no values
        ("secrets, pairs", {"pairs": ((("home",), ("ward",), ("work",)),)}),
        ("secrets, pairs", {"pairs": ((("home",), ()),)}),
    ],
)
def test_secrets_of_no_form_are_refused(field: str, given: dict[str, Any]) -> None:
    with raises(InvalidWorld, field=field):
        Secrets(**given)


def test_secrets_are_a_value_whatever_list_they_came_from() -> None:
    pairs: list[Any] = [[["home"], ["ward"]]]
    secrets = Secrets(entries=[0, 1], pairs=pairs)  # type: ignore[arg-type]
    pairs.clear()
    assert secrets == Secrets((0, 1), ((("home",), ("ward",)),))
    assert fingerprint(secrets) == fingerprint(Secrets((0, 1), ((("home",), ("ward",)),)))


def test_a_value_is_not_set_against_itself_by_another_spelling() -> None:
    with raises(InvalidWorld, field="secrets"):
        Secrets(pairs=(((1,), ("1",)),)).sides((0, 1))
