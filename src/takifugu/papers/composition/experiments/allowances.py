r"""How much loss per entry a Pufferfish ε allows, by each proof that is compared; all rounded down.

* ``curve``: the paper's influence curve and Theorem 6, done right: for each secret pair its best
  point, then the least over the pairs (Algorithms 1 and 2 take the least over all points, which
  is group DP). One split for both directions of a pair, as the paper defines a†.
* ``quilts``: MQMExact, the max-influence of every quilt (`baselines.quilts`).
* ``group``: ε/|I|.
* ``exact``: the transport, or the curve where that allows more (it never did).

**Uncertainty.** If every joint probability may be off by 20 %, a curve rises by
:math:`s = \log(1.2/0.8)` at all its points but (|I|, 0); a max-influence rises by s for every quilt
but the trivial one; a transport by s, whatever proved it, with group DP untouched beside it. A
point (b, a + s) allows (ε − s − a)/b, so **each allows the better of its plain value at ε − s and
group DP at ε**: for one pair or node that is :math:`\max(x, ε/|I|)`, and
:math:`\min_i \max(x_i, c) = \max(\min_i x_i, c)`. One table of plain allowances, at every ε and at
every ε − s, therefore serves both.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from takifugu import __version__
from takifugu._core.rounding import UNIT, down, up
from takifugu.errors import InvalidFile, InvalidPrior, UnsoundRequest
from takifugu.influence.chain.chain_curves import chain_curve
from takifugu.papers.composition.baselines.quilts import quilt_allowances
from takifugu.priors.documents import read_json, write_json
from takifugu.priors.markov import MarkovChain
from takifugu.priors.secrets import Secrets
from takifugu.translation.accounting.largest_epsilon import largest_within
from takifugu.translation.models.chain_transport import ChainTransport
from takifugu.translation.search.fixed_point import UnboundedLosses, unbounded_losses

PROOFS = ("curve", "quilts", "group", "exact")
EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
UNCERTAINTY = 0.2
UNCERTAINTY_SHIFT = float(up(np.log1p(UNCERTAINTY) - np.log1p(-UNCERTAINTY)))  # log 1.5, rounded up
TOLERANCE = 1e-3  # how close to the largest ε a search ends; it ends below
FIRST_POINTS = 64  # of the curve; more are found when they could help
FORMAT = 2  # of the file; a new number when an allowance may come out differently

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Allowances:
    """Plain allowances of one chain at the requested ε.

    Attributes:
        length: |I|, how many entries the chain has.
        plain: For each proof and each ε the loss per entry that it allows.
    """

    length: int
    plain: Mapping[str, Mapping[float, float]]

    def at(self, proof: str, epsilon: float, *, uncertain: bool = False) -> float:
        """What a Pufferfish loss of ``epsilon`` allows per entry, rounded down."""
        if not uncertain:
            return self.plain[proof][epsilon]
        room = shifted(epsilon)
        below = self.plain[proof][room] if room > 0 and proof != "group" else 0.0
        return max(below, self.plain["group"][epsilon])


def shifted(epsilon: float) -> float:
    """ε − log 1.5, rounded down: where a plain mechanism stands in for an uncertain one."""
    return epsilon - UNCERTAINTY_SHIFT - (epsilon + 1) * 32 * UNIT


def targets(epsilons: Sequence[float] = EPSILONS) -> tuple[float, ...]:
    """Every plain ε that the experiment needs, with and without uncertainty; rising."""
    if not epsilons or not all(0 < e < np.inf for e in epsilons):
        raise UnsoundRequest(
            "every epsilon must be positive and finite, and there must be at least one",
            field="epsilons",
            given=tuple(epsilons),
        )
    rooms = (shifted(e) for e in epsilons)
    return tuple(sorted({*map(float, epsilons), *(room for room in rooms if room > 0)}))


def allowances(
    chain: MarkovChain,
    epsilons: Sequence[float] = EPSILONS,
    *,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> Allowances:
    """The allowances of a chain by every proof; read from ``folder`` if they are known there.

    The file is written when all are found: each search begins where the one before ended, and a
    table that is made in one go is the same every time.
    """
    length = _length(chain)
    wanted = targets(epsilons)
    path = None if folder is None else folder / f"allowances-{chain.fingerprint[:16]}.json"
    if path is not None and path.exists():
        read = _read(path, chain, wanted)
        if read is not None:
            return Allowances(length, read)
    curve = curve_allowances(chain, wanted)
    exact = exact_allowances(chain, wanted, progress=progress)
    found = {
        "curve": curve,
        "quilts": quilt_allowances(chain, wanted).tolist(),
        "group": [float(down(e / length)) for e in wanted],
        "exact": [max(pair) for pair in zip(exact, curve, strict=True)],
    }
    plain = {proof: dict(zip(wanted, found[proof], strict=True)) for proof in PROOFS}
    if path is not None:
        _write(path, chain, plain)
    return Allowances(length, plain)


def curve_allowances(chain: MarkovChain, wanted: Sequence[float]) -> list[float]:
    """By the paper's curve, pair by pair, with as many points as can help.

    A point (b, a) allows at most ε/b, so the points suffice when that is below what is allowed.
    They end at half the chain, up to which all entries have the same curve; then |I| follows.
    """
    length = _length(chain)
    most = max((length - 1) // 2, min(length, 40))
    points = min(FIRST_POINTS, most)
    while True:
        curve = chain_curve(chain, symmetric=True, max_exposed=points)
        found = [float(curve.to_dp(epsilon)) for epsilon in wanted]
        if points >= most or all(e / points <= a for e, a in zip(wanted, found, strict=True)):
            return found
        points = min(2 * points, most)


def exact_allowances(
    chain: MarkovChain, wanted: Sequence[float], *, progress: Progress | None = None
) -> list[float]:
    """By the transport, each ε found from the one before.

    A short chain is walked entry by entry; a long one is bounded as if it were unbounded.
    """
    transport = ChainTransport(chain, Secrets(), tolerance=TOLERANCE)
    found: list[float] = []
    near: UnboundedLosses | None = None

    def loss(epsilon: float) -> float:
        nonlocal near
        if transport.walked:
            return transport.uniform(epsilon).value
        now = unbounded_losses(chain.transition, epsilon, tolerance=0.3 * TOLERANCE, near=near)
        near = now if np.isfinite(now.loss) else near
        return now.loss

    for k, target in enumerate(wanted):
        first = _expected(wanted[:k], found, target)
        found.append(largest_within(loss, target, tolerance=TOLERANCE, first=first))
        if progress is not None:
            progress(k + 1, len(wanted))
    return found


def _expected(before: Sequence[float], found: Sequence[float], target: float) -> float | None:
    """What the next target is likely to allow: the last two, drawn on as a power law."""
    if not found or not found[-1] > 0:
        return None
    slope = 1.0
    if len(found) > 1 and found[-2] > 0:
        slope = float(np.log(found[-1] / found[-2]) / np.log(before[-1] / before[-2]))
    return float(found[-1] * (target / before[-1]) ** min(max(slope, 0.0), 1.0))


def _length(chain: MarkovChain) -> int:
    chain.refuse_unless_one_law("a baseline")
    if chain.length is None:
        raise InvalidPrior("length", given="is not known", needed="be given: group DP needs it")
    return chain.length


def _write(path: Path, chain: MarkovChain, plain: Mapping[str, Mapping[float, float]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = {proof: {repr(e): a for e, a in row.items()} for proof, row in plain.items()}
    write_json({**_about(chain), "allowances": table}, path, indent=1)


def _read(
    path: Path, chain: MarkovChain, wanted: Sequence[float]
) -> dict[str, dict[float, float]] | None:
    """What the file holds, or nothing if it is about something else or not whole."""
    try:
        document = read_json(path, needed="be a table of allowances")
        if {key: document[key] for key in _about(chain)} != _about(chain):
            return None
        table = document["allowances"]
        return {proof: {e: float(table[proof][repr(e)]) for e in wanted} for proof in PROOFS}
    except (InvalidFile, KeyError, OverflowError, TypeError, ValueError):
        return None


def _about(chain: MarkovChain) -> dict[str, Any]:
    return {"format": FORMAT, "version": __version__, "chain": chain.fingerprint}
