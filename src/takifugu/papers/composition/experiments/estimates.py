r"""Means over repetitions, with intervals that are valid also where nothing varies.

Every repetition draws fresh noise for every group, so there are N = repetitions × groups
independent draws; the mean of one repetition averages over its groups, and s is the standard
deviation of those means. Student's interval, :math:`t s/\sqrt R`, has width 0 when all of 200
repetitions are 100 % right, although a probability of 99.999 % explains that as well. So what a
single draw can move the mean by, u = spread/N, is put in as in Wilson's score interval (1927):

.. math:: h = \frac{t^2 u}{2} + t \sqrt{\frac{s^2}{R} + \frac{t^2 u^2}{4}}.

For shares of right answers the spread is 1 and this is mean ± h around Wilson's interval, on both
sides of it: with nothing wrong in N draws h is :math:`t^2/N`, a little more than the exact 3.7/N
(Clopper and Pearson, 1934). Where s is large it is Student's interval. For NDCG and the l1 error
the spread is the largest that was seen in one group, or the mildest mistake that a group can make
if that is more (`metrics.least_mistakes`): a sensible width, not a
proven one.

Several differences are judged together by intervals that are simultaneous: with n of them each has
the confidence 1 − 0.05/n (Bonferroni), so that whatever their dependence, all of them hold at once
with 95 % confidence. Only t grows, from 1.97 to 3.44 for 72 comparisons of 200 repetitions.
"""

import numpy as np

from takifugu._core.numeric import Floats
from takifugu.errors import Malformed
from takifugu.papers.composition.experiments.measurements import Difference, Estimate

CONFIDENCE = 0.95


def estimate(values: Floats, *, least: float) -> Estimate:
    """The mean of ``values[repetition, group]``, with its 95 % interval.

    ``least`` is by how much a group's value changes at the least when it changes; 0 if it cannot.
    """
    return interval(difference(values, least=least))


def difference(values: Floats, *, least: float) -> Difference:
    """The mean of ``values[repetition, group]``, with all that an interval needs."""
    if values.ndim != 2 or not values.size or not 0 <= least < np.inf or len(values) < 2:
        raise Malformed(
            "values",
            given=f"have shape {values.shape} and change by {least:g}",
            needed="be numbers [repetition, group], of 2 repetitions or more",
        )
    repetitions = len(values)
    means = values.mean(axis=1)
    spread = max(float(np.ptp(values, axis=0).max()), least)
    error = float(np.sqrt(means.var(ddof=1) / repetitions))
    return Difference(float(means.mean()), error, spread / values.size, repetitions)


def interval(found: Difference, *, together: int = 1) -> Estimate:
    """The 95 % interval of a difference; simultaneous for as many as are judged ``together``."""
    if together < 1:
        raise Malformed("together", given=f"is {together}", needed="be 1 or more")
    from scipy.special import stdtrit

    t = float(-stdtrit(found.repetitions - 1, (1 - CONFIDENCE) / (2 * together)))
    half = t * t * found.step / 2 + t * float(np.hypot(found.error, t * found.step / 2))
    return Estimate(found.mean, half)


def known(values: Floats) -> Estimate:
    """The mean of ``values[1, group]`` of a deterministic answer: an interval of width 0."""
    return Estimate(float(values.mean()), 0.0)
