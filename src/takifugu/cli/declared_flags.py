"""Flags that are declared elsewhere, as those of a query: a command takes all as one mapping."""

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

Flag = tuple[Any, Any]  # the annotation, and the default


def flag(
    words: str,
    kind: Any = str | None,
    default: Any = None,
    *,
    name: str | None = None,
    metavar: str | None = None,
) -> Flag:
    """A flag by its help; ``name`` where it is not that of the parameter."""
    names = [name] if name else []
    return Annotated[kind, typer.Option(*names, help=words, metavar=metavar)], default


def with_flags(flags: Mapping[str, Flag], *, before: str) -> Callable[[Any], Callable[..., None]]:
    """Give a command these flags in place of its parameter ``flags``.

    The command gets those that are not at their defaults. In its help they stand before the
    parameter that is named, beside its own.
    """

    def declare(command: Callable[..., None]) -> Callable[..., None]:
        parameters = []
        for name, parameter in inspect.signature(command).parameters.items():
            if name == before:
                parameters += [
                    inspect.Parameter(
                        flag, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
                    )
                    for flag, (annotation, default) in flags.items()
                ]
            if name != "flags":
                parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

        @wraps(command)
        def run(**arguments: Any) -> None:
            given = {name: arguments.pop(name) for name in flags}
            changed = {k: v for k, v in given.items() if v not in (flags[k][1], [], ())}
            command(**arguments, flags=changed)

        signature = inspect.Signature(parameters)
        run.__signature__ = signature  # type: ignore[attr-defined]
        run.__annotations__ = {name: p.annotation for name, p in signature.parameters.items()}
        return run

    return declare


def spelled(name: str, value: Any = None) -> str:
    """An option as it is typed: ``first_days`` is --first-days, and False of a flag --no-…."""
    return f"--{'no-' if value is False else ''}{name.strip('_').replace('_', '-')}"


KIND_HELP = f"The kind of query: {', '.join([*KINDS][:-1])} or {[*KINDS][-1]}."


@dataclass(frozen=True)
class QueryFlag:
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

    def declared(self, option: Option) -> Flag:
        """The flag of an option."""
        words, kind = option.help + self.hint, self.annotation | None
        return flag(words, kind, name=spelled(option.name), metavar=self.metavar)


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


NAMES = QueryFlag(list[str], _names, " As 'a,b', or repeated.")
LABELS = QueryFlag(
    list[str], _names, """ As 'a,b', or repeated; one with a comma in quotes: 'a,"b, c"'."""
)
BY_TYPE: Mapping[OptionType, QueryFlag] = {
    "column": NAMES,
    "columns": NAMES,
    "window": QueryFlag(str, _window, " As 2012-04-03..2012-05-01; A.. and ..B too.", "A..B"),
    "keys": QueryFlag(list[str], _keys, " Repeatable.", "COL=KEY,…"),
    "amount": QueryFlag(str),
    "real": QueryFlag(float),
    "whole": QueryFlag(int),
    "labels": LABELS,
    "text": QueryFlag(str),
    "flag": QueryFlag(bool),
}  # an option of another type is given by --option
BY_NAME = {name: BY_TYPE[o.type] for name, o in OPTIONS.items() if o.type in BY_TYPE}
QUERY_FLAGS: dict[str, Flag] = {
    **{name: by_type.declared(OPTIONS[name]) for name, by_type in BY_NAME.items()},
    "option": flag("Any other option, its value as JSON.", list[str] | None, metavar="NAME=VALUE"),
    "analyst": flag("Who asks; their own budget is charged beside the dataset's."),
}


def requested(name: str, kind: str, flags: Mapping[str, Any]) -> "PlanFile":
    """The query that the options describe."""
    from takifugu.session.plan_documents import PlanFile

    options = {"kind": kind} | dict(flags)
    analyst, others = options.pop("analyst", None), options.pop("option", ())
    for option, by_type in BY_NAME.items():
        if option in options:
            options[option] = by_type.read(options[option])
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
