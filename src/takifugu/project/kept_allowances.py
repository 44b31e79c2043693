"""Allowances by value that are cached beside a project: one search for each query and ε.

To find how much of a cost a Pufferfish loss allows takes several translations; to confirm it takes
one. So the factor that was found is cached, by the shape of the query and the loss, for one
translation and version. A cached factor is never trusted: the session translates it again, and
uses it only if its loss is within what was asked for. A file that was changed can make a release
noisier, or dearer to compute, and nothing else.
"""

from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

from takifugu import __version__
from takifugu._core.exact import exactly
from takifugu.binding.prior_reading import PriorTranslation
from takifugu.costs.cost import Cost
from takifugu.errors import TakifuguError
from takifugu.priors.documents import read_json, write_json

FORM = "takifugu-allowances-1"
FOLDER = ".takifugu"
MOST = 1000  # allowances in a file; the oldest go first


class KeptAllowances:
    """The allowances of one translation, in a file that is made when the first is kept."""

    def __init__(self, folder: Path, name: str, translation: PriorTranslation) -> None:
        mark = f"{translation.fingerprint[:16]}.{__version__}"
        self._path = folder / FOLDER / f"{name}.{mark}.allowances.json"
        self._mark = translation.fingerprint

    def find(self, unit: Cost, pufferfish: float) -> Fraction | None:
        """The factor of ``unit`` that was found for a Pufferfish loss; None if there is none."""
        return self._read().get((unit, pufferfish))

    def keep(self, unit: Cost, pufferfish: float, factor: Fraction) -> None:
        """Write a factor for the next time; a folder that cannot be written to does no harm."""
        found = self._read()
        found.pop((unit, pufferfish), None)
        found[unit, pufferfish] = factor
        kept = list(found.items())[-MOST:]
        document = {
            "form": FORM,
            "translation": self._mark,
            "allowed": [[cost.document(), loss.hex(), str(f)] for (cost, loss), f in kept],
        }
        with suppress(OSError, TakifuguError):
            self._path.parent.mkdir(exist_ok=True)
            write_json(document, self._path)

    def _read(self) -> dict[tuple[Cost, float], Fraction]:
        """What the file holds; nothing if it is not there, of another translation, or damaged."""
        found: dict[tuple[Cost, float], Fraction] = {}
        with suppress(TakifuguError, AttributeError, KeyError, TypeError, ValueError):
            document: Any = read_json(self._path, needed="be cached allowances")
            if document["form"] == FORM and document["translation"] == self._mark:
                for cost, loss, factor in document["allowed"]:
                    allowed = exactly(factor, "factor")
                    if allowed > 0:
                        found[Cost.of_document(cost), float.fromhex(loss)] = allowed
        return found
