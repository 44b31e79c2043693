"""What commands share: strict options, the project, secrets, printing, warnings, a spinner.

Parsers keep the last value of an option that is given twice and drop the others silently: ``--by
zone --by floor`` would be charged for another query than the one that was meant. So every command
and group of ``takifugu`` is made by `StrictTyper`, which refuses it unless the option takes a list.
"""

import csv
import inspect
import json
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

from takifugu._core.atomic import read_whole
from takifugu._core.toml import parse_json
from takifugu.cli.shell_completion import FILE, complete_dataset, nearest_project
from takifugu.errors import InvalidFile, Malformed
from takifugu.visible import visible

if TYPE_CHECKING:
    from takifugu.priors import Prior, Secrets
    from takifugu.project.project import Project
    from takifugu.session.session import Session


SecretPairs = tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]


class PlainValue:
    """Reads the values of one parameter in place of Typer's reader, which it calls by need.

    Typer reads every value through a validator of pydantic, whose import takes as long as that of
    DuckDB. Nearly all of our options are text, paths, or flags and numbers left at their defaults,
    for which there is nothing to validate. Any other value is given to Typer's own reader, with its
    messages. Should Typer keep its readers elsewhere one day, everything is read by it again.
    """

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


AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object; the page of commands has its keys.")
]
BatchFile = Annotated[
    Path | None,
    typer.Option(
        "--file", metavar="PLANS.toml", help="Several queries instead, one [[release]] for each."
    ),
]
InProject = Annotated[
    Path | None,
    typer.Option(
        "--project",
        "-p",
        metavar="FOLDER",
        help=f"The project; by default the nearest folder, from here upwards, with a {FILE}.",
    ),
]
DatasetName = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="A dataset of the project.", autocompletion=complete_dataset
    ),
]
Backend = Annotated[
    Literal["duckdb", "postgres", "spark"] | None,
    typer.Option(help="What reads the data; by default what its source needs."),
]


NoTable = Annotated[
    bool,
    typer.Option("--no-table", help="Compute each translation; do not use the cached table."),
]
PriorFile = Annotated[Path, typer.Argument(help="The prior: a JSON document, or a BIF file.")]
Pairs = Annotated[
    str | None,
    typer.Option(
        help="Secret pairs, as 'hospital/home,ward/home|work', or a .json file of [[left, right],"
        " …]; by default all pairs of values."
    ),
]
SecretEntries = Annotated[
    str | None, typer.Option(help="Entries that have secrets, as '3,4,5'; by default all entries.")
]
SecretsWithin = Annotated[
    str | None,
    typer.Option(
        help="For numbers: which of two values at most this far apart is secret; a Gaussian needs"
        " it."
    ),
]
Uncertainty = Annotated[
    float, typer.Option(help="Relative error of every joint probability: 0.2 for 20 %.")
]
MethodOption = Annotated[
    str, typer.Option(help="How to translate: best, transport, curve or group.")
]


PAIRS_NEEDED = (
    "hold [[left, right], …], each side a value or a list of values; of several columns"
    " {column: [[left, right], …], …}"
)


class InvalidOption(Malformed):
    """An option or argument of a command is invalid."""


def the_project(given: Path | None) -> "Project":
    """The project that was named, or the nearest one."""
    from takifugu.project.project import open_project

    place = given or nearest_project(Path())
    if place is None:
        raise InvalidOption(
            "--project",
            given=f"is missing, and no folder from here upwards has a {FILE}",
            needed="name a project; `takifugu init` makes one",
        )
    return open_project(place)


def without_project(given: Path | None, argument: str) -> None:
    """Raise if a project is named beside a file that is read without one.

    ``argument`` is what the help calls the file.
    """
    if given is not None:
        raise InvalidOption(
            "--project", given="is given", needed=f"be left out where {argument} is a file"
        )


def refuse_given(options: Mapping[str, Any], *, needed: str, given: str = "is given") -> None:
    """Raise if any of these options, by name, has another value than None, False or 0."""
    for option, value in options.items():
        if value not in (None, False):
            raise InvalidOption(option, given=given, needed=needed)


def refuse_outside(option: str, value: int, low: int, high: int) -> None:
    """Raise if a whole number is below ``low`` or above ``high``."""
    if not low <= value <= high:
        raise InvalidOption(option, given=f"is {value}", needed=f"be from {low} to {high}")


def print_json(document: Any) -> None:
    """Print one JSON object; an infinite number is the string "infinity"."""
    echo(json.dumps(plain(document), ensure_ascii=False, allow_nan=False, indent=2))


