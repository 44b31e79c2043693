"""``takifugu demo``: the whole job on a made-up world, step by step.

Only the standard library and typer are imported at the top, so that ``--help`` stays quick.
"""

import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from takifugu.cli.terminal import echo
from takifugu.errors import InvalidFile, Malformed

if TYPE_CHECKING:
    from takifugu.cli.demo_story import Story

USUAL = Path("out") / "demo"
FEWEST, MOST = 20_000, 100_000_000


def run_demo(
    rows: Annotated[int, typer.Option(help="How many check-ins to make up.")] = 500_000,
    out: Annotated[
        Path | None,
        typer.Option(
            help="A new folder for everything that is made; by default out/demo, or the next"
            " free number after it.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the made-up world; noise has none.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """Make up a world of check-ins and do the whole job on it.

    Declare, fit a prior on the first 400 of 500 days, translate, set a budget, release the top-3
    places of every country from the last 100 days, ask a second query, have a third refused,
    check the ledger, and write an HTML page, whose path is printed last.

    The folder appears complete or not at all. Status 1 if the third query was not refused or
    the ledger is not sound. Keys of the JSON object: folder, page, ledger, declaration, seed,
    world, prior, translation (per_entry; the Pufferfish loss: exact, curve,
    group; leak, a lower bound at the last), budget,
    releases (query, rows, error, cost, …), right (how many of the named places are
    right, by place), again_free, refused (message, alone, most), spent, head, sound, seconds.
    """
    if not FEWEST <= rows <= MOST:
        raise Malformed("--rows", given=f"is {rows}", needed=f"be from {FEWEST} to {MOST}")
    if not 0 <= seed < 2**64:
        raise Malformed("--seed", given=f"is {seed}", needed=f"be from 0 to {2**64 - 1}")
    from takifugu.cli.demo_page import facts, page
    from takifugu.cli.demo_steps import play
    from takifugu.cli.demo_words import Teller
    from takifugu.reports.html_page import write_page

    begun = time.monotonic()
    tell = Teller(silent=as_json)
    with _folder(out) as (work, claim):
        story = play(work, rows=rows, seed=seed, tell=tell)
        tell.heading("A page with all of it")
        write_page(page(story), work / "page.html")
        folder = claim()
    tell.done(folder, story, time.monotonic() - begun)
    if as_json:
        places = {
            "folder": str(folder),
            "page": str(folder / "page.html"),
            "ledger": str(folder / story.ledger),
            "declaration": str(folder / story.declared),
        }
        echo(json.dumps(places | facts(story), indent=2, allow_nan=False))
    if not _as_expected(story):
        echo("takifugu: the demo did not go as it should; see above", err=True)
        raise typer.Exit(1)


def _as_expected(story: "Story") -> bool:
    return story.refused is not None and story.report.sound and story.again.free


@contextmanager
def _folder(out: Path | None) -> "Iterator[tuple[Path, Claim]]":
    """A folder to work in, and what gives it its name once all is done; else nothing is left."""
    target = USUAL if out is None else out
    if out is not None:
        _refuse_taken(out)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:
        raise InvalidFile(
            "--out", given=f"{target} cannot be made ({error.strerror})", needed="be a new folder"
        ) from None
    try:
        yield work, Claim(work, target, numbered=out is None)
    finally:
        shutil.rmtree(work, ignore_errors=True)


class Claim:
    """Gives the finished folder its name: all of it appears at once."""

    def __init__(self, work: Path, target: Path, *, numbered: bool) -> None:
        self._work, self._target, self._numbered = work, target, numbered

    def __call__(self) -> Path:
        """The folder under its name; with ``numbered``, the first that is free."""
        number = 1
        while True:
            name = self._target.name if number == 1 else f"{self._target.name}-{number}"
            target = self._target.with_name(name)
            if not self._numbered:
                _refuse_taken(target)
            if not self._numbered or not target.exists():
                try:
                    return self._work.rename(target)
                except OSError as error:
                    if not self._numbered:
                        raise InvalidFile(
                            "--out",
                            given=f"{target} cannot be written ({error.strerror})",
                            needed="be a new folder",
                        ) from None
            number += 1


def _refuse_taken(target: Path) -> None:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InvalidFile(
            "--out",
            given=f"{target} exists and is not empty",
            needed="be a new folder; a ledger is never begun over another",
        )
