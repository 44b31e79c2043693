"""``takifugu prior contacts`` and ``household``: priors of people who infect each other."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu.cli.shared_options import (
    AsJson,
    Backend,
    InProject,
    InvalidOption,
    Spinner,
    echo,
    listed,
    prior_facts,
    refuse_given,
    show_result,
    the_project,
    write_and_show,
    write_recorded,
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
    odds = {"background": background, "odds_per_hour": per_hour, "most": most}
    try:
        slices = _read(file, seconds, times, by_day)
        prior = _prior(slices, odds, again)
    except InvalidPrior as error:
        option = OPTIONS.get(error.field, error.field)
        raise InvalidOption(option, given=error.given, needed=error.needed) from None
    facts = _facts(slices, odds, again)
    if out is not None:
        write_recorded(prior, out)
        _print(prior, out, facts, as_json)
        return
    if name is None:
        return
    project = the_project(folder)
    with Spinner(f"comparing people with {name}"):
        project, path, prior = project.enter_prior(
            name,
            lambda whole: _prior(slices, odds, again, whole=whole),
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
    given: "tuple[Contacts, ...] | Contacts",
    odds: dict[str, Any],
    again: float | None,
    *,
    whole: bool = False,
) -> "MarkovRandomField":
    """The prior; people are whole numbers if the column is of such, and all are written so."""
    from takifugu.priors import contagion, contagion_over_time

    if isinstance(given, tuple):
        return contagion_over_time(given, again=1.0 if again is None else again, **odds)
    field = contagion(given, **odds)
    return field.with_whole_names() if whole else field


def _facts(
    given: "tuple[Contacts, ...] | Contacts", odds: dict[str, Any], again: float | None
) -> dict[str, Any]:
    slices = given if isinstance(given, tuple) else (given,)
    pairs = {pair for contacts in slices for pair in contacts.pairs}
    hours = sum(sum(contacts.seconds) for contacts in slices) / 3600
    over = "entities × sequence" if isinstance(given, tuple) else "entities"
    meaning = (
        f"Somebody whose contacts are all healthy is infected with odds"
        f" {four_digits(odds['background'])} to 1. Each infected contact multiplies these odds by"
        f" {four_digits(odds['odds_per_hour'])} for every hour they met, but by no more than"
        f" {four_digits(odds['most'])}."
    )
    if again is not None:
        meaning += (
            f" An infection at one position multiplies the odds at the next one by"
            f" {four_digits(again)}."
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
    times = f" at {facts['positions']} positions" if "sequence" in facts["over"] else ""
    lines = [
        f"{path.name}: {facts['people']} people{times}, {facts['pairs']:,} pairs that met for"
        f" {four_digits(facts['hours'])} hours",
        facts["meaning"],
    ]
    if "dataset" in facts:
        lines.append(f'added to {facts["project"]} with over = "{facts["over"]}"')
    show_result({"out": str(path)} | prior_facts(prior) | facts, *lines, as_json=as_json)


def household(
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the prior, as JSON.")],
    members: Annotated[
        str, typer.Option(help="How many people, as '2'; or their names, as 'parent,child'.")
    ],
    background: Annotated[
        float, typer.Option(help="The probability of falling ill from outside, in one step.")
    ],
    infection: Annotated[
        float, typer.Option(help="The probability that one ill member infects a well one.")
    ],
    recovery: Annotated[float, typer.Option(help="The probability of recovering, in one step.")],
    labels: Annotated[
        str, typer.Option(help="What the column says of somebody well, and of somebody ill.")
    ] = "well,ill",
    start: Annotated[
        str,
        typer.Option(
            help="'stationary'; 'unknown', for any; or the probability that each is ill at first."
        ),
    ] = "stationary",
    length: Annotated[
        int | None, typer.Option(help="The number of entries; by default unbounded.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a chain on the joint states of a household in which people infect each other.

    Somebody well falls ill with probability 1 − (1 − background)·(1 − infection)^k, where k members
    are ill; somebody ill recovers with probability recovery. Use it in a policy with over =
    "household" and the public column that groups people. All members are alike.

    JSON: out, and those of `prior show`.
    """
    from takifugu.priors.households import household_contagion
    from takifugu.visible import four_digits

    words = list(map(str, listed(labels, "--labels")))
    if len(words) != 2:
        raise InvalidOption(
            "--labels", given=f"is {labels!r:.60}", needed="be two labels, as 'well,ill'"
        )
    many: int | list[str] = (
        int(members)
        if members.strip().isdecimal()
        else list(map(str, listed(members, "--members")))
    )
    chain = household_contagion(
        many,
        background=background,
        infection=infection,
        recovery=recovery,
        labels=(words[0], words[1]),
        start=start if start in ("stationary", "unknown") else _start_probability(start),
        length=length,
    )
    write_and_show(chain, out, as_json)
    if as_json:
        return
    beside = 1 - (1 - background) * (1 - infection)
    echo(
        f"{len(chain.columns or ())} members who are alike, {len(chain.states)} joint states; in"
        f" one step somebody {words[0]} becomes {words[1]} with probability"
        f" {four_digits(background)}, and beside one who is {words[1]} with {four_digits(beside)}",
        err=True,
    )


def _start_probability(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidOption(
            "--start",
            given=f"is {text!r:.60}",
            needed="be 'stationary', 'unknown', or the probability that each is ill at first",
        ) from None
