"""Flags that are declared elsewhere: a command takes all of them as one mapping."""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Annotated, Any

import typer

Flag = tuple[Any, Any]  # the annotation, and the default


def flag(
    words: str, kind: Any = str | None, default: Any = None, *, name: str | None = None
) -> Flag:
    """A flag by its help; ``name`` where it is not that of the parameter."""
    return Annotated[kind, typer.Option(*([name] if name else []), help=words)], default


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
            changed = {k: v for k, v in given.items() if v not in (flags[k][1], [])}
            command(**arguments, flags=changed)

        signature = inspect.Signature(parameters)
        run.__signature__ = signature  # type: ignore[attr-defined]
        run.__annotations__ = {name: p.annotation for name, p in signature.parameters.items()}
        return run

    return declare


def spelled(name: str, value: Any = None) -> str:
    """An option as it is typed: ``first_days`` is --first-days, and False of a flag --no-…."""
    return f"--{'no-' if value is False else ''}{name.strip('_').replace('_', '-')}"
