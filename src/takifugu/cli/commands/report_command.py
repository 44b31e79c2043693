"""``takifugu report``: what a project publishes and protects, for a data protection officer.

``takifugu report`` alone, or with names of datasets, writes one: it is short for ``report write``.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu.cli.commands.report_signing import run_key, run_sign, run_verify
from takifugu.cli.shared_options import (
    AsJson,
    InProject,
    Spinner,
    StrictGroup,
    StrictTyper,
    echo,
    print_json,
    show_warnings,
    the_project,
)
from takifugu.cli.shell_completion import complete_dataset
from takifugu.errors import InvalidFile

if TYPE_CHECKING:
    from takifugu.reports.report_values import PrivacyReport

SUFFIXES = (".html", ".pdf")


class ReportGroup(StrictGroup):
    """A group whose first word may be left out: it is then ``write``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments, with ``write`` before them unless they name a command."""
        if not args or (args[0] not in self.commands and args[0] != "--help"):
            args = ["write", *args]
        parsed: list[str] = super().parse_args(ctx, args)
        return parsed


app = StrictTyper(
    help="Write a report on the project, sign it, verify one. Without a command: write.",
    rich_markup_mode=None,
    group=ReportGroup,
)


@app.command("write")
def run_report(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Datasets of the project; by default all of them.",
            autocompletion=complete_dataset,
        ),
    ] = None,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="The file to write: .html, or .pdf (extra `reports`)."),
    ] = Path("report.html"),
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the file if there is one.")
    ] = False,
    folder: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Write a report on the project for a data protection officer.

    What is protected and from whom, the prior and its figures, the budget over time, every release
    with its figure and its intervals, the owner's decisions, the state of the ledger, and a
    glossary; in one file that fetches nothing. It charges nothing and opens no table: answers are
    those that the ledger has stored. The same project gives the same bytes.

    The status is 1 if the ledger is not sound; the report then says so.

    JSON: out, datasets (name, budget, delta, spent, left, releases), head (seq, hash), sound.
    """
    from takifugu._core.atomic import PendingFile
    from takifugu.project.project_report import project_report
    from takifugu.reports.report_page import report_page

    suffix = out.suffix.lower()
    if suffix not in SUFFIXES:
        raise InvalidFile(
            "--out", given=f"is {str(out)!r}", needed=f"end in {' or '.join(SUFFIXES)}"
        )
    if suffix == ".pdf":
        from takifugu.reports.pdf_file import check_pdf, pdf_of

        check_pdf()
    project = the_project(folder)
    pending = PendingFile(out, field="--out", refuse_existing=not replace)
    try:
        with show_warnings(), Spinner("gathering") as spinner:
            report = project_report(project, names or (), progress=spinner)
            page = report_page(report)
            content = pdf_of(page) if suffix == ".pdf" else page.html().encode()
        pending.part.write_bytes(content)
        pending.keep(fsync=True)
    finally:
        pending.discard()
    if as_json:
        print_json({"out": str(out)} | _facts(report))
    else:
        echo(f"wrote {out}: results in it are published numbers", err=True)
    if not report.ledger.sound:
        echo("takifugu: the ledger is not sound; see `takifugu ledger verify`", err=True)
        raise typer.Exit(1)


def _facts(report: "PrivacyReport") -> dict[str, Any]:
    datasets = []
    for dataset in report.datasets:
        budget = dataset.budget
        has_budget = budget is not None and budget.epsilon is not None
        datasets.append(
            {
                "name": dataset.name,
                "budget": str(budget.epsilon) if budget is not None and has_budget else None,
                "delta": None if budget is None else str(budget.delta),
                "spent": None if budget is None else budget.spent,
                "left": None if budget is None else budget.left,
                "releases": len(dataset.releases),
            }
        )
    head = {"seq": report.ledger.seq, "hash": report.ledger.hash}
    return {"datasets": datasets, "head": head, "sound": report.ledger.sound}


for _name, _run in (("sign", run_sign), ("verify", run_verify), ("key", run_key)):
    app.command(_name)(_run)
