"""What a run says of the licences of what is pinned."""

from collections import Counter

from torture.dependencies.licence_page import PAGE, read
from torture.dependencies.licences import kind_of, unsuited
from torture.dependencies.requirements import ALWAYS, RUNTIME, pinned
from torture.part_report import Report


def check_licences(report: Report) -> None:
    """Findings for licences that do not suit, and a table of how many packages have which kind."""
    listed = read(PAGE.read_text(encoding="utf-8"))
    again = "python -m torture.dependencies --licences"
    for name in sorted(set(pinned()) - set(listed)):
        report.finding(f"{name} is pinned, and not on the page of licences", again)
    uses = {name: row.uses for name, row in listed.items()}
    for one in unsuited({name: row.licence for name, row in listed.items()}, uses):
        report.finding(f"{one.package} ({one.licence or 'unknown'}): {one.why}", again)
    report.count("licences", len(listed))
    users = {name for name, by in uses.items() if {ALWAYS, *RUNTIME} & set(by)}
    kinds = Counter((kind_of(row.licence), name in users) for name, row in listed.items())
    rows = [
        (kind.name.lower().replace("_", " "), kinds[kind, True], kinds[kind, False])
        for kind in sorted({kind for kind, _ in kinds})
    ]
    report.table("Licences", ("kind", "packages of users", "of developers besides"), rows)
