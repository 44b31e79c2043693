"""``takifugu reproduce``: the experiments of the paper, on data or on synthetic worlds."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu.cli.shared_options import (
    AsJson,
    InvalidOption,
    Spinner,
    echo,
    print_json,
    refuse_outside,
)

if TYPE_CHECKING:
    from takifugu.papers.composition.reproduction import Reproduction

WHAT = ("figures", "foursquare", "capture24", "all")
MAX_REPETITIONS, SEED = 100_000, 2025
DATA_HELP = (
    "A folder with data: every known source that has files there is used. Without it: synthetic"
    " worlds."
)

MIN_ROWS, MAX_ROWS = 10_000, 1_000_000_000  # as in takifugu.synthetic.check_in_counts
ROWS_HELP = (
    "Rows of the synthetic check-ins, of which only counts are drawn; without it as many as the"
    " paper's data has, 33,278,683. Not with --data."
)


def run_reproduce(
    what: Annotated[
        str,
        typer.Argument(
            help="figures (curves, definitions, baselines), foursquare, capture24, or all."
        ),
    ] = "all",
    data: Annotated[Path | None, typer.Option(help=DATA_HELP)] = None,
    repetitions: Annotated[
        int | None,
        typer.Option(
            help="Runs of each mechanism on each group, at least 2; without it at least 200, and as"
            " many as 10,000 draws over all groups need."
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="The folder for all results; a run found there is continued.")
    ] = Path("out/reproduction"),
    seed: Annotated[
        int, typer.Option(help="Seed of the simulations; nothing that protects data has one.")
    ] = SEED,
    rows: Annotated[int | None, typer.Option(help=ROWS_HELP)] = None,
    as_json: AsJson = False,
) -> None:
    """Repeat the experiments of "Composition for Pufferfish Privacy": tables, figures, a page.

    With --data on the sources found there; without it on synthetic worlds, and every table says so.
    An interrupted run is continued.

    JSON: what, page, manifest, files, datasets (key, title, family, origin, groups, labels, length,
    cells, beside_print: lines on how far its numbers are from the printed ones), findings (data,
    claim, verdict, holds; shown, tied, open, contradicted: the numbers of comparisons; detail),
    notices (what was missing), seconds.
    """
    if what not in WHAT:
        raise InvalidOption("WHAT", given=f"is {what!r}", needed=f"be one of {', '.join(WHAT)}")
    if repetitions is not None:
        refuse_outside("--repetitions", repetitions, 2, MAX_REPETITIONS)
    if seed < 0:
        raise InvalidOption("--seed", given=f"is {seed}", needed="be at least 0")
    _check_rows(rows, what, data)
    from takifugu.papers.composition.reproduction import ReproductionRequest, reproduce

    command = " ".join(["takifugu", *sys.argv[1:]])
    request = ReproductionRequest(what, data, out, repetitions, seed, command, rows)  # type: ignore[arg-type]
    with Spinner("reproducing") as spinner:
        reproduction = reproduce(
            request,
            lambda part, done, total: spinner(f"{part}, {done:,} of {total:,}"),
            partial(_notice, spinner),
        )
    if as_json:
        print_json(_facts(what, reproduction))
    else:
        _print(reproduction)


def _notice(spinner: Spinner, text: str) -> None:
    with spinner.paused():
        echo(text, err=True)


def _check_rows(rows: int | None, what: str, data: Path | None) -> None:
    """Refuse --rows where no synthetic check-ins are made, or too few or many rows."""
    if rows is None:
        return
    if data is not None:
        raise InvalidOption(
            "--rows", given="is given with --data", needed="be left out: data has the rows it has"
        )
    if what not in ("foursquare", "all"):
        raise InvalidOption(
            "--rows",
            given=f"is given for {what}",
            needed="be left out: only foursquare and all have synthetic check-ins",
        )
    refuse_outside("--rows", rows, MIN_ROWS, MAX_ROWS)


def _facts(what: str, reproduction: "Reproduction") -> dict[str, Any]:
    from takifugu.papers.composition.experiments.verdicts import word
    from takifugu.papers.composition.reproduction_page import print_lines

    return {
        "what": what,
        "page": str(reproduction.page),
        "manifest": str(reproduction.manifest),
        "files": [str(path) for path in reproduction.files],
        "datasets": [
            {
                "key": one.key,
                "title": one.title,
                "family": one.family,
                "origin": one.origin,
                "groups": one.groups,
                "labels": one.labels,
                "length": one.length,
                "cells": len(reproduction.results.of(one.key)),
                "beside_print": list(print_lines(one, reproduction.results)),
            }
            for one in reproduction.results.about
        ],
        "findings": [{**vars(one), "verdict": word(one)} for one in reproduction.findings],
        "notices": list(reproduction.notices),
        "seconds": reproduction.seconds,
    }


def _print(reproduction: "Reproduction") -> None:
    from takifugu.papers.composition.experiments.verdicts import MADE_OF, majority_line, word
    from takifugu.papers.composition.reproduction_page import print_lines

    for one in reproduction.results.about:
        echo(f"{one.title} ({one.origin}): {one.groups} groups, {one.labels} labels")
        for found in reproduction.findings:
            if found.data == one.key:
                echo(f"  {word(found)}: {found.claim}")
                echo(f"    {found.detail}")
        against = majority_line(one.key, reproduction.results)
        if against:
            echo(f"  {against}")
        for line in print_lines(one, reproduction.results):
            echo(f"  beside print: {line}")
    if reproduction.findings:
        echo(MADE_OF)
    files, seconds = len(reproduction.files), reproduction.seconds
    echo(f"{files} files in {seconds:.0f} s; the page is {reproduction.page}")
