"""``takifugu prior compare``: what adversaries with other priors learn from past releases."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from takifugu.cli.shared_options import (
    AsJson,
    Backend,
    DatasetName,
    InProject,
    Spinner,
    echo,
    print_json,
    refuse_outside,
    show_warnings,
    the_project,
)
from takifugu.visible import four_digits

if TYPE_CHECKING:
    from takifugu.project.budgets import PriorComparison


def run_compare(
    name: DatasetName,
    priors: Annotated[
        list[Path], typer.Argument(metavar="PRIOR...", help="Other priors, as JSON or BIF.")
    ],
    over: Annotated[
        str | None,
        typer.Option(
            help="What the entries of these priors are; by default, what those of the policy are."
        ),
    ] = None,
    analyst: Annotated[
        str | None, typer.Option(help="Compare what was released to this analyst.")
    ] = None,
    last: Annotated[int, typer.Option(help="The number of latest releases to list.")] = 10,
    folder: InProject = None,
    backend: Backend = None,
    as_json: AsJson = False,
) -> None:
    """Show what an adversary with another prior would learn from the releases made so far.

    What the ledger holds of NAME, by value, window and group, is translated under each PRIOR and
    under the present priors: every release alone, and all together. Nothing is charged, and nothing
    is read but public facts about the rows. A prior that is not about these rows is refused, as one
    of the policy would be.

    JSON: dataset, analyst, delta, budget, count (of all releases), releases (the latest: seq, at,
    analyst, query, window, groups, and losses by prior), totals (by prior; the present ones are
    called "present"), leaks (by prior, what some mechanism with these losses leaks, rounded down;
    null if that is not computed), beyond (the priors under which more than the budget is spent).
    Losses are rounded up; null for an infinite one.
    """
    from takifugu.project.budgets import compare_priors

    refuse_outside("--last", last, 0, 10_000)
    project = the_project(folder)
    with show_warnings(), Spinner("translating"):
        comparison = compare_priors(
            project, name, priors, over=over, analyst=analyst, last=last, backend=backend
        )
    if as_json:
        print_json(comparison.document())
    else:
        _print(comparison)


def _print(comparison: "PriorComparison") -> None:
    from takifugu.ledger.event_documents import query_words

    whose = (
        comparison.dataset
        if comparison.analyst is None
        else f"{comparison.dataset}, {comparison.analyst}"
    )
    at = f", at delta = {four_digits(comparison.delta)}" if comparison.delta else ""
    many = "release" if comparison.count == 1 else "releases"
    echo(f"{whose}: {comparison.count} {many}; Pufferfish epsilon of each alone, and together{at}")
    lines = [
        (
            f"event {one.seq}, {query_words(one.body)}",
            [four_digits(loss, "up") for loss in one.losses.values()],
        )
        for one in comparison.releases
    ]
    lines.append(("all together", [four_digits(t, "up") for t in comparison.totals.values()]))
    names = list(comparison.totals)
    left = max(len(words) for words, _ in lines)
    wide = [
        max(len(name), *(len(numbers[i]) for _, numbers in lines)) for i, name in enumerate(names)
    ]
    for words, numbers in [("", names), *lines]:
        cells = (number.rjust(width) for number, width in zip(numbers, wide, strict=True))
        echo(f"  {words:<{left}}  {'  '.join(cells)}")
    if comparison.count and any(leak is not None for leak in comparison.leaks.values()):
        numbers = ["?" if x is None else four_digits(x, "down") for x in comparison.leaks.values()]
        cells = (number.rjust(width) for number, width in zip(numbers, wide, strict=True))
        echo(f"  {'leaked by some mechanism with that loss':<{left}}  {'  '.join(cells)}")
    if comparison.count > len(comparison.releases):
        echo(f"  ({comparison.count - len(comparison.releases)} earlier releases are not listed)")
    for beyond in comparison.beyond:
        budget = four_digits(comparison.budget or 0, "down")
        echo(
            f"under {beyond} that is more than the budget of {budget}: the guarantee says nothing"
            " about an adversary who believes it"
        )
    echo("nothing was charged")
