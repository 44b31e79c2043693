"""Releases that are not kept here: made on the command line, or charged and never answered."""

from pathlib import Path

import pytest

from takifugu.ledger import Ledger
from takifugu.project.project import open_project
from tests.server.api.serving import HISTOGRAM, served
from tests.server.pages.test_waiting_datasets import page


class Killed(BaseException):
    """Stands for a process that ended here: nothing catches it."""


@pytest.mark.nightly
def test_a_charge_without_an_answer_is_not_called_released(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends(*_: object, **__: object) -> None:
        raise Killed

    with open_project(study).acting("ana").session("stays", "ana") as session:
        session.release(session.plan.histogram(by="zone", epsilon="0.25"), accept_noise=True)
        plan = session.plan.histogram(by="zone", epsilon="0.5")
        with monkeypatch.context() as patched:
            patched.setattr(Ledger, "record_answer", ends)
            with pytest.raises(Killed):
                session.release(plan, accept_noise=True)
    with served(study) as server:
        assert server.release("ana", HISTOGRAM).status_code == 201
        here, stopped, elsewhere = server.get("ana", "/releases").json()["items"]
        assert [one["answered"] for one in (here, stopped, elsewhere)] == [True, False, True]
        assert [one["result"] for one in (here, stopped, elsewhere)] == [True, False, False]
        for one in (here, stopped, elsewhere):
            assert server.get("ana", f"/releases/{one['charge']}").json() == one
        for who in ("ana", "olga", "udo"):
            text = page(server, who, "/releases")
            assert text.count("no answer is recorded") == 1
            assert text.count("released on the command line") == 1
            one = page(server, who, f"/releases/{stopped['charge']}")
            assert "No answer is recorded" in one and "command line" not in one
            other = page(server, who, f"/releases/{elsewhere['charge']}")
            assert "is in the ledger" in other and "No answer is recorded" not in other
