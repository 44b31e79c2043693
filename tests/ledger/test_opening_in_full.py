"""What opening, restoring and accepting a loss hand on to the parts that do the work: all of it."""

import itertools
import os
import pwd
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from takifugu.errors import InvalidCharge
from takifugu.ledger import lifecycle
from takifugu.ledger.storage.store import WAIT
from takifugu.ledger.witnesses import http_witness
from takifugu.ledger.witnesses.lost_history import LossTerms
from tests.ledger.charges import DOUBLING
from tests.raising import raises

pytestmark = pytest.mark.nightly

NOON = datetime(2027, 1, 1, 12, tzinfo=timezone(timedelta(hours=9)))
CONNECTION, ORIGIN, REPORT = object(), object(), object()
OPTIONS: dict[str, Any] = {"wait": 3.5, "actor": "olga", "witness": "there"}
Call = tuple[str, tuple[object, ...], dict[str, object]]


def noon() -> datetime:
    return NOON


class Parts:
    """Stands for everything that opening uses, and notes how it is called."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.fails: dict[str, Exception] = {}
        self.noting: Any = SimpleNamespace(close=self.noted("close witness"))
        self.store: Any = None
        self.guard = SimpleNamespace(noted=lambda: "what was seen")

    def noted(self, name: str, result: object = None) -> Callable[..., Any]:
        """What notes that it was called, then fails if it should."""

        def call(*given: object, **options: object) -> object:
            self.calls.append((name, given, options))
            if name in self.fails:
                raise self.fails[name]
            return result

        return call

    def make_store(self, where: object, **options: Any) -> Any:
        """A store that notes what it is made for, written to and closed."""
        self.noted("store")(where, **options)

        @contextmanager
        def writing() -> Iterator[object]:
            yield CONNECTION

        self.store = SimpleNamespace(
            name=f"file {where}",
            read_only=options["read_only"],
            close=self.noted("close store"),
            writing=writing,
        )
        return self.store

    def names(self) -> list[str]:
        """What was called, in order."""
        return [name for name, *_ in self.calls]


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Parts:
    made = Parts()
    chain = SimpleNamespace(head=made.noted("head", "last"), append=made.noted("append", "event"))
    for name, part in {
        "Store": made.make_store,
        "open_witness": lambda *given: made.noted("witness", made.noting)(*given),
        "Guard": made.noted("guard", made.guard),
        "prepare": made.noted("prepare", ORIGIN),
        "Ledger": made.noted("ledger", "ledger"),
        "current_actor": lambda: "user",
        "put_back": made.noted("put back", REPORT),
        "chain": chain,
        "tables": SimpleNamespace(rebuild=made.noted("rebuild")),
        "lost_history": SimpleNamespace(counted=made.noted("counted", ({"lost": 1}, "books"))),
    }.items():
        monkeypatch.setattr(lifecycle, name, part)
    return made


@pytest.mark.parametrize(
    ("create", "read_only", "inspect"), list(itertools.product((False, True), repeat=3))
)
def test_opening_hands_on_what_it_was_given(
    parts: Parts, create: bool, read_only: bool, inspect: bool
) -> None:
    found = lifecycle.open_ledger(
        "here",
        **OPTIONS,
        create=create,
        read_only=read_only,
        clock=noon,
        inspect=inspect,
        key="marks",
    )
    reads = read_only or inspect
    now = NOON.astimezone(UTC)
    assert found == "ledger"  # type: ignore[comparison-overlap]
    assert parts.calls == [
        ("store", ("here",), {"read_only": reads, "wait": 3.5}),
        ("witness", ("there", 3.5), {}),
        ("guard", (parts.noting, "file here"), {"writes": not reads, "lenient": inspect}),
        (
            "prepare",
            (parts.store, now),
            {"create": create and not reads, "guard": parts.guard, "actor": "olga"},
        ),
        (
            "ledger",
            (parts.store, ORIGIN),
            {"clock": noon, "actor": "olga", "key": Path("marks")},
        ),
    ]
    assert parts.calls[3][1][1].tzinfo is UTC  # type: ignore[attr-defined]


def test_by_default_a_ledger_is_made_written_and_watched(parts: Parts) -> None:
    lifecycle.open_ledger("here")
    calls = {name: (given, options) for name, given, options in parts.calls}
    assert calls["store"] == (("here",), {"read_only": False, "wait": WAIT})
    assert calls["witness"] == ((True, WAIT), {})
    assert calls["guard"][1] == {"writes": True, "lenient": False}
    options = calls["prepare"][1]
    assert (options["create"], options["actor"]) == (True, "user")
    assert calls["ledger"][1] == {"clock": lifecycle._now, "actor": "user", "key": None}
    assert lifecycle._now().tzinfo is UTC


@pytest.mark.parametrize("at", ["guard", "prepare"])
def test_a_ledger_that_does_not_open_is_closed_with_its_witness(parts: Parts, at: str) -> None:
    parts.fails[at] = KeyError(at)
    with pytest.raises(KeyError, match=at):
        lifecycle.open_ledger("here", **OPTIONS)
    assert parts.names()[-2:] == ["close store", "close witness"]


def test_what_was_not_opened_is_not_closed(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    parts.fails["witness"] = KeyError("no witness")
    with pytest.raises(KeyError, match="no witness"):
        lifecycle.open_ledger("here", **OPTIONS)
    assert parts.names() == ["store", "witness", "close store"]
    parts.calls.clear()
    with raises(InvalidCharge, field="actor"):
        lifecycle.open_ledger("here", **OPTIONS | {"actor": ""})
    assert parts.names() == ["store", "close store"]
    parts.fails = {"prepare": KeyError("nobody watches")}
    monkeypatch.setattr(lifecycle, "open_witness", lambda *_: None)
    with pytest.raises(KeyError, match="nobody watches"):
        lifecycle.open_ledger("here", **OPTIONS)
    assert parts.names()[-1] == "close store"


def test_accepting_a_loss_hands_on_what_it_was_given(parts: Parts) -> None:
    translations, columns = {"ward": DOUBLING}, {"ward": ("place", "mood")}
    event = lifecycle.accept_loss(
        "here",
        **OPTIONS,
        translations=translations,
        budgets={"ward": 5},
        clock=noon,
        columns=columns,
        costs=False,
    )
    now = NOON.astimezone(UTC)
    assert event == "event"  # type: ignore[comparison-overlap]
    assert parts.calls == [
        ("store", ("here",), {"read_only": False, "wait": 3.5}),
        ("witness", ("there", 3.5), {}),
        ("guard", (parts.noting, "file here"), {"writes": True, "lenient": True}),
        (
            "prepare",
            (parts.store, now),
            {"create": False, "guard": parts.guard, "actor": "olga", "follow": False},
        ),
        ("head", (CONNECTION,), {"lock": True}),
        (
            "counted",
            (CONNECTION, "what was seen", translations, {"ward": 5}),
            {"columns": columns, "costs": False},
        ),
        ("rebuild", (CONNECTION, "books"), {}),
        ("append", (CONNECTION, "last", "loss", {"lost": 1, "actor": "olga"}, now), {}),
        ("close store", (), {}),
    ]


def test_a_loss_is_by_default_counted_with_costs_and_nothing_known(parts: Parts) -> None:
    lifecycle.accept_loss("here")
    calls = {name: (given, options) for name, given, options in parts.calls}
    assert calls["store"][1]["wait"] == WAIT and calls["witness"] == ((True, WAIT), {})
    assert calls["counted"][0][2:] == ({}, {})
    assert calls["counted"][1] == {"columns": {}, "costs": True}
    assert calls["append"][0][3] == {"lost": 1, "actor": "user"}
    parts.fails["counted"] = KeyError("nothing lost")
    with pytest.raises(KeyError, match="nothing lost"):
        lifecycle.accept_loss("here")
    assert parts.names()[-1] == "close store" and parts.names().count("append") == 1


def test_restoring_hands_on_what_it_was_given_and_closes_the_witness(parts: Parts) -> None:
    terms = LossTerms(costs=False)
    found = lifecycle.restore_ledger(
        "copy", "here", witness="there", wait=3.5, lossy=True, terms=terms
    )
    assert found is REPORT
    given = {"wait": 3.5, "lossy": True, "terms": terms}
    assert parts.calls == [
        ("witness", ("there", 3.5), {}),
        ("put back", (Path("copy"), "here", parts.noting), given),
        ("close witness", (), {}),
    ]
    parts.calls.clear()
    parts.fails["put back"] = KeyError("older")
    with pytest.raises(KeyError, match="older"):
        lifecycle.restore_ledger("copy", "here")
    assert parts.calls[0] == ("witness", (True, WAIT), {})
    assert parts.calls[1][2] == {"wait": WAIT, "lossy": False, "terms": None}
    assert parts.names()[2:] == ["close witness"]


def test_a_restore_without_a_witness_closes_none(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "open_witness", lambda *_: None)
    lifecycle.restore_ledger("copy", "here", witness=False)
    assert parts.names() == ["put back"] and parts.calls[0][1][2] is None


@pytest.mark.parametrize("wait", [None, 3.5])
def test_a_witness_is_what_its_place_says(
    monkeypatch: pytest.MonkeyPatch, wait: float | None
) -> None:
    for name in ("FileWitness", "DatabaseWitness", "Store"):
        monkeypatch.setattr(lifecycle, name, lambda *a, name=name, **o: (name, a, o))
    monkeypatch.setattr(http_witness, "HttpWitness", lambda *a, **o: ("HttpWitness", a, o))
    monkeypatch.setattr(lifecycle, "heads_folder", lambda: Path("heads"))
    waits = {"wait": WAIT if wait is None else wait}

    def made(where: str | Path | bool) -> Any:
        return lifecycle.open_witness(where, *([] if wait is None else [wait]))

    assert made(False) is None
    assert made(True) == ("FileWitness", (Path("heads"),), {"folder": True} | waits)
    for where in ("http://a", "https://a", "HTTPS://A/b"):
        assert made(where) == ("HttpWitness", (where,), waits)
    for where in ("sqlite:///a", "postgresql://http://"):
        store = ("Store", (where,), {"read_only": False} | waits)
        assert made(where) == ("DatabaseWitness", (store,), {})
    for place in ("a/b", Path("a/b"), Path("http://a"), Path("sqlite:///a")):
        assert made(place) == ("FileWitness", (Path(place),), {"folder": False} | waits)


def test_who_acts_is_the_user_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    monkeypatch.setattr(pwd, "getpwuid", lambda number: SimpleNamespace(pw_name=f"u{number}"))
    assert lifecycle.current_actor() == "u4711"

    def nobody(number: int) -> None:
        raise KeyError(number)

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    assert lifecycle.current_actor() == "uid 4711"
