"""Where a result came from: what was asked of which rows, against which prior, at which event.

A number that is passed on without this cannot be checked, and nobody can tell what its guarantee is
about. Only what the owner publishes anyway is in here: the mark of the data, which could confirm a
guess of its bytes, and paths are not.
"""

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from takifugu._core.fingerprint import fingerprint
from takifugu.binding.prior_reading import PriorTranslation
from takifugu.documents.declared import Codec, to_document
from takifugu.documents.reading import DocumentPart
from takifugu.ledger import Anchor
from takifugu.session.guarantee import described
from takifugu.tables import Engine

DRIVERS = {"duckdb": "duckdb", "postgres": "psycopg", "spark": "pyspark"}
SHORT = 12  # digits of a hash that people read


@dataclass(frozen=True)
class PriorUsed:
    """A prior that a guarantee holds against.

    Attributes:
        name: Its name in the session.
        words: What it is, in a few words.
        fingerprint: The identity of its content.
        fitted_on: Which rows it was fitted on; empty if it was not fitted.
    """

    name: str
    words: str
    fingerprint: str
    fitted_on: tuple[str, ...] = ()


def _anchor(document: Any, path: str) -> Anchor:
    found = DocumentPart.of(document, path)
    return Anchor(found.whole("event"), found.text("hash"))


LedgerEvent = Annotated[
    Anchor, Codec(_anchor, lambda anchor: {"event": anchor.seq, "hash": anchor.hash})
]


@dataclass(frozen=True)
class Provenance:
    """Where a result came from.

    Attributes:
        dataset: The name of the budget that paid.
        analyst: Who asked; None if nobody is named.
        asked: The query in words.
        priors: The priors that the guarantee holds against.
        translation: The identity of priors and secrets together.
        charge: The event of the ledger that paid for the answer: its number and hash.
        answer: The event that holds the answer.
        released: When the answer was paid for, which is before it was counted.
        software: The versions that drew the answer; empty if they were not recorded.
    """

    dataset: str
    analyst: str | None
    asked: str
    priors: tuple[PriorUsed, ...]
    translation: str
    charge: LedgerEvent
    answer: LedgerEvent
    released: datetime
    software: Mapping[str, str]

    def describe(self) -> dict[str, Any]:
        """Ready to be written as JSON."""
        document: dict[str, Any] = to_document(self)
        return document

    @property
    def line(self) -> str:
        """When it was released and where the ledger has it, in one line."""
        return (
            f"released {self.released:%Y-%m-%d %H:%M} UTC; event {self.charge.seq} of the ledger"
            f" ({self.charge.hash[:SHORT]})"
        )

    def facts(self) -> dict[str, str]:
        """Names and values for people, in the order in which they are read."""
        many = len(self.priors) > 1
        facts = {"query": self.asked, "dataset": self.dataset}
        if self.analyst is not None:
            facts["analyst"] = self.analyst
        for prior in self.priors:
            called = f"prior {prior.name}" if many else "prior"
            facts[called] = f"{prior.words}, fingerprint {prior.fingerprint[:SHORT]}"
            if prior.fitted_on:
                facts[f"{called}, fitted"] = " ".join(prior.fitted_on)
        facts |= {
            "prior and secrets": f"fingerprint {self.translation[:SHORT]}",
            "released": f"{self.released:%Y-%m-%d %H:%M:%S} UTC",
            "charge": f"event {self.charge.seq}, {self.charge.hash}",
            "answer": f"event {self.answer.seq}, {self.answer.hash}",
            "software": ", ".join(f"{name} {number}" for name, number in self.software.items())
            or "not recorded",
        }
        return facts


def priors_used(translation: PriorTranslation) -> tuple[PriorUsed, ...]:
    """The priors of a session, as a result names them."""
    return tuple(
        PriorUsed(
            name,
            described(prior),
            fingerprint(prior),
            tuple(dict.fromkeys(rule.statement for rule in prior.fitted_on)),
        )
        for name, prior in translation.priors.items()
    )


def software(engine: Engine) -> dict[str, str]:
    """The versions of what draws an answer: this program, the noise, the database's driver."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for package in ("takifugu", "opendp", DRIVERS[engine.dialect]):
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # imported from a folder, not installed
            found[package] = "unknown"
    return found | {"python": platform.python_version()}
