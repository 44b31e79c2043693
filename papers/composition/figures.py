"""The figure of influence curves: printed formulas, and the right curves where they differ.

    python -m papers.composition.figures [--out DIR]

(a) binary Markov chains, (b) Gaussian processes, (c) the ALARM network with and without 20 %
uncertainty. ALARM is read from the files of the package pgmpy, which is not imported; without it
(c) is left out, and the run says so.
"""

import argparse
import importlib.util
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from takifugu import reports
from takifugu.influence.binary_chain import binary_chain, printed_binary_curve
from takifugu.influence.chains import chain_curve
from takifugu.influence.curve import InfluenceCurve
from takifugu.influence.gaussian import gaussian_curve
from takifugu.influence.presets import uncertain
from takifugu.influence.search import nearest_curve, network_curve
from takifugu.priors.bif import read_bif
from takifugu.priors.gaussian import Gaussian
from takifugu.reports.curves import draw_curves

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Curves = Mapping[str, InfluenceCurve]

BINARY = ((0.5, 0.45), (0.4, 0.3), (0.3, 0.3), (0.2, 0.3), (0.1, 0.3), (0.1, 0.1))
LENGTHS = (0.5, 1, 2, 3, 5)
CHAIN_LENGTH, CHAIN_MOST = 1000, 12
ENTRIES, BOUND, WIDTH = 21, 5.0, 0.1
ALARM_MOST = 4


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
        prior = Gaussian.process(ENTRIES, length=length, bound=BOUND, width=WIDTH)
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
    alarm = read_bif(path, renormalise=True)
    nearest = nearest_curve(alarm, largest=ALARM_MOST)
    exact = network_curve(alarm, largest=ALARM_MOST)
    return (
        {"nearest": nearest, "nearest, 20 %": uncertain(nearest, relative=0.2)},
        {"best": exact, "best, 20 %": uncertain(exact, relative=0.2)},
    )


def figure(
    title: str, printed: Curves, right: Curves, *, beside: str, most: int, log: bool = False
) -> "Figure":
    """The printed curves on the left, the right ones beside them on the same scale."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(10.5, 4.2), layout="constrained")
    panels = drawn.subplots(1, 2, sharey=True)
    for axes, curves, name in zip(panels, (printed, right), ("as printed", beside), strict=True):
        draw_curves(axes, curves, most=most, log=log)
        axes.set_title(f"{title}, {name}", fontsize=10)
        if log:
            axes.set_ylim(1e-3, None)
        axes.legend(frameon=False, fontsize=8)
    return drawn


def numbers(curves: Curves) -> dict[str, list[list[float | str]]]:
    """Curves as rows of b and a, for the file beside the figures."""
    return {
        name: [[p.b, p.a if p.a < float("inf") else "infinity"] for p in curve.points()]
        for name, curve in curves.items()
    }


def main() -> None:
    """Draw the three panels and write the numbers behind them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/composition"))
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    panels: dict[str, tuple[str, Curves, Curves, str, int, bool]] = {
        "a": ("binary Markov chains", *binary_curves(), "exact", CHAIN_MOST, False),
        "b": (
            "Gaussian processes",
            *gaussian_curves(),
            "sound for the truncated law",
            ENTRIES,
            True,
        ),
    }
    alarm = alarm_file()
    if alarm is None:
        print("(c) is left out: install pgmpy for the file of ALARM", file=sys.stderr)
    else:
        panels["c"] = ("ALARM", *alarm_curves(alarm), "best sets", ALARM_MOST, False)
    written = {}
    for key, (title, printed, right, beside, most, log) in panels.items():
        drawn = figure(f"({key}) {title}", printed, right, beside=beside, most=most, log=log)
        path = out / f"curves-{key}.svg"
        reports.save(drawn, path)
        reports.save(drawn, path.with_suffix(".png"))
        written[key] = {"printed": numbers(printed), "right": numbers(right)}
        print(path)
    (out / "curves.json").write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
