"""The real server, as a process on loopback, for as long as a test needs it.

with running_server(small_project(folder), request_time=1.0) as server:
    assert server.get("/healthz").status == 200
"""

import http.client
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from takifugu.project.project import open_project
from takifugu.server.access.tokens import make_token
from takifugu.server.access_rules import Role
from takifugu.server.state.server_state import open_state
from tests.cli.running import SOURCE

PATIENCE = 120  # seconds: a machine may be busy; only what hangs takes as long
SECTION = re.compile(r"\n\[server\]\n(?:(?!\[).*\n)*")


@dataclass(frozen=True)
class Answer:
    """What a server answered."""

    status: int
    headers: Mapping[str, str]  # by name in small letters; of several equal ones the last
    body: bytes
    cookies: tuple[str, ...] = ()

    def json(self) -> Any:
        """The body, as JSON."""
        return json.loads(self.body)


@dataclass(frozen=True)
class RunningServer:
    """A server process.

    Attributes:
        project: The project file.
        url: Its address, as it printed it.
        process: The process.
        output: What it wrote to stderr: its log.
        trust: For TLS: what its certificate is checked with.
    """

    project: Path
    url: str
    process: subprocess.Popen[str]
    output: IO[str] = field(repr=False)
    trust: ssl.SSLContext | None = None

    @property
    def port(self) -> int:
        """Its port."""
        port = urlsplit(self.url).port
        assert port is not None
        return port

    @property
    def host(self) -> str:
        """Its address alone."""
        host = urlsplit(self.url).hostname
        assert host is not None
        return host

    def connection(self) -> http.client.HTTPConnection:
        """A connection to it that is kept open."""
        if self.url.startswith("https:"):
            return http.client.HTTPSConnection(
                self.host, self.port, timeout=PATIENCE, context=self.trust
            )
        return http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)

    def ask(
        self,
        method: str,
        path: str,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | str | None = None,
        document: Any = None,
    ) -> Answer:
        """One request on a connection of its own."""
        sent = dict(headers or {})
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        if document is not None:
            body, sent["Content-Type"] = json.dumps(document), "application/json"
        connection = self.connection()
        try:
            connection.request(method, path, body=body, headers=sent)
            return read_answer(connection)
        finally:
            connection.close()

    def get(self, path: str, **how: Any) -> Answer:
        """GET."""
        return self.ask("GET", path, **how)

    def post(self, path: str, document: Any = None, **how: Any) -> Answer:
        """POST of a JSON document."""
        return self.ask("POST", path, document=document, **how)

    def put(self, path: str, document: Any = None, **how: Any) -> Answer:
        """PUT of a JSON document."""
        return self.ask("PUT", path, document=document, **how)

    def delete(self, path: str, **how: Any) -> Answer:
        """DELETE."""
        return self.ask("DELETE", path, **how)

    def token(self, role: Role, name: str = "") -> str:
        """A token of a role, for somebody of that name."""
        return new_token(self.project, role, name or f"the {role}")

    def log_text(self) -> str:
        """All that it has written to stderr."""
        return Path(self.output.name).read_text(encoding="utf-8")

    def log(self) -> list[dict[str, Any]]:
        """Its log: every line must be a JSON object."""
        whole = self.log_text().rpartition("\n")[0]  # the last one may be being written
        return [json.loads(line) for line in whole.splitlines()]

    def request_lines(self, answers: Sequence[Answer]) -> list[dict[str, Any]]:
        """The line of the log for each answer: it is written once the answer was sent."""
        numbers = [answer.headers["x-request-id"] for answer in answers]
        for _ in range(20 * PATIENCE):
            found = {line["request"]: line for line in self.log() if line["message"] == "request"}
            if set(numbers) <= set(found):
                return [found[number] for number in numbers]
            time.sleep(0.05)
        raise AssertionError(self.log_text())

    def send_signal(self, number: int) -> None:
        """Send a signal to the process."""
        self.process.send_signal(number)

    def wait(self) -> int:
        """The status that it ends with; a negative one is a signal."""
        return self.process.wait(timeout=PATIENCE)

    def stop(self) -> int:
        """Stop it in order; its status."""
        if self.process.poll() is None:
            self.send_signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """End it as a power cut would; workers of it end by themselves."""
        self.process.kill()
        self.wait()


def workers_of(process: int) -> list[int]:
    """The processes that a process has started and that have not ended."""
    workers = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):  # it has just ended
            state, parent = entry.read_text().rpartition(")")[2].split()[:2]
            if int(parent) == process and state != "Z":
                workers.append(int(entry.parent.name))
    return workers


def new_token(project: Path, role: Role, name: str) -> str:
    """A token for the server of a project, also while it runs."""
    opened = open_project(project)
    with open_state(opened) as state:
        return make_token(opened, state, name, role, None, by="a test").secret


def read_answer(connection: http.client.HTTPConnection) -> Answer:
    """The answer to the request that was sent on a connection."""
    response = connection.getresponse()
    pairs = response.getheaders()
    headers = {name.lower(): value for name, value in pairs}
    cookies = tuple(value for name, value in pairs if name.lower() == "set-cookie")
    return Answer(response.status, headers, response.read(), cookies)


def write_settings(project: Path, **settings: Any) -> None:
    """Let the section ``[server]`` of a project file hold these settings alone."""
    text = SECTION.sub("\n", project.read_text(encoding="utf-8"))
    lines = [f"{key} = {json.dumps(_plain(value))}\n" for key, value in settings.items()]
    project.write_text(f"{text.rstrip()}\n\n[server]\n{''.join(lines)}", encoding="utf-8")


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value if _is_plain(value) else str(value)


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float | list)


@contextmanager
def running_server(
    project: Path,
    *,
    trust: ssl.SSLContext | None = None,
    options: tuple[str, ...] = (),
    environment: Mapping[str, str] | None = None,
    **settings: Any,
) -> Iterator[RunningServer]:
    """A server of a project, from when it answers until the block is left.

    Args:
        project: The project file or its folder. Its ledger is in SQLite or in PostgreSQL.
        trust: For TLS: what the certificate is checked with.
        options: More options of ``takifugu serve``.
        environment: More variables of its environment.
        settings: Keys of ``[server]``, which are written to the project file; by default a free
            port of loopback, and patience: a request is not answered with a job because the
            machine is busy.
    """
    file = project / "takifugu.toml" if project.is_dir() else project
    write_settings(file, **({"port": 0, "wait": 5 * PATIENCE} | settings))
    with tempfile.NamedTemporaryFile("w", suffix=".log", encoding="utf-8") as output:
        command = (sys.executable, "-m", "takifugu", "serve", "--project", str(file), "--json")
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and code
            [*command, *options],
            stdout=subprocess.PIPE,
            stderr=output,
            text=True,
            env={**os.environ, "PYTHONPATH": SOURCE, **(environment or {})},
        )
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            if not line:
                process.wait(timeout=PATIENCE)
                said = Path(output.name).read_text(encoding="utf-8")
                raise AssertionError(f"status {process.returncode}: {said}")
            yield RunningServer(file, json.loads(line)["url"], process, output, trust)
        finally:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(timeout=PATIENCE)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
            process.stdout.close()
