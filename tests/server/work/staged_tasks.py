"""Tasks that tests give to real workers: they wait, speak, fail or die when they are told to."""

import os
import signal
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

from takifugu.errors import UnsoundRequest
from takifugu.server.work.tasks import Task, task
from takifugu.server.work.worker_host import WorkerHost


@task("wait")
def wait(_: WorkerHost, asked: Task) -> int:
    """Make the file ``begun``, then wait until the file ``until`` is there."""
    Path(asked.options["begun"]).touch()
    while not Path(asked.options["until"]).exists():
        time.sleep(0.005)
    return os.getpid()


@task("plan for ever")
def plan_for_ever(host: WorkerHost, _: Task) -> None:
    """Compute, as a plan that never ends."""
    with host.planning():
        while True:
            pass


@task("who")
def who(_: WorkerHost, __: Task) -> dict[str, Any]:
    """The process that it runs in, and what that has to do with others."""
    ignored = [signal.getsignal(one) is signal.SIG_IGN for one in (signal.SIGINT, signal.SIGTERM)]
    return {
        "process": os.getpid(),
        "group": os.getpgid(0),
        "session": os.getsid(0),
        "parent": os.getppid(),
        "ignored": ignored,
        "handles": sorted(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else [],
    }


@task("say")
def say(host: WorkerHost, asked: Task) -> bytes:
    """Tell each of ``lines``, and return bytes."""
    for line in asked.options["lines"]:
        host.say(line)
    return b"said"


@task("die")
def die(_: WorkerHost, asked: Task) -> None:
    """End the process in the middle of the task."""
    if "unless" in asked.options and Path(asked.options["unless"]).exists():
        return
    if "unless" in asked.options:
        Path(asked.options["unless"]).touch()
    os.kill(os.getpid(), signal.SIGKILL)


@task("fail")
def fail(_: WorkerHost, asked: Task) -> None:
    """Fail with a message that takifugu did not write, or with one that it did."""
    if asked.options.get("own"):
        raise UnsoundRequest("ask for less", field="epsilon", reason="too-much")
    raise ValueError("Annabel has a value")


@task("print")
def print_and_warn(_: WorkerHost, __: Task) -> None:
    """Print as Python and as native libraries do, and warn in words that are not takifugu's own."""
    sys.stdout.write("Annabel has a value\n")
    sys.stdout.flush()
    os.write(2, b"Annabel, row 17\n")
    warnings.warn("Annabel has a value", RuntimeWarning, stacklevel=1)


@task("lose a thread")
def lose_a_thread(_: WorkerHost, __: Task) -> None:
    """Have a thread end with an error that nobody catches."""

    def broken() -> None:
        raise ValueError("Annabel has a value")

    thread = threading.Thread(target=broken)
    thread.start()
    thread.join()


@task("odd")
def odd(_: WorkerHost, __: Task) -> Any:
    """Return what no message may hold."""
    return Path()
