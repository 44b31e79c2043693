"""What a mechanism may be given: checked once, refused in one line.

Messages name parameters. They never repeat a value of the protected data.
"""

from collections.abc import Sequence
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.exact import Number
from takifugu._core.numeric import Integers
from takifugu.errors import InvalidMechanism, UnsoundRequest

MAX_COUNT = 2**62  # counts and sums stay below, so that noise on top of them fits int64
MAX_SCALE = 2.0**50  # a larger noise scale would push noise out of int64


def positive(value: Number, name: str) -> float:
    """``value`` as a float, if it is positive and finite."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise UnsoundRequest(
            f"{name} is {value!r:.80}; it must be a positive, finite number",
            field=name,
            given=value,
        ) from error
    if not 0 < number < inf:  # also false for NaN
        raise UnsoundRequest(
            f"{name} is {number}; it must be positive and finite", field=name, given=number
        )
    return number


def noise_scale(value: float) -> float:
    """``value`` as a noise scale: positive, and small enough for noise to fit int64."""
    scale = positive(value, "scale")
    if scale > MAX_SCALE:
        raise UnsoundRequest(
            f"scale is {scale:.4g}; it must be at most 2^50, so that noise fits int64",
            field="scale",
            given=scale,
            needed=MAX_SCALE,
        )
    return scale


def probability(value: float, name: str) -> float:
    """``value`` as a probability strictly between 0 and 1."""
    number = positive(value, name)
    if not number < 1:
        raise UnsoundRequest(f"{name} is {number}; it must be below 1", field=name, given=number)
    return number


def whole(value: int, name: str, *, least: int = 1) -> int:
    """``value`` as an integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise UnsoundRequest(
            f"{name} is {value!r}; it must be a whole number of at least {least}",
            field=name,
            given=value,
            needed=least,
        )
    return int(value)


def counts(values: ArrayLike, name: str = "values") -> Integers:
    """``values`` as int64, of any shape with at least one number."""
    try:
        array = np.asarray(values)
    except (ValueError, OverflowError) as error:
        raise InvalidMechanism(
            name, given="is not an array of numbers", needed="hold one number in each place"
        ) from error
    if array.size == 0:
        raise InvalidMechanism(name, given="is empty", needed="hold at least one number")
    if array.dtype.kind not in "iu":
        raise InvalidMechanism(
            name,
            given=f"is of type {array.dtype}",
            needed="hold whole numbers within int64; round or scale other numbers first",
        )
    if int(array.max()) > MAX_COUNT or int(array.min()) < -MAX_COUNT:
        raise InvalidMechanism(
            name,
            given="holds a number beyond ±2^62",
            needed="leave room for noise within int64",
        )
    return array.astype(np.int64)


def scores(values: ArrayLike, *, k: int = 1) -> Integers:
    """``[..., candidate]``: whole scores of at least ``k`` candidates in every group."""
    array = counts(values)
    if array.ndim == 0:
        raise InvalidMechanism(
            "values", given="is one number", needed="hold a score for each candidate"
        )
    if array.shape[-1] < k:
        raise InvalidMechanism(
            "k",
            given=f"is {k} with {array.shape[-1]} candidates",
            needed="be at most the number of candidates",
        )
    return array


def categories(values: Sequence[object], name: str = "categories") -> tuple[object, ...]:
    """``values`` as a tuple of at least two different categories."""
    listed = tuple(values)
    if len(listed) < 2 or len(set(listed)) != len(listed):
        raise InvalidMechanism(
            name,
            given=f"lists {len(listed)}, {len(set(listed))} of them different",
            needed="list at least two categories, each once",
        )
    return listed
