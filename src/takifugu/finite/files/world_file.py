"""From the bytes of a TOML or JSON file to a world with its mechanisms."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from takifugu._core.fingerprint import ByContent
from takifugu._core.toml import parse_json, parse_toml
from takifugu.errors import InvalidFile, Malformed
from takifugu.finite.files import fields as doc
from takifugu.finite.files.datasets_section import read_datasets
from takifugu.finite.files.fields import FileSection
from takifugu.finite.files.mechanisms_section import read_mechanisms
from takifugu.finite.files.priors_section import read_priors
from takifugu.finite.files.secrets_section import read_pairs, read_secrets
from takifugu.finite.mechanism import FiniteMechanism
from takifugu.finite.world import World

MOST_BYTES = 8 * 2**20
KEYS = (
    *("title", "unsupported", "datasets", "entries", "records"),
    *("prior", "knowledge", "secret", "pair", "mechanism"),
)

Form = Literal["toml", "json"]


@dataclass(frozen=True, eq=False)
class WorldFile(ByContent):
    """The content of a world file: a world, the mechanisms to check in it, and their claims.

    Attributes:
        world: Datasets, priors and secret pairs.
        mechanisms: At least one, each with a name of its own.
        claims: For each mechanism the loss ε its author claims for one run, or None.
        title: One line for people; may be empty.
    """

    world: World
    mechanisms: tuple[FiniteMechanism, ...]
    claims: tuple[float | None, ...]
    title: str = ""


def read_world(path: str | Path) -> WorldFile:
    """Read a world file in TOML or JSON, by its suffix.

    Every fault of the file is one `InvalidFile` that says where it is and what to do. The format is
    documented in docs/reference/worlds.md.
    """
    path = Path(path)
    shown = str(path) if str(path).isprintable() else ascii(str(path))
    form = path.suffix.lower().removeprefix(".")
    try:
        if not path.exists():
            raise InvalidFile(shown, given="does not exist", needed="be a file to read")
        if not path.is_file():
            raise InvalidFile(shown, given="is not a file", needed="be a .toml or .json file")
        if form not in ("toml", "json"):
            raise InvalidFile(shown, given="has another suffix", needed="end in .toml or .json")
        with path.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a name with a zero byte
        if isinstance(error, InvalidFile):
            raise
        reason = getattr(error, "strerror", None) or "is not a valid file name"
        raise InvalidFile(shown, given=f"cannot be read ({reason})", needed="be readable") from None
    try:
        return parse_world(content, form="json" if form == "json" else "toml")
    except Malformed as error:
        raise InvalidFile(
            f"{shown}: {error.field}", given=error.given, needed=error.needed
        ) from None


def parse_world(content: bytes | str, *, form: Form) -> WorldFile:
    """The world that ``content`` describes, written as TOML or JSON."""
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    if len(data) > MOST_BYTES:
        raise InvalidFile(
            "file",
            given=f"is larger than {MOST_BYTES // 2**20} MiB",
            needed="be smaller: a world is written by hand",
        )
    file = FileSection(doc.table(_parsed(data, form), "file"), "")
    file.only(KEYS)
    try:
        return _assembled(file)
    except InvalidFile:
        raise
    except Malformed as error:
        raise doc.placed(error, "") from None


def _parsed(data: bytes, form: Form) -> Any:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidFile(
            "file", given=f"is not UTF-8 text (byte {error.start})", needed="be saved as UTF-8"
        ) from None
    return parse_toml(text) if form == "toml" else parse_json(text)


def _assembled(file: FileSection) -> WorldFile:
    title = doc.name(file.get("title"), "title") if file.has("title") else ""
    datasets = read_datasets(file)
    secrets = read_secrets(file, datasets)
    pairs = read_pairs(file, datasets, secrets)
    priors = read_priors(file, datasets, secrets, pairs)
    secrets.all_used()
    mechanisms, claims = read_mechanisms(file, datasets)
    world = World(datasets.universe, priors, pairs, _unsupported(file))
    return WorldFile(world, mechanisms, claims, title)


def _unsupported(file: FileSection) -> Literal["refuse", "skip"]:
    value = file.content.get("unsupported", "refuse")
    if value == "refuse":
        return "refuse"
    if value == "skip":
        return "skip"
    raise InvalidFile("unsupported", given=f"is {doc.shown(value)}", needed='be "refuse" or "skip"')
