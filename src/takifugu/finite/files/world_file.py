"""From the bytes of a TOML or JSON file to a world: its priors, its mechanisms and their claims."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from takifugu._core.fingerprint import ByContent
from takifugu._core.numeric import Floats, distribution
from takifugu._core.toml import parse_json, parse_toml
from takifugu.errors import InvalidFile, Malformed
from takifugu.finite.files import fields as doc
from takifugu.finite.files.datasets_section import (
    Datasets,
    NamedSecrets,
    read_datasets,
    read_pairs,
    read_secrets,
)
from takifugu.finite.files.fields import FileSection
from takifugu.finite.mechanism import FiniteMechanism
from takifugu.finite.world import World
from takifugu.priors.explicit import Between, Explicit, Knowledge
from takifugu.priors.secrets import Secret, SecretPair
from takifugu.priors.universe import Name

MECHANISM_KEYS = (
    *("name", "claim", "outputs", "rows", "entry"),
    *("kind", "epsilon", "truth", "entries", "value"),
)
KINDS = ("randomised response", "noisy count")


def read_mechanisms(
    file: FileSection, datasets: Datasets
) -> tuple[tuple[FiniteMechanism, ...], tuple[float | None, ...]]:
    """The `[[mechanism]]` tables of a file, and for each the loss it claims, if any."""
    mechanisms: list[FiniteMechanism] = []
    claims: list[float | None] = []
    for part in doc.parts(file, "mechanism"):
        with doc.placed(part.place):
            mechanism = _mechanism(part, datasets)
        doc.unlike(mechanism.name, [other.name for other in mechanisms], part, "mechanism")
        mechanisms.append(mechanism)
        claims.append(_claim(part))
    if not mechanisms:
        raise InvalidFile("file", given="has no [[mechanism]]", needed="have at least one")
    return tuple(mechanisms), tuple(claims)


def _claim(part: FileSection) -> float | None:
    if not part.has("claim"):
        return None
    claim = part.read("claim", doc.number)
    if claim < 0:
        raise part.wrong("claim", given=f"is {claim:g}", needed="be 0 or more")
    return claim


def _mechanism(part: FileSection, datasets: Datasets) -> FiniteMechanism:
    name = doc.name(part.content.get("name", part.place), part.at("name"))
    part.only(MECHANISM_KEYS)
    if part.one_of(("rows", "kind"), purpose="probabilities") == "rows":
        part.only(("name", "claim", "outputs", "rows", "entry"))
        table, outputs = _written(part, datasets)
        return FiniteMechanism(datasets.universe, table, outputs, name)
    kind = part.get("kind")
    if kind == "randomised response":
        table, outputs = _randomised_response(part, datasets)
    elif kind == "noisy count":
        table, outputs = _noisy_count(part, datasets)
    else:
        known = " or ".join(map(repr, KINDS))
        raise part.wrong("kind", given=f"is {doc.shown(kind)}", needed=f"be {known}")
    return FiniteMechanism(datasets.universe, table, outputs, name)


def _written(part: FileSection, datasets: Datasets) -> tuple[Floats, tuple[Hashable, ...]]:
    """Rows for every dataset, or with `entry` for every value of that entry."""
    rows = _output_rows(part, datasets)
    outputs = _outputs(part, rows)
    keys = [doc.text(output) for output in outputs]
    place = part.at("rows")
    laws = [doc.law(row, f"{place}, row {i}", keys) for i, row in enumerate(rows, start=1)]
    table: Floats = np.array(laws)
    if part.has("entry"):
        column = datasets.column(part.get("entry"), part.at("entry"))
        codes = datasets.needs_tables(part.place).codes[:, column]
        table = _complete(table, int(codes.max()) + 1, part, "values of the entry")[codes]
    return _complete(table, len(datasets.universe), part, "datasets"), outputs


def _complete(table: Floats, rows: int, part: FileSection, of: str) -> Floats:
    if len(table) != rows:
        raise part.wrong(
            "rows",
            given=f"has {len(table)} rows",
            needed=f"have one for each of the {rows} {of}",
        )
    return table


def _output_rows(part: FileSection, datasets: Datasets) -> list[Any]:
    """The rows in the order of the datasets (or of the entry's values)."""
    value, place = part.get("rows"), part.at("rows")
    if not isinstance(value, dict):
        return doc.items(value, place)
    if part.has("entry"):
        column = datasets.column(part.get("entry"), part.at("entry"))
        by_value = FileSection(doc.table(value, place), place)
        known = datasets.value_texts(column, place)
        by_value.only(known)
        return [by_value.get(key) for key in known]
    by_dataset = datasets.by_dataset(doc.table(value, place), place)
    for dataset in datasets.universe.datasets:
        if dataset not in by_dataset:
            raise InvalidFile(
                place,
                given=f"has no row for {doc.shown(doc.text(dataset))}",
                needed="have one for every dataset",
            )
    return [by_dataset[dataset] for dataset in datasets.universe.datasets]


def _outputs(part: FileSection, rows: list[Any]) -> tuple[Hashable, ...]:
    """The outputs as written, or the keys of the rows, or counted from 0."""
    place = part.at("outputs")
    if part.has("outputs"):
        listed = doc.items(part.get("outputs"), place)
        outputs = tuple(doc.label(item, place) for item in listed)
    else:
        keys = [key for row in rows if isinstance(row, dict) for key in row]
        longest = max((len(row) for row in rows if isinstance(row, list)), default=0)
        if keys and longest:
            raise part.wrong("rows", given="mix lists and tables", needed="go with `outputs` then")
        outputs = tuple(dict.fromkeys(doc.name(k, place) for k in keys)) or tuple(range(longest))
    if not outputs or len({doc.text(output) for output in outputs}) != len(outputs):
        raise InvalidFile(place, given="are none, or alike", needed="be different texts")
    return outputs


def _randomised_response(
    part: FileSection, datasets: Datasets
) -> tuple[Floats, tuple[Hashable, ...]]:
    """Report the entry's value with probability `truth`, else one of the others, uniformly.

    With `epsilon` the probability is e^ε/(e^ε + k − 1), k the number of values: the mechanism is
    then per-entry ε-DP with equality (Warner 1965).
    """
    part.only(("name", "claim", "kind", "entry", "epsilon", "truth"))
    column = datasets.column(part.get("entry"), part.at("entry"))
    tables = datasets.needs_tables(part.place)
    k = tables.shape[column]
    if k < 2:
        raise part.wrong("entry", given="has one value only", needed="have two or more")
    if part.one_of(("epsilon", "truth"), purpose="strength") == "truth":
        truth = part.read("truth", doc.probability)
        lie = (1 - truth) / (k - 1)
    else:
        shrink = float(np.exp(-_epsilon(part, most=300)))
        truth, lie = 1 / (1 + (k - 1) * shrink), shrink / (1 + (k - 1) * shrink)
    table: Floats = np.where(np.eye(k, dtype=bool), truth, lie)[tables.codes[:, column]]
    return table, tables.values[column]


def _noisy_count(part: FileSection, datasets: Datasets) -> tuple[Floats, tuple[Hashable, ...]]:
    """How many entries have the value, plus two-sided geometric noise, clamped to 0 … n.

    With α = e^−ε the noise is k with probability (1−α)/(1+α)·α^|k|; what falls outside is counted
    at the nearest end, so the probability of an end is α^distance/(1+α), exactly
    (Ghosh, Roughgarden, Sundararajan 2009, the truncated geometric mechanism).
    """
    part.only(("name", "claim", "kind", "entries", "value", "epsilon"))
    tables = datasets.needs_tables(part.place)
    columns = list(range(len(tables.entries)))
    if part.has("entries"):
        place = part.at("entries")
        columns = [datasets.column(e, place) for e in doc.items(part.get("entries"), place)]
        if len(set(columns)) != len(columns):
            raise InvalidFile(place, given="names an entry twice", needed="name each once")
    wanted = [datasets.value(c, part.get("value"), part.at("value")) for c in columns]
    targets = [tables.values[c].index(v) for c, v in zip(columns, wanted, strict=True)]
    n = len(columns)
    count = (tables.codes[:, columns] == np.array(targets)).sum(axis=1)
    alpha = float(np.exp(-_epsilon(part, most=300 / n)))
    answers = np.arange(n + 1)
    table: Floats = alpha ** np.abs(answers[None, :] - count[:, None]) / (1 + alpha)
    table[:, 1:n] *= 1 - alpha
    return table, tuple(range(n + 1))


def _epsilon(part: FileSection, *, most: float) -> float:
    """The strength of the noise; one so large that a probability would round to 0 is refused."""
    epsilon = part.read("epsilon", doc.number)
    if not 0 < epsilon <= most:
        raise part.wrong(
            "epsilon", given=f"is {epsilon:g}", needed=f"be above 0 and at most {most:g}"
        )
    return epsilon


WAYS = ("probability", "uniform", "independent", "chain", "rows")


def read_priors(
    file: FileSection, datasets: Datasets, secrets: NamedSecrets, pairs: Iterable[SecretPair]
) -> tuple[Explicit, ...] | Knowledge:
    """Θ: the `[[prior]]` tables as a list, or the `[[knowledge]]` tables as inequalities."""
    if file.one_of(("prior", "knowledge"), purpose="priors") == "knowledge":
        protected = {secret for pair in pairs for secret in (pair.left, pair.right)}
        return _knowledge(file, datasets, secrets, protected)
    parts = doc.parts(file, "prior")
    priors = tuple(_prior(part, datasets) for part in parts)
    for place, (part, prior) in enumerate(zip(parts, priors, strict=True)):
        doc.unlike(prior.name, [other.name for other in priors[:place]], part, "prior")
    if not priors:
        raise InvalidFile("prior", given="is empty", needed="hold at least one prior")
    return priors


def _prior(part: FileSection, datasets: Datasets) -> Explicit:
    part.only(("name", *WAYS))
    name = doc.name(part.content.get("name", part.place), part.at("name"))
    way = part.one_of(WAYS, purpose="probabilities")
    place = part.at(way)
    value = part.get(way)
    universe = datasets.universe
    with doc.placed(part.place):
        match way:
            case "uniform":
                if not doc.flag(part, "uniform"):
                    raise InvalidFile(place, given="is false", needed="be true, or left out")
                law = Explicit.uniform(universe).probability
            case "independent":
                tables = datasets.needs_tables(place)
                law = Explicit.independent(tables, _marginals(value, place, datasets)).probability
            case _:
                law = {"chain": _chain, "rows": _rows, "probability": _joint}[way](
                    value, place, datasets
                )
        return Explicit(universe, law, name)


def _joint(value: Any, place: str, datasets: Datasets) -> Floats:
    """One probability per dataset: a list in their order, or a table; left out is 0."""
    if not isinstance(value, dict):
        keys = [doc.text(dataset) for dataset in datasets.universe.datasets]
        return doc.law(value, place, keys)
    given = datasets.by_dataset(doc.table(value, place), place)
    return _law(
        {d: doc.probability(p, f"{place}, {doc.text(d)}") for d, p in given.items()},
        place,
        datasets,
    )


def _rows(value: Any, place: str, datasets: Datasets) -> Floats:
    """A joint distribution as rows `{ dataset, p }`; a dataset left out has probability 0."""
    weights: dict[Hashable, float] = {}
    for i, row in enumerate(doc.items(value, place), start=1):
        part = FileSection(doc.table(row, f"{place}, row {i}"), f"{place}, row {i}")
        part.only(("dataset", "p"))
        dataset = datasets.find(part.get("dataset"), part.at("dataset"))
        if dataset in weights:
            raise part.wrong("dataset", given="was named before", needed="be named in one row")
        weights[dataset] = part.read("p", doc.probability)
    return _law(weights, place, datasets)


def _law(weights: Mapping[Hashable, float], place: str, datasets: Datasets) -> Floats:
    listed = [weights.get(dataset, 0.0) for dataset in datasets.universe.datasets]
    return distribution(listed, place, InvalidFile)


def _marginals(value: Any, place: str, datasets: Datasets) -> Mapping[Name, Floats]:
    tables = datasets.needs_tables(place)
    part = FileSection(doc.table(value, place), place)
    part.only([str(entry) for entry in tables.entries])
    return {
        entry: doc.law(
            part.get(str(entry)), part.at(str(entry)), datasets.value_texts(column, place)
        )
        for column, entry in enumerate(tables.entries)
    }


def _chain(value: Any, place: str, datasets: Datasets) -> Floats:
    """A Markov chain along the entries: `start` for the first, `step` from each to the next."""
    tables = datasets.needs_tables(place)
    part = FileSection(doc.table(value, place), place)
    part.only(("start", "step"))
    if len(set(tables.values)) != 1:
        raise InvalidFile(
            place, given="runs over entries of different values", needed="have one set of values"
        )
    keys = datasets.value_texts(0, place)
    start = doc.law(part.get("start"), part.at("start"), keys)
    step = _matrix(part.get("step"), part.at("step"), keys)
    codes = tables.codes
    p: Floats = start[codes[:, 0]]
    for column in range(1, len(tables.entries)):
        p = p * step[codes[:, column - 1], codes[:, column]]
    return p


def _matrix(value: Any, place: str, keys: list[str]) -> Floats:
    """One law per value: a list of rows, or a table from value to row."""
    if isinstance(value, dict):
        part = FileSection(doc.table(value, place), place)
        part.only(keys)
        rows = [doc.law(part.get(key), part.at(key), keys) for key in keys]
    else:
        listed = enumerate(doc.items(value, place), start=1)
        rows = [doc.law(row, f"{place}, row {i}", keys) for i, row in listed]
    if len(rows) != len(keys):
        raise InvalidFile(place, given=f"has {len(rows)} rows", needed=f"have {len(keys)}")
    return np.array(rows)


def _knowledge(
    file: FileSection, datasets: Datasets, secrets: NamedSecrets, protected: set[Secret]
) -> Knowledge:
    about: dict[Secret, tuple[Between, ...]] = {}
    for part in doc.parts(file, "knowledge"):
        part.only(("secret", "event", "coefficients", "low", "high"))
        secret = secrets.find(part.get("secret"), part.at("secret"))
        if secret not in protected:
            raise part.wrong(
                "secret",
                given=f"is {str(secret)!r}, which no pair has",
                needed="be in one",
            )
        with doc.placed(part.place):
            line = _line(part, datasets, secrets)
        about[secret] = (*about.get(secret, ()), line)
    return Knowledge(datasets.universe, tuple(about.items()))


def _coefficients(value: Any, place: str, datasets: Datasets) -> Floats:
    """One number per dataset: a list in their order, or a table; left out is 0."""
    if not isinstance(value, dict):
        return np.array(doc.numbers(value, place))
    given = datasets.by_dataset(doc.table(value, place), place)
    return np.array([doc.number(given.get(d, 0), place) for d in datasets.universe.datasets])


def _line(part: FileSection, datasets: Datasets, secrets: NamedSecrets) -> Between:
    """One inequality: the probability of an `event`, or a weighted sum with `coefficients`."""
    if part.one_of(("event", "coefficients"), purpose="event") == "coefficients":
        return Between(
            _coefficients(part.get("coefficients"), part.at("coefficients"), datasets),
            part.read("low", doc.number),
            part.read("high", doc.number),
        )
    if not part.has("low") and not part.has("high"):
        raise InvalidFile(part.place, given="has no 'low' and no 'high'", needed="have one of them")
    low = doc.number(part.content.get("low", 0), part.at("low"))
    high = doc.number(part.content.get("high", 1), part.at("high"))
    for key, bound in (("low", low), ("high", high)):
        if not 0 <= bound <= 1:
            raise part.wrong(key, given=f"is {bound:g}", needed="be between 0 and 1")
    event = part.get("event")
    if isinstance(event, list):
        event = {"datasets": event}
    return Between.of_probability(
        datasets.universe, secrets.find(event, part.at("event")), low=low, high=high
    )


MOST_BYTES = 8 * 2**20
WORLD_KEYS = (
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
    file.only(WORLD_KEYS)
    with doc.placed(""):
        return _assembled(file)


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
    if value not in ("refuse", "skip"):
        raise InvalidFile(
            "unsupported", given=f"is {doc.shown(value)}", needed='be "refuse" or "skip"'
        )
    return "skip" if value == "skip" else "refuse"
