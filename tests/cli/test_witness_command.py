"""``takifugu witness``: what the server of a project remembers of others' ledgers."""

from pathlib import Path

import pytest

from takifugu.ledger import Anchor
from takifugu.project import init_project, open_project
from takifugu.server.state.server_state import open_state
from takifugu.server.state.state_store import StateConflict
from tests.cli.running import Call

LEDGER = "ab" * 16


@pytest.fixture(scope="session")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("witness")
    with open_state(init_project(folder)) as state:
        state.record_head(LEDGER, Anchor(7, "c" * 64), None, "far")
    return folder


def test_a_head_is_listed_and_forgotten_by_name(study: Path, do: Call) -> None:
    (head,) = do("witness list --json").json()["heads"]
    assert (head["ledger"], head["seq"], head["owner"]) == (LEDGER, 7, "far")
    gone = do(f"witness forget {LEDGER} --json").json()
    assert (gone["ledger"], gone["seq"]) == (LEDGER, 7) and gone["by"]
    found = do("witness list --json").json()
    assert found["heads"] == [] and [one["ledger"] for one in found["forgotten"]] == [LEDGER]
    with open_state(open_project(study)) as state:
        assert state.record_head(LEDGER, Anchor(3, "d" * 64), None, "far") is not None


def test_a_ledger_that_is_not_recorded_is_refused(do: Call) -> None:
    ran = do(f"witness forget {'0' * 32}")
    assert isinstance(ran.error, StateConflict) and ran.error.reason == "unknown"
    assert LEDGER in do("witness list").out
