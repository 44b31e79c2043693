"""A digest of all totals, against which a charge can check the few rows that it reads.

Every event carries the digest of the totals it leaves behind, so that a total which was edited,
deleted or added behind the ledger's back no longer fits the chain. The digest is the root of a
Merkle tree (Merkle, CRYPTO 1987) over the rows: the hash of a row's name says where in the tree it
is kept, sixteen branches to a node, up to sixteen rows to a leaf. A row is compared, or shown to be
absent, along one path; a change rewrites that path. The work grows with the rows that are touched
and the logarithm of all rows, not with the number of events. Rows are never taken out, so the shape
of a tree depends on what it holds alone: a replay of the events must arrive at the same root.

No key is involved. Whoever can write the storage can recompute every digest, and the chain of
events with it: the witness of the head (`takifugu.ledger.witnesses`) is what shows that.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from takifugu.errors import LedgerDamaged
from takifugu.ledger.storage.database import Connection, Statement, insert, update
from takifugu.ledger.storage.schema import DIGESTS, select

BRANCHES, MAX_LEAF_ROWS = 16, 16
PLACE, MARK = 16, 32  # bytes of the hash of a name, and of the digest of a row
LEAF, INNER = b"L", b"I"
NOTHING = bytes(MARK)  # the digest of a branch without rows
MANY_ROWS = 200  # rows beyond which the nodes of a tree are read all at once

Rows = Mapping[bytes, bytes]  # place to mark


def mark_of(text: str) -> bytes:
    """The digest of the content of a row."""
    return hashlib.sha256(text.encode()).digest()


def place_of(name: str) -> bytes:
    """Where the row of this name is kept."""
    return hashlib.sha256(name.encode()).digest()[:PLACE]


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


EMPTY = _digest(LEAF).hex()  # the root of a tree without rows

_TREE = "account = :of AND start = :since"
_NODE = f"{_TREE} AND path = :where"
_READ = select(DIGESTS, "content", where=_NODE)
_READ_ALL = select(DIGESTS, "path", "content", where=_TREE)
_ADD = insert(DIGESTS, "account", "start", "path", "content")
_SAVE = update(DIGESTS, "content", where=_NODE)
_COPY = Statement(
    f"INSERT INTO {DIGESTS} (account, start, path, content)"
    f" SELECT account, CAST(:new AS BIGINT), path, content FROM {DIGESTS} WHERE {_TREE}"
)
_FORGET = Statement(f"DELETE FROM {DIGESTS}")


class Tree:
    """The tree of one set of rows: of all accounts and segments, or of the cells of one segment.

    A node is used only if its hash is the one in its parent; that of the first one is ``root``.
    """

    def __init__(self, account: int = 0, start: int = 0, root: str = EMPTY) -> None:
        self.root, self._key = root, {"of": account, "since": start}
        self._nodes: dict[str, bytes] = {}
        self._stored: set[str] = set()
        self._changed: set[str] = set()
        if root == EMPTY:
            self._nodes[""] = LEAF

    @property
    def unsaved(self) -> bool:
        """Whether something was put that is not yet in the storage."""
        return bool(self._changed)

    def differing(self, connection: Connection, rows: Mapping[bytes, bytes | None]) -> bool:
        """Whether any row is not as it was left; None stands for a row that must not be there."""
        if len(rows) > MANY_ROWS:
            self._read_all(connection)
        return any(self._find(connection, place) != mark for place, mark in rows.items())

    def put(self, connection: Connection, rows: Rows) -> str:
        """Add or change rows; the new root. `save` writes it."""
        if rows:
            if len(rows) > MANY_ROWS:
                self._read_all(connection)
            self.root = self._put(
                connection, "", bytes.fromhex(self.root), list(rows.items())
            ).hex()
        return self.root

    def save(self, connection: Connection) -> str:
        """Write the nodes that changed; the root."""
        of, since = self._key["of"], self._key["since"]
        fresh, stale = [], []
        for path in self._changed:
            content = self._nodes[path]
            if path in self._stored:
                stale.append({**self._key, "where": path, "content": content})
            else:
                fresh.append({"account": of, "start": since, "path": path, "content": content})
        _SAVE.run(connection, stale)
        _ADD.run(connection, fresh)
        self._stored |= self._changed
        self._changed.clear()
        return self.root

    def copied(self, connection: Connection, start: int) -> "Tree":
        """The same rows as stored for a segment that begins at ``start``."""
        _COPY.run(connection, {**self._key, "new": start})
        copy = Tree(self._key["of"], start, self.root)
        copy._nodes, copy._stored = dict(self._nodes), set(self._stored)
        return copy

    # --- nodes ---

    def _node(self, connection: Connection, path: str, digest: bytes) -> bytes:
        known = self._nodes.get(path)
        if known is not None:
            return known
        row = _READ.one(connection, {**self._key, "where": path})
        return self._checked(path, None if row is None else row.content, digest)

    def _checked(self, path: str, content: bytes | None, digest: bytes) -> bytes:
        if content is None or _digest(content) != digest:
            raise edited()
        self._nodes[path] = content
        self._stored.add(path)
        return content

    def _read_all(self, connection: Connection) -> None:
        """Read every node at once; each is compared with its parent."""
        if self._nodes.get("", b"")[:1] == LEAF:
            return  # there is no other
        stored = {row.path: row.content for row in _READ_ALL.all(connection, self._key)}
        due = [("", bytes.fromhex(self.root))]
        while due:
            path, digest = due.pop()
            content = self._nodes.get(path)
            if content is None:
                content = self._checked(path, stored.get(path), digest)
            if content[:1] == INNER:
                children = _children(content)
                due += [(path + f"{i:x}", d) for i, d in enumerate(children) if d != NOTHING]

    def _find(self, connection: Connection, place: bytes) -> bytes | None:
        path, digest, nibbles = "", bytes.fromhex(self.root), place.hex()
        while True:
            content = self._node(connection, path, digest)
            if content[:1] == LEAF:
                return _rows(content).get(place)
            branch = int(nibbles[len(path)], 16)
            digest = content[1 + MARK * branch : 1 + MARK * (branch + 1)]
            if digest == NOTHING:
                return None
            path = nibbles[: len(path) + 1]

    def _put(
        self, connection: Connection, path: str, digest: bytes, rows: list[tuple[bytes, bytes]]
    ) -> bytes:
        content = self._node(connection, path, digest)
        if content[:1] == LEAF:
            return self._build(path, list((_rows(content) | dict(rows)).items()))
        children = _children(content)
        for branch, below in _branches(path, rows).items():
            where = path + f"{branch:x}"
            if children[branch] == NOTHING:
                children[branch] = self._build(where, below)
            else:
                children[branch] = self._put(connection, where, children[branch], below)
        return self._write(path, INNER + b"".join(children))

    def _build(self, path: str, rows: list[tuple[bytes, bytes]]) -> bytes:
        if len(rows) <= MAX_LEAF_ROWS:
            return self._write(path, LEAF + b"".join(p + m for p, m in sorted(rows)))
        children = [NOTHING] * BRANCHES
        for branch, below in _branches(path, rows).items():
            children[branch] = self._build(path + f"{branch:x}", below)
        return self._write(path, INNER + b"".join(children))

    def _write(self, path: str, content: bytes) -> bytes:
        self._nodes[path] = content
        self._changed.add(path)
        return _digest(content)


def _rows(leaf: bytes) -> dict[bytes, bytes]:
    size = PLACE + MARK
    return {leaf[i : i + PLACE]: leaf[i + PLACE : i + size] for i in range(1, len(leaf), size)}


def _children(inner: bytes) -> list[bytes]:
    return [inner[i : i + MARK] for i in range(1, len(inner), MARK)]


def _branches(
    path: str, rows: Iterable[tuple[bytes, bytes]]
) -> dict[int, list[tuple[bytes, bytes]]]:
    """Rows by the branch that they lie on below ``path``."""
    byte, high = len(path) // 2, len(path) % 2 == 0
    by_branch: dict[int, list[tuple[bytes, bytes]]] = {}
    for row in rows:
        branch = row[0][byte] >> 4 if high else row[0][byte] & 15
        by_branch.setdefault(branch, []).append(row)
    return by_branch


def forget(connection: Connection) -> None:
    """Delete every node, before the trees are rebuilt."""
    _FORGET.run(connection, {})


def edited(whose: str = "") -> LedgerDamaged:
    """The error for totals that are not those that the last event left behind."""
    return LedgerDamaged(
        f"the totals{whose} are not what the last event left behind: they were changed behind the"
        " ledger's back; nothing was released. Run `takifugu ledger verify`; if the events are"
        " sound, rebuild the totals",
        reason="totals",
    )


def row_text(values: Mapping[str, Any], *, without: tuple[str, ...] = ()) -> str:
    """The content of a row to be hashed: its columns by name, without empty ones."""
    return "\n".join(
        f"{name} {len(str(value))} {value}"
        for name, value in sorted(values.items())
        if value is not None and name not in without
    )
