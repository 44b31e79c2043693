"""The options of a query as flags of ``plan`` and ``release``."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu._core.toml import parse_json
from takifugu.cli.shared_options import InvalidOption, listed
from takifugu.errors import InvalidFile
from takifugu.session.query_kinds import KINDS
from takifugu.session.query_options import OPTIONS, Option, OptionType, QueryOptions

if TYPE_CHECKING:
    from takifugu.session.plan_documents import PlanFile

KIND_HELP = f"The kind of query: {', '.join([*KINDS][:-1])} or {[*KINDS][-1]}."


@dataclass(frozen=True)
class Flag:
    """How an option of some type is given on the command line.

    Attributes:
        annotation: What typer reads it as.
        read: What the option is, given what typer has read.
        hint: How it is written, in the help.
        metavar: What stands for its value in the help; by default its type.
    """

    annotation: Any
    read: Callable[[Any], Any] = lambda value: value
    hint: str = ""
    metavar: str | None = None

    def of(self, option: Option) -> Any:
        """The flag of an option, for typer."""
        name = f"--{option.name.replace('_', '-')}"
        shown = typer.Option(name, help=option.help + self.hint, metavar=self.metavar)
        return Annotated[self.annotation | None, shown]


def _names(texts: list[str]) -> list[str]:
    return [name for text in texts for name in listed(text)]


def _window(text: str) -> list[str | None]:
    start, dots, end = text.partition("..")
    if not dots or not (start.strip() or end.strip()) or ".." in end:
        raise InvalidOption(
            "--window", given=f"is {text!r:.80}", needed="be A..B, or A.. or ..B for an open side"
        )
    return [start.strip() or None, end.strip() or None]


def _keys(texts: list[str]) -> dict[str, list[str]]:
    chosen: dict[str, list[str]] = {}
    for text in texts:
        column, equals, keys = (part.strip() for part in text.partition("="))
        if not equals or not column or not keys:
            raise InvalidOption(
                "--where", given=f"is {text!r:.80}", needed="be COLUMN=KEY, or COLUMN=KEY,KEY"
            )
        if column in chosen:
            raise InvalidOption(
                "--where",
                given=f"names {column!r:.80} twice",
                needed="name each column once, as COLUMN=KEY,KEY",
            )
        chosen[column] = listed(keys)
    return chosen


NAMES = Flag(list[str], _names, " As 'a,b', or repeated.")
LABELS = Flag(
    list[str], _names, """ As 'a,b', or repeated; one with a comma in quotes: 'a,"b, c"'."""
)
BY_TYPE: Mapping[OptionType, Flag] = {
    "column": NAMES,
    "columns": NAMES,
    "window": Flag(str, _window, " As 2012-04-03..2012-05-01; A.. and ..B too.", "A..B"),
    "keys": Flag(list[str], _keys, " Repeatable.", "COL=KEY,…"),
    "amount": Flag(str),
    "real": Flag(float),
    "whole": Flag(int),
    "labels": LABELS,
    "text": Flag(str),
    "flag": Flag(bool),
}  # an option of another type is given by --option
BY_NAME = {name: BY_TYPE[o.type] for name, o in OPTIONS.items() if o.type in BY_TYPE}
FLAGS: dict[str, Any] = {
    **{name: flag.of(OPTIONS[name]) for name, flag in BY_NAME.items()},
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
    from takifugu.session.plan_documents import PlanFile

    options = {"kind": kind} | dict(flags)
    analyst, others = options.pop("analyst", None), options.pop("option", ())
    for option, flag in BY_NAME.items():
        if option in options:
            options[option] = flag.read(options[option])
    for text in others:
        key, equals, value = text.partition("=")
        if not equals or not key or key in options:
            raise InvalidOption(
                "--option", given=f"is {text!r:.80}", needed="be NAME=VALUE, each name once"
            )
        options[key] = _json(value)
    return PlanFile(name, QueryOptions.from_document(options), analyst)


def _json(text: str) -> Any:
    try:
        return parse_json(text)
    except InvalidFile:
        return text
