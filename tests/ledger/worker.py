"""Other processes for the tests and benchmarks: `python -m tests.ledger.worker MODE URL …`.

charge URL EPSILON COUNT   charge that often; print each acknowledged key, or "refused"
count URL EPSILON COUNT    the same with the cost of a count, by a translation that knows values
crash URL EPSILON KILLS N SEED  charge in N processes at a time, killing each at a random moment
full URL EPSILON BYTES     charge until no file may grow beyond BYTES; print keys and the error
resume URL EPSILON KEY WHERE  charge under KEY, to be resumed, draw, record; print what is stored.
                           WHERE: "charged" or "drawn", killed there; "ready", wait for a line first
again URL EPSILON KILLS N SEED KEYS  resume KEYS charges over and over in N processes at a time,
                           killing each at a random moment; print every key with what was seen
"""

import itertools
import os
import random
import resource
import secrets
import select
import signal
import sys
import time
from collections.abc import Callable

from takifugu.errors import BudgetExceeded, TakifuguError
from takifugu.ledger import open_ledger
from tests.ledger.charges import DOUBLING, KNOWN, charge, count


def charges(url: str, epsilon: str, count: int, out: int) -> None:
    """Charge; acknowledge on the file descriptor ``out``."""
    with open_ledger(url, wait=60, create=False) as ledger:
        for _ in range(count):
            planned = charge(epsilon, analyst=str(os.getpid()))
            try:
                ledger.charge(planned, DOUBLING)
                os.write(out, f"{planned.key}\n".encode())
            except BudgetExceeded:
                os.write(out, b"refused\n")


def counts(url: str, epsilon: str, times: int) -> None:
    """Charge counts of one place; acknowledge each."""
    with open_ledger(url, wait=60, create=False) as ledger:
        for _ in range(times):
            planned = charge(count(epsilon, "home"), translation="places")
            try:
                ledger.charge(planned, KNOWN)
                sys.stdout.write(f"{planned.key}\n")
            except BudgetExceeded:
                sys.stdout.write("refused\n")


def crash(work: Callable[[int], None], kills: int, at_once: int, seed: int) -> None:
    """Fork, let it work, kill -9, and pass on what it acknowledged before."""
    rng = random.Random(seed)  # noqa: S311 - when to kill
    living: dict[int, tuple[int, float]] = {}
    started = 0
    while living or started < kills:
        while len(living) < at_once and started < kills:
            ours, theirs = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(ours)
                work(theirs)
                os._exit(1)
            os.close(theirs)
            started += 1
            if rng.random() < 0.8:  # the others die while they open the ledger, or soon after
                select.select([ours], [], [], 20)
            living[child] = (ours, time.monotonic() + rng.uniform(0, 0.04))
        child = min(living, key=lambda pid: living[pid][1])
        ours, due = living.pop(child)
        time.sleep(max(0.0, due - time.monotonic()))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with os.fdopen(ours) as acknowledged:
            sys.stdout.write(acknowledged.read())


def attempts(url: str, epsilon: str, keys: int, out: int, times: int | None = None) -> None:
    """Resume charges one after another; acknowledge what is stored on ``out``."""
    with open_ledger(url, wait=60, create=False) as ledger:
        for turn in itertools.count() if times is None else range(times):
            for number in random.sample(range(keys), keys):
                key = f"{number}.{turn // 3}"  # each a few times, then new ones
                wanted = charge(epsilon, key=key)
                receipt = ledger.charge(wanted, DOUBLING, resume=True)
                if receipt.may_release:
                    value = ledger.record_answer(receipt, secrets.randbelow(2**40)).value
                else:
                    earlier = ledger.earlier(wanted)
                    assert earlier is not None and earlier.answer is not None
                    value = earlier.answer.value
                os.write(out, f"{key} {value}\n".encode())


def full(url: str, epsilon: str, size: int) -> None:
    """Run out of room."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    try:
        charges(url, epsilon, 10**6, sys.stdout.fileno())
    except TakifuguError as error:
        print(f"{type(error).__name__}: {error}", flush=True)  # noqa: T201


def resume(url: str, epsilon: str, key: str, where: str) -> None:
    """One attempt at a release that may be tried again."""
    with open_ledger(url, wait=60, create=False) as ledger:
        wanted = charge(epsilon, key=key)
        if where == "ready":
            sys.stdout.write("ready\n")
            sys.stdout.flush()
            sys.stdin.readline()
        receipt = ledger.charge(wanted, DOUBLING, resume=True)
        if where == "charged":
            os.kill(os.getpid(), signal.SIGKILL)
        if receipt.may_release:
            drawn = secrets.randbelow(2**40)  # stands for noise
            if where == "drawn":
                os.kill(os.getpid(), signal.SIGKILL)
            stored = ledger.record_answer(receipt, drawn)
        else:
            earlier = ledger.earlier(wanted)
            assert earlier is not None and earlier.answer is not None
            stored = earlier.answer
        sys.stdout.write(f"{stored.value}\n")


if __name__ == "__main__":
    mode, address, amount, *numbers = sys.argv[1:]
    if mode == "charge":
        charges(address, amount, int(numbers[0]), sys.stdout.fileno())
    elif mode == "count":
        counts(address, amount, int(numbers[0]))
    elif mode == "crash":
        crash(lambda out: charges(address, amount, 10**6, out), *map(int, numbers))
    elif mode == "again":
        *how, keys = map(int, numbers)
        crash(lambda out: attempts(address, amount, keys, out), *how)
        attempts(address, amount, keys, sys.stdout.fileno(), 3)
    elif mode == "resume":
        resume(address, amount, *numbers)
    else:
        full(address, amount, int(numbers[0]))
