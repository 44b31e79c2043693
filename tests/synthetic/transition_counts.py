"""Reads synthetic tables back, and compares counted transitions with a law, without the package."""

from math import log
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

FALSE_ALARM = 1e-9  # per comparison

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def columns(path: Path, select: str) -> dict[str, Any]:
    """Columns of a Parquet file, in the order of its rows."""
    with duckdb.connect() as connection:
        query = f"SELECT {select} FROM read_parquet('{path}')"  # noqa: S608 - ours
        found: dict[str, Any] = connection.execute(query).fetchnumpy()
    return {name: np.ma.getdata(values) for name, values in found.items()}


def codes(values: Any, names: tuple[str, ...]) -> Integers:
    """The number of each value in a list of names; a value that is not in it raises KeyError."""
    number = {name: k for k, name in enumerate(names)}
    return np.array([number[value] for value in values.tolist()], dtype=np.int64)


def farthest(counts: Integers, law: Floats) -> float:
    r"""How far counted moves ``[..., x, y]`` are from their law, 1 being the most that is allowed.

    The moves out of a state are independent draws, one card after the other from a stack of its
    own (Billingsley, 1961), however many times it is visited. For n draws of probability p,
    P(p̂ ≥ q) ≤ exp(−n KL(q, p)) for q ≥ p, and the same below (Chernoff). A union over both
    sides, all cells and all numbers n of visits up to the number of moves bounds the probability
    of a false alarm by `FALSE_ALARM`.
    """
    visits = counts.sum(axis=-1, keepdims=True)
    allowed = log(2 * counts.size * max(int(counts.sum()), 1) / FALSE_ALARM)
    share = counts / np.maximum(visits, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        divergence = np.where(share > 0, share * np.log(share / law), 0.0) + np.where(
            share < 1, (1 - share) * np.log((1 - share) / (1 - law)), 0.0
        )
    return float(np.max(visits * divergence) / allowed)


def prefers(counts: Integers, model: Floats, rival: Floats) -> bool:
    """Whether counted moves speak against ``model``, for a ``rival`` chosen beforehand.

    Under the model the likelihood ratio of the rival is a martingale of mean 1, so that it ever
    exceeds 1 / `FALSE_ALARM` with that probability at most (Ville). It has power where single cells
    have few moves, but only in the direction of the rival.
    """
    seen = counts > 0
    ratio = float((counts[seen] * np.log(rival[seen] / model[seen])).sum())
    return ratio > log(1 / FALSE_ALARM)
