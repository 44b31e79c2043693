"""One hostile input at a time, with a fault planted in the command line or the server."""

import os
import socketserver
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from torture.inputs.case import Case, Outcome
from torture.inputs.children import run_cases
from torture.inputs.running import Runner
from torture.inputs.serving import Target

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
Main = Callable[[], None]


def outcome(scratch: Path, case: Case, main: Main | None = None, **how: float) -> Outcome:
    """What becomes of one case, with another command line if one is planted."""
    given = {} if main is None else {"main": main}
    make = partial(Runner, **given, **how)  # type: ignore[arg-type]
    (ran,) = run_cases([(0, case)], scratch / "template", scratch, make)
    return ran.outcome


def said(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    raise SystemExit(0)


class Answers(socketserver.BaseRequestHandler):
    """Answers whatever it is asked with the same bytes."""

    def handle(self) -> None:
        """One connection."""
        self.request.recv(65_536)
        answer = self.server.answer  # type: ignore[attr-defined]
        if answer is None:
            self.server.stop.wait(5)  # type: ignore[attr-defined]
        else:
            self.request.sendall(answer)


@contextmanager
def answering(answer: bytes | None, log: Path) -> Iterator[Target]:
    """A server with a fault."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Answers) as server:
        server.answer, server.stop = answer, threading.Event()  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        process = SimpleNamespace(pid=os.getpid(), poll=lambda: None, returncode=None)
        host, port = "127.0.0.1", server.server_address[1]
        output = SimpleNamespace(name=str(log))
        fake = SimpleNamespace(host=host, port=port, process=process, output=output)
        try:
            yield Target(fake, {"ana": "tf_secretsecret"}, seconds=0.3)  # type: ignore[arg-type]
        finally:
            server.stop.set()  # type: ignore[attr-defined]
            server.shutdown()
            thread.join()
