"""The figure of influence curves: printed formulas, and the right curves where they differ.

(a) binary Markov chains, (b) Gaussian processes, (c) the ALARM network with and without 20 %
uncertainty. ALARM is read from the files of the package pgmpy, which is not imported; without it
(c) is left out, and the run says so.
"""

import hashlib
import importlib.util
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from takifugu import __version__
from takifugu._core.numeric import Floats, Integers
from takifugu._core.rounding import UNIT, up
from takifugu.errors import InvalidPrior, UnsoundRequest
from takifugu.influence.chain.chain_curves import chain_curve
from takifugu.influence.curve import InfluenceCurve
from takifugu.influence.gaussian_curves import gaussian_curve
from takifugu.influence.network.network_curves import nearest_curve, network_curve
from takifugu.influence.presets import uncertain
from takifugu.papers.composition.tables_and_figures.figure_writing import (
    legend_below,
    new_figure,
    write_svg_and_png,
    write_whole,
)
from takifugu.papers.composition.tables_and_figures.print_agreement import INK
from takifugu.priors.bif import read_bif
from takifugu.priors.markov import MarkovChain
from takifugu.priors.truncated_gaussian import TruncatedGaussian
from takifugu.reports.curve_figures import draw_curves
from takifugu.reports.html_page import Drawing
from takifugu.reports.html_style import BLUE, GREEN, ORANGE, PURPLE, RED
from takifugu.reports.plot_files import drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def binary_chain(stay_0: float, stay_1: float, *, length: int | None = None) -> MarkovChain:
    """The stationary chain that stays at 0 with probability ``stay_0``, at 1 with ``stay_1``."""
    table = np.array([[stay_0, 1 - stay_0], [1 - stay_1, stay_1]])
    return MarkovChain(table, length=length)


def printed_binary_curve(
    stay_0: float, stay_1: float, *, max_exposed: int, length: int | None = None
) -> InfluenceCurve:
    r"""The paper's closed form, as printed: an upper bound, not always tight.

    With :math:`\lambda = p + q - 1`, :math:`\pi_0 = (1-q)/(2-p-q)`, the middle split
    :math:`d_L = \lfloor (b+1)/2 \rfloor, d_R = \lceil (b+1)/2 \rceil` and s = 0 if q > p, else 1,

    .. math:: a(b) = \sum_{d \in \{d_L, d_R\}}
              \Big|\log\frac{\pi_s + \lambda^d (1-\pi_s)}{\pi_s - \lambda^d \pi_s}\Big|.

    It is the leak of one split, hence an upper bound, as each side's largest absolute log-ratio is
    at s. It is tight, in the paper's reading of a pair, for λ ≥ 0 and b small against the length.
    For λ < 0 it is not: with b even the two sides need different values ((.1, .3), b = 2: 2.77259
    against 2.63906), and with b odd another split may be better ((.01, .39), b = 5: 1.25442
    against 1.23611). Near the ends of a chain one-sided splits win. See `chain_curve` for the
    true curve.
    """
    for field, value in (("stay_0", stay_0), ("stay_1", stay_1)):
        if not 0 < value < 1:  # also false for NaN
            raise InvalidPrior(field, given=f"is {value}", needed="be above 0 and below 1")
    if max_exposed < 1 or (length is not None and max_exposed > length):
        raise UnsoundRequest(
            f"max_exposed is {max_exposed}; it must be from 1 to the length",
            field="max_exposed",
            given=max_exposed,
            needed=length,
        )
    exposed = np.arange(1, max_exposed + 1, dtype=np.int64)
    leak = up(
        _printed(stay_0, stay_1, (exposed + 1) // 2) + _printed(stay_0, stay_1, exposed // 2 + 1)
    )
    if length == max_exposed:
        leak[-1] = 0.0
    return InfluenceCurve(exposed, leak[None], length, ("0 / 1, both ways",), exact=np.array(False))


def _printed(p: float, q: float, distance: Integers) -> Floats:
    """One side of the printed formula, rounded up; 1 ± t is formed without cancellation."""
    here = (1 - q) / (2 - p - q) if q > p else (1 - p) / (2 - p - q)
    step: Floats = np.power(p - (1 - q), distance.astype(np.float64))
    other = (1 - p) / (2 - p - q) if q > p else (1 - q) / (2 - p - q)
    inner = step * other / here
    value = np.abs(np.log1p(inner) - np.log1p(-step))
    # λ is off by a unit roundoff, hence λ^d by at most d of them; then by the slope of each log
    slope = (1 + other / here) / np.minimum(1 + inner, 1.0) + 1 / (1 - np.abs(step))
    found: Floats = value + UNIT * (8 * value + (8 + 4 * distance) * slope)
    return found


@dataclass(frozen=True)
class Misspecified:
    """What a guarantee is worth when one curve was assumed and another one holds (§6.3.3).

    Attributes:
        dp: The per-entry loss that was calibrated by the assumed curve.
        achieved: The Pufferfish loss that this has under the curve that holds.
        bound: The paper's bound on it, ε + a₂(b*) − a₁(b*), where b* calibrated ``dp``.
    """

    dp: float
    achieved: float
    bound: float


def misspecified(assumed: InfluenceCurve, actual: InfluenceCurve, epsilon: float) -> Misspecified:
    """Calibrate to ``epsilon`` by the pooled ``assumed`` curve, then ask the ``actual`` one."""
    pooled = InfluenceCurve(assumed.exposed, assumed.pooled()[None, :], assumed.entries)
    dp = float(pooled.to_dp(epsilon))
    if dp == 0:
        raise UnsoundRequest(
            f"the assumed curve allows no loss at ε = {epsilon}", field="epsilon", given=epsilon
        )
    room = (epsilon - assumed.pooled()) / assumed.exposed
    best = int(np.argmax(room))
    at = int(np.searchsorted(actual.exposed, assumed.exposed[best], side="right")) - 1
    holds = float(actual.pooled()[at]) if at >= 0 else float("inf")
    bound = float(up(epsilon + holds - float(assumed.pooled()[best])))
    return Misspecified(dp, float(actual.to_pufferfish(dp)), bound)


Curves = Mapping[str, InfluenceCurve]
Progress = Callable[[str, int, int], None]  # what is being done, steps done, steps in all

BINARY = ((0.5, 0.45), (0.4, 0.3), (0.3, 0.3), (0.2, 0.3), (0.1, 0.3), (0.1, 0.1))
LENGTHS = (0.5, 1, 2, 3, 5)
CHAIN_LENGTH, CHAIN_MOST = 1000, 12
ENTRIES, BOUND, WIDTH = 21, 5.0, 0.1
ALARM_MOST = 4
FLOOR = 1e-3  # nats; smaller leaks are not told apart
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, RED, INK)
MARKERS = ("o", "s", "D", "P", "x", "*")  # no triangles: these say that a curve leaves the axes
FORMAT = 3  # of the drawings; a new number when they may look different
LEFT_OUT = "figure (c) is left out: install pgmpy for the file of ALARM"


