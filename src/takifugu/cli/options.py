"""Options that several commands share: secrets in words, errors about options, a spinner."""

import json
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from takifugu.errors import Malformed

if TYPE_CHECKING:
    from takifugu.priors import Secrets

PAIRS_HELP = (
    "Secret pairs, as 'hospital/home,ward/home|work', or a .json file of [[left, right], …]; by"
    " default all pairs of values."
)
ENTRIES_HELP = "Entries that have secrets, as '3,4,5'; by default all entries."


class InvalidOption(Malformed):
    """An option of a command cannot be understood."""


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
        listed = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidOption("--pairs", given=f"{path} cannot be read", needed=needed) from error
    if not isinstance(listed, list) or not all(isinstance(p, list) and len(p) == 2 for p in listed):
        raise InvalidOption("--pairs", given=f"{path} is not a list of pairs", needed=needed)

    def side(given: Any) -> tuple[str, ...]:
        return tuple(given) if isinstance(given, list) else (given,)

    return tuple((side(left), side(right)) for left, right in listed)


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
        self._status.update(f"{self._what}: {detail}")
