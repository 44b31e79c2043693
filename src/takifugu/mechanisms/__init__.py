"""Releases: priced per entry by OpenDP's own proofs, predicted before anything is spent."""

from typing import TYPE_CHECKING

from takifugu._core.lazy import lazy_names

if TYPE_CHECKING:
    from takifugu.mechanisms.external_measurement import ExternalMeasurement as ExternalMeasurement
    from takifugu.mechanisms.external_measurement import FiniteChannel as FiniteChannel
    from takifugu.mechanisms.external_measurement import channel_cost as channel_cost
    from takifugu.mechanisms.mechanism_protocol import COUNT as COUNT
    from takifugu.mechanisms.mechanism_protocol import HISTOGRAM as HISTOGRAM
    from takifugu.mechanisms.mechanism_protocol import Error as Error
    from takifugu.mechanisms.mechanism_protocol import Mechanism as Mechanism
    from takifugu.mechanisms.mechanism_protocol import RankProbabilities as RankProbabilities
    from takifugu.mechanisms.mechanism_protocol import Sensitivity as Sensitivity
    from takifugu.mechanisms.noise import IntegerGaussian as IntegerGaussian
    from takifugu.mechanisms.noise import IntegerLaplace as IntegerLaplace
    from takifugu.mechanisms.planner import Choice as Choice
    from takifugu.mechanisms.planner import MechanismPlan as MechanismPlan
    from takifugu.mechanisms.planner import RankingError as RankingError
    from takifugu.mechanisms.planner import plan_histogram as plan_histogram
    from takifugu.mechanisms.planner import plan_top_k as plan_top_k
    from takifugu.mechanisms.response import RandomisedResponse as RandomisedResponse
    from takifugu.mechanisms.selection import Exponential as Exponential
    from takifugu.mechanisms.selection import NoisyTopK as NoisyTopK
    from takifugu.mechanisms.selection import PermuteAndFlip as PermuteAndFlip
    from takifugu.mechanisms.sums import BoundedMean as BoundedMean
    from takifugu.mechanisms.sums import BoundedSum as BoundedSum
    from takifugu.mechanisms.sums import Bounds as Bounds
    from takifugu.mechanisms.threshold import ThresholdedHistogram as ThresholdedHistogram
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
