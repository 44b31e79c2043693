"""A real server of a study with canaries, asked by bytes on sockets, and what it answers judged."""

import json
import os
import re
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

from tests.server.attacked import LEAKS
from tests.server.running import RunningServer, new_token, running_server
from torture.inputs.canary_study import CANARIES, STATE
from torture.inputs.case import Case, Outcome
from torture.inputs.judging import told
from torture.inputs.request_seeds import PEOPLE
from torture.inputs.running import GROWTH, IDLE, SECONDS, STARVED
from torture.inputs.server_records import ServerLog

SETTINGS: dict[str, Any] = {
    "rate": 1_000_000, "burst": 100_000, "time_step": 0.0, "wait": 3.0, "work_time": 100.0,
    "request_time": 0.5, "workers": 1,
}  # fmt: skip
LIMITED = ("ana", "wim", "")  # who must not even learn where things lie
DRIFT = 400  # requests after which memory may be compared: caches are full by then


@dataclass
class Target:
    """A server, and what is known of it.

    Attributes:
        server: The process.
        tokens: By name of their holders.
        seconds: How long an answer may take.
        growth: Bytes by which its memory may grow, workers included.
        charge: A release of it.
        job: A job of it.
        asked: How many requests it was sent.
        left: What is wrong with what it left, once it has ended.
    """

    server: RunningServer
    tokens: dict[str, str] = field(repr=False)
    seconds: float = SECONDS
    growth: int = GROWTH
    charge: str = "1"
    job: str = "none"
    asked: int = 0
    left: list[str] = field(default_factory=list)
    _log: ServerLog = field(default_factory=ServerLog)
    _usual: int = 0

    @property
    def ended(self) -> bool:
        """Whether the process has ended."""
        return self.server.process.poll() is not None

    def run(self, case: Case) -> Outcome:
        """Send a request, and judge what comes back, what is logged and how memory grew."""
        sent = self._filled(case.request)
        began = time.perf_counter()
        wrong: list[str] = []
        answer = b""
        try:
            answer = self._asked(sent)
        except TimeoutError:
            wrong.append(f"no answer within {self.seconds:g} s")
        except OSError as error:
            if not self.ended and "partial" not in case.words:
                wrong.append(f"the connection broke: {type(error).__name__}")
        seconds = time.perf_counter() - began
        self.asked += 1
        wrong += self._judged(case, sent, answer)
        wrong += self._logged()
        if self.ended:
            wrong.append(f"the server ended with status {self.server.process.returncode}")
        growth = self._grown()
        if growth > self.growth:
            wrong.append(f"memory grew by {growth >> 20} MiB")
        status, reached = _reached(answer)
        self._remember(status, answer)
        return Outcome(
            *(case.surface, 200 <= status < 400, reached, seconds, growth, case.size, tuple(wrong))
        )

    def _filled(self, request: bytes) -> bytes:
        marks = {f"@{name}@": token for name, token in self.tokens.items()}
        marks |= {"@host@": f"{self.server.host}:{self.server.port}"}
        marks |= {"@charge@": self.charge, "@job@": self.job}
        for mark, value in marks.items():
            request = request.replace(mark.encode(), value.encode())
        return request

    def _asked(self, sent: bytes) -> bytes:
        found = b""
        began, worked = time.monotonic(), self._work()
        where = self.server.host, self.server.port
        with socket.create_connection(where, self.seconds, (self._address(), 0)) as raw:
            with suppress(BrokenPipeError, ConnectionResetError):  # it may answer before the end
                raw.sendall(sent)
            raw.settimeout(min(1.0, self.seconds))
            while True:
                try:
                    part = raw.recv(65_536)
                except ConnectionResetError:
                    if found:
                        return found
                    raise
                except TimeoutError:
                    if is_whole(found, sent):  # a spoiled request may leave the connection open
                        return found
                    part = None
                if part == b"":
                    return found
                found += part or b""
                whole, work = time.monotonic() - began, self._work() - worked
                starved = IDLE * whole < work < self.seconds and whole < STARVED * self.seconds
                if whole > self.seconds and not starved:
                    raise TimeoutError

    def _work(self) -> float:
        """Seconds of the processor that it has had, workers included."""
        return sum(map(_worked, [self.server.process.pid, *_children(self.server.process.pid)]))

    def _address(self) -> str:
        """An address of loopback that was not used lately: failed sign-ins are counted by it."""
        number = 2 + self.asked % 60_000
        return f"127.0.{number >> 8}.{number & 255}"

    def _judged(self, case: Case, sent: bytes, answer: bytes) -> list[str]:
        status, _ = _reached(answer)
        found = []
        if not answer and "partial" not in case.words:
            found.append("no answer at all")
        if answer and not answer.startswith(b"HTTP/1.1 "):
            found.append(f"no answer of HTTP/1.1: {answer[:40]!r}")
        head, _, body = answer.partition(b"\r\n\r\n")
        if status >= 500:
            found.append(f"status {status}: {body[:200]!r}")
        of_api = case.route.partition(" ")[2].startswith("/api/")
        kinds = (b"application/problem+json", b"text/html")
        if status >= 400 and of_api and body and not any(kind in head.lower() for kind in kinds):
            found.append(f"status {status} without a problem document")
        if re.search(rb"(?im)^x-injected", head):
            found.append("a header was injected")
        found += [
            f"the canary {canary} is in the answer"
            for canary in CANARIES
            if canary.encode() in answer and canary.encode() not in sent
        ]
        found += [
            f"a token of {name} is in the answer"
            for name, token in self.tokens.items()
            if token[3:].encode() in answer
        ]
        if case.who in LIMITED and not case.route.startswith("GET /static"):
            found += [
                f"{leak!r} is told to {case.who or 'nobody'}"
                for leak in _leaks(answer, sent, may_name_engine=status < 400)
            ]
        if status >= 500 and (number := re.search(rb"(?im)^x-request-id: *(\w+)", head)):
            self._log.failed.add(number[1].decode())
        return found

    def _logged(self) -> list[str]:
        """What the log has that it must not have, since the last time."""
        text, found = self._log.read(Path(self.server.output.name))
        return found + [
            f"a token of {name} is in the log"
            for name, token in self.tokens.items()
            if token[3:] in text
        ]

    def written(self, before: Path, after: Path) -> list[str]:
        """What the server has written in its study that it must not have, and the log's end."""
        changed = list(changed_files(before, after))
        found = self._logged() + told(Case("server"), changed)
        return found + [
            f"a token of {name} is in {place}"
            for place, content in changed
            for name, token in self.tokens.items()
            if token[3:].encode() in content
        ]

    def _grown(self) -> int:
        """How much more memory it has had than after the first requests."""
        now = sum(map(_peak, [self.server.process.pid, *_children(self.server.process.pid)]))
        if self.asked <= DRIFT:
            self._usual = max(self._usual, now)
        return max(0, now - self._usual)

    def _remember(self, status: int, answer: bytes) -> None:
        if status in (201, 202):
            with suppress(ValueError, KeyError, TypeError):
                document = json.loads(answer.partition(b"\r\n\r\n")[2])
                if status == 202:
                    self.job = str(document["id"])
                elif "charge" in document:
                    self.charge = str(document["charge"])


