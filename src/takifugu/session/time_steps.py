"""Steps of time: how long protected rows were worked on, told to a step and no finer.

Counting and drawing are the only parts of a release whose time may depend on protected values. They
begin right after the charge. Nothing follows them, neither the record of the answer nor a failure,
before a whole number of steps has passed since then; and whatever follows depends on what is
recorded, which is released. So all that can be seen of a release from outside (its end, the place
of its answer in the ledger, when its process is free for others) says in which step it was ready.
With a step that is longer than counting and drawing ever take, that is always the first one.

Steps are counted from the charge rather than from the request: what is done before the charge takes
a time that varies, and would carry what is within a step across the step's edge now and then, from
which somebody who repeats a query could find out more.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from time import monotonic, sleep


def until_step(took: float, step: float) -> float:
    """Seconds until ``took`` has become 1, 2, … times ``step``; 0 without one.

    >>> until_step(0.12, 0.05), until_step(0.12, 0), until_step(0, 0.05)
    (0.03, 0.0, 0.05)
    """
    return max(0.0, round(max(ceil(took / step), 1) * step - took, 9)) if step > 0 else 0.0


@contextmanager
def whole_steps(step: float) -> Iterator[None]:
    """Leave the block, also by an error, only when a whole number of steps has passed."""
    began = monotonic()
    try:
        yield
    finally:
        sleep(until_step(monotonic() - began, step))
