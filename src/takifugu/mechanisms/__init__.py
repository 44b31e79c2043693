"""Releases: priced per entry by OpenDP's own proofs, predicted before anything is spent."""

from takifugu.mechanisms.brought import Brought, FiniteChannel
from takifugu.mechanisms.gaussian_top import GaussianTopK
from takifugu.mechanisms.noise import IntegerGaussian, IntegerLaplace
from takifugu.mechanisms.planner import plan_histogram, plan_top_k
from takifugu.mechanisms.plans import Choice, Plan, RankingError
from takifugu.mechanisms.protocol import (
    COUNT,
    HISTOGRAM,
    Error,
    Mechanism,
    RankChances,
    Sensitivity,
)
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
    "Choice",
    "Error",
    "Exponential",
    "FiniteChannel",
    "GaussianTopK",
    "IntegerGaussian",
    "IntegerLaplace",
    "LaplaceTopK",
    "Mechanism",
    "PermuteAndFlip",
    "Plan",
    "Quantile",
    "RandomisedResponse",
    "RankChances",
    "RankingError",
    "Sensitivity",
    "ThresholdedHistogram",
    "plan_histogram",
    "plan_top_k",
]
