"""The priors of a world file: a list, or knowledge as inequalities."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from takifugu._core.numeric import Floats, distribution
from takifugu.errors import InvalidFile, Malformed
from takifugu.finite.files import fields as doc
from takifugu.finite.files.datasets_section import Datasets
from takifugu.finite.files.fields import FileSection
from takifugu.finite.files.secrets_section import NamedSecrets
from takifugu.priors.explicit import Between, Explicit, Knowledge
from takifugu.priors.secrets import Secret, SecretPair
from takifugu.priors.universe import Name

WAYS = ("probability", "uniform", "independent", "chain", "rows")


def read_priors(
    file: FileSection, datasets: Datasets, secrets: NamedSecrets, pairs: Iterable[SecretPair]
) -> tuple[Explicit, ...] | Knowledge:
    """Θ: the `[[prior]]` tables as a list, or the `[[knowledge]]` tables as inequalities."""
    if file.one_of(("prior", "knowledge"), purpose="priors") == "knowledge":
        protected = {secret for pair in pairs for secret in (pair.left, pair.right)}
        return _knowledge(file, datasets, secrets, protected)
    priors = tuple(_prior(part, datasets) for part in doc.parts(file, "prior"))
    if not priors:
        raise InvalidFile("prior", given="is empty", needed="hold at least one prior")
    names = [prior.name for prior in priors]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise InvalidFile(
                f"prior {i + 1}, name",
                given=f"is {doc.shown(name)}, as that of another prior",
                needed="be a name of its own",
            )
    return priors


def _prior(part: FileSection, datasets: Datasets) -> Explicit:
    part.only(("name", *WAYS))
    name = doc.name(part.content.get("name", part.place), part.at("name"))
    way = part.one_of(WAYS, purpose="probabilities")
    place = part.at(way)
    value = part.get(way)
    universe = datasets.universe
    try:
        match way:
            case "uniform":
                if not doc.flag(part, "uniform"):
                    raise InvalidFile(place, given="is false", needed="be true, or left out")
                return Explicit.uniform(universe, name=name)
            case "independent":
                tables = datasets.needs_tables(place)
                return Explicit.independent(tables, _marginals(value, place, datasets), name=name)
            case "chain":
                return Explicit(universe, _chain(value, place, datasets), name)
            case "rows":
                return Explicit(universe, _rows(value, place, datasets), name)
            case _:
                return Explicit(universe, _joint(value, place, datasets), name)
    except InvalidFile:
        raise
    except Malformed as error:
        raise doc.placed(error, part.place) from None


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
            raise InvalidFile(
                part.at("dataset"), given="was named before", needed="be named in one row"
            )
        weights[dataset] = doc.probability(part.get("p"), part.at("p"))
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
            raise InvalidFile(
                part.at("secret"),
                given=f"is {str(secret)!r}, which no pair has",
                needed="be in one",
            )
        try:
            line = _line(part, datasets, secrets)
        except InvalidFile:
            raise
        except Malformed as error:
            raise doc.placed(error, part.place) from None
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
            doc.number(part.get("low"), part.at("low")),
            doc.number(part.get("high"), part.at("high")),
        )
    if not part.has("low") and not part.has("high"):
        raise InvalidFile(part.place, given="has no 'low' and no 'high'", needed="have one of them")
    low = doc.number(part.content.get("low", 0), part.at("low"))
    high = doc.number(part.content.get("high", 1), part.at("high"))
    for key, bound in (("low", low), ("high", high)):
        if not 0 <= bound <= 1:
            raise InvalidFile(part.at(key), given=f"is {bound:g}", needed="be between 0 and 1")
    event = part.get("event")
    if isinstance(event, list):
        event = {"datasets": event}
    return Between.of_probability(
        datasets.universe, secrets.find(event, part.at("event")), low=low, high=high
    )
