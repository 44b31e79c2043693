"""``takifugu prior contacts``: an infection that spreads along a list of contacts, as a prior."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu.cli.commands.prior_output import prior_facts, recorded
from takifugu.cli.shared_options import (
    AsJson,
    Backend,
    InProject,
    InvalidOption,
    Spinner,
    echo,
    print_json,
    refuse_given,
    the_project,
)
from takifugu.cli.shell_completion import complete_dataset
from takifugu.errors import InvalidPrior
from takifugu.visible import four_digits

if TYPE_CHECKING:
    from takifugu.priors import Contacts, MarkovRandomField

OPTIONS = {  # of a prior, as the command calls them
    "background": "--background",
    "odds_per_hour": "--per-hour",
    "again": "--again",
    "times": "--times",
    "seconds": "--seconds",
}


@dataclass(frozen=True)
class _Asked:
    """What the options say."""

    background: float
    per_hour: float
    most: float
    again: float | None


def contacts(
    file: Annotated[
        Path,
        typer.Argument(
            help="A list of contacts, plain or .gz: a line 't i j', or 't i j role role', for"
            " each 20 seconds that i and j met; t in seconds."
        ),
    ],
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="A dataset of the project, to enter the prior for.",
            autocompletion=complete_dataset,
        ),
    ] = None,
    background: Annotated[
        float, typer.Option(help="The odds of infection of somebody whose contacts are healthy.")
    ] = ...,  # type: ignore[assignment]
    per_hour: Annotated[
        float,
        typer.Option(help="What an infected contact multiplies the odds by, for each hour."),
    ] = ...,  # type: ignore[assignment]
    most: Annotated[
        float, typer.Option(help="The most that one contact multiplies the odds by.")
    ] = 4.0,
    times: Annotated[
        int | None,
        typer.Option(help="Cut the time of the list into this many positions of equal length."),
    ] = None,
    by_day: Annotated[
        bool, typer.Option("--by-day", help="A position for each day, from midnight UTC.")
    ] = False,
    again: Annotated[
        float | None,
        typer.Option(
            help="With --times or --by-day: what an infection at one position multiplies the odds"
            " at the next one by."
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(help="How long one line of the list lasts.")] = 20.0,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to write the prior, as JSON.")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the priors that the dataset has.")
    ] = False,
    add: Annotated[
        bool, typer.Option("--add", help="Add to the priors that the dataset has.")
    ] = False,
    folder: InProject = None,
    backend: Backend = None,
    as_json: AsJson = False,
) -> None:
    """Make a prior of contagion from a list of contacts: who met whom, and for how long.

    It goes to --out, or, for a dataset NAME, beside the project file and into it, with over =
    "entities": everybody in the list must be an entity of the table with one row, and the other way
    round. With --times or --by-day an entry is a person at a position in time (over = "entities ×
    sequence"). The list is public knowledge: nothing is charged for what it reveals.

    JSON: out, those of `prior show`, people, pairs, hours, positions, over, meaning; for a dataset
    also dataset and project.
    """
    if (out is None) == (name is None):
        raise InvalidOption(
            "--out",
            given="and NAME are both given" if name else "and NAME are both missing",
            needed="be one of the two: a file to write, or a dataset to enter the prior for",
        )
    if (times is not None or by_day) != (again is not None) or (times is not None and by_day):
        raise InvalidOption(
            "--again",
            given="or --times or --by-day is missing, or both of these are given",
            needed="come with either --times or --by-day",
        )
    if name is None:
        beside = {"--replace": replace, "--add": add, "--project": folder, "--backend": backend}
        refuse_given(beside, needed="come with a dataset NAME")
    asked = _Asked(background, per_hour, most, again)
    try:
        slices = _read(file, seconds, times, by_day)
        prior = _prior(slices, asked)
    except InvalidPrior as error:
        option = OPTIONS.get(error.field, error.field)
        raise InvalidOption(option, given=error.given, needed=error.needed) from None
    facts = _facts(slices, asked)
    if out is not None:
        from takifugu.priors import write_prior

        with recorded(out):
            write_prior(prior, out)
        _print(prior, out, facts, as_json)
        return
    if name is None:
        return
    project = the_project(folder)
    with Spinner(f"comparing people with {name}"):
        project, path, prior = project.enter_prior(
            name,
            lambda whole: _prior(slices, asked, whole=whole),
            over=facts["over"],
            replace=replace,
            keep=add,
            backend=backend,
        )
    facts |= {"dataset": name, "project": str(project.file)}
    _print(prior, path, facts, as_json)
    if not as_json and project.needs_acceptance(name):
        echo(f"next: takifugu prior accept {name}; nothing is released until then")


def _read(
    file: Path, seconds: float, times: int | None, by_day: bool
) -> "tuple[Contacts, ...] | Contacts":
    from takifugu.priors import read_contact_slices, read_contacts

    if times is None and not by_day:
        return read_contacts(file, seconds=seconds)
    return read_contact_slices(file, times=times, seconds=seconds)


def _prior(
    given: "tuple[Contacts, ...] | Contacts", asked: _Asked, *, whole: bool = False
) -> "MarkovRandomField":
    """The prior; people are whole numbers if the column is of such, and all are written so."""
    from takifugu.priors import contagion, contagion_over_time

    if isinstance(given, tuple):
        return contagion_over_time(
            given,
            background=asked.background,
            odds_per_hour=asked.per_hour,
            again=1.0 if asked.again is None else asked.again,
            most=asked.most,
        )
    field = contagion(
        given, background=asked.background, odds_per_hour=asked.per_hour, most=asked.most
    )
    return field.with_whole_names() if whole else field


def _facts(given: "tuple[Contacts, ...] | Contacts", asked: _Asked) -> dict[str, Any]:
    slices = given if isinstance(given, tuple) else (given,)
    pairs = {pair for one in slices for pair in one.pairs}
    hours = sum(sum(one.seconds) for one in slices) / 3600
    over = "entities × sequence" if isinstance(given, tuple) else "entities"
    per_hour, most = four_digits(asked.per_hour), four_digits(asked.most)
    meaning = (
        f"Somebody whose contacts are all healthy is infected with odds"
        f" {four_digits(asked.background)} to 1. Each infected contact multiplies these odds by"
        f" {per_hour} for every hour they met, but by no more than {most}."
    )
    if asked.again is not None:
        meaning += (
            f" An infection at one position multiplies the odds at the next one by"
            f" {four_digits(asked.again)}."
        )
    return {
        "people": len(slices[0].people),
        "pairs": len(pairs),
        "hours": hours,
        "positions": len(slices),
        "over": over,
        "meaning": meaning,
    }


def _print(prior: "MarkovRandomField", path: Path, facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json({"out": str(path)} | prior_facts(prior) | facts)
        return
    times = f" at {facts['positions']} positions" if "sequence" in facts["over"] else ""
    echo(
        f"{path.name}: {facts['people']} people{times}, {facts['pairs']:,} pairs that met for"
        f" {four_digits(facts['hours'])} hours"
    )
    echo(facts["meaning"])
    if "dataset" in facts:
        echo(f'added to {facts["project"]} with over = "{facts["over"]}"')
