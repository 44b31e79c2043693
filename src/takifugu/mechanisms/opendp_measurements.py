r"""OpenDP at its edge: measurements built, losses read from their own maps, noise drawn.

All noise that protects data is drawn by OpenDP's samplers, which are exact and take no seed. A
measurement does not pickle and costs a little to build, so each process keeps those it used. One
measurement can be called any number of times; what it costs is counted by whoever calls it.

Choices with exact probabilities, drawn with the same amount of work whatever the data are.

How long a draw takes must not tell what it was drawn from. OpenDP's own selection tries one
candidate after another and stops at the first that it accepts, so that its time depends on the
scores. Here the samplers of OpenDP are never given the data: they draw noise, or random bits, whose
number depends on the number of candidates alone, and the data are compared with what was drawn.

A choice by weights reads `FIRST_BYTES` random bytes, which suffice but for a probability of less
than :math:`10^{-8}` (of :math:`10^{-30}` for whole weights); only then it draws more.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from functools import cache, lru_cache
from itertools import accumulate
from typing import Any

import numpy as np

from takifugu._core.numeric import Booleans
from takifugu.costs.losses import Approximate, Concentrated, Loss, Pure
from takifugu.errors import UnsoundRequest

MAX_CACHED_MEASUREMENTS = 512  # measurements kept per process and kind

# How far apart two tables are that differ in one replaced entry: for whoever counts rows that are
# added or removed, one is taken out and one put in.
REPLACED_ENTRY = {
    "SymmetricDistance": 2,
    "InsertDeleteDistance": 2,
    "ChangeOneDistance": 1,
    "HammingDistance": 1,
    "DiscreteDistance": 1,
}
SENSITIVITY_METRICS = ("AbsoluteDistance", "L1Distance", "L2Distance", "LInfDistance")


@cache
def _ready() -> None:
    from opendp.mod import enable_features

    enable_features("contrib")


def _attempt(action: Callable[[], Any], doing: str) -> Any:
    """Run ``action``; an error of OpenDP becomes one line of ours."""
    from opendp.mod import OpenDPException, UnknownTypeException

    try:
        return action()
    except (OpenDPException, UnknownTypeException, TypeError, ValueError, OverflowError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UnsoundRequest(f"OpenDP refused {doing}: {reason[:200]}", reason="opendp") from error


@lru_cache(MAX_CACHED_MEASUREMENTS)
def laplace(scale: float) -> Any:
    """Integer Laplace noise on every number of a list; distance in L1."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance

    _ready()
    space = vector_domain(atom_domain(T="i64")), l1_distance(T="i64")
    return _attempt(lambda: make_laplace(*space, scale=scale), "this Laplace noise")


@lru_cache(MAX_CACHED_MEASUREMENTS)
def gaussian(scale: float) -> Any:
    """Integer Gaussian noise on every number of a list; distance in L2."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance

    _ready()
    space = vector_domain(atom_domain(T="i64")), l2_distance(T="f64")
    return _attempt(lambda: make_gaussian(*space, scale=scale), "this Gaussian noise")


@lru_cache(MAX_CACHED_MEASUREMENTS)
def noisy_top(k: int, scale: float, *, concentrated: bool) -> Any:
    """The indices of k high scores, best first; distance in L∞. Its map prices our own draws.

    OpenDP peels: k rounds, each over what is left. Under pure DP a round is permute-and-flip,
    under concentrated DP it is the exponential mechanism (it flips *with* replacement, which is
    rejection sampling from weights exp(score / scale)). Either stops at the first candidate that
    it accepts, so that its time tells of the scores: `exact_choice` draws the same laws.
    """
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_noisy_top_k
    from opendp.measures import max_divergence, zero_concentrated_divergence
    from opendp.metrics import linf_distance

    _ready()
    measure = zero_concentrated_divergence() if concentrated else max_divergence()
    space = vector_domain(atom_domain(T="i64")), linf_distance(T="i64")
    return _attempt(
        lambda: make_noisy_top_k(*space, measure, k=k, scale=scale), "this noisy selection"
    )


@lru_cache(MAX_CACHED_MEASUREMENTS)
def randomised_response(categories: int, truth: float) -> Any:
    """The category itself with probability ``truth``, else one of the others, all alike."""
    from opendp.measurements import make_randomized_response

    _ready()
    codes = list(range(categories))
    return _attempt(
        lambda: make_randomized_response(codes, truth, T="i64"), "this randomised response"
    )


@cache
def _fair_bits() -> Any:
    """Each bit replaced by a fair coin; it forgets its input, and its loss is 0."""
    from opendp.domains import bitvector_domain
    from opendp.measurements import make_randomized_response_bitvec
    from opendp.metrics import discrete_distance

    _ready()
    domain = bitvector_domain(max_weight=1)
    return make_randomized_response_bitvec(domain, discrete_distance(), f=1.0)


@lru_cache(MAX_CACHED_MEASUREMENTS)
def threshold(scale: float, least: int) -> Any:
    """Integer Laplace noise on counts by key; keys whose noisy count is low are left out."""
    from opendp.domains import atom_domain, map_domain
    from opendp.measurements import make_laplace_threshold
    from opendp.metrics import absolute_distance, l01inf_distance

    _ready()
    domain = map_domain(atom_domain(T="String"), atom_domain(T="i64"))
    metric = l01inf_distance(absolute_distance(T="i64"))
    return _attempt(
        lambda: make_laplace_threshold(domain, metric, scale=scale, threshold=least),
        "this thresholded histogram",
    )


def release(measurement: Any, values: Any) -> Any:
    """One draw. OpenDP's reason for a refusal is dropped: it may repeat what it was given."""
    from opendp.mod import OpenDPException

    try:
        return measurement(values)
    except (OpenDPException, TypeError, ValueError, OverflowError) as error:
        kind = type(error).__name__
    raise UnsoundRequest(
        f"OpenDP refused to release ({kind}); the values do not fit the measurement's input domain",
        field="values",
        reason="opendp",
    )


