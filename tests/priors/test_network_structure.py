"""The structure of networks: Chow-Liu trees against all trees, files of edges, cycles by name."""

from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from takifugu.errors import InvalidFile, InvalidPrior
from takifugu.priors.network_structure import (
    checked_structure,
    chow_liu_tree,
    find_cycle,
    mutual_information,
    parse_structure,
    read_structure,
)
from tests.oracles.spanning_trees import information, spanning_trees
from tests.raising import raises

NAMES = ("e", "b", "d", "a", "c")


def crossed(rows: np.ndarray, i: int, j: int) -> np.ndarray:
    found = np.zeros((3, 3), dtype=np.int64)
    for row in rows:
        found[row[i], row[j]] += 1
    return found


def drawn(seed: int, size: int) -> np.ndarray:
    """Rows of five columns, each of which copies an earlier one now and then."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 3, (size, 5))
    for column in range(1, 5):
        copied = rng.random(size) < rng.random()
        rows[copied, column] = rows[copied, rng.integers(0, column)]
    return rows


@given(seed=st.integers(0, 10**6), size=st.integers(1, 60))
def test_a_chow_liu_tree_is_the_best_of_all_trees(seed: int, size: int) -> None:
    rows = drawn(seed, size)
    tables = {(NAMES[i], NAMES[j]): crossed(rows, i, j) for i, j in combinations(range(5), 2)}
    truth = {
        frozenset((NAMES[i], NAMES[j])): information([(row[i], row[j]) for row in rows])
        for i, j in combinations(range(5), 2)
    }
    parents, edges = chow_liu_tree(NAMES, tables)
    best = max(sum(truth[edge] for edge in tree) for tree in spanning_trees(NAMES))
    assert sum(edges.values()) == pytest.approx(best, abs=1e-9)
    for pair, value in edges.items():
        assert value == pytest.approx(truth[frozenset(pair)], abs=1e-9)
    found = {
        frozenset((child, parent))
        for child, (parent, *_) in ((c, p) for c, p in parents.items() if p)
    }
    assert found == {frozenset(pair) for pair in edges}
    assert tuple(parents) == NAMES and not find_cycle(parents)
    turned = {(b, a): table.T for (a, b), table in tables.items()}
    assert chow_liu_tree(NAMES, turned) == (parents, edges)
    again, _ = chow_liu_tree(NAMES[::-1], tables)
    assert again == parents


def test_ties_are_broken_by_name() -> None:
    same = np.diag([5, 5])
    tables = dict.fromkeys(combinations(NAMES, 2), same)
    parents, edges = chow_liu_tree(NAMES, tables)
    assert parents == {"a": (), "b": ("a",), "c": ("a",), "d": ("a",), "e": ("a",)}
    assert set(edges) == {("a", "b"), ("a", "c"), ("a", "d"), ("a", "e")}


def test_columns_that_are_independent_in_the_counts_are_not_joined() -> None:
    tables = {
        ("a", "b"): np.array([[2, 4], [3, 6]]),
        ("a", "c"): np.diag([5, 10]),
        ("b", "c"): np.array([[2, 3], [4, 6]]),
    }
    parents, edges = chow_liu_tree(("a", "b", "c"), tables)
    assert parents == {"a": (), "b": (), "c": ("a",)} and set(edges) == {("a", "c")}
    assert mutual_information(np.zeros((2, 2), dtype=np.int64)) == 0


def test_a_file_has_one_edge_on_each_line(tmp_path: Path) -> None:
    file = tmp_path / "edges.txt"
    file.write_text("# what we know\nsmoke -> lung\n\nsmoke->bronc  # twice a parent\nage\n")
    assert read_structure(file) == {"smoke": (), "lung": ("smoke",), "bronc": ("smoke",), "age": ()}
    for text in ("", "# nothing"):
        with raises(InvalidFile, field="structure", given="has no edges"):
            parse_structure(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("\nann -> bob -> cid", "has something else than an edge on line 2"),
        ("-> bob", "has something else than an edge on line 1"),
        ("ann ->", "has something else than an edge on line 1"),
        ("ann -> bob\ncid\nann -> bob", "has the edge of line 1 again on line 3"),
    ],
)
def test_a_line_that_is_no_edge_is_told_by_its_number(text: str, told: str) -> None:
    """What is on it may be a protected row: the file may be another than was meant."""
    with raises(InvalidFile, field="structure", given=told) as refused:
        parse_structure(text)
    assert not any(name in str(refused.value) for name in ("ann", "bob", "cid"))


def test_the_tables_of_a_bif_file_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "two.bif"
    file.write_text(
        "network two { }\n"
        "variable a { type discrete [ 2 ] { x, y }; }\n"
        "variable b { type discrete [ 2 ] { x, y }; }\n"
        "probability ( a ) { table 0.5, 0.5; }\n"
        "probability ( b | a ) { (x) 0.5, 0.5; (y) 0.1, 0.9; }\n"
    )
    assert read_structure(file) == {"a": (), "b": ("a",)}


@pytest.mark.parametrize(
    ("named", "told"),
    [
        ({"a": (), "ann": ("a",)}, "1 of its names is no column; it does not name b"),
        ({"a": ("ann",), "b": ("bob",)}, "2 of its names are none"),
        ({"a": ()}, "it does not name b"),
    ],
)
def test_names_that_are_no_columns_are_counted(named: Any, told: str) -> None:
    with raises(InvalidPrior, field="structure", reason="names-differ") as refused:
        checked_structure(named, ("a", "b"))
    assert refused.value.given == f"does not name the columns of the prior ({told})"


@pytest.mark.parametrize(
    ("edges", "cycle"),
    [
        ("a -> b\nb -> c\nc -> a", "a -> b -> c -> a"),
        ("a -> a", "a -> a"),
        ("x -> b\nb -> c\nc -> b\nc -> d", "b -> c -> b"),
    ],
)
def test_a_cycle_is_refused_by_name(edges: str, cycle: str) -> None:
    parents = parse_structure(edges)
    names = tuple(parents)
    with raises(InvalidPrior, field="structure", reason="cycle") as refused:
        checked_structure(parents, names)
    shown = refused.value.given.removeprefix("has the cycle ").split(" -> ")
    assert shown[0] == shown[-1] and set(shown) == set(cycle.split(" -> "))
    for parent, child in pairwise(shown):
        assert parent in parents[child]


@given(edges=st.sets(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), max_size=12))
def test_a_cycle_is_found_if_and_only_if_no_order_has_parents_first(
    edges: set[tuple[str, str]],
) -> None:
    parents = {child: tuple(p for p, c in sorted(edges) if c == child) for child in "abcdef"}
    placed = set[str]()
    for _ in parents:  # an entry can be placed once its parents are
        placed |= {c for c, above in parents.items() if set(above) <= placed}
    cycle = find_cycle(parents)
    assert bool(cycle) == (len(placed) < len(parents))
    assert all(a in parents[b] for a, b in pairwise(cycle))