def is_whole(answer: bytes, sent: bytes = b"") -> bool:
    """Whether an answer has come to its end, by what its head says; to HEAD it is only that."""
    head, end, body = answer.partition(b"\r\n\r\n")
    if sent.startswith(b"HEAD ") and end:
        return True
    length = re.search(rb"(?im)^content-length: *(\d+)", head)
    if length is not None:
        return len(body) >= int(length[1])
    return b"chunked" in head.lower() and body.endswith(b"0\r\n\r\n")


def _reached(answer: bytes) -> tuple[int, str]:
    """The status, and the kind and field of a problem."""
    try:
        status = int(answer[9:12])
    except ValueError:
        return 0, "none"
    if status < 400:
        return status, str(status)
    kind = re.search(rb'"urn:takifugu:problem:([\w-]+)"', answer)
    field_of = re.search(rb'"field": ?"([^"]{0,40})', answer)
    parts = [
        str(status),
        *(found[1].decode("utf-8", "replace") for found in (kind, field_of) if found),
    ]
    return status, " ".join(parts)


def _leaks(answer: bytes, sent: bytes, *, may_name_engine: bool) -> list[str]:
    """Words that must not be in an answer, each once, unless they came with the request."""
    found = dict.fromkeys(leak[0] for leak in LEAKS.finditer(answer.decode("latin-1")))
    given = sent + b"\n" + unquote_to_bytes(sent)
    return [
        leak
        for leak in found
        if leak.encode("latin-1") not in given
        and not (may_name_engine and leak == "duckdb")  # what drew an answer
    ]


def changed_files(before: Path, after: Path) -> Iterator[tuple[str, bytes]]:
    """The files of a folder that are new or another than those of the folder it came from."""
    for path in sorted(after.rglob("*")):
        name = path.relative_to(after)
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            earlier = before / name
            if not earlier.is_file() or earlier.read_bytes() != content:
                yield f"the file {name}", content
            if not os.path.lexists(earlier):
                yield f"the name of the file {name}", str(name).encode("utf-8", "surrogateescape")


def _peak(process: int) -> int:
    with suppress(OSError), open(f"/proc/{process}/status") as file:
        for line in file:
            if line.startswith("VmHWM"):
                return int(line.split()[1]) << 10
    return 0


def _worked(process: int) -> float:
    with suppress(OSError, IndexError), open(f"/proc/{process}/stat") as file:
        words = file.read().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _children(process: int) -> list[int]:
    with suppress(OSError), open(f"/proc/{process}/task/{process}/children") as file:
        return [int(word) for word in file.read().split()]
    return []


@contextmanager
def target(study: Path, scratch: Path) -> Iterator[Target]:
    """A server of a copy of the study, with a token for everybody."""
    place = scratch / f"served-{os.getpid()}-{time.monotonic_ns():x}"
    folder = place / "study"
    shutil.copytree(study, folder)
    before = os.environ.get("XDG_STATE_HOME")
    os.environ["XDG_STATE_HOME"] = str(folder / STATE)
    try:
        file = folder / "takifugu.toml"
        tokens = {name: new_token(file, role, name) for name, role in PEOPLE.items()}  # type: ignore[arg-type]
        with running_server(file, **SETTINGS) as server:
            found = Target(server, tokens)
            try:
                yield found
            finally:
                server.stop()
                found.left += found.written(study, folder)
    finally:
        if before is not None:
            os.environ["XDG_STATE_HOME"] = before
        shutil.rmtree(place, ignore_errors=True)
