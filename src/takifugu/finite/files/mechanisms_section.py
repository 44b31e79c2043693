"""The mechanisms of a world file: written out row by row, or one of a few known kinds."""

from collections.abc import Hashable
from typing import Any

import numpy as np

from takifugu._core.numeric import Floats
from takifugu.errors import InvalidFile, Malformed
from takifugu.finite.files import fields as doc
from takifugu.finite.files.datasets_section import Datasets
from takifugu.finite.files.fields import FileSection
from takifugu.finite.mechanism import FiniteMechanism

KEYS = (
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
        try:
            mechanism = _mechanism(part, datasets)
        except InvalidFile:
            raise
        except Malformed as error:
            raise doc.placed(error, part.place) from None
        if mechanism.name in [other.name for other in mechanisms]:
            raise InvalidFile(
                part.at("name"),
                given=f"is {doc.shown(mechanism.name)}, as that of another mechanism",
                needed="be a name of its own",
            )
        mechanisms.append(mechanism)
        claims.append(_claim(part))
    if not mechanisms:
        raise InvalidFile("file", given="has no [[mechanism]]", needed="have at least one")
    return tuple(mechanisms), tuple(claims)


def _claim(part: FileSection) -> float | None:
    if not part.has("claim"):
        return None
    claim = doc.number(part.get("claim"), part.at("claim"))
    if claim < 0:
        raise InvalidFile(part.at("claim"), given=f"is {claim:g}", needed="be 0 or more")
    return claim


def _mechanism(part: FileSection, datasets: Datasets) -> FiniteMechanism:
    name = doc.name(part.content.get("name", part.place), part.at("name"))
    part.only(KEYS)
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
        raise InvalidFile(part.at("kind"), given=f"is {doc.shown(kind)}", needed=f"be {known}")
    return FiniteMechanism(datasets.universe, table, outputs, name)


def _written(part: FileSection, datasets: Datasets) -> tuple[Floats, tuple[Hashable, ...]]:
    """Rows for every dataset, or with `entry` for every value of that entry."""
    rows = _rows(part, datasets)
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
        raise InvalidFile(
            part.at("rows"),
            given=f"has {len(table)} rows",
            needed=f"have one for each of the {rows} {of}",
        )
    return table


def _rows(part: FileSection, datasets: Datasets) -> list[Any]:
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
            raise InvalidFile(
                part.at("rows"), given="mix lists and tables", needed="go with `outputs` then"
            )
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
        raise InvalidFile(part.at("entry"), given="has one value only", needed="have two or more")
    if part.one_of(("epsilon", "truth"), purpose="strength") == "truth":
        truth = doc.probability(part.get("truth"), part.at("truth"))
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
    epsilon = doc.number(part.get("epsilon"), part.at("epsilon"))
    if not 0 < epsilon <= most:
        raise InvalidFile(
            part.at("epsilon"), given=f"is {epsilon:g}", needed=f"be above 0 and at most {most:g}"
        )
    return epsilon