def loss_of(measurement: Any, d_in: Any, *, delta: float | None = None) -> Loss:
    """What OpenDP's own map proves for inputs at distance ``d_in``, as an exact rational.

    OpenDP rounds its maps up. A privacy profile needs a ``delta`` to be read at; a measure that is
    none of ours is refused, and so is a ``d_in`` that cannot be the distance of a replaced entry.
    """
    _ready()
    measure = str(measurement.output_measure.type)
    if "L01Inf" in str(measurement.input_metric):
        raise UnsoundRequest(
            "OpenDP 0.16 understates the delta of its thresholded histograms;"
            " use takifugu's ThresholdedHistogram, which corrects it",
            field="measurement",
            reason="understated",
        )
    proven = _attempt(lambda: measurement.map(d_in), f"distance {d_in!r}")
    _check_distance(measurement.input_metric, d_in)
    match measure:
        case "MaxDivergence":
            return Pure(proven)
        case "ZeroConcentratedDivergence":
            if delta is None:
                return Concentrated(proven)
            return approximate(measurement, d_in, delta)
        case "Approximate<MaxDivergence>":
            return Approximate(*proven)
        case "SmoothedMaxDivergence":
            if delta is None:
                raise UnsoundRequest(
                    "this measurement proves a privacy profile; give `delta`, at which to read it",
                    field="delta",
                )
            return Approximate(_attempt(lambda: proven.epsilon(delta), f"delta {delta}"), delta)
    raise UnsoundRequest(
        f"a loss in {measure} is not one takifugu can add up; convert the measurement to"
        " MaxDivergence, ZeroConcentratedDivergence or Approximate<MaxDivergence> first",
        field="measurement",
        reason="measure",
    )


def _check_distance(metric: Any, d_in: Any) -> None:
    """Refuse a ``d_in`` below the distance between tables that differ in one replaced entry.

    Between tables the metric says what that distance is. Between numbers it is the sensitivity of
    what was computed, which only the caller knows. A *monotonic* distance between scores is
    refused: a replaced entry lowers one score and raises another.
    """
    name = str(metric.type).split("<")[0].split("::")[-1]
    if name in REPLACED_ENTRY:
        least = REPLACED_ENTRY[name]
        if not d_in >= least:
            raise UnsoundRequest(
                f"a replaced entry is at distance {least} under {name}, not {d_in!r};"
                f" give d_in = {least}, or more if an entry stands in several rows",
                field="d_in",
                given=d_in,
            )
        return
    if name not in SENSITIVITY_METRICS or "monotonic" in str(metric):
        raise UnsoundRequest(
            f"how far a replaced entry moves the input is not known under {metric!s:.80}; build the"
            f" measurement with one of {', '.join((*REPLACED_ENTRY, *SENSITIVITY_METRICS))}"
            " (LInfDistance without `monotonic`)",
            field="measurement",
            reason="metric",
        )
    if not d_in > 0:
        raise UnsoundRequest(
            f"d_in is {d_in!r}; it must be above 0: how far a replaced entry moves the input",
            field="d_in",
            given=d_in,
        )


def pure(measurement: Any, d_in: Any) -> Pure:
    """The loss of a measurement that is known to be pure."""
    return Pure(_attempt(lambda: measurement.map(d_in), f"distance {d_in!r}"))


def concentrated(measurement: Any, d_in: Any) -> Concentrated:
    """The loss of a measurement that is known to be concentrated."""
    return Concentrated(_attempt(lambda: measurement.map(d_in), f"distance {d_in!r}"))


