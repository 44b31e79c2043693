"""Merging many raw labels into a few common ones: the paper's map of Foursquare categories.

States that are ranges of a number, bound to a column by their names.

A chain over ranges has the states "[0, 0.5)", "[0.5, 1)" and "[1, 2]": from each cut to the next,
the last one closed. The cuts are in the names, so that a prior says by itself which numbers each of
its states stands for, and whether it is about a column with other bounds can be checked. A number
is written in one way only: by its digits, without an exponent or trailing zeros.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from importlib.resources import files
from itertools import pairwise
from math import ceil
from typing import Any

from takifugu._core.exact import Number, exactly
from takifugu.errors import InvalidFile, InvalidPrior, UnsoundRequest

OTHER_LABEL = "Other"


@dataclass(frozen=True)
class LabelMap:
    """Common labels, and the raw labels that each of them stands for.

    A raw label is looked up without regard to case, accents and repeated blanks, so that "Café"
    is found under "Cafe".

    >>> foursquare_labels().common("Ramen /  Noodle House")
    'Restaurant'
    """

    members: Mapping[str, tuple[str, ...]]

    @property
    def labels(self) -> tuple[str, ...]:
        """The common labels, in the order of the map."""
        return tuple(self.members)

    @cached_property
    def _known(self) -> Mapping[str, str]:
        return {_plain(raw): label for label, raws in self.members.items() for raw in raws}

    def common(self, raw: str, *, other: str = OTHER_LABEL) -> str:
        """The common label of a raw one; ``other`` if the map does not know it."""
        return self._known.get(_plain(raw), other)

    def merge(self, raws: Iterable[str], *, other: str = OTHER_LABEL) -> list[str]:
        """The common labels of a sequence."""
        return [self.common(raw, other=other) for raw in raws]

    @classmethod
    def from_document(cls, document: Any) -> "LabelMap":
        """Read an object of lists: the raw labels of each common label."""
        if not isinstance(document, Mapping) or not all(
            isinstance(raws, list) and all(isinstance(raw, str) for raw in raws)
            for raws in document.values()
        ):
            raise InvalidFile(
                "labels", given="are not an object of lists", needed="map labels to raw labels"
            )
        return cls({str(label): tuple(raws) for label, raws in document.items()})


def foursquare_labels() -> LabelMap:
    """The 78 common labels of the paper's appendix "Label Merging Rules"."""
    text = (files("takifugu") / "data" / "foursquare_labels.json").read_text(encoding="utf-8")
    return LabelMap.from_document(json.loads(text))


def _plain(label: str) -> str:
    """Without accents, case and repeated blanks."""
    letters = unicodedata.normalize("NFKD", label)
    bare = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return " ".join(bare.casefold().split())


MAX_CUT_DIGITS = 40  # on either side of the point
MAX_LISTED_RANGES = 10  # ranges that a message lists
_NUMBER = r"-?(?:0|[1-9][0-9]{0,39})(?:\.[0-9]{0,39}[1-9])?"
_RANGE = re.compile(rf"\[({_NUMBER}), ({_NUMBER})([)\]])")

Ranges = tuple[tuple[Fraction, Fraction], ...]


def range_names(cuts: Sequence[Number]) -> tuple[str, ...]:
    """The ranges between ``cuts``, which are in order, from the lower bound to the upper one.

    >>> range_names([0, "0.5", 1, 2])
    ('[0, 0.5)', '[0.5, 1)', '[1, 2]')
    """
    places = exact_cuts(cuts)
    last = len(places) - 2
    return tuple(
        f"[{_text(low)}, {_text(high)}{']' if i == last else ')'}"
        for i, (low, high) in enumerate(pairwise(places))
    )


