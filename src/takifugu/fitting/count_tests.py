r"""Tests of whether counts come from a simpler law, and how much it would matter.

**Conditional independence.** Let N rows fall into cells (a, b, c). If c does not depend on a given
b, the likelihood ratio

.. math:: G^2 = 2\sum_{abc} n_{abc}
          \log\frac{n_{abc}\, n_{\cdot b\cdot}}{n_{ab\cdot}\, n_{\cdot bc}}

is about chi-square with :math:`\sum_b (A_b - 1)(C_b - 1)` degrees of freedom, where A_b and C_b are
how many values of a and of c were seen with b: values that were never seen count nothing. With a
the value before the last, b the last and c the next one, that is order one against order two
(Anderson & Goodman, 1957); with a the part of the days, it asks whether transitions stay the same.

With many rows every difference is significant. How much one matters is a number of its own:
:math:`(G^2 - \mathrm{df})/2N`, the nats that a tells about c beside b, less what chance alone would
show, as a share of how uncertain c is given b.
"""

from dataclasses import dataclass
from math import exp, log
from typing import Literal

import numpy as np

from takifugu._core.numeric import Floats, Integers

SMALL_EXPECTED = 5.0  # an expected count below this is small
MAX_SMALL_SHARE = 0.2  # a share of small cells from which the chi-square law is not to be relied on
REJECTED_P = 1e-3  # a p-value below this is no accident
UNUSUAL_P = 0.05  # and one below this is seldom one
MATERIAL_SHARE = 0.01  # a share of the uncertainty
MIN_LOG_P = -1e9  # a logarithm of a p-value


@dataclass(frozen=True, eq=False)
class CountTest:
    """A likelihood-ratio test of counts ``[a, b, c]``: does c depend on a, given b?

    Attributes:
        statistic: G².
        degrees: The degrees of freedom, on what was seen.
        log_p: The natural logarithm of the p-value.
        gain: What a tells about c beside b, in nats, less what chance alone would show; 0 or more.
        share: The gain as a share of the uncertainty of c given b; 0 if there is none.
        by_given: ``[b]``: the part of the gain that comes from each b, not less than 0.
        small: The share of cells, among those that could occur, that expect fewer than 5.
        total: How many were counted.
    """

    statistic: float
    degrees: int
    log_p: float
    gain: float
    share: float
    by_given: Floats
    small: float
    total: int

    @property
    def p(self) -> float:
        """The p-value; 0 where it is below what a float can hold."""
        return float(np.exp(self.log_p))

    @property
    def rejected(self) -> bool:
        """Whether the simpler law is no accident away from the counts."""
        return self.log_p < log(REJECTED_P)

    @property
    def matters(self) -> bool:
        """Whether it is rejected, and by so much that it matters."""
        return self.rejected and self.share >= MATERIAL_SHARE

    @property
    def reliable(self) -> bool:
        """Whether cells are large enough for the chi-square law."""
        return self.small <= MAX_SMALL_SHARE

    @property
    def p_words(self) -> str:
        """The p-value, as people write it."""
        return p_words(self.log_p)


def independence_given(counts: Integers) -> CountTest:
    """The test of ``counts[a, b, c]``."""
    n = np.asarray(counts, dtype=np.float64)
    with_a, with_c, given = n.sum(axis=2), n.sum(axis=0), n.sum(axis=(0, 2))  # [a,b] [b,c] [b]
    expected = with_a[:, :, None] * with_c[None] / np.maximum(given, 1.0)[None, :, None]
    ratio = np.divide(n, expected, out=np.ones_like(n), where=n > 0)
    by_given = 2 * np.sum(n * np.log(ratio), axis=(0, 2))
    degrees_of = np.maximum((with_a > 0).sum(axis=0) - 1, 0) * np.maximum(
        (with_c > 0).sum(axis=1) - 1, 0
    )
    statistic, degrees = max(float(by_given.sum()), 0.0), int(degrees_of.sum())
    total = float(n.sum())
    possible = (with_a[:, :, None] > 0) & (with_c[None] > 0) & (degrees_of > 0)[None, :, None]
    few = int(np.count_nonzero(possible & (expected < SMALL_EXPECTED)))
    gain = max(statistic - degrees, 0.0) / (2 * total) if total else 0.0
    uncertain = _uncertainty(with_c)
    return CountTest(
        statistic=statistic,
        degrees=degrees,
        log_p=log_tail(statistic, degrees),
        gain=gain,
        share=gain / uncertain if uncertain > 0 else 0.0,
        by_given=np.maximum(by_given - degrees_of, 0.0) / (2 * max(total, 1.0)),
        small=few / max(int(np.count_nonzero(possible)), 1),
        total=int(total),
    )


def _uncertainty(table: Floats) -> float:
    """The entropy, in nats, of the column given the row."""
    rows = table.sum(axis=1, keepdims=True)
    share = np.divide(table, rows, out=np.ones_like(table), where=table > 0)
    total = float(table.sum())
    return float(-np.sum(table * np.log(share))) / total if total else 0.0


def log_tail(statistic: float, degrees: int) -> float:
    """The logarithm of the chi-square tail: 0 without degrees of freedom, never −∞."""
    if degrees == 0:
        return 0.0
    from scipy.stats import chi2

    return max(float(chi2.logsf(statistic, degrees)), MIN_LOG_P)


def p_words(log_p: float) -> str:
    """A p-value as people write it, from its logarithm."""
    exponent = log_p / log(10)
    if exponent < -12:
        return "p < 1e-12" if exponent > -300 else "p < 1e-300"
    words = f"p = {exp(log_p):.2g}"
    if log(REJECTED_P) <= log_p < log(UNUSUAL_P):
        words += f", unusual for chance; below {REJECTED_P:g} it counts as not fitting"
    return words


def not_rejected(log_p: float) -> Literal["fits", "unclear"]:
    """What is said of a law that is not rejected: unclear, if its p-value is unusually small."""
    return "unclear" if log_p < log(UNUSUAL_P) else "fits"