def approximate_pair(measurement: Any, d_in: Any) -> Approximate:
    """The loss of a measurement whose map is a pair (ε, δ)."""
    return Approximate(*_attempt(lambda: measurement.map(d_in), f"distance {d_in!r}"))


def approximate(measurement: Any, d_in: Any, delta: float) -> Approximate:
    """A concentrated loss read as (ε, δ) by OpenDP's conversion."""
    from opendp.combinators import make_fix_delta, make_zCDP_to_approxDP

    _ready()
    fixed = _attempt(
        lambda: make_fix_delta(make_zCDP_to_approxDP(measurement), delta), f"delta {delta}"
    )
    return Approximate(*_attempt(lambda: fixed.map(d_in), f"distance {d_in!r}"))


def fair_bytes(count: int) -> bytes:
    """Random bytes: randomised response on zeros whose every bit is a fair coin."""
    return bytes(release(_fair_bits(), bytes(count)))


FIRST_BYTES = 16  # of a random number in [0, 1): drawn at once, whatever the weights are
FIRST_DIGITS = 60  # of weights that float could not tell apart

Bytes = Callable[[int], bytes]
Gaps = np.ndarray[tuple[int], np.dtype[np.uint64]]  # how far each score is below the best


def flip_coins(gaps: Gaps, scale: float) -> Booleans:
    r"""``[candidate]``: whether each coin falls on heads, with probability exp(−gap/scale) exactly.

    One draw of integer Laplace noise Z for each candidate. With :math:`r = e^{-1/scale}` the law
    of Z is :math:`(1-r)/(1+r)\, r^{|z|}`, and G = Z for Z ≥ 0, −Z − 1 for Z < 0 has
    :math:`P(G = g) = (1-r)/(1+r)\,(r^g + r^{g+1}) = (1-r)\,r^g`. So :math:`P(G \ge g) = r^g`.
    """
    drawn = release(laplace(scale), [0] * len(gaps))
    noise = np.array(drawn, dtype=np.int64)
    return np.asarray(np.where(noise < 0, -(noise + 1), noise).astype(np.uint64) >= gaps)


def pick(weights: Sequence[int], draw: Bytes = fair_bytes) -> int:
    """An index, drawn with probability exactly weight / sum, by whole numbers alone.

    A uniform real is revealed until every real that it may still be falls on the same index.
    """
    ends = list(accumulate(weights))
    total, low, parts = ends[-1], 0, 1
    while True:
        low, parts = _revealed(low, parts, draw)
        first = bisect_right(ends, low * total // parts)
        last = bisect_right(ends, ((low + 1) * total - 1) // parts)
        if first == last:
            return first


def pick_by_gap(
    gaps: Gaps,
    scale: float,
    draw: Bytes = fair_bytes,
) -> int:
    r"""An index, drawn with probability exactly proportional to exp(−gap/scale); one gap is 0.

    A uniform real is compared with the sums of the weights, first in floats. A weight is at most
    1, so that it is off by a few units in the last place of 1, and the total is 1 or more: the
    sums are off by at most 8 units for each candidate, in parts of the total. If the real is
    closer to a sum than that, more of its digits are drawn and the weights are computed with more
    digits, until it lies between two sums for certain.
    """
    low, parts = _revealed(0, 1, draw)
    number = np.longdouble
    with np.errstate(over="ignore", under="ignore"):
        ends = np.cumsum(np.exp(-(gaps.astype(number) / number(scale))))
    at = ends[-1] * (number(low >> 64) / number(2**64))
    near = 8 * (len(gaps) + 8) * np.finfo(number).eps * ends[-1]
    first, last = np.searchsorted(ends[:-1], [at - near, at + near], side="right").tolist()
    if first == last:
        return int(first)
    return _picked_with_digits(gaps.tolist(), scale, low, parts, draw)


def _picked_with_digits(
    gaps: Sequence[int], scale: float, low: int, parts: int, draw: Bytes
) -> int:
    """`pick_by_gap` from what is revealed of the real, in decimals: exp is correctly rounded."""
    digits = FIRST_DIGITS
    while True:
        low, parts = _revealed(low, parts, draw)
        with localcontext(prec=digits):
            weights = {gap: (-Decimal(gap) / Decimal(scale)).exp() for gap in set(gaps)}
            ends = list(accumulate(weights[gap] for gap in gaps))
            near = ends[-1] * (len(gaps) * Decimal(10) ** (3 - digits) + 2 / Decimal(parts))
            at = ends[-1] * low / parts
            first = bisect_right(ends[:-1], at - near)
            if first == bisect_right(ends[:-1], at + near):
                return first
        digits *= 2


def _revealed(low: int, parts: int, draw: Bytes) -> tuple[int, int]:
    """More of a uniform real, which is known to lie in [low/parts, (low + 1)/parts)."""
    more = draw(FIRST_BYTES)
    return low << 8 * len(more) | int.from_bytes(more), parts << 8 * len(more)
