"""The server as a process: it starts, says where, answers, is ready or not, and stops."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import Malformed
from takifugu.project.project import open_project
from takifugu.project.server_section import ServerSettings
from takifugu.server.operation.listening import listening_socket
from tests.cli.running import SOURCE, run, start
from tests.ledger import postgres
from tests.raising import raises
from tests.server.attacked import tells_nothing
from tests.server.projects import small_project
from tests.server.raw_requests import raw_connection
from tests.server.running import (
    PATIENCE,
    Answer,
    RunningServer,
    new_token,
    read_answer,
    running_server,
    workers_of,
    write_settings,
)

QUERY = {"kind": "histogram", "by": ["zone"], "epsilon": "1"}
PLANS, RELEASES = "/api/v1/datasets/stays/plans", "/api/v1/datasets/stays/releases"


def release(server: RunningServer, token: str, key: str, **how: Any) -> Answer:
    headers = {"Idempotency-Key": key} | how.pop("headers", {})
    return server.post(RELEASES, {"query": QUERY}, token=token, headers=headers, **how)


def gone(process: int) -> bool:
    """Whether a process ends, sooner or later."""
    for _ in range(10 * PATIENCE):
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.1)
    return False


@pytest.mark.nightly
def test_a_server_starts_answers_and_stops(project: Path) -> None:
    token = new_token(project, "analyst", "ana")
    with running_server(project) as server:
        assert server.get("/healthz").json() == {"status": "alive"}
        ready = server.get("/readyz")
        assert ready.status == 200 and all(ready.json()["checks"].values())
        assert server.post(PLANS, {"query": QUERY}, token=token).status == 200
        answer = release(server, token, "once")
        assert answer.status == 201
        workers = workers_of(server.process.pid)
        assert workers
        assert server.stop() == 0
        assert all(map(gone, workers))
    with running_server(project) as server:  # and again: the same answer, for the same charge
        again = release(server, token, "once")
        assert again.status in (200, 201)
        assert again.json()["charge"] == answer.json()["charge"]
        assert again.json()["result"]["rows"] == answer.json()["result"]["rows"]


@pytest.mark.nightly
def test_an_interrupt_stops_it_with_status_0(study: Path) -> None:
    with running_server(study) as server:
        server.send_signal(signal.SIGINT)
        assert server.wait() == 0
        assert server.log()[-1]["message"] == "stopped"


@pytest.mark.nightly
def test_the_address_is_printed_as_one_line(study: Path) -> None:
    write_settings(study, port=0)
    process = start(study.parent, "serve")
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("http://127.0.0.1:") and line.endswith("\n")
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=PATIENCE)
        assert (out, process.returncode) == ("", 0)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.nightly
def test_systemd_is_told_when_it_is_ready_and_when_it_stops(study: Path) -> None:
    place = f"@takifugu-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0{place[1:]}")
        manager.settimeout(PATIENCE)
        with running_server(study, environment={"NOTIFY_SOCKET": place}) as server:
            assert manager.recv(100) == b"READY=1"
            assert server.stop() == 0
        assert manager.recv(100) == b"STOPPING=1"


@pytest.mark.nightly
def test_a_stop_waits_for_what_is_running(project: Path) -> None:
    """A request whose body is still being sent is running; what comes later is not taken."""
    token = new_token(project, "analyst", "ana")
    with running_server(project, stop_time=600, request_time=600, keep_alive=600) as server:
        idle = server.connection()
        idle.request("GET", "/healthz")
        assert read_answer(idle).status == 200
        running = server.connection()
        running.putrequest("POST", RELEASES)
        body = b'{"query": {"kind": "histogram", "by": ["zone"], "epsilon": "1"}}'
        headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": "stopped"}
        headers |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
        for name, value in headers.items():
            running.putheader(name, value)
        running.endheaders(body[:10])
        _until_waiting(server, 2)
        server.send_signal(signal.SIGTERM)
        assert _refuses_connections(server)
        assert idle.sock.recv(1) == b""  # closed: nothing runs on it
        assert server.process.poll() is None
        running.send(body[10:])
        answer = read_answer(running)
        assert answer.status == 201 and answer.json()["charge"]
        assert server.wait() == 0
        idle.close()
        running.close()
    with open_project(project).ledger(read_only=True) as ledger:
        kinds = [event.kind for event in ledger.history()]
    assert kinds.count("charge") == kinds.count("answer") == 1


@pytest.mark.nightly
def test_what_does_not_end_is_cancelled(study: Path) -> None:
    with (
        running_server(study, stop_time=0.5, request_time=600) as server,
        raw_connection(server) as raw,
    ):
        raw.sendall(b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nabc")
        _until_waiting(server, 1)
        server.send_signal(signal.SIGTERM)
        assert server.wait() == 0
        assert raw.recv(65_536).startswith(b"HTTP/1.1 503")


@pytest.mark.nightly
def test_a_second_signal_stops_it_at_once(study: Path) -> None:
    with (
        running_server(study, stop_time=600, request_time=600) as server,
        raw_connection(server) as raw,
    ):
        raw.sendall(b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nabc")
        _until_waiting(server, 1)
        server.send_signal(signal.SIGTERM)
        assert _refuses_connections(server)
        server.send_signal(signal.SIGTERM)
        assert server.wait() == 128 + signal.SIGTERM


@pytest.mark.nightly
def test_killed_in_the_middle_it_loses_nothing(project: Path) -> None:
    """Whatever it was doing: the same request again is one charge with one answer."""
    token = new_token(project, "analyst", "ana")
    for turn in range(3):
        with running_server(project) as server:
            asking = threading.Thread(target=_try, args=(server, token, "killed"))
            asking.start()
            time.sleep(0.4 * turn)
            workers = workers_of(server.process.pid)
            server.kill()
            asking.join()
            assert all(map(gone, workers))
    with running_server(project) as server:
        answer = release(server, token, "killed", headers={"Prefer": "wait=60"})
        assert answer.status in (200, 201)
    with open_project(project).ledger(read_only=True) as ledger:
        events = list(ledger.history())
        assert ledger.verify().sound
    assert [event.kind for event in events].count("charge") == 1
    assert [event.kind for event in events].count("answer") == 1


def _try(server: RunningServer, token: str, key: str) -> None:
    try:
        release(server, token, key)
    except (OSError, Exception):  # noqa: BLE001 - the server is killed meanwhile
        return


def _until_waiting(server: RunningServer, connections: int) -> None:
    """Until the server has so many connections with something on them."""
    token = new_token(server.project, "auditor", f"auditor {time.monotonic_ns()}")
    name = b'takifugu_connections{state="open"} '
    for _ in range(10 * PATIENCE):
        found = server.get("/metrics", token=token).body.partition(name)[2].split(b"\n")[0]
        if float(found) > connections:  # this one included
            time.sleep(0.2)
            return
        time.sleep(0.1)
    raise AssertionError


def _refuses_connections(server: RunningServer) -> bool:
    for _ in range(10 * PATIENCE):
        try:
            socket.create_connection((server.host, server.port), timeout=PATIENCE).close()
        except ConnectionRefusedError:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.nightly
def test_a_ledger_that_is_gone_is_not_ready_and_back_it_is(study: Path) -> None:
    with running_server(study) as server:
        assert server.get("/readyz").status == 200
        ledger = study.parent / "takifugu.ledger"
        away = study.parent / "away"
        ledger.rename(away)
        answer = _until(server, 503)
        document = answer.json()
        assert document["checks"]["ledger"] is False and document["checks"]["state"] is True
        assert str(study.parent) not in answer.body.decode()  # no paths
        assert server.get("/healthz").status == 200  # alive all the same
        away.rename(ledger)
        assert _until(server, 200).json()["status"] == "ready"
        before = study.read_text(encoding="utf-8")
        study.write_text("no policy", encoding="utf-8")
        assert _until(server, 503).json()["checks"]["policy"] is False
        study.write_text(before, encoding="utf-8")
        assert _until(server, 200)


@pytest.mark.nightly
def test_without_its_database_a_server_is_not_ready_and_lets_nobody_in(tmp_path: Path) -> None:
    if needed := postgres.missing():
        pytest.skip(needed)
    with postgres.cluster() as cluster:
        project = small_project(tmp_path / "a study", ledger=cluster.address())
        secret = new_token(project, "owner", "eva")
        with running_server(project) as server:
            assert server.get("/readyz").status == 200
            assert server.get("/api/v1/me", token=secret).status == 200
            cluster.stop()
            document = _until(server, 503).json()
            assert document["checks"]["ledger"] is False and document["checks"]["state"] is False
            for _ in range(3):
                answer = server.get("/api/v1/me", token=secret)
                assert answer.status == 503 and b"postgres" not in answer.body
                tells_nothing(answer.body)
            assert server.get("/healthz").status == 200
            cluster.restart()
            assert _until(server, 200)
            assert server.get("/api/v1/me", token=secret).status == 200
            assert server.stop() == 0


def _until(server: RunningServer, status: int) -> Answer:
    for _ in range(4 * PATIENCE):
        answer = server.get("/readyz")
        if answer.status == status:
            return answer
        time.sleep(0.25)
    raise AssertionError(answer)


@pytest.mark.nightly
def test_a_port_that_is_taken_is_told(study: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with raises(Malformed, field="--port", reason="in-use"):
            listening_socket(ServerSettings(port=port))
        ran = run(study.parent, "serve", "--port", str(port))
        assert ran.status == 2 and ran.out == "" and "in use" in ran.err
        assert "Traceback" not in ran.err


def test_an_address_that_is_none_is_told() -> None:
    with raises(Malformed, field="--host", reason="address"):
        listening_socket(ServerSettings(host="no such host.invalid"))
    with raises(Malformed, field="--host", reason="address"):
        listening_socket(ServerSettings(host="192.0.2.1"))


@pytest.mark.nightly
def test_a_missing_package_is_told_with_the_extra(study: Path) -> None:
    hide = (
        "import sys\nclass Hidden:\n    def find_spec(self, name, *_):\n"
        "        if name == 'uvicorn': raise ModuleNotFoundError(name, name='uvicorn')\n"
        "sys.meta_path.insert(0, Hidden())\n"
        f"sys.argv = ['takifugu', 'serve', '-p', {str(study)!r}]\n"
        "from takifugu.cli import main\nmain()\n"
    )
    ran = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", hide],
        env={**os.environ, "PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 4 and "'takifugu[server]'" in ran.stderr, ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.nightly
def test_an_idle_server_has_nothing_heavy_in_memory(study: Path) -> None:
    """What only workers need is not imported by the process that answers."""
    heavy = ("duckdb", "opendp", "scipy", "numba", "matplotlib", "pandas", "pyarrow")
    with running_server(study) as server:
        token = server.token("analyst")
        assert server.get("/api/v1/datasets", token=token).status == 200
        assert server.get("/readyz").status == 200
        maps = Path(f"/proc/{server.process.pid}/maps").read_text()
        assert not [name for name in heavy if f"site-packages/{name}" in maps]
