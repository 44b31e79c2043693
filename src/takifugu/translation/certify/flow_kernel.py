"""What flows prove, compiled: the inner loop of `takifugu.translation.certify.flow.bound`."""

import math

import numpy as np
from numpy.typing import NDArray

from takifugu._core.compiled import compiled
from takifugu._core.numeric import Booleans, Floats
from takifugu._core.rounding import UNIT


@compiled
def evaluate(
    numerator: Floats,
    denominator: Floats,
    gain: Floats,
    crossed: bool,
    begin: int,
    end: int,
    parents: NDArray[np.int16],
    leaves: Booleans,
    masses: Floats,
    values: Floats,
) -> None:
    """What the flows prove: values[x, y] ≥ log max_u [p + arriving − leaving] / q, rounded up.

    p and q hold 0 or normal floats far from underflow. The gains are at least 1, so that no
    product is less exact than the mass in it. A flow that is no number, or that leads nowhere,
    proves nothing; a negative one is none. Unless ``crossed`` a row has no loss against itself.
    """
    n, m = numerator.shape
    error = 2 * (m + 8) * UNIT
    arriving = np.empty(m)
    leaving = np.empty(m)
    for x in range(begin, end):
        for y in range(n):
            if x == y and not crossed:
                values[x, y] = 0.0
                continue
            valid = True
            for v in range(m):
                arriving[v] = numerator[x, v]
                leaving[v] = 0.0
            for v in range(m):
                mass = masses[x, y, v]
                if mass > 0:
                    above = parents[x, y, v]
                    if not 0 <= above < m:
                        valid = False
                        break
                    source, sink = (v, above) if leaves[x, y, v] else (above, v)
                    leaving[source] += mass
                    arriving[sink] += mass * gain[source, sink]
            worst = 1.0 if valid else np.inf
            for v in range(m):
                remaining = arriving[v] * (1 + error) - leaving[v] * (1 - error)
                if math.isnan(remaining):
                    worst = np.inf
                elif remaining > 0:
                    room = denominator[y, v]
                    worst = max(worst, remaining / room if room > 0 else np.inf)
            values[x, y] = math.log(worst) * (1 + 8 * UNIT) + 8 * UNIT
