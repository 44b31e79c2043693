"""More curves of the instances of `torture.oracles.curves`: no oracle says their truth."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from takifugu.influence import (
    InfluenceCurve,
    attractive_curve,
    chain_curve,
    chains_curve,
    gaussian_curve,
    interval_chain_curve,
    nearest_curve,
    network_curve,
    sampled_curve,
    uncertain,
    union,
)
from takifugu.priors import MarkovChain, Secrets, TruncatedGaussian
from tests.extremes.kept_answers import Answer, curve_rows
from torture.oracles import curves
from torture.oracles.comparison import Instance

ENTRIES = 4  # of a truncated Gaussian


def _whole(curve: InfluenceCurve, name: str, rows: int = 4) -> Iterator[Answer]:
    """Its points, and what it translates to."""
    yield from curve_rows(curve, f"{name}: ", rows=rows)
    yield Answer(f"{name}: count", float(curve.leak.size))
    for e in (0.01, 0.5):
        yield Answer(f"{name}: at {e}", float(curve.to_pufferfish(e)))
    yield Answer(f"{name}: allowed", allowed=float(curve.to_dp(1.0)), scale=0.0)


def _gaussians(instance: Instance) -> Iterator[Answer]:
    """Four entries: neighbours, and others, are correlated."""
    one, other = instance["variances"]
    deviations = np.sqrt(np.array([one, other, one + other, one])[:ENTRIES])
    lags = np.abs(np.subtract.outer(np.arange(ENTRIES), np.arange(ENTRIES)))
    share = 0.9 * instance["share"]
    for name, table in (("near", share**lags), ("ends", np.where(lags == 3, share / 2, lags == 0))):
        law = table * np.outer(deviations, deviations)
        prior = TruncatedGaussian(law, instance["bound"], instance["width"])
        yield from _whole(gaussian_curve(prior), name)
        yield from curve_rows(gaussian_curve(prior, law="printed"), f"{name}, printed: ", rows=2)


def _chains(
    instance: Instance, *, make: Callable[[Instance], curves.ChainQuestions]
) -> Iterator[Answer]:
    chain, _, sides, _ = make(instance)
    yield from _whole(chain_curve(chain, max_exposed=4), "all")
    yield from _whole(chain_curve(chain, max_exposed=3, symmetric=True), "symmetric", 2)
    yield from _whole(chain_curve(chain, max_exposed=3, by_entry=False), "together", 2)
    grouped = chain_curve(chain, Secrets(pairs=(sides[-1],)), max_exposed=3)
    yield from _whole(grouped, "one pair", 2)
    rows = chain.transition
    if (rows > 0).all():
        unbounded = MarkovChain(rows, chain.states)
        yield from _whole(chain_curve(unbounded, max_exposed=6), "unbounded")
        even = replace(unbounded, length=9)
        yield from _whole(chain_curve(even), "nine")
        mixed = MarkovChain((rows + 1 / len(rows)) / 2, chain.states, length=9)
        yield from _whole(chains_curve([even, mixed], max_exposed=3), "either")
        yield from _whole(uncertain(chain_curve(even), relative=0.1), "uncertain", 2)
        both = union({"one": chain_curve(even, max_exposed=2), "other": chain_curve(mixed)})
        yield from _whole(both, "union", 2)


def _intervals(instance: Instance) -> Iterator[Answer]:
    box = curves.intervals(instance)
    yield from _whole(interval_chain_curve(box, max_exposed=12), "unbounded")
    still = replace(box, start="stationary")
    yield from _whole(interval_chain_curve(still, max_exposed=5), "stationary")
    yield from _whole(interval_chain_curve(replace(box, length=6)), "six")
    yield from _whole(interval_chain_curve(replace(still, length=30), max_exposed=4), "thirty")
    one = interval_chain_curve(replace(box, length=8), Secrets(entries=(1,)), max_exposed=6)
    yield from _whole(one, "one entry", 2)
    if len(box.states) > 2:
        pair = (box.states[:2], box.states[2:])
        yield from _whole(interval_chain_curve(box, Secrets(pairs=(pair,)), max_exposed=4), "pair")


def _networks(instance: Instance) -> Iterator[Answer]:
    model = curves.network(instance)
    rng = np.random.default_rng(instance["seed"])
    yield from _whole(network_curve(model, largest=5), "five", 8)
    yield from _whole(network_curve(model, largest=4, evaluations=2), "two sets")
    yield from _whole(nearest_curve(model, largest=4), "nearest")
    yield from _whole(sampled_curve(model, largest=4, samples=2, rng=rng), "drawn")
    one = Secrets(entries=(model.entries[-1],))
    yield from _whole(network_curve(model, one, largest=3), "one entry")


def _attractive(instance: Instance) -> Iterator[Answer]:
    model = curves.attractive(instance)
    yield from _whole(attractive_curve(model), "all", 8)
    yield from _whole(attractive_curve(model, largest=1), "one", 2)
    yield from _whole(network_curve(model, largest=3), "searched")
    one = Secrets(entries=(model.entries[0],))
    yield from _whole(attractive_curve(model, one, largest=5), "one entry", 2)


FURTHER: dict[str, Callable[[Instance], Iterator[Answer]]] = {
    "curve: truncated Gaussian": _gaussians,
    "curve: networks and fields": _networks,
    "curve: attractive fields": _attractive,
    "curve: short chains, groups": partial(_chains, make=curves.short_chain),
    "curve: chains, up to 10,000 entries": partial(_chains, make=curves.long_chain),
    "curve: chains within intervals": _intervals,
}
