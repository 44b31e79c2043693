"""What the owner of a project accepted: kept at hand, compared, and shown before it changes.

The ledger knows the terms in force by their fingerprints (`ledger.events.accepted_terms`). To say
what is spent under them after the policy has changed, the priors and secrets themselves are kept
beside the tables, under those fingerprints; what is read back is used only if it has them.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from takifugu.errors import TakifuguError
from takifugu.ledger import Review, Terms
from takifugu.priors import Secrets, from_document, read_prior
from takifugu.priors.documents import read_json, write_json
from takifugu.priors.prior import Prior
from takifugu.project.policy import DatasetPolicy, InvalidProject, PriorPolicy
from takifugu.project.translation_tables import FOLDER
from takifugu.session.prior_checks import terms_of
from takifugu.translation.translation import Translation

FORM = "takifugu-terms-1"


@dataclass(frozen=True)
class Change:
    """A policy that differs, or does not, from what is in force.

    Attributes:
        terms: The prior and the secrets of the policy.
        rules: Which rows are released from, by the policy.
        seen: What is spent under the terms in force and under these.
        analysts: For each analyst with a budget: the budget, and what is spent under these terms.
        needed: Whether there is anything to accept.
    """

    terms: Terms
    rules: Mapping[str, Any]
    seen: Review
    analysts: Mapping[str, tuple[Any, float]]
    needed: bool


def released_rules(policy: DatasetPolicy, about: str) -> dict[str, Any]:
    """The column and the rows that are released from, as JSON: what fitted priors leave."""
    fits = [_fit(prior) for prior in policy.priors if prior.fitted is not None]
    said = [
        [prior.file, prior.over, *map(str, prior.positions or ())]
        for prior in policy.priors
        if prior.over is not None
    ]
    return {
        "about": about,
        "over": sorted(said),
        "release_fitted_rows": policy.release_fitted_rows,
        "fits": sorted(fits, key=str),
    }


def _fit(prior: PriorPolicy) -> dict[str, Any]:
    start = prior.released_from
    return {
        "prior": prior.fingerprint,
        "fitted": prior.fitted,
        "released_from": start if start is None or isinstance(start, int) else start.isoformat(),
        "share": None if prior.share is None else str(prior.share),
        "salt": prior.salt,
    }


def refuse_sizes(name: str, priors: Mapping[str, Prior]) -> None:
    """Raise if the priors of a dataset, by file, are about different numbers of entries."""
    sizes = {file: prior.size for file, prior in priors.items()}
    first, *others = sizes.items()
    for other in others:
        if other[1] != first[1]:
            given = " and ".join(
                f"{file} is about {entries_in_words(n)}" for file, n in (first, other)
            )
            raise InvalidProject(
                f"dataset, {name}, prior",
                given=given,
                needed="be about the same number of entries in each; write or fit one again"
                " (--length)",
            )


def entries_in_words(size: int | None) -> str:
    """How many entries a prior is about."""
    return "an unbounded sequence" if size is None else f"{size} entries"


# --- terms at hand ---


def _place(folder: Path, terms: Terms) -> Path:
    return folder / FOLDER / f"{terms.prior[:24]}.{terms.secrets[:24]}.terms.json"


def keep_terms(folder: Path, translation: Translation) -> None:
    """Keep priors and secrets for the day they are replaced; not being able to is no harm."""
    path = _place(folder, terms_of(translation))
    if path.exists():
        return
    secrets = translation.secrets
    pairs = secrets.pairs
    with suppress(OSError, TakifuguError, AttributeError, TypeError, ValueError):
        document = {
            "form": FORM,
            "priors": {key: prior.to_document() for key, prior in translation.priors.items()},
            "uncertainty": translation.uncertainty,
            "entries": None if secrets.entries is None else list(secrets.entries),
            "pairs": None if pairs is None else [[list(a), list(b)] for a, b in pairs],
        }
        path.parent.mkdir(exist_ok=True)
        write_json(document, path)


def kept_terms(folder: Path, name: str, terms: Terms, like: Translation) -> Translation | None:
    """The translation under ``terms``, if its priors are at hand; None if they are not."""
    for made in _candidates(folder, name, terms, like):
        if terms_of(made) == terms:
            return made
    return None


def _candidates(folder: Path, name: str, terms: Terms, like: Translation) -> Iterator[Translation]:
    yield like
    with suppress(TakifuguError, AttributeError, KeyError, TypeError, ValueError):
        found = read_json(_place(folder, terms), needed="be kept terms")
        pairs = found["pairs"]
        yield Translation(
            {key: from_document(prior) for key, prior in found["priors"].items()},
            Secrets(
                entries=None if found["entries"] is None else tuple(found["entries"]),
                pairs=None if pairs is None else tuple((tuple(a), tuple(b)) for a, b in pairs),
            ),
            uncertainty=found["uncertainty"],
        )
    for file in sorted(folder.glob(f"{name}.*.prior.json")):  # one that was fitted before
        with suppress(TakifuguError, ValueError):
            yield Translation(
                {"prior": read_prior(file)}, like.secrets, uncertainty=like.uncertainty
            )
