"""Every file that the project reads: a good one of each, how it is spoiled, and who reads it."""

import gzip
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from torture.inputs.case import Case, Put
from torture.inputs.documents import mutated_json, mutated_toml
from torture.inputs.hostile import one_of
from torture.inputs.mutations import spoiled_bytes, spoiled_text, wrapped

Mutation = Callable[[np.random.Generator, bytes], bytes]
SPECIAL = (
    *(Put("folder"), Put("pipe"), Put("device", b"3"), Put("device", b"7"), Put("missing")),
    *(
        Put("link", b"missing-file"),
        Put("link", b"."),
        Put("locked", b"x"),
        Put(),
        Put("bytes", b"\0"),
    ),
    *(Put("bytes", b"\xff\xfe"), Put("bytes", b"\n" * 5000), Put("bytes", b"[" * 100_000)),
    *(Put("bytes", b"{" * 100_000), Put("bytes", b"a" * 1_000_000), Put("bytes", b"PK\x03\x04")),
)
BOMB = 200 << 20  # bytes that a small packed file unpacks to


@dataclass(frozen=True)
class FileFormat:
    """A format.

    Attributes:
        name: What it is called in the report.
        files: Files of the study that are of the format.
        commands: What reads it; FILE stands for the file.
        mutation: How it is spoiled.
        share: How often it is tried, relative to others.
        reader: Instead of commands: a function of `readers`.
        seed: The file whose bytes are spoiled; by default that which is replaced.
    """

    name: str
    files: tuple[str, ...]
    commands: tuple[str, ...]
    mutation: Mutation
    share: float = 1.0
    reader: str = ""
    seed: str = ""


def mutated_text(rng: np.random.Generator, seed: bytes) -> bytes:
    """A text that is changed line by line."""
    return wrapped(rng, spoiled_text(rng, seed.decode()))


def mutated_packed(rng: np.random.Generator, seed: bytes) -> bytes:
    """A packed text: spoiled within and packed, or spoiled as it is; rarely a bomb."""
    if rng.random() < 0.01:
        return gzip.compress(b"1" * BOMB, 9, mtime=0)
    if rng.random() < 0.5:
        return spoiled_bytes(rng, seed)
    return gzip.compress(mutated_text(rng, gzip.decompress(seed)), 1, mtime=0)


MUTATIONS: Mapping[str, Mutation] = {
    "json": mutated_json,
    "toml": mutated_toml,
    "text": mutated_text,
    "packed": mutated_packed,
    "spoiled_bytes": spoiled_bytes,
}


def formats() -> tuple[FileFormat, ...]:
    """All of them, as ``file_formats.toml`` lists them."""
    declared = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    readers = declared["readers"]
    own = {"markov-chain": "chains", "gaussian-process": "gaussians"}
    priors = []
    for kind in declared["priors"]:
        commands = tuple(readers[own.get(kind, "priors")])
        priors.append(FileFormat(f"prior {kind}", (f"{kind}.json",), commands, mutated_json))
    others = (
        FileFormat(
            one["name"],
            tuple(one["files"]),
            tuple(readers.get(str(one.get("commands")), one.get("commands", ()))),
            MUTATIONS[one["mutation"]],
            one.get("share", 1.0),
            one.get("reader", ""),
            one.get("seed", ""),
        )
        for one in declared["format"]
    )
    return (*priors, *others)


def file_case(
    rng: np.random.Generator, form: FileFormat, seeds: Mapping[str, bytes], names: Sequence[str]
) -> Case:
    """A case of a format: one of its files spoiled, or something else in its place."""
    name = one_of(rng, names)
    seed = seeds[form.seed or name]
    words = one_of(rng, form.commands).replace("FILE", name).split() if form.commands else []
    if rng.random() < 0.04:
        put = one_of(rng, SPECIAL)
    elif rng.random() < 0.02:
        put = Put("bytes", one_of(rng, list(seeds.values())))  # a good file of another format
    elif rng.random() < 0.01:
        put = Put("bytes", seed)
    else:
        put = Put("bytes", form.mutation(rng, seed))
    return Case(f"file: {form.name}", tuple(words), {name: put}, reader=form.reader)


def names_of(form: FileFormat, study: Path) -> list[str]:
    """The files of a format in a study."""
    found = [
        str(path.relative_to(study))
        for pattern in form.files
        for path in sorted(study.glob(pattern))
    ]
    if not found:
        raise ValueError(f"the study has no file of the format {form.name}")
    return found
