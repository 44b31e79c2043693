"""The options of a query, declared once for ``plan`` and ``release`` and read once."""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu._core.toml import parse_json
from takifugu.cli.shared_options import InvalidOption, listed
from takifugu.errors import InvalidFile

if TYPE_CHECKING:
    from takifugu.project.policy_session import PlanFile

KIND_HELP = (
    "The kind of query: histogram, count, counts, top_k, sum, mean, quantile, proportions,"
    " transitions, marginals or linear."
)
FLAGS: dict[str, Any] = {
    "column": Annotated[
        list[str] | None,
        typer.Option(
            help="The protected column; by default that of the prior. Of several, as 'a,b' or by"
            " repeating it, labels are counted together."
        ),
    ],
    "by": Annotated[
        list[str] | None,
        typer.Option(help="Public columns, as 'country,sex', repeatable; one charge pays for all."),
    ],
    "window": Annotated[
        str | None,
        typer.Option(
            metavar="A..B",
            help="Rows from A to before B, as 2012-04-03..2012-05-01; A.. and ..B too.",
        ),
    ],
    "where": Annotated[
        list[str] | None,
        typer.Option(metavar="COL=KEY,…", help="Keep these keys of a public column; repeatable."),
    ],
    "epsilon": Annotated[
        str | None, typer.Option(help="The Pufferfish ε that the release may cost alone.")
    ],
    "delta": Annotated[
        str | None,
        typer.Option(help="The Pufferfish δ beside ε, at most the budget's; for Gaussian noise."),
    ],
    "within": Annotated[
        str | None,
        typer.Option(help="Instead of ε: the least ε that keeps every number this near is used."),
    ],
    "confidence": Annotated[
        float | None,
        typer.Option(
            help="The probability of being within it, 0.95 by default; for a ranking, that its"
            " places are right."
        ),
    ],
    "values": Annotated[
        str | None,
        typer.Option(
            help="The labels of a count or of counts, as 'a,b'; one that holds a comma in quotes:"
            """ 'a,"b, c"'."""
        ),
    ],
    "k": Annotated[int | None, typer.Option("--k", help="The number of labels of a top_k.")],
    "level": Annotated[str | None, typer.Option(help="Which quantile: 0.5 for the median.")],
    "grid": Annotated[
        str | None, typer.Option(help="The distance of the numbers a quantile is chosen from.")
    ],
    "gap": Annotated[
        float | None, typer.Option(help="For a ranking: the lead of each place over the next.")
    ],
    "leave_out": Annotated[
        list[str] | None,
        typer.Option(help="Labels that a ranking leaves out, as 'other' or 'a,b'; repeatable."),
    ],
    "sum_to_one": Annotated[
        bool | None,
        typer.Option(
            "--sum-to-one",
            help="Show shares that sum to 1, or counts that add up to the rows; free.",
        ),
    ],
    "query": Annotated[
        str | None, typer.Option(help="The linear query, by the name that the policy gives it.")
    ],
    "option": Annotated[
        list[str] | None,
        typer.Option("--option", metavar="NAME=VALUE", help="Any other option, its value as JSON."),
    ],
    "analyst": Annotated[
        str | None,
        typer.Option(help="Who asks; their own budget is charged beside the dataset's."),
    ],
}


def with_query_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Give ``command`` every option of a query; it gets those that are given as ``flags``."""
    own = inspect.signature(command).parameters
    flags = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in FLAGS.items()
    ]
    before = [p.replace(kind=p.KEYWORD_ONLY) for p in own.values() if p.name in ("name", "kind")]
    after = [
        p.replace(kind=p.KEYWORD_ONLY)
        for p in own.values()
        if p.name not in ("name", "kind", "flags")
    ]

    @wraps(command)
    def run(**arguments: Any) -> None:
        given = {name: arguments.pop(name) for name in FLAGS}
        command(**arguments, flags={k: v for k, v in given.items() if v is not None})

    signature = inspect.Signature([*before, *flags, *after])
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {name: p.annotation for name, p in signature.parameters.items()}
    return run


def requested(name: str, kind: str, flags: Mapping[str, Any]) -> "PlanFile":
    """The query that the options describe."""
    from takifugu.project.policy_session import PlanFile
    from takifugu.session.query_options import QueryOptions

    options = {"kind": kind} | dict(flags)
    analyst, others = options.pop("analyst", None), options.pop("option", ())
    if "column" in options:
        options["column"] = [name for text in options["column"] for name in listed(text)]
    if "leave_out" in options:
        options["leave_out"] = [label for text in options["leave_out"] for label in listed(text)]
    if "by" in options:
        options["by"] = [column for text in options["by"] for column in listed(text)]
    if "values" in options:
        options["values"] = listed(options["values"])
    if "window" in options:
        options["window"] = _window(options["window"])
    if "where" in options:
        options["where"] = _where(options["where"])
    for text in others:
        key, equals, value = text.partition("=")
        if not equals or not key or key in options:
            raise InvalidOption(
                "--option", given=f"is {text!r:.80}", needed="be NAME=VALUE, each name once"
            )
        options[key] = _json(value)
    return PlanFile(name, QueryOptions.from_document(options), analyst)


def _window(text: str) -> list[str | None]:
    start, dots, end = text.partition("..")
    if not dots or not (start.strip() or end.strip()) or ".." in end:
        raise InvalidOption(
            "--window", given=f"is {text!r:.80}", needed="be A..B, or A.. or ..B for an open side"
        )
    return [start.strip() or None, end.strip() or None]


def _where(texts: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for text in texts:
        column, equals, keys = (part.strip() for part in text.partition("="))
        if not equals or not column or not keys:
            raise InvalidOption(
                "--where", given=f"is {text!r:.80}", needed="be COLUMN=KEY, or COLUMN=KEY,KEY"
            )
        if column in found:
            raise InvalidOption(
                "--where",
                given=f"names {column!r:.80} twice",
                needed="name each column once, as COLUMN=KEY,KEY",
            )
        found[column] = listed(keys)
    return found


def _json(text: str) -> Any:
    try:
        return parse_json(text)
    except InvalidFile:
        return text
