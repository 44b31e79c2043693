"""The influence curve: what a prior costs, before any mechanism is chosen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.fingerprint import ByContent
from takifugu._core.numeric import Booleans, Floats, Integers, frozen
from takifugu.errors import UnsoundRequest
from takifugu.influence.rounded_ratios import curve_loss_up
from takifugu.priors.universe import Name

EXACT_SHARE = 1e-6  # what is called exact is known to this share
# Sets of a network whose leaks are within 1e-10 count as equal, and rounding adds up to 2.4e-10
# where 20 entries are summed over: with some room, a smaller leak is not known to that share.
LEAST_EXACT = 5e-4
MAX_LOSS = 2.0**1000  # a loss beyond this counts as infinite


class Splits(Protocol):
    """Which entries are exposed at a point of a curve."""

    def describe(self, pair: int, point: int) -> Mapping[str, Any]:
        """The split of one pair at one point, ready to be written as JSON."""


@dataclass(frozen=True)
class ExposedSets:
    """The exposed entries of every pair (row) at every point, by name."""

    members: Sequence[Sequence[Sequence[Name]]]

    def describe(self, pair: int, point: int) -> Mapping[str, Any]:
        """Which entries are exposed."""
        return {"exposed": list(self.members[pair][point])}


@dataclass(frozen=True)
class Point:
    """One point of a curve: expose ``b`` entries, and the rest leaks at most ``a`` nats.

    ``exact`` says that ``a`` is the least possible to a share of 1e-6.
    """

    b: int
    a: float
    exact: bool
    secret: str
    split: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class InfluenceCurve(ByContent):
    r"""For every secret pair, points :math:`(b, a(b))`: expose b entries, the rest leak a(b) nats.

    A mechanism that is :math:`\varepsilon`-DP per entry is then Pufferfish private with

    .. math:: \varepsilon_P(\varepsilon) = \max_{pairs} \min_b \; b\,\varepsilon + a_{pair}(b)

    (the paper, Definition 6 and Theorem 6, kept per pair: never worse than the pooled curve).
    It is concave in :math:`\varepsilon`, so compose under DP first and translate once.

    >>> curve = InfluenceCurve(exposed=[1, 3, 9], leak=[[2.0, 0.5, 0.0]], entries=9)
    >>> curve.to_pufferfish([0.01, 0.1, 1.0]).round(3)
    array([0.09, 0.8 , 3.  ])

    Attributes:
        exposed: ``[point]``: b, at least 1, increasing.
        leak: ``[pair, point]``: a(b), rounded up; infinite where exposing b entries is not enough.
        entries: How many entries there are; None if unbounded.
        pairs: What each row of ``leak`` is about.
        exact: ``[pair, point]``: whether ``leak`` is a*(b) up to rounding, or only above it.
        splits: Which entries are exposed at each point; not part of the curve's identity.
    """

    exposed: Integers
    leak: Floats
    entries: int | None
    pairs: tuple[str, ...] = ("any secret pair",)
    exact: Booleans = field(default_factory=lambda: np.array(True))
    splits: Splits | None = field(default=None, metadata={"identity": False})

    def __post_init__(self) -> None:
        try:
            exposed = np.array(self.exposed, dtype=np.int64)
            leak = frozen(self.leak)
        except (TypeError, ValueError, OverflowError) as error:
            raise UnsoundRequest(
                "a curve needs whole numbers below 2^63 of exposed entries, and a table of leaks",
                field="exposed",
            ) from error
        if exposed.ndim != 1 or leak.shape != (len(self.pairs), len(exposed)) or not leak.size:
            raise UnsoundRequest(
                f"leak has shape {leak.shape}; a curve of {len(self.pairs)} pairs and"
                f" {exposed.size} points needs one number for each of them",
                field="leak",
                given=leak.shape,
                needed=(len(self.pairs), exposed.size),
            )
        if not (np.all(exposed >= 1) and np.all(np.diff(exposed) > 0)):
            raise UnsoundRequest(
                "a curve exposes at least one entry, and more at every point", field="exposed"
            )
        if not np.all(leak >= 0):  # also false for NaN
            raise UnsoundRequest("a curve leaks at least 0 nats at every point", field="leak")
        if self.entries is not None and exposed[-1] > self.entries:
            raise UnsoundRequest(
                f"{exposed[-1]} entries cannot be exposed: there are {self.entries}",
                field="entries",
                given=self.entries,
                needed=int(exposed[-1]),
            )
        exact = np.array(np.broadcast_to(self.exact, leak.shape), dtype=np.bool_)
        for array in (exposed, exact):
            array.setflags(write=False)
        object.__setattr__(self, "exposed", exposed)
        object.__setattr__(self, "leak", leak)
        object.__setattr__(self, "exact", exact)

    def to_pufferfish(self, epsilon: ArrayLike) -> Floats:
        """The Pufferfish loss of an ``epsilon``-DP mechanism, rounded up. Broadcasts."""
        worst: Floats = np.max(self.pufferfish_by_pair(epsilon), axis=-1)
        return worst

    def pufferfish_by_pair(self, epsilon: ArrayLike) -> Floats:
        """``[..., pair]``: the same for every secret pair on its own."""
        spent = np.asarray(epsilon, dtype=np.float64)
        if not np.all((spent >= 0) & (spent < np.inf)):  # also false for NaN
            raise UnsoundRequest("epsilon must be 0 or more, and finite", field="epsilon")
        total = np.full((*spent.shape, len(self.pairs)), np.inf)
        for b, leak in zip(self.exposed, self.leak.T, strict=True):
            cost = np.where(spent < MAX_LOSS / b, spent, 0.0) * b  # never beyond all floats
            cost = np.where(spent < MAX_LOSS / b, cost, np.inf)[..., None]
            np.minimum(total, curve_loss_up(cost, leak), out=total)
        return total

    def most_exposed(self, epsilon: float) -> int:
        """The largest b of the best points of all pairs: as many entries does a proof change."""
        best = np.argmin(curve_loss_up(self.exposed * epsilon, self.leak), axis=1)
        return int(self.exposed[best].max())

    def to_dp(self, epsilon: ArrayLike) -> Floats:
        """The largest DP loss whose Pufferfish loss is ``epsilon``, rounded down; 0 if none."""
        targets = np.asarray(epsilon, dtype=np.float64)
        if not np.all((targets >= 0) & (targets < np.inf)):  # also false for NaN
            raise UnsoundRequest("epsilon must be 0 or more, and finite", field="epsilon")
        allowed = np.zeros((*targets.shape, len(self.pairs)))
        for b, leak in zip(self.exposed, self.leak.T, strict=True):
            target = targets[..., None]
            room = target - leak - (target + 1.0) * 2.0**-48  # so that a round trip stays sound
            room = np.clip(room, 0.0, MAX_LOSS / 2)  # beyond it nothing is guaranteed either
            np.maximum(allowed, room / b, out=allowed)
        least: Floats = np.min(allowed, axis=-1)
        return least

    def pooled(self) -> Floats:
        """``[point]``: the curve a(b) of the paper, the largest leak over all pairs."""
        pooled: Floats = np.max(self.leak, axis=0)
        return pooled

    def points(self) -> tuple[Point, ...]:
        """The pooled curve, each point with the pair that attains it and how."""
        points = []
        for k, b in enumerate(self.exposed):
            pair = int(np.argmax(self.leak[:, k]))
            split = {} if self.splits is None else self.splits.describe(pair, k)
            leak = float(self.leak[pair, k])
            exact = bool(self.exact[pair, k]) and (leak == 0 or leak >= LEAST_EXACT)
            points.append(Point(int(b), leak, exact, self.pairs[pair], split))
        return tuple(points)
