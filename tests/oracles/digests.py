"""The digest of a ledger's totals, from its definition: all rows at once, split while too many."""

import hashlib
import json
from typing import Any

from takifugu.ledger.account import Books


def root(books: Books) -> str:
    """The root of the tree over accounts and segments."""
    rows = {}
    for book in books.books.values():
        account = book.account
        columns: dict[str, Any] = {
            "always": _text([account.always]),
            "delta": str(book.delta),
            "worst": _text(account.worst),
        }
        if book.epsilon is not None:
            columns["epsilon"] = str(book.epsilon)
        if book.shape.unit is not None:
            columns["unit"] = book.shape.unit
        if book.shape.partition is not None:
            columns["partition"] = json.dumps(list(book.shape.partition))
        text = "\n".join(f"{n} {len(columns[n])} {columns[n]}" for n in sorted(columns))
        rows[f"account\0{book.dataset}\0{book.analyst}"] = text
        for segment in account.segments:
            cells = _tree({cell: _text([own]) for cell, own in segment.own.items()})
            rows[f"segment\0{book.dataset}\0{book.analyst}\0{segment.start}"] = (
                f"{segment.end}\n{_text([segment.base])}\n{_text(segment.peak)}\n{cells}"
            )
    return _tree(rows)


def _text(totals: Any) -> str:
    return ";".join(f"{t.epsilon} {t.delta} {t.rho}{_costs(t.costs)}" for t in totals)


def _costs(costs: Any) -> str:
    """By hand: a space, then JSON in which no letter is a space or a semicolon."""
    if not costs.terms:
        return ""
    terms = sorted(costs.terms, key=lambda term: json.dumps(term[0].document()).replace(" ", ""))
    text = json.dumps([[str(value), shape.document()] for shape, value in terms])
    text = text.replace('", "', '","').replace('", [', '",[').replace("], [", "],[")
    return " " + "".join({" ": "\\u0020", ";": "\\u003b"}.get(letter, letter) for letter in text)


def _hash(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def _tree(rows: dict[str, str]) -> str:
    marked = {_hash(name.encode())[:16]: _hash(text.encode()) for name, text in rows.items()}
    return _node(marked, 0).hex()


def _node(rows: dict[bytes, bytes], depth: int) -> bytes:
    if len(rows) <= 16:
        return _hash(b"L" + b"".join(place + rows[place] for place in sorted(rows)))
    below = b"I"
    for digit in "0123456789abcdef":
        branch = {place: mark for place, mark in rows.items() if place.hex()[depth] == digit}
        below += _node(branch, depth + 1) if branch else bytes(32)
    return _hash(below)
