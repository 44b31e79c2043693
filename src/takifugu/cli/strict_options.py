"""Commands that refuse an option that is given twice, unless it takes a list.

Parsers keep the last value and drop the others silently: ``--by zone --by floor`` would be
charged for another query than the one that was meant. Every command and group of ``takifugu`` is
made by `StrictTyper`.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from takifugu.cli.shared_options import InvalidOption


def _once(parser: Any, ctx: Any) -> Any:
    """The parser, made to count the options that it meets."""
    if ctx.resilient_parsing:  # a shell that completes a line
        return parser
    parse = parser.parse_args

    def parse_args(args: list[str]) -> Any:
        found = parse(args=args)
        for option, times in Counter(found[2]).items():
            lists = option.multiple or option.param_type_name != "option"
            if times > 1 and not lists and not getattr(option, "count", False):
                flag = max(option.opts, key=len)
                raise InvalidOption(flag, given=f"is given {times} times", needed="be given once")
        return found

    parser.parse_args = parse_args
    return parser


class StrictCommand(TyperCommand):
    """A command whose options are given once each."""

    def make_parser(self, ctx: Any) -> Any:
        """The parser of this command."""
        return _once(super().make_parser(ctx), ctx)


class StrictGroup(TyperGroup):
    """A group whose options are given once each."""

    def make_parser(self, ctx: Any) -> Any:
        """The parser of this command."""
        return _once(super().make_parser(ctx), ctx)


class StrictTyper(typer.Typer):
    """A `typer.Typer` whose commands and groups are strict."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(cls=StrictGroup, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Register a command."""
        return super().command(name, **({"cls": StrictCommand} | settings))
