"""The sources of the outputs of an audit: a dataset, or datasets drawn from a prior.

Differential privacy compares two given datasets. Pufferfish privacy compares two secrets: for every
output a fresh dataset is drawn from the prior given the secret, and released.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.numeric import Floats, Integers, distribution
from takifugu.auditing.claim_audit import Comparison, Sampler
from takifugu.errors import InvalidPrior, InvalidWorld
from takifugu.finite.world import World
from takifugu.priors.explicit import Explicit
from takifugu.priors.secrets import Secret

Release = Callable[[Any], Any]
"""One dataset → one output, with the real noise."""


def always(dataset: Any) -> Sampler:
    """Draws the same dataset every time."""

    def draw(size: int) -> Any:
        if isinstance(dataset, np.ndarray):
            return np.broadcast_to(dataset, (size, *dataset.shape))
        return [dataset] * size

    return draw


def released(release: Release, datasets: Sampler) -> Sampler:
    """Outputs of ``release``, one for each dataset drawn."""
    return lambda size: [release(dataset) for dataset in datasets(size)]


def simulated(
    simulate: Callable[..., Any], datasets: Sampler, *, rng: np.random.Generator
) -> Sampler:
    """Outputs of a vectorised ``simulate(datasets, rng=rng)``: many datasets in, as many out."""
    return lambda size: simulate(datasets(size), rng=rng)


def neighbours(
    release: Release, first: Any, second: Any, *, name: str = "neighbours"
) -> Comparison:
    """Compare the outputs of two given datasets."""
    return Comparison(released(release, always(first)), released(release, always(second)), name)


def datasets_given(prior: Explicit, secret: Secret, *, rng: np.random.Generator) -> Sampler:
    """Draws datasets of a written-out prior, given ``secret``."""
    weight = prior.probability * secret.mask(prior.universe)
    if not weight.sum() > 0:
        raise InvalidWorld(
            "secret",
            given=f"{str(secret)!r} has probability 0 under {prior.name!r}",
            needed="be possible",
        )
    law = np.cumsum(weight / weight.sum())
    return lambda size: [prior.universe.datasets[i] for i in _draw(law, rng.random(size))]


def paths_given(
    transition: ArrayLike,
    start: ArrayLike,
    length: int,
    node: int,
    states: int | Sequence[int],
    *,
    rng: np.random.Generator,
) -> Sampler:
    """Draws paths ``[path, time]`` of a Markov chain, given that X_node is one of ``states``.

    Given X_node, the past and the future are independent Markov chains: the future follows the
    transition matrix, the past P(X_{t−1} = u | X_t = v) = P(X_{t−1} = u)·P_uv / P(X_t = v). Times
    are counted from 0, when the law is ``start``.
    """
    P, laws = _chain(transition, start, length)
    if not 0 <= node < length:
        raise InvalidPrior("node", given=f"is {node}", needed=f"be between 0 and {length - 1}")
    wanted = [states] if isinstance(states, int) else list(states)
    if not wanted or not all(0 <= state < len(P) for state in wanted):
        raise InvalidPrior(
            "states", given="are none, or unknown", needed=f"be between 0 and {len(P) - 1}"
        )
    weight = np.where(np.isin(np.arange(len(P)), wanted), laws[node], 0.0)
    if not weight.sum() > 0:
        raise InvalidPrior(
            "states", given=f"have probability 0 at time {node}", needed="be possible there"
        )
    here, forward = np.cumsum(weight / weight.sum()), np.cumsum(P, axis=1)

    def draw(size: int) -> Integers:
        paths = np.empty((size, length), dtype=np.int64)
        paths[:, node] = _draw(here, rng.random(size))
        for t in range(node + 1, length):
            paths[:, t] = _step(forward, paths[:, t - 1], rng.random(size))
        for t in range(node, 0, -1):
            paths[:, t - 1] = _step(_backward(P, laws[t - 1]), paths[:, t], rng.random(size))
        return paths

    return draw


def world_comparisons(
    world: World, release: Release, *, rng: np.random.Generator
) -> tuple[Comparison, ...]:
    """Every secret pair under every prior that allows both sides; a pair and its reverse once."""
    requested = []
    once = {frozenset((pair.left, pair.right)): pair for pair in reversed(world.pairs)}
    for prior in world.listed_priors:
        for pair in once.values():
            sides = (pair.left, pair.right)
            if all(prior.probability[world.mask(secret)].sum() > 0 for secret in sides):
                first, second = (
                    released(release, datasets_given(prior, secret, rng=rng)) for secret in sides
                )
                both_ways = pair.reversed in world.pairs
                requested.append(Comparison(first, second, f"{pair} under {prior.name}", both_ways))
    return tuple(requested)


def _chain(transition: ArrayLike, start: ArrayLike, length: int) -> tuple[Floats, list[Floats]]:
    """The transition matrix and the law of every time."""
    P = distribution(transition, "transition", InvalidPrior)
    law = distribution(start, "start", InvalidPrior)
    if P.ndim != 2 or P.shape[0] != P.shape[1]:
        raise InvalidPrior("transition", given=f"has shape {P.shape}", needed="be square")
    if law.shape != (len(P),):
        raise InvalidPrior(
            "start", given=f"has shape {law.shape}", needed=f"hold one number for {len(P)} states"
        )
    if length < 1:
        raise InvalidPrior("length", given=f"is {length}", needed="be 1 or more")
    return P, list(_laws(P, law, length))


def _laws(P: Floats, law: Floats, length: int) -> Iterator[Floats]:
    for _ in range(length):
        yield law
        law = law @ P


def _backward(P: Floats, before: Floats) -> Floats:
    """``[now, before]``: cumulated P(X_{t−1} | X_t); an impossible state has a row of 0."""
    joint = (before[:, None] * P).T
    total = joint.sum(axis=1, keepdims=True)
    rows: Floats = np.cumsum(joint / np.where(total > 0, total, 1.0), axis=1)
    return rows


def _step(rows: Floats, states: Integers, uniform: Floats) -> Integers:
    """One step for many paths at once, from cumulated rows."""
    following = np.empty_like(states)
    for state in np.unique(states):
        there = states == state
        following[there] = _draw(rows[state], uniform[there])
    return following


def _draw(cumulated: Floats, uniform: Floats) -> Integers:
    """States by inversion; rounding at the top never yields a state of probability 0."""
    last = int(np.searchsorted(cumulated, cumulated[-1], side="left"))
    return np.minimum(np.searchsorted(cumulated, uniform, side="right"), last)
