"""Releases: priced per entry by OpenDP's own proofs, predicted before anything is spent."""

from typing import TYPE_CHECKING

from takifugu._core.lazy import lazy_names

if TYPE_CHECKING:
    from takifugu.mechanisms.external_measurement import (
        ExternalMeasurement,
        FiniteChannel,
        channel_cost,
    )
    from takifugu.mechanisms.mechanism_plan import Choice, MechanismPlan, RankingError
    from takifugu.mechanisms.mechanism_protocol import (
        COUNT,
        HISTOGRAM,
        Error,
        Mechanism,
        RankProbabilities,
        Sensitivity,
    )
    from takifugu.mechanisms.noise import IntegerGaussian, IntegerLaplace
    from takifugu.mechanisms.planner import plan_histogram, plan_top_k
    from takifugu.mechanisms.response import RandomisedResponse
    from takifugu.mechanisms.selection import Exponential, NoisyTopK, PermuteAndFlip
    from takifugu.mechanisms.sums import BoundedMean, BoundedSum, Bounds
    from takifugu.mechanisms.threshold import ThresholdedHistogram
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "external_measurement": ("ExternalMeasurement", "FiniteChannel", "channel_cost"),
            "mechanism_plan": ("Choice", "MechanismPlan", "RankingError"),
            "mechanism_protocol": (
                "COUNT",
                "HISTOGRAM",
                "Error",
                "Mechanism",
                "RankProbabilities",
                "Sensitivity",
            ),
            "noise": ("IntegerGaussian", "IntegerLaplace"),
            "planner": ("plan_histogram", "plan_top_k"),
            "response": ("RandomisedResponse",),
            "selection": ("Exponential", "NoisyTopK", "PermuteAndFlip"),
            "sums": ("BoundedMean", "BoundedSum", "Bounds"),
            "threshold": ("ThresholdedHistogram",),
        },
    )

__all__ = [
    "COUNT",
    "HISTOGRAM",
    "BoundedMean",
    "BoundedSum",
    "Bounds",
    "Choice",
    "Error",
    "Exponential",
    "ExternalMeasurement",
    "FiniteChannel",
    "IntegerGaussian",
    "IntegerLaplace",
    "Mechanism",
    "MechanismPlan",
    "NoisyTopK",
    "PermuteAndFlip",
    "RandomisedResponse",
    "RankProbabilities",
    "RankingError",
    "Sensitivity",
    "ThresholdedHistogram",
    "channel_cost",
    "plan_histogram",
    "plan_top_k",
]
