"""Options that several commands share: the project, secrets in words, JSON, a spinner."""

import json
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from takifugu.cli.shell_completion import FILE, complete_dataset, nearest_project
from takifugu.cli.terminal import echo
from takifugu.errors import InvalidFile, Malformed
from takifugu.strict import parse_json
from takifugu.visible import visible
from takifugu.whole import read_whole

if TYPE_CHECKING:
    from takifugu.priors import Secrets
    from takifugu.project.project import Project

PAIRS_HELP = (
    "Secret pairs, as 'hospital/home,ward/home|work', or a .json file of [[left, right], …]; by"
    " default all pairs of values."
)
ENTRIES_HELP = "Entries that have secrets, as '3,4,5'; by default all entries."

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]
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
    typer.Option(help="What reads the data; by default what the source needs."),
]


class InvalidOption(Malformed):
    """An option of a command cannot be understood."""


def the_project(given: Path | None) -> "Project":
    """The project that was named, or the nearest one."""
    from takifugu.project.project import open_project

    found = given or nearest_project(Path())
    if found is None:
        raise InvalidOption(
            "--project",
            given=f"is missing, and no folder from here upwards has a {FILE}",
            needed="name a project; `takifugu init` makes one",
        )
    return open_project(found)


def print_json(document: Any) -> None:
    """One JSON object on stdout; an infinite number is the word."""
    echo(json.dumps(plain(document), ensure_ascii=False, allow_nan=False, indent=2))


def plain(value: Any) -> Any:
    """A result with every infinite number as the word."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "infinity" if value > 0 else "-infinity"
    return value


def listed(text: str) -> list[str]:
    """Names with commas between them; or, where a name holds a comma, a JSON list."""
    if text.lstrip().startswith("["):
        try:
            names = parse_json(text, field="names")
        except InvalidFile:
            names = None
        if isinstance(names, list) and names and all(isinstance(n, str | int) for n in names):
            return names
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise InvalidOption("names", given=f"are {text!r}", needed="look like 'north,south'")
    return words


def read_secrets(pairs: str | None, entries: str | None) -> "Secrets":
    """The secrets that --pairs and --entries describe."""
    from takifugu.priors import Secrets

    chosen = None
    if entries is not None:
        words = [word.strip() for word in entries.split(",")]
        chosen = tuple(int(word) if word.isdigit() else word for word in words)
    return Secrets(entries=chosen, pairs=None if pairs is None else _pairs(pairs))


def _pairs(text: str) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
    if text.endswith(".json"):
        return _pairs_from_file(Path(text))
    sides = [pair.split("/") for pair in text.split(",")]
    if not all(len(side) == 2 and all(part.strip() for part in side) for side in sides):
        raise InvalidOption(
            "--pairs",
            given=f"is {text!r}",
            needed="look like 'hospital/home,ward/home|work', or name a .json file",
        )
    return tuple((_group(left), _group(right)) for left, right in sides)


def _pairs_from_file(path: Path) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
    needed = "hold [[left, right], …], each side a value or a list of values"
    try:
        found = parse_json(read_whole(path), field=str(path))
    except InvalidFile as error:
        raise InvalidOption("--pairs", given=f"{path} {error.given}", needed=needed) from None
    except (OSError, ValueError) as error:
        raise InvalidOption("--pairs", given=f"{path} cannot be read", needed=needed) from error
    if not isinstance(found, list) or not all(isinstance(p, list) and len(p) == 2 for p in found):
        raise InvalidOption("--pairs", given=f"{path} is not a list of pairs", needed=needed)

    def side(given: Any) -> tuple[str, ...]:
        values = tuple(given) if isinstance(given, list) else (given,)
        if not values or not all(isinstance(value, str | int) for value in values):
            raise InvalidOption("--pairs", given=f"{path} holds other things", needed=needed)
        return values

    return tuple((side(left), side(right)) for left, right in found)


def _group(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split("|"))


class Working(AbstractContextManager["Working"]):
    """A spinner on stderr that says what is being done; silent when stderr is no terminal."""

    def __init__(self, what: str) -> None:
        from rich.console import Console

        self._what = what
        self._status = Console(stderr=True).status(what)

    def __enter__(self) -> "Working":
        self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def __call__(self, detail: str) -> None:
        """Say what is being done now."""
        from rich.markup import escape

        self._status.update(f"{self._what}: {escape(visible(detail))}")
