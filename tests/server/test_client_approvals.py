"""The Python client and releases that wait for an owner, against the real server."""

from pathlib import Path

import pytest

import takifugu as tf
from takifugu.client import ApprovalDeclined, ApprovalPending
from takifugu.errors import ApprovalRefused
from tests.raising import raises
from tests.server.projects import small_project, stays, write_rows
from tests.server.running import RunningServer, running_server
from tests.server.test_approvals import with_rule


def decide(server: RunningServer, olga: str, number: int, decision: str) -> None:
    """What an owner decides."""
    path = f"/api/v1/approvals/{number}/decision"
    answer = server.post(path, {"decision": decision, "note": "by the ward"}, token=olga)
    assert answer.status == 200, answer.body


@pytest.mark.nightly
def test_a_client_waits_for_an_owner(tmp_path: Path) -> None:
    project = with_rule(small_project(tmp_path / "study"))
    with running_server(project) as server:
        ana, olga = server.token("analyst", "ana"), server.token("owner", "olga")
        with tf.connect(server.url, token=ana) as connection:
            remote = connection.dataset("stays")
            plan = remote.plan.histogram(by="zone", epsilon=1)
            assert remote.approval_needed(plan)
            with raises(ApprovalPending, dataset="stays", request=1) as caught:
                remote.release(plan)
            assert caught.value.why
            with raises(ApprovalPending, request=1):
                remote.release(plan)  # the same plan: the same request
            decide(server, olga, 1, "approved")
            found = remote.wait_for(1)
            assert found.rows
            assert remote.release(plan) == found
            other = remote.plan.histogram(epsilon=1)
            with raises(ApprovalPending, request=2):
                remote.release(other)
            decide(server, olga, 2, "refused")
            with raises(ApprovalDeclined, request=2, state="refused", note="by the ward"):
                remote.wait_for(2)
            third = remote.plan.histogram(by="zone", epsilon=2)
            with raises(ApprovalPending, request=3):
                remote.release(third)
            write_rows(project.parent, stays(121))
            decide(server, olga, 3, "approved")
            with raises(ApprovalRefused, reason="question"):
                remote.wait_for(3)
