"""The table of measured figures: printed, and written into ``docs/explanation/peers.md``.

The page is written by hand but for what stands between two marks, which comes from `measured.json`:
``python -m benchmarks._peers.measured_page`` writes it anew from there, and a test compares them.
"""

import json
from pathlib import Path
from typing import Any

from benchmarks._peers.environments import FLOOR, ROOT

MEASURED = Path(__file__).parent / "measured.json"
PAGE = ROOT / "docs" / "explanation" / "peers.md"
BEGIN, END = "<!-- measured: begin -->\n", "<!-- measured: end -->\n"

HEAD = (
    "| | version | wall | × | processors | × | peak memory | × | right places |\n"
    "|---|---|---:|---:|---:|---:|---:|---:|---:|\n"
)


def table(document: dict[str, Any]) -> str:
    """The figures as a table in Markdown, with ratios to the floor."""
    (floor,) = [one for one in document["peers"] if one["name"] == FLOOR.name]
    return HEAD + "\n".join(_row(one, floor) for one in document["peers"]) + "\n"


def _row(one: dict[str, Any], floor: dict[str, Any]) -> str:
    start = f"| {one['name']} | {one.get('version', '')} |"
    if "failed" in one:
        return f"{start} {one['failed']} | | | | | | |"
    cells = []
    for key, unit in (("wall", "s"), ("processor", "s"), ("peak", "MiB")):
        cells += [f"{_digits(one[key])} {unit}", _digits(one[key] / floor[key])]
    places = 3 * 77
    agreed = f"{one['right']} of {places}" + (f", {one['wrong']} WRONG" if one["wrong"] else "")
    return f"{start} {' | '.join(cells)} | {agreed} |"


def _digits(value: float) -> str:
    """Three digits at most, and no fewer before the point than there are."""
    return f"{value:.0f}" if value >= 99.5 else f"{value:.3g}"


def passage(document: dict[str, Any]) -> str:
    """What stands between the marks of the page."""
    once = document["once"]
    decided = min(one["decided"] for one in document["peers"] if "failed" not in one)
    rounds = "one round" if document["rounds"] == 1 else f"medians of {document['rounds']} rounds"
    shared = (
        f" The load of the machine was {document['load']:g} on average: other work shared its"
        " cores, so that processor time says more than wall time."
    )
    return (
        f"{BEGIN}Measured on {document['date']}: {document['rows']:,} rows,"
        f" {document['cores']} cores, Python {document['python']},"
        f" {(document['java'] or 'no Java').replace(chr(34), '')}; {rounds}; a row whose label is"
        f" changed costs ε = {document['epsilon']:g}."
        f"{shared if document['load'] > document['cores'] else ''}\n"
        f"\n{table(document)}\n"
        f"{decided} of the 231 places are decided by more than any noise can be; whatever stands in"
        " another place is counted as wrong. takifugu computes once for a prior, and keeps in a"
        f" file, what it costs: {_digits(once['processor'])} s of processors for this one of 78"
        f" states, under which ε = {document['epsilon']:g} for each entry is a Pufferfish loss of"
        f" {once['loss']:.4g}.\n{END}"
    )


def renew(document: dict[str, Any] | None = None) -> list[Path]:
    """Write the figures if there are new ones, and the page from them."""
    if document is not None:
        text = json.dumps(document, indent=1, ensure_ascii=False)
        MEASURED.write_text(f"{text}\n", encoding="utf-8")
    kept = json.loads(MEASURED.read_text("utf-8"))
    page = PAGE.read_text("utf-8")
    before, rest = page.split(BEGIN)
    PAGE.write_text(before + passage(kept) + rest.split(END)[1], encoding="utf-8")
    return [MEASURED, PAGE]


if __name__ == "__main__":
    renew()