def show_result(facts: Mapping[str, Any], *lines: str, as_json: bool, err: bool = False) -> None:
    """Print the JSON object of a command if that is asked for, otherwise its lines."""
    if as_json:
        print_json(facts)
        return
    for line in lines:
        echo(line, err=err)


def aligned(rows: Sequence[Sequence[str]], *, right: Collection[int] = ()) -> list[str]:
    """Rows of cells as lines of aligned columns, those of ``right`` by their ends."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def confirm(question: str, *, yes: bool, seen: str = "") -> None:
    """Ask, unless that was answered by ``--yes``; without a terminal that is needed.

    ``seen`` is what the owner has to have seen.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        needed = f"be given by an owner who has seen this: {seen}" if seen else "be given there"
        raise InvalidOption("--yes", given="is missing, and there is no terminal", needed=needed)
    typer.confirm(question, abort=True, err=True)


def plain(value: Any) -> Any:
    """A value with every infinite number as the string "infinity"."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "infinity" if value > 0 else "-infinity"
    return value


def listed(text: str, option: str = "names") -> list[str]:
    """Names separated by commas, as in a line of CSV: one that holds a comma stands in quotes.

    A JSON list is read too.

    >>> listed('home, "clinic, ward"'), listed('["clinic, ward", 7]')
    (['home', 'clinic, ward'], ['clinic, ward', 7])
    """
    if text.lstrip().startswith("["):
        try:
            names = parse_json(text, field="names")
        except InvalidFile:
            names = None
        if isinstance(names, list) and names and all(isinstance(n, str | int) for n in names):
            return names
    try:
        (row,) = csv.reader([text], skipinitialspace=True, strict=True)
    except (csv.Error, ValueError):  # quotes that do not end, several lines, or none
        row = []
    words = [word.strip() for word in row]
    if not words or not all(words):
        raise InvalidOption(
            option,
            given=f"is {text!r:.80}",
            needed="look like 'north,south'; a name that holds a comma stands in double quotes, as"
            """ 'north,"south, west"'""",
        )
    return words


def read_secrets(pairs: str | None, entries: str | None, within: str | None = None) -> "Secrets":
    """The secrets that --pairs, --entries and --secrets-within describe."""
    from takifugu.priors import Secrets

    chosen = None
    if entries is not None:
        words = map(str, listed(entries, "--entries"))
        chosen = tuple(int(word) if word.isdecimal() else word for word in words)
    return Secrets(entries=chosen, pairs=None if pairs is None else _pairs(pairs), within=within)


def _pairs(text: str) -> SecretPairs:
    if text.endswith(".json"):
        return _listed_pairs(Path(text), _pairs_document(text))
    sides = [str(pair).split("/") for pair in listed(text, "--pairs")]
    if not all(len(side) == 2 and all(part.strip() for part in side) for side in sides):
        raise InvalidOption(
            "--pairs",
            given=f"is {text!r}",
            needed="look like 'hospital/home,ward/home|work', or name a .json file",
        )
    return tuple((_values_of(left), _values_of(right)) for left, right in sides)


def read_json_option(option: str, path: Path, needed: str) -> Any:
    """The JSON document of the file that an option names; ``needed`` says what it must be."""
    try:
        return parse_json(read_whole(path), field=str(path))
    except InvalidFile as error:
        raise InvalidOption(option, given=f"{path} {error.given}", needed=needed) from None


def read_column_pairs(text: str | None) -> dict[str, Any] | None:
    """Secret pairs by column, if --pairs names a .json file that holds an object of such."""
    if text is None or not text.endswith(".json"):
        return None
    document = _pairs_document(text)
    if not isinstance(document, dict):
        return None
    return {column: _listed_pairs(Path(text), pairs) for column, pairs in document.items()}


def _pairs_document(text: str) -> Any:
    return read_json_option("--pairs", Path(text), PAIRS_NEEDED)


def _listed_pairs(path: Path, pairs: Any) -> SecretPairs:
    if not isinstance(pairs, list) or not all(isinstance(p, list) and len(p) == 2 for p in pairs):
        raise InvalidOption("--pairs", given=f"{path} is not a list of pairs", needed=PAIRS_NEEDED)

    def side(given: Any) -> tuple[str, ...]:
        values = tuple(given) if isinstance(given, list) else (given,)
        if not values or not all(isinstance(value, str | int) for value in values):
            raise InvalidOption("--pairs", given=f"{path} holds other things", needed=PAIRS_NEEDED)
        return values

    return tuple((side(left), side(right)) for left, right in pairs)


def _values_of(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split("|"))


class Spinner(AbstractContextManager["Spinner"]):
    """A spinner on stderr that shows what is being done; silent if stderr is not a terminal."""

    def __init__(self, activity: str) -> None:
        self._activity, self._status = activity, None
        if sys.stderr.isatty():  # elsewhere nothing is shown, and nothing need be imported
            from rich.console import Console

            self._status = Console(stderr=True).status(activity)

    def __enter__(self) -> "Spinner":
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Make room for a question on the terminal."""
        self.__exit__()
        yield
        self.__enter__()

    def __call__(self, detail: str) -> None:
        """Show a detail of what is being done."""
        if self._status is not None:
            from rich.markup import escape

            self._status.update(f"{self._activity}: {escape(visible(detail))}")


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print text or JSON, with invisible characters written out."""
    typer.echo(visible(text, keep="\n"), err=err, nl=nl)


@contextmanager
def show_warnings() -> Iterator[None]:
    """Print on stderr, one line each, why a translation is looser than it could be."""
    from takifugu.translation.bounds import LooserTranslation

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LooserTranslation)
        yield
    for message in dict.fromkeys(
        str(w.message) for w in caught if issubclass(w.category, LooserTranslation)
    ):
        echo(f"takifugu: {message}", err=True)
    for other in caught:  # all other warnings are passed on
        if not issubclass(other.category, LooserTranslation):
            warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)


@contextmanager
def open_session(
    project: "Project",
    dataset: str,
    analyst: str | None,
    activity: str,
    *,
    backend: Any,
    table: bool = True,
) -> "Iterator[tuple[Session, Spinner]]":
    """A session of a dataset, and the spinner that shows what it does."""
    with (
        show_warnings(),
        Spinner(activity) as spinner,
        project.session(
            dataset, analyst, progress=spinner, backend=backend, table=table
        ) as session,
    ):
        yield session, spinner


def _strict_parser(parser: Any, command: Any, ctx: Any) -> Any:
    """The parser of a command, made to read plain values and to count the options."""
    read_plainly(command.get_params(ctx))
    if ctx.resilient_parsing:  # a shell that completes a line
        return parser
    parse = parser.parse_args

    def parse_args(args: list[str]) -> Any:
        parsed = parse(args=args)
        for option, times in Counter(parsed[2]).items():
            lists = option.multiple or option.param_type_name != "option"
            if times > 1 and not lists and not getattr(option, "count", False):
                flag = max(option.opts, key=len)
                raise InvalidOption(flag, given=f"is given {times} times", needed="be given once")
        return parsed

    parser.parse_args = parse_args
    return parser


class StrictCommand(TyperCommand):
    """A command whose options are given once each."""

    def make_parser(self, ctx: Any) -> Any:
        """The parser of this command."""
        return _strict_parser(super().make_parser(ctx), self, ctx)


class StrictGroup(TyperGroup):
    """A group whose options are given once each."""

    def make_parser(self, ctx: Any) -> Any:
        """The parser of this command."""
        return _strict_parser(super().make_parser(ctx), self, ctx)


class StrictTyper(typer.Typer):
    """A `typer.Typer` whose commands and groups are strict."""

    def __init__(self, *, group: type[StrictGroup] = StrictGroup, **settings: Any) -> None:
        super().__init__(cls=group, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Register a command; its help leaves out the keys of its JSON object."""

        def register(callback: Any) -> Any:
            own: dict[str, Any] = {
                "cls": StrictCommand,
                "help": help_and_keys(callback)[0],
            } | settings
            return super(StrictTyper, self).command(name, **own)(callback)

        return register


