"""Which witness an address means, and who acts."""

import os
import pwd
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from takifugu.ledger import lifecycle
from takifugu.ledger.storage.store import WAIT
from takifugu.ledger.witnesses import http_witness


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
