"""Releases: priced per entry by OpenDP's own proofs, predicted before anything is spent."""

from takifugu.mechanisms.brought import Brought, FiniteChannel
from takifugu.mechanisms.noise import IntegerGaussian, IntegerLaplace
from takifugu.mechanisms.protocol import (
    COUNT,
    HISTOGRAM,
    Error,
    Mechanism,
    RankChances,
    Sensitivity,
    Translation,
)
from takifugu.mechanisms.pufferfish import PufferfishExponential, PufferfishLaplace
from takifugu.mechanisms.quantile import Quantile
from takifugu.mechanisms.response import RandomisedResponse
from takifugu.mechanisms.selection import Exponential, LaplaceTopK, PermuteAndFlip
from takifugu.mechanisms.sums import BoundedMean, BoundedSum, Bounds
from takifugu.mechanisms.threshold import ThresholdedHistogram

__all__ = [
    "COUNT",
    "HISTOGRAM",
    "BoundedMean",
    "BoundedSum",
    "Bounds",
    "Brought",
    "Error",
    "Exponential",
    "FiniteChannel",
    "IntegerGaussian",
    "IntegerLaplace",
    "LaplaceTopK",
    "Mechanism",
    "PermuteAndFlip",
    "PufferfishExponential",
    "PufferfishLaplace",
    "Quantile",
    "RandomisedResponse",
    "RankChances",
    "Sensitivity",
    "ThresholdedHistogram",
    "Translation",
]
