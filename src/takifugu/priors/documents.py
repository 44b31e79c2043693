"""Priors as JSON files: one document each, told apart by ``kind``."""

import json
from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

from takifugu.errors import InvalidFile, InvalidPrior
from takifugu.priors.independent import DEEPEST, Product, too_deep
from takifugu.priors.provenance import KEY, fitted_rules
from takifugu.strict import parse_json
from takifugu.whole import read_whole, write_whole

LARGEST = 256 * 2**20  # bytes; a larger file is not a prior

KINDS: Mapping[str, tuple[str, str]] = {
    "markov-chain": ("takifugu.priors.markov", "MarkovChain"),
    "interval-markov-chain": ("takifugu.priors.interval_chain", "IntervalMarkovChain"),
    "gaussian": ("takifugu.priors.gaussian", "Gaussian"),
    "bayesian-network": ("takifugu.priors.bayesian_network", "BayesianNetwork"),
    "markov-random-field": ("takifugu.priors.random_field", "MarkovRandomField"),
    "independent-entries": ("takifugu.priors.independent", "IndependentEntries"),
    "explicit": ("takifugu.priors.explicit", "Explicit"),
}


def from_document(document: Any) -> Any:
    """The prior that a JSON document describes."""
    if not isinstance(document, Mapping):
        raise InvalidPrior("document", given="is not an object", needed="be one, with a `kind`")
    kind = document.get("kind")
    if kind == Product.kind:
        if _depth(document) > DEEPEST:
            raise too_deep()
        return _product(document)
    if not isinstance(kind, str) or kind not in KINDS:
        near = get_close_matches(str(kind), [*KINDS, Product.kind], n=1, cutoff=0.4)
        meant = f" (did you mean {near[0]!r}?)" if near else ""
        known = ", ".join(sorted([*KINDS, Product.kind]))
        raise InvalidPrior("kind", given=f"is {kind!r:.60}{meant}", needed=f"be one of {known}")
    module, name = KINDS[kind]
    return getattr(import_module(module), name).from_document(document)


def _product(document: Mapping[str, Any]) -> Product:
    for key in document:
        if key not in ("kind", "parts", KEY):
            raise InvalidPrior(key, given="is not a key of a product", needed="be kind or parts")
    parts = document.get("parts")
    if not isinstance(parts, Mapping):
        raise InvalidPrior("parts", given="is missing", needed="map names to priors")
    made = Product({str(name): from_document(part) for name, part in parts.items()})
    return made.also_fitted_on(*fitted_rules(document))


def _depth(document: Any) -> int:
    """How many products lie inside one another, as far as it matters."""
    depth, layer = 0, [document]
    while layer and depth <= DEEPEST:
        parts = [d.get("parts") for d in layer if isinstance(d, Mapping)]
        layer = [part for given in parts if isinstance(given, Mapping) for part in given.values()]
        depth += bool(layer)
    return depth


def read_prior(path: Path | str) -> Any:
    """Read a prior from a JSON file, or a Bayesian network from a BIF file."""
    path = Path(path)
    if path.name.endswith((".bif", ".bif.gz")):
        from takifugu.priors.bif import read_bif

        return read_bif(path)
    return from_document(read_json(path, needed="be a readable JSON file"))


def read_json(path: Path, *, needed: str) -> Any:
    """The one JSON document of a file; ``needed`` says what a file that cannot be read must be."""
    try:
        if path.stat().st_size > LARGEST:
            raise InvalidFile(
                str(path), given="is larger than any prior", needed=f"be below {LARGEST:,} bytes"
            )
        text = read_whole(path)
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        raise InvalidFile(str(path), given=f"cannot be read ({reason})", needed=needed) from error
    except UnicodeDecodeError as error:
        raise InvalidFile(str(path), given="is not UTF-8 text", needed="be JSON") from error
    return parse_json(text, field=str(path))


def write_prior(prior: Any, path: Path | str) -> None:
    """Write a prior to a JSON file, whole or not at all."""
    write_json(prior.to_document(), Path(path), indent=1)


def write_json(document: Any, path: Path, *, indent: int | None = None) -> None:
    """Write a document to a JSON file, whole or not at all."""
    text = json.dumps(document, indent=indent, ensure_ascii=False, allow_nan=False)
    try:
        write_whole(path, text + "\n")
    except UnicodeEncodeError as error:
        raise InvalidFile(
            str(path), given="would hold half a character", needed="be text; name states in UTF-8"
        ) from error
    except OSError as error:
        reason = (error.strerror or "cannot be written").lower()
        raise InvalidFile(
            str(path), given=f"cannot be written ({reason})", needed="be in a writable folder"
        ) from error
