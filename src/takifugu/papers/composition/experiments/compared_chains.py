"""What each published bound allows per entry, on the same chains.

Group DP, GK16 (as published and sharpened), MQMApprox, MQMExact, the paper's curve, temporal
privacy leakage (TPL) and takifugu's exact translation. All are lower bounds on the per-entry ε
that a Pufferfish ε allows; a 1-Lipschitz query takes Laplace noise of scale one over it. Where a
theorem does not apply there is no number, and nothing takes its place.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from takifugu import __version__
from takifugu._core.numeric import Floats
from takifugu.documents.declared import NullFloat, from_document, to_document
from takifugu.errors import InvalidFile, InvalidPrior
from takifugu.papers.composition.baselines.chain_laws import group_to_dp
from takifugu.papers.composition.baselines.gk16 import gk16_norm, gk16_to_dp
from takifugu.papers.composition.baselines.quilts import mqm_approx, mqm_exact
from takifugu.papers.composition.baselines.temporal import tpl_to_dp
from takifugu.papers.composition.experiments.allowances import Allowances, curve_allowances
from takifugu.priors.documents import read_json, write_json
from takifugu.priors.fitting import smooth
from takifugu.priors.markov import MarkovChain
from takifugu.translation.translation import Translation

Progress = Callable[[str, int, int], None]
GROUP, PUBLISHED, SHARPENED = "group DP", "GK16", "GK16, sharpened"
APPROX, QUILTS, CURVE = "MQMApprox", "MQMExact", "paper's curve"
TEMPORAL, EXACT = "TPL", "takifugu"
METHODS = (GROUP, PUBLISHED, SHARPENED, APPROX, QUILTS, CURVE, TEMPORAL, EXACT)
LENGTH, EPSILON = 100, 1.0
STAYS = tuple(round(0.5 + 0.025 * k, 3) for k in range(19))  # p = q
OTHERS = tuple(round(0.05 + 0.05 * k, 2) for k in range(19))  # p, with q = OTHER
OTHER = 0.6
FORMAT = 1  # of the file of comparisons; a new number when one may come out differently
PRINTED = (  # the transition matrix that the paper's appendix smooths, with its row of "others"
    (0.5, 0, 0.1666, 0.0555, 0.2777, 0),
    (0.1428, 0.3571, 0.1428, 0.0714, 0.2857, 0),
    (0.0361, 0.0120, 0.4698, 0.1325, 0.3493, 0),
    (0, 0, 0.0897, 0.4615, 0.4487, 0),
    (0.0125, 0.0251, 0.1006, 0.0911, 0.7704, 0),
    (0.2, 0.2, 0.2, 0.2, 0.2, 0),
)


@dataclass(frozen=True)
class ComparedChain:
    """A chain on which bounds are compared.

    Attributes:
        name: Where it comes from.
        transition: Its matrix.
        start: The law of its first entry; None if it is stationary.
        length: How many entries it has.
    """

    name: str
    transition: Floats
    start: tuple[float, ...] | None = None
    length: int = LENGTH

    @property
    def prior(self) -> MarkovChain:
        """The chain as a prior."""
        if self.start is None:
            return MarkovChain(self.transition, length=self.length)
        return MarkovChain(self.transition, start=np.array(self.start), length=self.length)


@dataclass(frozen=True)
class ChainAllowances:
    """What a Pufferfish ε allows per entry on one chain, by each method; all rounded down.

    Attributes:
        name: The chain.
        states: How many states it has.
        length: How many entries.
        epsilon: The Pufferfish ε.
        allowed: For each method its per-entry ε; None where it does not apply.
        norm: The spectral norm of GK16's matrix; its theorem applies below 1.
    """

    name: str
    states: int
    length: int
    epsilon: float
    allowed: Mapping[str, float | None]
    norm: NullFloat


def binary(p: float, q: float) -> ComparedChain:
    """The stationary chain that stays at 0 with probability p and at 1 with probability q."""
    name = f"p = q = {p:g}" if p == q else f"p = {p:g}, q = {q:g}"
    return ComparedChain(name, np.array([[p, 1 - p], [1 - q, q]]))


def published_chains() -> tuple[ComparedChain, ...]:
    """Chains of Song et al., of Cao et al., and the fitted one that the paper prints."""
    printed = np.array(PRINTED)
    fitted = smooth(printed / printed.sum(axis=1, keepdims=True))
    three = np.array([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2]])
    return (
        ComparedChain("Song et al., first", np.array([[0.9, 0.1], [0.4, 0.6]]), (1.0, 0.0)),
        ComparedChain("Song et al., second", np.array([[0.8, 0.2], [0.3, 0.7]]), (0.9, 0.1)),
        ComparedChain("Cao et al., two states", np.array([[0.8, 0.2], [0.0, 1.0]]), (0.5, 0.5)),
        ComparedChain("Cao et al., three states", three),
        ComparedChain("the paper's example, 6 states", fitted),
    )


def compared_allowances(chain: ComparedChain, epsilon: float = EPSILON) -> ChainAllowances:
    """Every bound on one chain."""
    prior = chain.prior
    found = _bounds(chain, epsilon)
    found[QUILTS] = mqm_exact(chain.transition, chain.length, epsilon, start=chain.start).to_dp
    found[CURVE] = curve_allowances(prior, [epsilon])[0]
    found[EXACT] = float(Translation(prior).to_dp(epsilon))
    return _in_order(chain, epsilon, found)


def fitted_allowances(
    name: str, prior: MarkovChain, known: Allowances, epsilon: float = EPSILON
) -> ChainAllowances:
    """The same on a fitted, stationary chain, of which the experiment knows the larger part."""
    if prior.length is None or not prior.homogeneous or not prior.stationary_start:
        raise InvalidPrior(
            "prior", given="is not one stationary matrix with a length", needed="be one"
        )
    chain = ComparedChain(name, prior.kernel(), None, prior.length)
    found = _bounds(chain, epsilon)
    for method, proof in ((GROUP, "group"), (QUILTS, "quilts"), (CURVE, "curve"), (EXACT, "exact")):
        found[method] = known.at(proof, epsilon)
    return _in_order(chain, epsilon, found)


def _bounds(chain: ComparedChain, epsilon: float) -> dict[str, float | None]:
    P, n, start = chain.transition, chain.length, chain.start
    return {
        GROUP: group_to_dp(n, epsilon),
        PUBLISHED: gk16_to_dp(P, n, epsilon, start=start) or None,
        SHARPENED: gk16_to_dp(P, n, epsilon, start=start, sharpened=True) or None,
        APPROX: _mixing(P, n, epsilon),
        TEMPORAL: tpl_to_dp(P, n, epsilon, start=start),
    }


def _in_order(
    chain: ComparedChain, epsilon: float, found: Mapping[str, float | None]
) -> ChainAllowances:
    norm = gk16_norm(chain.transition, chain.length, start=chain.start)
    allowed = {method: found[method] for method in METHODS}
    return ChainAllowances(chain.name, len(chain.transition), chain.length, epsilon, allowed, norm)


def _mixing(P: Floats, length: int, epsilon: float) -> float | None:
    """MQMApprox; None for a chain that has states to which it does not return."""
    try:
        return mqm_approx(P, length, epsilon).to_dp
    except InvalidPrior:
        return None


@dataclass(frozen=True)
class ComparedChains:
    """Every bound on binary chains and on published ones.

    Attributes:
        equal: p = q, over `STAYS`.
        unequal: q = `OTHER`, over `OTHERS`.
        published: Those of `published_chains`.
    """

    equal: tuple[ChainAllowances, ...]
    unequal: tuple[ChainAllowances, ...]
    published: tuple[ChainAllowances, ...]


def compared_chains(folder: Path | None, progress: Progress) -> ComparedChains:
    """Every bound on every chain; read from ``folder`` if this version wrote it there."""
    path = None if folder is None else folder / "baselines.json"
    rows = () if path is None or not path.exists() else read_chain_allowances(path)
    chains = [
        *(binary(p, p) for p in STAYS),
        *(binary(p, OTHER) for p in OTHERS),
        *published_chains(),
    ]
    if [row.name for row in rows] != [chain.name for chain in chains]:
        found = []
        for place, chain in enumerate(chains):
            progress("baselines", place, len(chains))
            found.append(compared_allowances(chain))
        progress("baselines", len(chains), len(chains))
        rows = tuple(found)
        if path is not None:
            write_chain_allowances(rows, path)
    return _parted(rows)


def stored_chains(path: Path) -> ComparedChains:
    """The comparisons that a file holds, whichever version made them."""
    return _parted(read_chain_allowances(path, any_version=True))


def _parted(rows: tuple[ChainAllowances, ...]) -> ComparedChains:
    ends = len(STAYS), len(STAYS) + len(OTHERS)
    return ComparedChains(rows[: ends[0]], rows[ends[0] : ends[1]], rows[ends[1] :])


def write_chain_allowances(rows: Sequence[ChainAllowances], path: Path) -> None:
    """Comparisons as a JSON file, with the version that made them."""
    listed = [to_document(row) for row in rows]
    document = {"format": FORMAT, "version": __version__, "chains": listed}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(document, path, indent=1)


def read_chain_allowances(path: Path, *, any_version: bool = False) -> tuple[ChainAllowances, ...]:
    """What a file of comparisons holds; nothing if another version made it, unless it may."""
    try:
        document = read_json(path, needed="be a file of comparisons")
        if not any_version and (document["format"], document["version"]) != (FORMAT, __version__):
            return ()
        return tuple(from_document(ChainAllowances, row) for row in document["chains"])
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidFile(
            path.name,
            given="is not a file of comparisons",
            needed="be one that `takifugu reproduce` wrote; remove it, and it is made again",
        ) from error
