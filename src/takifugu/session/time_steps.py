"""Steps of time: how long protected rows were worked on is told to a step and no finer.

See `takifugu.session.releases`. It stands by itself because a server that waits for a worker, too,
ends at a step, and the process that answers requests loads nothing of sessions.
"""

from math import ceil


def until_step(took: float, step: float) -> float:
    """Seconds until ``took`` has become 1, 2, … times ``step``; 0 without one.

    >>> until_step(0.12, 0.05), until_step(0.12, 0), until_step(0, 0.05)
    (0.03, 0.0, 0.05)
    """
    return max(0.0, round(max(ceil(took / step), 1) * step - took, 9)) if step > 0 else 0.0