def help_and_keys(callback: Any) -> tuple[str, str]:
    """The help of a command, and the keys of what it prints with --json, by its docstring.

    The keys are the last paragraph, which begins with ``JSON:``; the reference of commands has it.
    """
    words, _, keys = (inspect.getdoc(callback) or "").partition("\n\nJSON: ")
    return words, keys


def write_recorded(prior: "Prior", out: Path) -> None:
    """Write a prior.

    If ``out`` is a prior of a dataset of the project around it, that is recorded in its ledger.
    """
    from takifugu.priors import write_prior
    from takifugu.project.project import open_project

    file = nearest_project(out.parent)
    project = None
    if file is not None:
        with suppress(Malformed):  # a project that cannot be read releases nothing
            project = open_project(file)
    with nullcontext() if project is None else project.recording_prior(out):
        write_prior(prior, out)


def write_and_show(prior: "Prior", out: Path, as_json: bool, details: str = "") -> None:
    """Write a prior, and say where."""
    write_recorded(prior, out)
    facts = {"out": str(out)} | prior_facts(prior)
    show_result(facts, f"wrote {out}{details}", as_json=as_json, err=True)


def prior_facts(prior: "Prior") -> dict[str, Any]:
    """What `prior show` prints."""
    return {"kind": prior.kind, "fingerprint": prior.fingerprint} | prior.facts()
