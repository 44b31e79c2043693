"""The form of a query: which options a kind has, how each is shown, and what was filled in.

The kinds, their options and the columns come from the public description of a dataset. A form is
read in two places, here and in the browser (``ask_form.js``), into the same document of query
options; how each option is read stands in `READ_AS` alone, and the form carries it to the browser.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, Literal

As = Literal["text", "real", "whole", "list", "lines", "flag", "counts"]
READ_AS: Mapping[str, As] = {
    "column": "text",
    "columns": "list",
    "by": "list",
    "epsilon": "text",
    "delta": "text",
    "within": "text",
    "confidence": "real",
    "values": "list",
    "k": "whole",
    "level": "text",
    "grid": "text",
    "reference": "counts",
    "gap": "real",
    "query": "text",
    "leave_out": "list",
    "sum_to_one": "flag",
}
KINDS: Mapping[str, tuple[str, str]] = {
    "histogram": ("Histogram", "how many rows have each label"),
    "proportions": ("Proportions", "the share of the rows that have each label"),
    "top_k": ("Ranking", "the most frequent labels, best first"),
    "count": ("Count", "how many rows have one of some labels, together"),
    "counts": ("Counts", "how many rows have each of some labels"),
    "sum": ("Sum", "the sum of a column of bounded numbers"),
    "mean": ("Mean", "the mean of a column of bounded numbers"),
    "quantile": ("Quantile", "the number below which a share of the values lies"),
    "transitions": ("Transitions", "how often each label followed each other one"),
    "marginals": ("Marginals", "a histogram of each of some columns"),
    "linear": ("Weighted sum", "a weighted sum that the policy declares"),
}
LABELS: Mapping[str, tuple[str, str]] = {
    "values": ("Labels to count", "At least one."),
    "k": ("Places", "How many labels are named."),
    "level": ("Level", "Between 0 and 1: 0.5 for the median."),
    "grid": ("Grid", "The distance between the numbers that it is chosen from; by default a step."),
    "reference": (
        "Reference counts",
        "Public or synthetic counts to plan the ranking for, one for each label, separated by"
        " blanks; a line for each group.",
    ),
    "gap": ("Lead", "Instead of a reference: by how many each place leads the next."),
    "query": ("Declared query", "Weights and column are those of the policy."),
    "leave_out": ("Labels to leave out", "Such as “other”."),
    "sum_to_one": (
        "Numbers add up",
        "Show them so that those of a group add up to its rows. It costs nothing.",
    ),
}
WHOLE = re.compile(r"[+-]?[0-9]{1,15}")
REAL = re.compile(r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)
OF_NUMBERS = ("sum", "mean", "quantile", "linear")
MOST_BOXES = 60  # labels that are boxes to check; more are written, one on a line


@dataclass(frozen=True)
class FormField:
    """An option of some kinds of query, as a form shows it.

    Attributes:
        option: Its name.
        label: What people call it.
        hint: What to write.
        read_as: How what is written is read.
        choices: What there is to choose from; empty if it is written.
        kinds: The kinds of query that have it.
        required: Those that need it.
    """

    option: str
    label: str
    hint: str
    read_as: As
    choices: tuple[str, ...]
    kinds: tuple[str, ...]
    required: tuple[str, ...]


@dataclass(frozen=True)
class KindChoice:
    """A kind of query that a dataset answers.

    Attributes:
        name: Its name in the API.
        title: What people call it.
        words: What it answers.
        several: Whether it may be about several columns.
        ranking: Whether its error is a confidence, and not a distance.
    """

    name: str
    title: str
    words: str
    several: bool
    ranking: bool


def kinds_of(description: Mapping[str, Any]) -> tuple[KindChoice, ...]:
    """The kinds of query that the columns of a dataset have answers for.

    Which kinds a prior serves is for the plan to say, with the reason.
    """
    asked = [one for one in description["protected"] if one["column"] in description["about"]]
    labels = sum(one["kind"] == "label" for one in asked)
    numbers = len(asked) - labels
    found = []
    for kind in description["queries"]:
        name = kind["kind"]
        needed = numbers if name in OF_NUMBERS else labels
        if not needed or (name == "linear" and not description["linear"]):
            continue
        if name == "marginals" and labels < 2:
            continue
        title, words = KINDS.get(name, (name, ""))
        found.append(
            KindChoice(name, title, words, bool(kind["several"]), "within" in kind["without"])
        )
    return tuple(found)


def fields_of(description: Mapping[str, Any]) -> tuple[FormField, ...]:
    """The fields for options that only some kinds have, each once."""
    shown = {kind.name for kind in kinds_of(description)}
    kinds = [kind for kind in description["queries"] if kind["kind"] in shown]
    names = dict.fromkeys(
        name for kind in kinds for name in (*kind["required"], *kind["optional"]) if name in LABELS
    )
    return tuple(_field(name, kinds, description) for name in names)


def _field(name: str, kinds: Iterable[Any], description: Mapping[str, Any]) -> FormField:
    label, hint = LABELS.get(name, (name.replace("_", " "), ""))
    read_as, choices = READ_AS.get(name, "text"), tuple[str, ...]()
    if name in ("values", "leave_out"):
        labels = _labels(description)
        choices = labels if len(labels) <= MOST_BOXES else ()
        if not choices:
            read_as, hint = "lines", f"{hint} One on a line."
    if name == "query":
        choices = tuple(map(str, description["linear"]))
    return FormField(
        name,
        label,
        hint,
        read_as,
        choices,
        tuple(kind["kind"] for kind in kinds if name in (*kind["required"], *kind["optional"])),
        tuple(kind["kind"] for kind in kinds if name in kind["required"]),
    )


def _labels(description: Mapping[str, Any]) -> tuple[str, ...]:
    """The labels to choose from; none where there are several columns of them."""
    found = [
        column["labels"]
        for column in description["protected"]
        if column["kind"] == "label" and column["column"] in description["about"]
    ]
    return tuple(map(str, found[0])) if len(found) == 1 else ()


def filled_in(form: Sequence[tuple[str, str]], fields: Sequence[FormField]) -> dict[str, Any]:
    """What a form was filled in with, as a document of query options.

    A field that is empty is not given. What is no number is passed on as it is: whoever reads the
    options refuses it by name.
    """
    read_as = {**READ_AS, **{one.option: one.read_as for one in fields}}
    answers: dict[str, list[str]] = {}
    for name, value in form:
        if value.strip():
            answers.setdefault(name, []).append(value.strip())
    kind = answers.get("kind", [""])[0]
    other = {one.option for one in fields if kind not in one.kinds}
    left_out = ("within", "confidence") if answers.get("aim") != ["error"] else ("epsilon",)
    document: dict[str, Any] = {"kind": kind}
    for option, way in read_as.items():
        if option in answers and option not in other and option not in left_out:
            document["column" if option == "columns" else option] = _read(way, answers[option])
    where = {
        name.removeprefix("where:"): keys
        for name, keys in answers.items()
        if name.startswith("where:")
    }
    if where:
        document["where"] = where
    if "from" in answers or "to" in answers:
        document["window"] = [answers.get(end, [None])[0] for end in ("from", "to")]
    return document


def _read(way: As, given: list[str]) -> Any:
    match way:
        case "list":
            return given
        case "lines":
            return [line.strip() for line in given[0].splitlines() if line.strip()]
        case "flag":
            return True
        case "counts":
            rows = [
                [_number(one, float) for one in line.replace(",", " ").split()]
                for line in given[0].splitlines()
            ]
            return rows[0] if len(rows) == 1 else rows
        case "real":
            return _number(given[0], float)
        case "whole":
            return _number(given[0], int)
        case _:
            return given[0]


def _number(text: str, kind: type[int] | type[float]) -> Any:
    """A number as people write it; any other text as it is."""
    form = WHOLE if kind is int else REAL
    value = kind(text) if form.fullmatch(text) and len(text) < 40 else inf
    return value if isfinite(value) else text
