"""``takifugu demo``: the whole job on synthetic data, step by step.

Only the standard library and typer are imported at the top, so that ``--help`` stays quick.
"""

import shutil
import tempfile
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Annotated

import typer

from takifugu.cli.shared_options import AsJson, echo, print_json, refuse_outside
from takifugu.errors import InvalidFile

DEFAULT_FOLDER = Path("out") / "demo"
FILES = {"page": "page.html", "ledger": "takifugu.ledger", "declaration": "check-ins.toml"}
MIN_ROWS, MAX_ROWS = 20_000, 100_000_000
LEAD = (
    "A demonstration on synthetic data: check-ins of 500 days, drawn from a Markov model. Nobody is"
    " behind these rows. This is the report that takifugu report writes for a project of your own."
)


def run_demo(
    rows: Annotated[int, typer.Option(help="The number of check-ins.")] = 500_000,
    out: Annotated[
        Path | None,
        typer.Option(
            help="A new folder for the project; by default out/demo, or out/demo-2 and so on if"
            " that exists.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of the synthetic data; noise has none.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Do the whole job on synthetic check-ins.

    Make a project, add the dataset, fit a prior on a fifth of the users, set a budget, release the
    top-3 places of every country from the other users and then the shares of one country, have a
    third query refused, verify the ledger, and write the project's report, an HTML page, whose path
    is printed last. The folder that is left is a project: try more queries in it.

    The folder appears complete or not at all. The status is 1 if the third query was not refused or
    the ledger is not sound.

    JSON: folder, page, ledger, declaration, seed, world, prior, translation (per_entry; the
    Pufferfish loss: exact, curve, group; leak, a lower bound at the last), budget, releases (query,
    rows, error, cost, …), right (how many of the named places are right, by place), again_free,
    refused (message, alone, most), spent, head, sound, seconds.
    """
    refuse_outside("--rows", rows, MIN_ROWS, MAX_ROWS)
    refuse_outside("--seed", seed, 0, 2**64 - 1)
    from takifugu.cli.demo import demo_steps
    from takifugu.cli.demo.demo_steps import DemoRecord
    from takifugu.project.project import open_project
    from takifugu.project.project_report import project_report
    from takifugu.reports.html_page import write_page
    from takifugu.reports.report_page import report_page

    begun = datetime.now(UTC)
    record = DemoRecord(silent=as_json)
    with NewFolder(out) as new:
        demo_steps.run_steps(new.work, rows=rows, seed=seed, record=record)
        project = open_project(new.work)
        with project.ledger() as ledger:  # read-only, SQLite would leave files of its own behind
            report = project_report(project, ledger=ledger)
        page = report_page(report, title="Top places of 77 countries", lead=LEAD)
        write_page(page, new.work / "page.html")
        folder = new.publish()
    files = {name: str(folder / file) for name, file in FILES.items()}
    if as_json:
        print_json({"folder": str(folder), **files, **record.facts})
    seconds = (datetime.now(UTC) - begun).total_seconds()
    record.line(f"\nIt took {seconds:.0f} s. The folder {folder} is a project; go on with:\n")
    name = demo_steps.DATASET
    for line in (
        f"budget show {name}",
        f"plan {name} histogram --epsilon 0.1",
        "ledger verify",
    ):
        record.line(f"   takifugu {line} --project {folder}")
    record.line(f"\n{files['page']}")
    if not record.as_expected:
        echo("takifugu: the demo did not go as it should; see above", err=True)
        raise typer.Exit(1)


class NewFolder(AbstractContextManager["NewFolder"]):
    """A folder that appears complete or not at all.

    Attributes:
        work: Where to write; it gets its name by `publish`, and is deleted without it.
    """

    def __init__(self, out: Path | None) -> None:
        """Prepare the folder ``out``; None for the default one, numbered if it exists."""
        self._target, self._numbered = (DEFAULT_FOLDER, True) if out is None else (out, False)
        if not self._numbered:
            _refuse_used(self._target)
            _refuse_bytes(self._target)
        try:
            self._target.parent.mkdir(parents=True, exist_ok=True)
            prefix = f".{self._target.name}-"
            self.work = Path(tempfile.mkdtemp(prefix=prefix, dir=self._target.parent))
        except OSError as error:
            raise _not_made(self._target, error) from None

    def publish(self) -> Path:
        """The folder under its name; if that is numbered, the first that is free."""
        for number in count(1):
            suffix = "" if number == 1 else f"-{number}"
            target = self._target.with_name(f"{self._target.name}{suffix}")
            if not self._numbered:
                _refuse_used(target)
            elif target.exists():
                continue
            try:
                return self.work.rename(target)
            except OSError as error:
                if not (self._numbered and target.exists()):  # not taken by another run meanwhile
                    raise _not_made(target, error) from None
        raise AssertionError

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.work, ignore_errors=True)


def _not_made(target: Path, error: OSError) -> InvalidFile:
    given = f"{target} cannot be made ({error.strerror})"
    return InvalidFile("--out", given=given, needed="be a new folder")


def _refuse_bytes(target: Path) -> None:
    try:
        str(target).encode()
    except UnicodeEncodeError:
        raise InvalidFile(
            "--out", given=f"{target} is not text in UTF-8", needed="be the name of a new folder"
        ) from None


def _refuse_used(target: Path) -> None:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InvalidFile(
            "--out",
            given=f"{target} exists and is not empty",
            needed="be a new folder; a ledger is never begun over another",
        )
