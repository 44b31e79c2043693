"""The influence curve of any prior, by the algorithm of its family, imported by need."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np

from takifugu._core.numeric import Integers
from takifugu.errors import UnsoundRequest
from takifugu.influence.curve import InfluenceCurve, Splits
from takifugu.influence.presets import per_entry, union
from takifugu.priors.explicit import Explicit
from takifugu.priors.gaussian import Gaussian
from takifugu.priors.higher_order import HigherOrderChain
from takifugu.priors.independent import IndependentEntries, Product
from takifugu.priors.interval_chain import IntervalMarkovChain
from takifugu.priors.markov import MarkovChain
from takifugu.priors.networks import BayesianNetwork, MarkovRandomField
from takifugu.priors.prior import Prior
from takifugu.priors.secrets import Secrets
from takifugu.priors.time_of_day import TimeOfDayChain
from takifugu.priors.truncated_gaussian import TruncatedGaussian

NETWORK_REACH = 4  # the largest number of entries that a search over a network exposes by default
SEQUENCE_CURVES: Mapping[type[Prior], tuple[str, str]] = {
    MarkovChain: ("chain_curves", "chain_curve"),
    IntervalMarkovChain: ("interval_curves", "interval_chain_curve"),
    HigherOrderChain: ("chain_curves", "higher_order_curve"),
    TimeOfDayChain: ("chain_curves", "time_of_day_curve"),
}
Progress = Callable[[str], None]


def has_curve(prior: Prior) -> bool:
    """Whether translations look at the curve: not for chains that stand for more than one law."""
    match prior:
        case MarkovChain():
            return prior.one_law
        case HigherOrderChain():
            return prior.start == "stationary"
        case TimeOfDayChain():
            return False  # a law for each first hour: that curve is above what transport gives
        case Product():
            return all(has_curve(part) for part in prior.parts.values())
        case _:
            return True


def influence_curve(
    prior: Prior,
    secrets: Secrets | None = None,
    *,
    max_exposed: int | None = None,
    progress: Progress | None = None,
) -> InfluenceCurve:
    """The curve of ``prior``, up to ``max_exposed`` entries and always with all of them.

    Chains, explicit and independent priors are exact; Gaussians and intervals are upper bounds;
    networks are exact where the search finishes. ``progress`` is called with a line of text.
    """
    secrets = Secrets() if secrets is None else secrets
    if isinstance(prior, Prior):  # others are refused below
        prior.check_secrets(secrets)
    for family, (module, name) in SEQUENCE_CURVES.items():
        if isinstance(prior, family):
            by_family = getattr(import_module(f"takifugu.influence.chain.{module}"), name)
            curve: InfluenceCurve = by_family(prior, secrets, max_exposed=max_exposed)
            return curve
    match prior:
        case Gaussian():
            from takifugu.influence.gaussian_curves import gaussian_process_curve

            return _cut(gaussian_process_curve(prior, secrets), max_exposed)
        case TruncatedGaussian():
            from takifugu.influence.gaussian_curves import gaussian_curve

            if secrets != Secrets():
                raise UnsoundRequest(
                    "secrets cannot be chosen for this prior: the regions of every entry are its"
                    " secrets",
                    field="secrets",
                )
            return _cut(gaussian_curve(prior), max_exposed)
        case BayesianNetwork() | MarkovRandomField():
            return _network(prior, secrets, max_exposed, progress)
        case IndependentEntries():
            return per_entry(len(prior.marginals))
        case Explicit():
            from takifugu.finite.world import World
            from takifugu.influence.explicit_curves import explicit_curve

            return _cut(explicit_curve(World.about_entries(prior, secrets)), max_exposed)
        case Product():
            return _product(prior, secrets, max_exposed, progress)
        case _:
            raise UnsoundRequest(
                f"a {type(prior).__name__} has no influence curve: `takifugu.influence.families`"
                " has no line for it",
                field="prior",
            )


def _network(
    prior: BayesianNetwork | MarkovRandomField,
    secrets: Secrets,
    max_exposed: int | None,
    progress: Progress | None,
) -> InfluenceCurve:
    from takifugu.influence.network.attractive_curves import attractive_curve, check_attractive
    from takifugu.influence.network.network_curves import network_curve

    largest = NETWORK_REACH if max_exposed is None else max_exposed
    try:
        check_attractive(prior)
    except UnsoundRequest:
        report = None if progress is None else (lambda p: progress(f"{p.entry}: b = {p.b}"))
        return network_curve(prior, secrets, largest=largest, progress=report)
    return attractive_curve(prior, secrets, largest=largest)


def _product(
    prior: Product, secrets: Secrets, max_exposed: int | None, progress: Progress | None
) -> InfluenceCurve:
    """A person's secrets depend on that person's entries alone: the curve has the rows of all.

    All entries of one person exposed is enough, so a person's last point holds for everybody's.
    """
    curves = {
        name: influence_curve(part, secrets, max_exposed=max_exposed, progress=progress)
        for name, part in prior.parts.items()
    }
    return union({name: replace(curve, entries=prior.size) for name, curve in curves.items()})


def _cut(curve: InfluenceCurve, max_exposed: int | None) -> InfluenceCurve:
    """Only the points up to ``max_exposed``, and the one that exposes everything."""
    if max_exposed is None:
        return curve
    if max_exposed < 1:
        raise UnsoundRequest(
            f"max_exposed is {max_exposed}; expose at least one entry",
            field="max_exposed",
            given=max_exposed,
            needed=1,
        )
    keep = np.flatnonzero((curve.exposed <= max_exposed) | (curve.exposed == curve.entries))
    return replace(
        curve,
        exposed=curve.exposed[keep],
        leak=curve.leak[:, keep],
        exact=curve.exact[:, keep],
        splits=_ChosenPoints(curve.splits, keep),
    )


@dataclass(frozen=True)
class _ChosenPoints:
    """The splits of chosen points of another curve."""

    splits: Splits | None
    keep: Integers

    def describe(self, pair: int, point: int) -> Mapping[str, Any]:
        return {} if self.splits is None else self.splits.describe(pair, int(self.keep[point]))
