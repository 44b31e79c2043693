"""Arrays that do not change, and probabilities that are checked before they are used."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from takifugu.errors import Malformed

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

LEAST = 2.0**-500  # a smaller positive probability is refused: products of two must not underflow
SUMS_TO_ONE = 1e-9  # how far a row of probabilities may be from 1 before it is refused


def frozen(values: ArrayLike) -> Floats:
    """Copy ``values`` into a read-only float64 array; −0.0 becomes 0.0, so equal is identical."""
    array = np.array(values, dtype=np.float64) + 0.0
    array.setflags(write=False)
    return array


def numbers(
    values: object,
    field: str,
    problem: type[Malformed],
    *,
    needed: str = "hold one number in each place",
    reason: str = "",
) -> Floats:
    """``values`` as a frozen array; an error that names the field if they are no numbers."""
    try:
        return frozen(values)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError) as error:
        raise problem(
            field, given="is not an array of numbers", needed=needed, reason=reason
        ) from error


def distinct(values: ArrayLike, axis: int | None = None) -> NDArray[Any]:
    """The distinct values, or rows with ``axis=0``, in order.

    As `numpy.unique`, which without indices imports masked arrays first: a tenth of a second.
    """
    return np.unique(np.asarray(values), return_index=True, axis=axis)[0]


def multiplied(parts: Iterable[Floats]) -> tuple[Floats, int, Booleans]:
    """The product of non-negative arrays, scaled, with what is possible kept apart.

    Returns the product times 2^−top (its largest cell then lies between ½ and 1), top, and which
    cells are positive. Mantissas and exponents are multiplied apart, so no product under- or
    overflows on the way. A cell that is positive and more than 2¹⁰⁷⁴ below the largest one reads 0:
    what can happen is in the third value, never in the first.
    """
    mantissa, exponent = np.array(1.0), np.array(0, dtype=np.int64)
    for part in parts:
        own, power = np.frexp(part)
        mantissa, extra = np.frexp(mantissa * own)
        exponent = exponent + power + extra
    possible = np.asarray(mantissa > 0)
    top = int(np.max(exponent, where=possible, initial=-(2**62))) if possible.any() else 0
    scaled = np.ldexp(mantissa, np.clip(exponent - top, -1200, 0).astype(np.int32))
    return np.asarray(scaled), top, possible


def vanished(values: object, array: Floats) -> bool:
    """Whether some number of ``values`` is not 0 but reads 0 in ``array``, its float64 copy.

    Fractions, decimals and integers beyond all floats can; a float cannot.
    """
    if isinstance(values, np.ndarray) and values.dtype != object:
        return False
    zero = array == 0
    if not zero.any():
        return False
    given = np.array(values, dtype=object)
    return given.shape == array.shape and any(value != 0 for value in given[zero])


def distribution(
    values: ArrayLike,
    field: str,
    problem: type[Malformed],
    *,
    shape: tuple[int, ...] | None = None,
    each: str = "",
    axis_name: str = "row",
) -> Floats:
    """Freeze ``values`` after checking that its last axis holds probabilities that sum to 1.

    With a ``shape`` it must have that one; ``each`` says in words what the numbers are for.
    """
    array = numbers(values, field, problem, reason="type")
    if array.ndim == 0 or array.shape[-1] == 0:
        raise problem(
            field,
            given=f"has shape {array.shape}",
            needed="hold at least one number",
            reason="shape",
        )
    if vanished(values, array):
        raise problem(
            field,
            given="holds a number that is not 0 but too small for float64",
            needed=f"hold 0 or at least {LEAST:.3g}; write 0 for what cannot happen",
            reason="tiny",
        )
    tiny = f"be 0 or at least {LEAST:.3g}; write 0 for what cannot happen"
    for wrong, needed, reason in (
        (np.isnan(array), "hold numbers only", "nan"),
        (array < 0, "be a probability, 0 or more", "range"),
        (array > 2, "be a probability, at most 1", "range"),
        ((array > 0) & (array < LEAST), tiny, "tiny"),
    ):
        if wrong.any():
            value = "not a number" if reason == "nan" else f"{array[wrong][0]:g}"
            given = f"{_place(wrong, axis_name)}is {value}"
            raise problem(field, given=given, needed=needed, reason=reason)
    off = np.abs(array.sum(axis=-1) - 1)
    if not (off <= SUMS_TO_ONE).all():
        worst = int(np.argmax(off))
        total = float(np.atleast_1d(array.sum(axis=-1)).ravel()[worst])
        which = f"{axis_name} {worst} " if array.ndim > 1 else ""
        along = f" along every {axis_name}" if array.ndim > 1 else ""
        raise problem(
            field, given=f"{which}sums to {total:.12g}", needed=f"sum to 1{along}", reason="sum"
        )
    if shape is not None and array.shape != shape:
        size = f"one number for each of {shape[0]} {each}" if len(shape) == 1 else each
        raise problem(field, given=f"has shape {array.shape}", needed=f"hold {size}")
    return array


def _place(where: Booleans, axis_name: str) -> str:
    """The first True of ``where``, in words: 'row 2, place 5 '."""
    *rows, column = (int(i) for i in np.argwhere(where)[0])
    first = f"{axis_name} {', '.join(map(str, rows))}, " if rows else ""
    return f"{first}place {column} "
