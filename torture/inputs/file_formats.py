"""Every file that the project reads: a good one of each, how it is spoiled, and who reads it."""

import gzip
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from torture.inputs.case import Case, Put
from torture.inputs.documents import mutated_json, mutated_toml
from torture.inputs.format_readers import (
    BY_KIND,
    OF_DATA,
    OF_LEDGERS,
    OF_POLICIES,
    OF_PRIORS,
    PRIORS,
)
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


def formats() -> tuple[FileFormat, ...]:
    """All of them."""
    return (
        *(
            FileFormat(
                f"prior {kind}",
                (f"{kind}.json",),
                BY_KIND.get(kind, OF_PRIORS),
                mutated_json,
            )
            for kind in PRIORS
        ),
        FileFormat("prior in BIF", ("net.bif",), OF_PRIORS[:4], mutated_text),
        FileFormat("prior in BIF, packed", ("net.bif.gz",), OF_PRIORS[:2], mutated_packed, 0.5),
        FileFormat(
            "fitted prior of a policy",
            ("stays.*.prior.json",),
            ("budget show stays", "prior show stays", "prior show FILE"),
            mutated_json,
            0.5,
        ),
        FileFormat("policy takifugu.toml", ("takifugu.toml",), OF_POLICIES, mutated_toml, 3),
        FileFormat(
            "declaration",
            ("stays.toml", "wards.toml", "meters.toml", "extra.toml"),
            (
                *("dataset show stays", "dataset show wards", "dataset show meters"),
                *(
                    "dataset add more FILE",
                    "dataset add more extra.toml",
                    "budget show stays",
                    "dataset check stays",
                ),
            ),
            mutated_toml,
            2,
        ),
        FileFormat("declaration in Python", ("stays.toml",), (), mutated_toml, 1, "tf.table"),
        FileFormat(
            "codebook",
            ("zones.csv",),
            ("dataset show meters", "dataset check meters"),
            mutated_text,
        ),
        FileFormat("rows in CSV", ("stays.csv",), OF_DATA, mutated_text, 0.5),
        FileFormat("rows in CSV, packed", ("more.csv.gz",), OF_DATA[3:], mutated_packed, 0.3),
        FileFormat(
            "rows in Parquet",
            ("wards.parquet",),
            (
                "dataset check wards",
                "dataset new FILE --out new.toml",
                "plan wards histogram --epsilon .1 --analyst ana",
            ),
            spoiled_bytes,
            0.5,
        ),
        FileFormat(
            "rows in DuckDB",
            ("meters.duckdb",),
            ("dataset check meters", "dataset new FILE --table meters --out new.toml"),
            spoiled_bytes,
            0.2,
        ),
        FileFormat(
            "ledger", ("takifugu.ledger",), (*OF_LEDGERS, "budget show stays"), spoiled_bytes, 2
        ),
        FileFormat(
            "backup",
            ("copy.ledger",),
            (*OF_LEDGERS, "ledger restore FILE --accept-loss --no-costs"),
            spoiled_bytes,
        ),
        FileFormat(
            "older ledger",
            ("takifugu.ledger",),
            ("ledger accept-loss --no-costs", "ledger accept-loss", "budget show stays"),
            spoiled_bytes,
            0.5,
            seed="copy.ledger",
        ),
        FileFormat(
            "state of a server",
            ("takifugu.server",),
            ("token list", "witness list", "token list --all"),
            spoiled_bytes,
        ),
        FileFormat(
            "witness",
            ("state-home/takifugu/heads/*",),
            ("ledger verify", "budget show stays"),
            spoiled_bytes,
            0.5,
        ),
        FileFormat(
            "key of marks",
            ("takifugu.key",),
            ("budget show stays", "dataset check stays"),
            mutated_text,
            0.2,
        ),
        FileFormat(
            "kept terms",
            (".takifugu/*.terms.json",),
            ("budget show stays", "prior accept stays"),
            mutated_json,
            0.5,
        ),
        FileFormat(
            "plan",
            ("plan.json", "asked.json"),
            ("release FILE -y", "approve FILE", "approve FILE --refuse"),
            mutated_json,
        ),
        FileFormat(
            "batch", ("batch.toml",), ("plan --file FILE", "release --file FILE -y"), mutated_toml
        ),
        FileFormat(
            "report",
            ("report.html",),
            ("report verify FILE --key own.key.pub", "report sign FILE --key own.key -o new.sig"),
            mutated_text,
            0.5,
        ),
        FileFormat(
            "signature",
            ("report.html.sig",),
            ("report verify report.html --key own.key.pub",),
            mutated_text,
        ),
        FileFormat(
            "signing key",
            ("own.key",),
            ("report sign report.html --key FILE -o new.sig",),
            mutated_text,
            0.5,
        ),
        FileFormat(
            "public key",
            ("own.key.pub",),
            ("report verify report.html --key FILE",),
            mutated_text,
            0.5,
        ),
        FileFormat(
            "export of a ledger",
            ("events.jsonl",),
            ("report verify report.html --key own.key.pub --ledger FILE",),
            mutated_text,
        ),
        FileFormat(
            "certificate",
            ("tls.pem", "tls.key"),
            ("serve --check --certificate tls.pem --key tls.key",),
            mutated_text,
            0.3,
        ),
        FileFormat(
            "world in TOML",
            ("world-ward.toml", "world-swap.toml"),
            ("check FILE", "check FILE --json"),
            mutated_toml,
        ),
        FileFormat(
            "world in JSON",
            ("world-bounds.json",),
            ("check FILE", "check FILE --json"),
            mutated_json,
        ),
        FileFormat(
            "contacts",
            ("met.txt",),
            ("prior contacts FILE --background .02 --per-hour 1.5 -o new.json",),
            mutated_text,
        ),
        FileFormat(
            "contacts, packed",
            ("met.txt.gz",),
            ("prior contacts FILE --background .02 --per-hour 1.5 -o new.json",),
            mutated_packed,
            0.5,
        ),
        FileFormat(
            "structure",
            ("edges.txt",),
            ("prior fit spare --kind network --structure FILE --share 1/2",),
            mutated_text,
            0.2,
        ),
        FileFormat(
            "pairs",
            ("pairs.json",),
            ("curve a.json --pairs FILE", "translate a.json --dp .1 --pairs FILE"),
            mutated_json,
        ),
        FileFormat("costs", ("costs.json",), ("translate a.json --cost FILE",), mutated_json),
        FileFormat(
            "profile", ("profile.json",), ("translate a.json --profile FILE",), mutated_json
        ),
        FileFormat(
            "released losses",
            ("released.json",),
            ("reassess a.json --released FILE",),
            mutated_json,
        ),
        FileFormat("results.json", ("results.json",), (), mutated_json, 0.5, "results.json"),
        FileFormat("prepared data", ("prepared.json",), (), mutated_json, 0.5, "prepared.json"),
        FileFormat("table of a translation", ("table.json",), (), mutated_json, 0.5, "table.json"),
    )


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
