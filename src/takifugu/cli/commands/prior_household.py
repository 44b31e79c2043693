"""``takifugu prior household``: a prior over the people of a household who infect each other."""

from pathlib import Path
from typing import Annotated

import typer

from takifugu.cli.shared_options import AsJson, InvalidOption, echo, listed


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
    from takifugu.cli.commands.prior_output import print_written, recorded
    from takifugu.priors import write_prior
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
        start=start if start in ("stationary", "unknown") else _probability(start),
        length=length,
    )
    with recorded(out):
        write_prior(chain, out)
    print_written(chain, out, as_json)
    if as_json:
        return
    beside = 1 - (1 - background) * (1 - infection)
    echo(
        f"{len(chain.columns or ())} members who are alike, {len(chain.states)} joint states; in"
        f" one step somebody {words[0]} becomes {words[1]} with probability"
        f" {four_digits(background)}, and beside one who is {words[1]} with {four_digits(beside)}",
        err=True,
    )


def _probability(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidOption(
            "--start",
            given=f"is {text!r:.60}",
            needed="be 'stationary', 'unknown', or the probability that each is ill at first",
        ) from None
