"""The tree of digests: against one built all at once, from storage, and with any row edited."""

import sqlite3
from collections.abc import Iterator

import numpy as np
import pytest

from takifugu.errors import LedgerDamaged
from takifugu.ledger.storage.database import Connection
from takifugu.ledger.storage.digest_tree import (
    EMPTY,
    MANY_ROWS,
    MAX_LEAF_ROWS,
    Tree,
    mark_of,
    place_of,
)
from takifugu.ledger.storage.schema import DIGESTS, create_table
from tests.oracles.digests import _node as node_at_once
from tests.oracles.digests import _tree as tree_at_once
from tests.raising import raises

pytestmark = pytest.mark.nightly

Texts = dict[str, str]


@pytest.fixture
def connection() -> Iterator[Connection]:
    raw = sqlite3.connect(":memory:", isolation_level=None)
    made = Connection(raw, True)
    create_table(made, DIGESTS)
    yield made
    raw.close()


def rows(texts: Texts) -> dict[bytes, bytes]:
    return {place_of(name): mark_of(text) for name, text in texts.items()}


def some(size: int, seed: int = 1) -> Texts:
    rng = np.random.default_rng(seed)
    return {f"row {place}": f"text {rng.integers(10**9)}" for place in range(size)}


@pytest.mark.parametrize(
    "size", [0, 1, MAX_LEAF_ROWS, MAX_LEAF_ROWS + 1, MANY_ROWS, MANY_ROWS + 1, 700]
)
@pytest.mark.parametrize("step", [1, 7, 1000])
def test_the_root_is_that_of_all_rows_in_whatever_steps_they_came(
    connection: Connection, size: int, step: int
) -> None:
    texts, tree = some(size), Tree()
    names = list(texts)
    for first in range(0, size, step):
        tree.put(connection, rows(dict.fromkeys(names[first : first + step], "first")))
        tree.put(connection, rows({name: texts[name] for name in names[first : first + step]}))
    assert tree.root == tree_at_once(texts) == tree.put(connection, {})
    assert (tree.root == EMPTY) is (size == 0) and tree.unsaved is bool(size)
    assert tree.save(connection) == tree.root and not tree.unsaved


@pytest.mark.parametrize("size", [1, MAX_LEAF_ROWS, 60, MANY_ROWS + 50])
def test_rows_are_found_again_in_what_was_stored(connection: Connection, size: int) -> None:
    texts = some(size)
    tree = Tree(account=3, start=-5)
    tree.put(connection, rows(texts))
    tree.save(connection)
    Tree(account=4, start=-5).save(connection)
    for asked in (texts, dict(list(texts.items())[:1])):
        again = Tree(3, -5, tree.root)
        assert not again.differing(connection, rows(asked))
        assert not again.differing(connection, {place_of("no row"): None})
        assert again.differing(connection, {place_of("no row"): mark_of("x")})
        assert again.differing(connection, rows(asked | {"row 0": "edited"}))
        assert again.differing(connection, dict.fromkeys(rows(asked), None))
    changed = Tree(3, -5, tree.root)
    more = {"row 0": "new", **{f"more {place}": "x" for place in range(MANY_ROWS + 2)}}
    for part in ({"row 0": "new"}, more):
        texts |= part
        assert changed.put(connection, rows(part)) == tree_at_once(texts)
        changed.save(connection)
        assert not Tree(3, -5, changed.root).differing(connection, rows(texts))


@pytest.mark.parametrize("step", [1, 5, 100])
def test_rows_whose_places_begin_alike_are_told_apart_below(
    connection: Connection, step: int
) -> None:
    """More than a leaf holds begin with the same digits, an even and an odd number of them."""
    begin = ("a1b2c3", "a1b2c", "a1b2", "a1b", "a1", "0f", "f0f0f")
    digits = [f"{first}{n:02x}{n * 11:02x}" for first in begin for n in range(20)]
    marks = {bytes.fromhex(text.ljust(32, "7")): mark_of(text) for text in digits}
    tree, places = Tree(), list(marks)
    for first in range(0, len(places), step):
        tree.put(connection, {place: marks[place] for place in places[first : first + step]})
    assert tree.root == node_at_once(marks, 0).hex()
    tree.save(connection)
    for place in places:
        found = Tree(root=tree.root)
        assert not found.differing(connection, {place: marks[place]})
        assert found.differing(connection, {place: None})
        for absent in (place[:-1] + b"\0", b"\xbb" * 16, b"\xa1\xb2\xd0" * 5 + b"\0"):
            assert not found.differing(connection, {absent: None})  # in a leaf, or on no branch
            assert found.differing(connection, {absent: marks[place]})
    changed = marks | {places[0]: mark_of("x"), bytes.fromhex("a1b2c3" + "e" * 26): mark_of("y")}
    assert Tree(root=tree.root).put(connection, changed) == node_at_once(changed, 0).hex()


@pytest.mark.parametrize("size", [5, 60, MANY_ROWS + 50])
def test_a_node_that_was_edited_is_not_used(connection: Connection, size: int) -> None:
    texts = some(size)
    tree = Tree()
    root = tree.put(connection, rows(texts))
    tree.save(connection)
    stored = connection.raw.execute(f"SELECT path, content FROM {DIGESTS}").fetchall()  # noqa: S608
    assert (len(stored) == 1) is (size <= MAX_LEAF_ROWS)
    change = f"UPDATE {DIGESTS} SET content = ? WHERE path = ?"  # noqa: S608
    for path, content in stored:
        for wrong in (content[:-1] + bytes([content[-1] ^ 1]), b"", None):
            if wrong is None:
                connection.raw.execute(f"DELETE FROM {DIGESTS} WHERE path = ?", (path,))  # noqa: S608
            else:
                connection.raw.execute(change, (wrong, path))
            with raises(LedgerDamaged, reason="totals"):
                Tree(root=root).differing(connection, rows(texts))
            with raises(LedgerDamaged, reason="totals"):
                Tree(root=root).put(connection, rows(texts))
            if wrong is None:
                again = f"INSERT INTO {DIGESTS} (account, start, path, content) VALUES (0, 0, ?, ?)"  # noqa: S608
                connection.raw.execute(again, (path, content))
            connection.raw.execute(change, (content, path))
    assert not Tree(root=root).differing(connection, rows(texts))