def parse_ranges(states: Sequence[object]) -> Ranges:
    """The least and the greatest number of each range; an error unless they follow one another.

    Each range but the last holds its lower end and not its upper one, which the next begins with:
    so every number between the first and the last is in exactly one.

    >>> parse_ranges(["[0, 0.5)", "[0.5, 2]"])
    ((Fraction(0, 1), Fraction(1, 2)), (Fraction(1, 2), Fraction(2, 1)))
    """
    ranges = []
    for state in states:
        match = _RANGE.fullmatch(state) if isinstance(state, str) else None
        if match is None:
            raise InvalidPrior(
                "states",
                given=f"have {state!r:.60}, which is not a range",
                needed="be ranges that follow one another, as '[0, 0.5)', '[0.5, 1]'",
                reason="not-a-range",
            )
        ranges.append((Fraction(match[1]), Fraction(match[2])))
    cuts = sorted({end for both in ranges for end in both})
    given = tuple(map(str, states))
    if not ranges or any(not low < high for low, high in ranges):
        raise InvalidPrior(
            "states",
            given=f"are the ranges {_listed(given)}, one of them empty" if ranges else "are none",
            needed="be ranges, each from a number to a greater one",
            reason="empty-range",
        )
    needed = range_names(cuts)
    if given != needed:
        ordered = sorted(ranges)
        overlap = any(after[0] < before[1] for before, after in pairwise(ordered))
        raise InvalidPrior(
            "states",
            given=f"are the ranges {_listed(given)}"
            + (", which overlap" if overlap else ", which do not follow one another"),
            needed="be in order, each beginning where the one before it ends and only the last one"
            f" closed, as {_listed(needed)}",
            reason="overlap" if overlap else "not-in-order",
        )
    return tuple(ranges)


def are_ranges(states: Sequence[object]) -> bool:
    """Whether every state is written as a range, whether or not they fit together."""
    return bool(states) and all(isinstance(s, str) and _RANGE.fullmatch(s) for s in states)


def refuse_other_bounds(
    states: Sequence[object], *, column: str, low: Fraction, high: Fraction, step: Fraction
) -> Ranges:
    """The ranges of ``states``; an error unless they cut the bounds of a column at whole steps."""
    ranges = parse_ranges(states)
    cuts = (ranges[0][0], *(end for _, end in ranges))
    if (cuts[0], cuts[-1]) != (low, high):
        inner = [cut for cut in cuts if low < cut < high]
        raise InvalidPrior(
            "states",
            given=f"are the ranges {_listed(tuple(map(str, states)))}",
            needed=f"cut the bounds of {column}, [{_text(low)}, {_text(high)}], as"
            f" {_listed(range_names([low, *inner, high]))}",
            reason="other-bounds",
        )
    refuse_off_step(cuts, column=column, low=low, step=step)
    return ranges


def refuse_off_step(
    cuts: Sequence[Fraction], *, column: str, low: Fraction, step: Fraction
) -> None:
    """Raise unless every cut is a whole number of steps: a number is rounded to its step first."""
    for cut in cuts:
        if ((cut - low) / step).denominator != 1:
            near = low + ceil((cut - low) / step) * step
            raise InvalidPrior(
                "cuts",
                given=f"have {_text(cut)}, between two steps of {column}",
                needed=f"be multiples of its step {_text(step)}, as {_text(near)}",
                reason="off-step",
            )


def exact_cuts(cuts: Sequence[Number]) -> tuple[Fraction, ...]:
    """Cuts by their digits, in order; an error if they are not, or if there are fewer than two."""
    if isinstance(cuts, str):
        raise InvalidPrior("cuts", given="are text", needed="be a list of numbers")
    try:
        # a float by the digits that it is written with: 0.1 is a tenth
        places = tuple(exactly(repr(c) if isinstance(c, float) else c, "cuts") for c in cuts)
        for place in places:
            _text(place)
    except UnsoundRequest as error:
        raise InvalidPrior(
            "cuts", given="hold something else than finite numbers", needed="hold numbers"
        ) from error
    if len(places) < 2 or any(not a < b for a, b in pairwise(places)):
        raise InvalidPrior(
            "cuts",
            given=f"are {', '.join(map(_text, places[:MAX_LISTED_RANGES])) or 'none'}",
            needed="be at least two numbers in rising order, from the lower bound to the upper one",
            reason="not-in-order",
        )
    return places


def _text(number: Fraction) -> str:
    """A decimal number by its digits; an error if it has no end, as 1/3, or very many."""
    digits = next((d for d in range(MAX_CUT_DIGITS) if (number * 10**d).denominator == 1), None)
    if digits is None or abs(number) >= 10**MAX_CUT_DIGITS:
        raise InvalidPrior(
            "cuts",
            given=f"have {number!s:.60}",
            needed=f"be decimal numbers of fewer than {MAX_CUT_DIGITS} digits",
            reason="not-decimal",
        )
    whole = f"{abs(int(number * 10**digits)):0{digits + 1}d}"
    text = whole if digits == 0 else f"{whole[:-digits]}.{whole[-digits:]}"
    return f"-{text}" if number < 0 else text


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:MAX_LISTED_RANGES])
    return shown + (", …" if len(names) > MAX_LISTED_RANGES else "")
