"""Text and paths of a command line as they are, without a validator.

Typer reads every value through a validator of pydantic, whose import takes as long as that of
DuckDB. Nearly all of our options are text, paths, or flags and numbers left at their defaults, for
which there is nothing to validate. Any other value is given to Typer's own reader, with its
messages. Should Typer keep its readers elsewhere one day, everything is read by it again.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args, get_origin


class PlainValue:
    """Reads the values of one parameter in place of Typer's reader, which it calls by need."""

    def __init__(self, parameter: Any) -> None:
        self._parameter = parameter
        self._kind = parameter.type_descriptor.annotation
        self._info = parameter.type_descriptor.parameter_info

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value, as Typer would read it."""
        several = param.multiple or param.nargs == -1
        if value is None:
            return () if several else None
        if several and get_origin(self._kind) is list and isinstance(value, list | tuple):
            (kind,) = get_args(self._kind)
            if all(_is_plain(one, kind) for one in value):
                return [self._read(one, kind, param, ctx) for one in value]
        elif not several and _is_plain(value, self._kind):
            return self._read(value, self._kind, param, ctx)
        return self._by_typer(value, param, ctx)

    def _read(self, value: Any, kind: Any, param: Any, ctx: Any) -> Any:
        if kind is not Path:
            return value
        from typer._param_types import coerce_cli_path

        path = Path(value)
        return coerce_cli_path(path, self._info, path_type=Path, param=param, ctx=ctx)

    def _by_typer(self, value: Any, param: Any, ctx: Any) -> Any:
        self._parameter._runtime_param = None
        return self._parameter.get_runtime_param().coerce(value, param=param, ctx=ctx)


def _is_plain(value: Any, kind: Any) -> bool:
    """Whether a value is what an annotation asks for already, or names a path."""
    if kind is Path:
        return isinstance(value, str | Path)
    return kind in (str, int, float, bool) and type(value) is kind


def read_plainly(parameters: Iterable[Any]) -> None:
    """Let parameters be read by `PlainValue`, where Typer has not made their readers yet."""
    for parameter in parameters:
        descriptor = getattr(parameter, "type_descriptor", None)
        info = getattr(descriptor, "parameter_info", None)
        if getattr(parameter, "_runtime_param", parameter) is not None or info is None:
            continue
        limited = info.min is not None or info.max is not None
        if info.parser is None and info.path_type is None and not limited:
            parameter._runtime_param = PlainValue(parameter)
