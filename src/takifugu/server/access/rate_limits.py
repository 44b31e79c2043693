"""How often a token may call, and how often an address may fail to sign in.

Token buckets in the memory of one process, on a clock that is never set back. A token cannot be
guessed however often one tries; the limit of failures keeps logs and the database from being filled
by whoever tries.
"""

import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from threading import Lock

FAILURES, FAILURES_A_MINUTE = 10, 2  # of one address: at once, and from then on
MAX_BUCKETS = 10_000  # buckets of a kind; those that were used longest ago are forgotten


class Buckets:
    """One bucket for each name: ``burst`` calls at once, then ``rate`` a minute."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float]) -> None:
        self._rate, self._burst, self._clock = rate / 60, float(max(1, burst)), clock
        self._kept: OrderedDict[str, tuple[float, float]] = OrderedDict()  # what is left, and when
        self._lock = Lock()

    def take(self, name: str) -> float:
        """Take one call out; 0, or how many seconds too soon it is (then nothing is taken)."""
        with self._lock:
            left, now = self._left(name)
            if left >= 1:
                self._keep(name, left - 1, now)
                return 0.0
            self._keep(name, left, now)
            return self._until_one(left)

    def wait(self, name: str) -> float:
        """How many seconds until a call can be taken; nothing is taken."""
        with self._lock:
            left, _ = self._left(name)
            return 0.0 if left >= 1 else self._until_one(left)

    def _left(self, name: str) -> tuple[float, float]:
        now = self._clock()
        left, then = self._kept.get(name, (self._burst, now))
        return min(self._burst, left + (now - then) * self._rate), now

    def _until_one(self, left: float) -> float:
        return (1 - left) / self._rate if self._rate > 0 else 60.0

    def _keep(self, name: str, left: float, now: float) -> None:
        self._kept[name] = (left, now)
        self._kept.move_to_end(name)
        while len(self._kept) > MAX_BUCKETS:
            self._kept.popitem(last=False)


class AtOnce:
    """How many calls of one name run at the same time: streams may last for hours."""

    def __init__(self, most: int) -> None:
        self._most, self._running = max(1, most), Counter[str]()
        self._lock = Lock()

    def begin(self, name: str) -> bool:
        """Whether one more may run; then `end` must be called when it has ended."""
        with self._lock:
            if self._running[name] >= self._most:
                return False
            self._running[name] += 1
            return True

    def running(self, name: str) -> int:
        """How many run."""
        with self._lock:
            return self._running[name]

    def end(self, name: str) -> None:
        """A call has ended."""
        with self._lock:
            self._running[name] -= 1
            if self._running[name] <= 0:
                del self._running[name]


@dataclass(frozen=True)
class Limiter:
    """The limits of a server.

    Attributes:
        tokens: Calls by token.
        at_once: Calls by token that run at the same time.
        failures: Failed sign-ins by address.
    """

    tokens: Buckets
    at_once: AtOnce
    failures: Buckets

    @classmethod
    def from_rate(
        cls, rate: float, burst: int, *, clock: Callable[[], float] = time.monotonic
    ) -> "Limiter":
        """Limits of ``rate`` calls a minute by token, ``burst`` of them at once."""
        return cls(
            Buckets(rate, burst, clock), AtOnce(burst), Buckets(FAILURES_A_MINUTE, FAILURES, clock)
        )


def neighbourhood(address: str | None) -> str:
    """What counts as one address: of IPv6 the network that one household is given."""
    if not address:
        return "unknown"
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address[:100]
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return f"{parsed.exploded[:19]}::/64"
    return str(parsed)
