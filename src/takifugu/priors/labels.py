"""Merging many raw labels into a few common ones: the paper's map of Foursquare categories."""

import json
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any

from takifugu.errors import InvalidFile

OTHER = "Other"


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

    def common(self, raw: str, *, other: str = OTHER) -> str:
        """The common label of a raw one; ``other`` if the map does not know it."""
        return self._known.get(_plain(raw), other)

    def merge(self, raws: Iterable[str], *, other: str = OTHER) -> list[str]:
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