def binary_curves() -> tuple[Curves, Curves]:
    """(a): the printed closed form, and the exact curve in the paper's reading."""
    printed, right = {}, {}
    for p, q in BINARY:
        name = f"p = {p:g}, q = {q:g}"
        printed[name] = printed_binary_curve(p, q, max_exposed=CHAIN_MOST, length=CHAIN_LENGTH)
        chain = binary_chain(p, q, length=CHAIN_LENGTH)
        right[name] = chain_curve(chain, max_exposed=CHAIN_MOST, symmetric=True)
    return printed, right


def gaussian_curves() -> tuple[Curves, Curves]:
    """(b): the printed formula (worst coordinate searched), and the bound for the law cut off."""
    printed, right = {}, {}
    for length in LENGTHS:
        prior = TruncatedGaussian.process(ENTRIES, length=length, bound=BOUND, width=WIDTH)
        printed[f"ℓ = {length:g}"] = gaussian_curve(prior, law="printed")
        right[f"ℓ = {length:g}"] = gaussian_curve(prior)
    return printed, right


def alarm_file() -> Path | None:
    """ALARM as pgmpy ships it, if pgmpy is installed."""
    found = importlib.util.find_spec("pgmpy")
    for folder in (found.submodule_search_locations or ()) if found else ():
        path = Path(folder) / "utils" / "example_models" / "alarm.bif.gz"
        if path.exists():
            return path
    return None


def alarm_curves(path: Path) -> tuple[Curves, Curves]:
    """(c): nearest neighbours as in the paper, and the exact curve; each with 20 % uncertainty."""
    alarm = read_bif(path)
    nearest = nearest_curve(alarm, largest=ALARM_MOST)
    exact = network_curve(alarm, largest=ALARM_MOST)
    return (
        {"prior known": nearest, "20 % uncertainty": uncertain(nearest, relative=0.2)},
        {"prior known": exact, "20 % uncertainty": uncertain(exact, relative=0.2)},
    )


CAPTIONS = {
    "a": "(a) Influence curves of binary Markov chains: the printed closed form, and exact, on a"
    " logarithmic scale that begins at 0.001 nats. Where all entries are exposed a(b) is 0.",
    "b": "(b) Influence curves of Gaussian processes: as printed, and sound for the truncated law,"
    " on a logarithmic scale that begins at 0.001 nats. At b = 21 all entries are exposed, and a(b)"
    " is 0 for every curve.",
    "c": "(c) Influence curves of ALARM, with and without 20 % uncertainty: by nearest neighbours,"
    " as in the paper, and by the best sets. At b = 1 both are infinite: the network has zeros, so"
    " that the other entries may rule a value out.",
}


