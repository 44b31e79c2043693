"""A server as the witness of a ledger that is kept elsewhere."""

import shutil
from pathlib import Path

import pytest

from takifugu.errors import LedgerSetBack, LedgerUnwritable
from takifugu.ledger import open_ledger
from takifugu.ledger.witnesses.http_witness import TOKEN
from takifugu.project.project import open_project
from takifugu.server.state.server_state import open_state
from tests.raising import raises
from tests.server.running import new_token, running_server


@pytest.mark.nightly
def test_an_older_copy_is_refused_by_what_another_server_remembers(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, copy = tmp_path / "far.ledger", tmp_path / "older.ledger"
    monkeypatch.setenv(TOKEN, new_token(project, "witness", "far"))
    with running_server(project) as server:
        witness = f"{server.url.rstrip('/')}/api/v1/witness"
        with open_ledger(place, witness=witness) as ledger:
            ledger.set_budget("visits", 1)
        shutil.copy(place, copy)
        with open_ledger(place, witness=witness) as ledger:
            ledger.set_budget("visits", 2)
            head = ledger.head()
        with open_state(open_project(project)) as state:
            (known,) = state.witnessed_heads()
            assert (known.event, known.owner) == (head, "far")
            assert state.forgotten_heads() == []
        place.unlink()
        shutil.copy(copy, place)
        with raises(LedgerSetBack, reason="older"), open_ledger(place, witness=witness) as ledger:
            ledger.set_budget("visits", 3)
        monkeypatch.setenv(TOKEN, server.token("witness", "near"))
        with raises(LedgerUnwritable, reason="witness"):
            open_ledger(place, witness=witness)
        monkeypatch.setenv(TOKEN, server.token("analyst", "ana"))
        with raises(LedgerUnwritable, reason="witness"):
            open_ledger(tmp_path / "new.ledger", witness=witness)
