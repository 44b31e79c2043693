"""The page ``docs/reproduction.md``, made from stored results; nothing in it is typed by hand.

python -m papers.composition.document                    # from the results that are stored
python -m papers.composition.document RESULTS.json …     # store these first
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from papers.composition import formats
from papers.composition.data import SOURCES
from papers.composition.differences import DIFFERENCES, NOTES
from papers.composition.files import write_whole
from papers.composition.findings import findings, word
from papers.composition.results import (
    Results,
    merged,
    read_results,
    rounded,
    write_results,
)
from papers.composition.tables import ORIGIN, facts, tables
from takifugu.errors import TakifuguError
from takifugu.reports.page import shown

ROOT = Path(__file__).parents[2]
STORED = Path(__file__).with_name("results.json")
PAGE = ROOT / "docs" / "reproduction.md"
HEAD = """\
# The paper's experiments, run again

"Composition for Pufferfish Privacy" (Bai, He, Gu, Kifer, Maeng), Section "Experiments": the three
most frequent labels of every group, released under Pufferfish privacy against an adversary who
knows the Markov chain. This page is generated (`python -m papers.composition.document`) from
`papers/composition/results.json`; a test checks that it is up to date.

```sh
takifugu reproduce all                       # simulated worlds, about three minutes
takifugu reproduce foursquare --data FOLDER  # whatever files of check-ins FOLDER has
takifugu reproduce capture24 --data FOLDER   # the same for activities
takifugu reproduce figures                   # the influence curves
```

Each writes tables (Markdown, CSV, LaTeX), figures (SVG, PNG), one page `index.html`, the measured
cells `results.json` and a `manifest.json` to `--out`; a run that was stopped goes on where it was.
"""


def document(results: Results) -> str:
    """The whole page."""
    return "\n".join([HEAD, *_short(results), *_differences(), *_parts(results), *_files()])


def _short(results: Results) -> Iterator[str]:
    yield "## In short\n"
    titles = {one.key: f"{one.title} ({one.origin})" for one in results.about}
    for key, title in titles.items():
        yield f"**{title}**\n"
        for one in findings(results):
            if one.data == key:
                yield f"- {word(one)}: {one.claim} ({one.detail})."
        yield ""


def _differences() -> Iterator[str]:
    yield "## What differs from the paper\n"
    for one in DIFFERENCES:
        where = f" ([item {one.item}]({NOTES}))" if one.item else ""
        yield f"- **{one.what}.** {one.why}{where}"
    yield ""


def _parts(results: Results) -> Iterator[str]:
    for one in results.about:
        yield f"## {one.title}\n"
        yield f"*{ORIGIN[one.origin]}*\n"
        yield "; ".join(f"{name} {shown(value)}" for name, value in facts(one).items()) + ".\n"
        if one.notes:
            yield "\n".join(f"- {note}" for note in one.notes) + "\n"
        for table in tables(one, results.of(one.key)):
            yield formats.markdown(table)


def _files() -> Iterator[str]:
    yield "## The files that are read\n"
    yield "| data | file | columns | published |"
    yield "|---|---|---|---|"
    for source in SOURCES.values():
        for needed in source.files.values():
            where = f"<{source.published}>" + ", made from it" * source.derived
            yield f"| {source.title} | `{needed.name}` | {needed.shape} | {where} |"
    yield ""


def main() -> None:
    """Store results that are given, and write the page from what is stored."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", nargs="*", type=Path, help="results.json of runs to store")
    given: list[Path] = parser.parse_args().results
    try:
        if given:
            write_results(rounded(merged(map(read_results, given))), STORED)
        write_whole(PAGE, document(read_results(STORED)))
    except TakifuguError as error:
        sys.exit(f"takifugu: {error}")
    print(PAGE.relative_to(ROOT))


if __name__ == "__main__":
    main()
