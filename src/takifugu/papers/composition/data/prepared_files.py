"""Prepared data as a JSON file, so that an experiment can go on without preparing again."""

import hashlib
import json
from pathlib import Path
from typing import Any, get_args

import numpy as np

from takifugu._core.numeric import Integers
from takifugu.errors import InvalidFile, Malformed
from takifugu.papers.composition.experiments.measurements import Family, Prepared, PrintedColumn
from takifugu.priors import MarkovChain
from takifugu.priors.documents import read_json, write_json

FORMAT = "takifugu prepared data 2"
ORIGINS = ("paper", "real", "simulated")
TEXTS = ("key", "title", "family", "origin", "group_by", "fingerprint")


def write_prepared(prepared: Prepared, path: Path | str) -> None:
    """Write it whole or not at all, with a digest of everything in it."""
    content = {
        **{name: getattr(prepared, name) for name in TEXTS},
        "chain": prepared.chain.to_document(),
        "groups": list(prepared.groups),
        "counts": prepared.counts.tolist(),
        "train": prepared.train.tolist(),
        "facts": dict(prepared.facts),
        "notes": list(prepared.notes),
        "calibrated": [column.to_document() for column in prepared.calibrated],
    }
    write_json({"format": FORMAT, "digest": _digest(content), **content}, Path(path))


def read_prepared(path: Path | str, *, of: str | None = None) -> Prepared:
    """Read it; an error if it was changed, or is about other data than ``of``."""
    path = Path(path)
    document = read_json(path, needed="be prepared data, as `prepare` writes it")
    try:
        found = _prepared(document)
    except Malformed as error:
        raise InvalidFile(
            f"{path}: {error.field}", given=error.given, needed=error.needed
        ) from None
    if of is not None and found.fingerprint != of:
        raise InvalidFile(
            str(path), given="was made of other data", needed="be prepared again from the files"
        )
    return found


def _prepared(document: Any) -> Prepared:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InvalidFile("format", given="is another one", needed=f"be {FORMAT!r}")
    content = {name: part for name, part in document.items() if name not in ("format", "digest")}
    if document.get("digest") != _digest(content):
        raise InvalidFile(
            "digest", given="does not fit the content", needed="be prepared again: it was changed"
        )
    wanted = (*TEXTS, "chain", "groups", "counts", "train", "facts", "notes", "calibrated")
    if set(content) != set(wanted):
        raise InvalidFile("document", given="has other fields", needed=f"have {', '.join(wanted)}")
    if content["family"] not in get_args(Family) or content["origin"] not in ORIGINS:
        raise InvalidFile("family, origin", given="are unknown", needed="be those of `Prepared`")
    chain = MarkovChain.from_document(content["chain"])
    groups, states = tuple(content["groups"]), len(chain.states)
    return Prepared(
        **{name: content[name] for name in TEXTS},
        chain=chain,
        groups=groups,
        counts=_counts(content["counts"], (len(groups), states), "counts"),
        train=_counts(content["train"], (states,), "train"),
        facts=content["facts"],
        notes=tuple(content["notes"]),
        calibrated=tuple(map(PrintedColumn.from_document, content["calibrated"])),
    )


def _digest(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _counts(given: Any, shape: tuple[int, ...], field: str) -> Integers:
    try:
        counts = np.array(given, dtype=np.int64)
    except (ValueError, TypeError, OverflowError):
        counts = np.zeros(0, dtype=np.int64)
    if counts.shape != shape or (counts < 0).any():
        raise InvalidFile(
            field, given="have another shape", needed=f"be whole numbers of shape {shape}"
        )
    counts.setflags(write=False)
    return counts