@dataclass(frozen=True)
class Panel:
    """One panel of the figure: what is printed, and what is right.

    Attributes:
        key: Its letter.
        title: What the prior is.
        printed: The curves as the paper has them.
        right: The right ones.
        above: What stands above each of the two.
        most: The largest number of exposed entries that is shown.
        floor: Where a logarithmic scale begins; None for a linear one.
    """

    key: str
    title: str
    printed: Curves
    right: Curves
    above: tuple[str, str]
    most: int
    floor: float | None = None


def panels() -> Iterator[Panel]:
    """The panels in order, each computed when needed; (c) only if ALARM is there."""
    names = "as printed: the closed form", "exact"
    yield Panel(
        "a", "Influence curves of binary Markov chains", *binary_curves(), names, CHAIN_MOST, FLOOR
    )
    names = "as printed", "sound for the truncated law"
    yield Panel(
        "b", "Influence curves of Gaussian processes", *gaussian_curves(), names, ENTRIES, FLOOR
    )
    alarm = alarm_file()
    if alarm is not None:
        names = "by nearest neighbours, as in the paper", "by the best sets"
        yield Panel("c", "Influence curves of ALARM", *alarm_curves(alarm), names, ALARM_MOST)


def figure(panel: Panel) -> "Figure":
    """The printed curves on the left, the right ones beside them on the same axes."""
    drawn = new_figure(10.5, 4.6, f"({panel.key}) {panel.title}", size=11)
    axes = drawn.subplots(1, 2, sharex=True, sharey=True)
    both = panel.printed, panel.right
    limits: list[float] = []  # both panels reach to the higher one
    for one, curves, name in zip(axes, both, panel.above, strict=True):
        one.set_prop_cycle(color=COLOURS)
        draw_curves(one, curves, most=panel.most, floor=panel.floor, markers=MARKERS)
        limits.append(one.get_ylim()[1])
        one.set_title(name, fontsize=10)
        one.grid(axis="y", alpha=0.25)
    axes[0].set_ylim(top=max(limits))
    axes[1].set_ylabel("")
    more = []
    shown = [c.pooled()[c.exposed <= panel.most] for curves in both for c in curves.values()]
    if any(np.isinf(leak).any() for leak in shown):
        mark = axes[0].plot([], [], "^", ls="", color=INK)[0]
        more.append((mark, "infinite: the rest may reveal the entry"))
    if panel.floor is not None and any((leak < panel.floor).any() for leak in shown):
        mark = axes[0].plot([], [], "v", ls="", color=INK)[0]
        more.append((mark, f"from here on below {panel.floor:g}"))
    legend_below(drawn, axes[0], 6, more)
    return drawn


def numbers(curves: Curves) -> dict[str, list[list[float | str]]]:
    """Curves as rows of b and a, for the file beside the figures."""
    return {
        name: [[p.b, p.a if p.a < float("inf") else "infinity"] for p in curve.points()]
        for name, curve in curves.items()
    }


def write_panels(out: Path, work: Path, progress: Progress) -> tuple[Path, ...]:
    """Draw every panel as SVG and PNG, and write the numbers behind them; the files.

    They take a quarter of a minute, so what this version drew of the same networks is kept; in
    ``work`` as it stands in a page.
    """
    about = {"version": __version__, "format": FORMAT, "alarm": _alarm_hash()}
    keys = ("a", "b") if about["alarm"] is None else ("a", "b", "c")
    behind = out / "curves.json"
    files = (*(out / f"curves-{key}{end}" for key in keys for end in (".svg", ".png")), behind)
    kept = [work / f"curves-{key}.svg" for key in keys]
    if _known(behind) == about and all(path.exists() for path in (*files, *kept)):
        return files
    rows: dict[str, Any] = {"about": about}
    for place, panel in enumerate(panels()):
        progress("influence curves", place, len(keys))
        drawn = figure(panel)
        write_svg_and_png(drawn, out, f"curves-{panel.key}")
        write_whole(work / f"curves-{panel.key}.svg", drawing(drawn, name=f"c-{panel.key}").svg)
        rows[panel.key] = {"printed": numbers(panel.printed), "right": numbers(panel.right)}
    progress("influence curves", len(keys), len(keys))
    write_whole(behind, json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    return files


def kept_drawings(work: Path, files: Collection[Path]) -> list[Drawing]:
    """Those panels of ``files``, as `write_panels` kept them for a page."""
    drawn = {path.name for path in files}
    return [
        Drawing((work / name).read_text(encoding="utf-8"), caption, caption)
        for key, caption in CAPTIONS.items()
        if (name := f"curves-{key}.svg") in drawn
    ]


def _alarm_hash() -> str | None:
    path = alarm_file()
    return None if path is None else hashlib.sha256(path.read_bytes()).hexdigest()


def _known(path: Path) -> Any:
    """What a file of curves says it was made of; None if there is no such file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))["about"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
