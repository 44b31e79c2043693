"""``python -m torture.oracles.tightness_page [OUT/oracles.json]``: the tables of the page.

With the file of a run its figures become those that are kept, `measured.json`; the tables of
*How tight the bounds are* are written from these.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from takifugu._core.atomic import write_whole
from torture.oracles.families import BY_NAME
from torture.oracles.runner import TITLE
from torture.part_report import ROOT, PartSummary

MEASURED = Path(__file__).with_name("measured.json")
PAGE = ROOT / "docs" / "explanation" / "tightness.md"
SHOWN = {
    "instances": "instances",
    "refused": "refused",
    "violations": "violations",
    "wrong exact": "wrong *exact*",
    "exact": "*exact*",
    "median": "median",
    "90 %": "90 %",
    "99 %": "99 %",
    "max": "largest",
    "truth known": "truth known",
    "median ": "lower/true",
}
BEGIN, END = "<!-- measured -->\n", "<!-- end of what was measured -->\n"


def tables(measured: Mapping[str, Any]) -> str:
    """What is generated of the page, from the figures of a run."""
    columns, rows = measured["columns"], measured["rows"]
    places = [columns.index(name) for name in SHOWN]
    lines = [_line(["family", *SHOWN.values()]), _line(["---", *["---:"] * len(SHOWN)])]
    lines += [_line([row[0], *(str(row[k]) for k in places)]) for row in rows]
    total, wrong = (
        sum(row[columns.index(name)] for row in rows) for name in ("instances", "violations")
    )
    by_oracle: dict[str, list[str]] = {}
    for row in rows:
        by_oracle.setdefault(BY_NAME[row[0]].oracle, []).append(row[0])
    oracles = [f"- *{oracle}*: {'; '.join(names)}." for oracle, names in by_oracle.items()]
    run = (
        f"{total:,} instances, {wrong} violations, in {measured['minutes']:.0f} minutes (seed"
        f" {measured['seed']}; {measured['machine']})."
    )
    compared = "What each row is compared with:"
    return "\n".join([run, "", *lines, "", compared, "", *oracles, ""])


def page(text: str, measured: Mapping[str, Any]) -> str:
    """The page with its tables renewed."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + "\n" + tables(measured) + "\n" + END + rest.split(END)[1]


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def kept(summary: PartSummary) -> dict[str, Any]:
    """What is kept of a run."""
    table = next(table for table in summary.tables if table.title == TITLE)
    return {
        "seed": summary.seed,
        "minutes": round(summary.seconds / 60, 1),
        "machine": summary.machine,
        "columns": list(table.columns),
        "rows": [list(row) for row in table.rows],
    }


def main() -> int:
    """Keep the figures of a run, if one is given, and write the page."""
    options = argparse.ArgumentParser(prog="python -m torture.oracles.tightness_page")
    options.add_argument("run", nargs="?", type=Path, help="oracles.json of a run")
    given = options.parse_args()
    if given.run is not None:
        content = json.dumps(kept(PartSummary.read(given.run)), indent=1, ensure_ascii=False)
        write_whole(MEASURED, content + "\n")
    measured = json.loads(MEASURED.read_text(encoding="utf-8"))
    write_whole(PAGE, page(PAGE.read_text(encoding="utf-8"), measured))
    print(f"wrote {PAGE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
