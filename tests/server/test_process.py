"""The server as a process: it starts, says where, answers, and stops."""

import signal
from pathlib import Path

import pytest

from tests.server.running import running_server


def test_a_server_starts_answers_and_stops(project: Path) -> None:
    with running_server(project) as server:
        assert server.get("/healthz").status == 200
        assert server.stop() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_either_signal_stops_it_with_status_0(study: Path, number: int) -> None:
    with running_server(study) as server:
        server.send_signal(number)
        assert server.wait() == 0
