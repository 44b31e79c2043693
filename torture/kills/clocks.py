"""Clocks that jump: by years, back and forth, between two events and between two processes.

The order of events and what is spent never depend on the time. The clock is that which the ledger
is given; the one of the machine is left alone, which others need.
"""

import os
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from takifugu.ledger import Ledger, open_ledger

FIRST, LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)


def jumping(*given: Any, **options: Any) -> Ledger:
    """Open a ledger whose clock stands still, runs backwards, or shows anything at all."""
    rng = np.random.default_rng(int.from_bytes(os.urandom(8), "big"))
    kind = str(rng.choice(["still", "back", "anything"]))
    now = datetime.now(UTC) + timedelta(days=float(rng.uniform(-18_000, 18_000)))

    def clock() -> datetime:
        nonlocal now
        if kind == "back":
            now -= timedelta(seconds=float(rng.uniform(0, 1e6)))
        elif kind == "anything":
            now = FIRST + (LAST - FIRST) * float(rng.random())
        return max(now, FIRST)

    return open_ledger(*given, **options, clock=clock)
