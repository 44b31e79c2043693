"""Priors as JSON files: one document each, whose ``kind`` names the family."""

import json
from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

from takifugu._core.atomic import read_whole, write_whole
from takifugu._core.toml import parse_json
from takifugu.errors import InvalidFile, InvalidPrior
from takifugu.priors.prior import Prior

MAX_FILE_BYTES = 256 * 2**20  # bytes; a larger file is not a prior

KINDS: Mapping[str, tuple[str, str]] = {
    "markov-chain": ("takifugu.priors.markov", "MarkovChain"),
    "interval-markov-chain": ("takifugu.priors.interval_chain", "IntervalMarkovChain"),
    "higher-order-chain": ("takifugu.priors.higher_order", "HigherOrderChain"),
    "time-of-day-chain": ("takifugu.priors.time_of_day", "TimeOfDayChain"),
    "gaussian": ("takifugu.priors.truncated_gaussian", "TruncatedGaussian"),
    "gaussian-process": ("takifugu.priors.gaussian", "Gaussian"),
    "bayesian-network": ("takifugu.priors.networks", "BayesianNetwork"),
    "markov-random-field": ("takifugu.priors.networks", "MarkovRandomField"),
    "independent-entries": ("takifugu.priors.independent", "IndependentEntries"),
    "explicit": ("takifugu.priors.explicit", "Explicit"),
    "product": ("takifugu.priors.independent", "Product"),
}


def from_document(document: Any) -> Prior:
    """The prior that a JSON document describes."""
    if not isinstance(document, Mapping):
        raise InvalidPrior("document", given="is not an object", needed="be one, with a `kind`")
    kind = document.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        near = get_close_matches(str(kind), KINDS, n=1, cutoff=0.4)
        meant = f" (did you mean {near[0]!r}?)" if near else ""
        known = ", ".join(sorted(KINDS))
        raise InvalidPrior("kind", given=f"is {kind!r:.60}{meant}", needed=f"be one of {known}")
    module, name = KINDS[kind]
    family: type[Prior] = getattr(import_module(module), name)
    return family.from_document(document)


def read_prior(path: Path | str) -> Prior:
    """Read a prior from a JSON file, or a Bayesian network from a BIF file."""
    path = Path(path)
    if path.name.endswith((".bif", ".bif.gz")):
        from takifugu.priors.bif import read_bif

        return read_bif(path)
    return from_document(read_json(path, needed="be a readable JSON file"))


def read_json(path: Path, *, needed: str) -> Any:
    """The one JSON document of a file; ``needed`` says what a file that cannot be read must be."""
    if path.is_file() and path.stat().st_size > MAX_FILE_BYTES:
        raise InvalidFile(
            str(path), given="is larger than any prior", needed=f"be below {MAX_FILE_BYTES:,} bytes"
        )
    return parse_json(read_whole(path, needed=needed), field=str(path))


def write_prior(prior: Prior, path: Path | str) -> None:
    """Write a prior to a JSON file, whole or not at all."""
    write_json(prior.to_document(), Path(path), indent=1)


def write_json(document: Any, path: Path, *, indent: int | None = None) -> None:
    """Write a document to a JSON file, whole or not at all."""
    text = json.dumps(document, indent=indent, ensure_ascii=False, allow_nan=False)
    write_whole(path, text + "\n")
