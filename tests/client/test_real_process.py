"""The client and the real server process: the same script here and there, also by TLS."""

from pathlib import Path

import pytest

import takifugu as tf
from takifugu.client import ServerUnreachable
from takifugu.project.project import open_project
from takifugu.session import Plan, Result
from takifugu.session.asking import Asking
from takifugu.session.plan_documents import public_form
from tests.client.test_connecting import certificate
from tests.ledger import postgres
from tests.ledger.folders import forget_rows
from tests.raising import raises
from tests.server.projects import small_project
from tests.server.running import new_token, running_server

pytestmark = pytest.mark.nightly

__all__ = ["certificate"]  # a fixture


def token_of(project: Path, name: str = "ana") -> str:
    return new_token(project, "analyst", name)


def script(asking: Asking) -> list[tuple[Plan, Result | None]]:
    """What an analyst does, wherever the data is."""
    histogram = asking.plan.histogram(by="zone", epsilon="0.5")
    top = asking.plan.top_k(2, epsilon="1/2", gap=20.0)
    shares = asking.plan.proportions(window=("2026-01-02", "2026-01-20"), epsilon=1)
    large = asking.plan.histogram(epsilon=100)
    return [(plan, asking.release(plan)) for plan in (histogram, top, shares)] + [(large, None)]


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_the_same_script_here_and_there(
    tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    addresses: list[str | None] = [None, None]
    if kind == "postgresql":
        cluster: postgres.Cluster = request.getfixturevalue("cluster")
        addresses = [cluster.address(), cluster.address()]
    here, there = (
        small_project(tmp_path / name / "a study", address)
        for name, address in zip(("here", "there"), addresses, strict=True)
    )
    secret = token_of(there)
    with running_server(there) as server, tf.connect(server.url, secret) as connection:
        dataset = connection.dataset("stays")
        found = script(dataset)
        forget_rows()
        with open_project(here).session("stays", "ana") as session:
            local = script(session)
            assert session.guarantee() == dataset.guarantee()
            assert session.spent() == dataset.spent()
    for (remote_plan, remote), (plan, result) in zip(found, local, strict=True):
        twin = public_form(plan)  # of another folder: its data has another key
        assert remote_plan.cost == twin.cost and str(remote_plan) == str(plan)
        assert remote_plan.describe() | {"cells": 0} == plan.describe() | {"cells": 0}
        if remote is None or result is None:
            continue
        assert remote.columns == result.columns and len(remote.rows) == len(result.rows)
        one, other = remote.document(), result.document()
        for name in ("rows", "raw", "at", "provenance", "shown"):  # noise, time, the events
            del one[name], other[name]
        assert one == other


def test_a_server_with_a_certificate_of_its_own(
    tmp_path: Path, certificate: tuple[Path, Path]
) -> None:
    project = small_project(tmp_path / "a study")
    secret = token_of(project)
    own, key = certificate
    key.chmod(0o600)
    with running_server(project, certificate=own, key=key) as server:
        assert server.url.startswith("https://")
        with raises(ServerUnreachable, reason="certificate"):
            tf.connect(server.url, secret)
        with tf.connect(server.url, secret, ca=own) as connection:
            dataset = connection.dataset("stays")
            plan = dataset.plan.histogram(epsilon=1)
            server.kill()
            with running_server(project, certificate=own, key=key, port=server.port):
                assert dataset.release(plan).cost.alone <= 1  # it was not noticed
