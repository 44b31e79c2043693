"""A folder with one file of every format, and unique values in its protected data.

People, an undeclared label and a number occur nowhere but in the rows. None of them may ever be
printed, logged, sent or written: `CANARIES` is what all output is searched for.
"""

import contextlib
import csv
import gzip
import io
import json
import os
import shutil
import sys
from datetime import date, timedelta
from pathlib import Path

import duckdb
import numpy as np

from takifugu.cli import main
from takifugu.papers.composition.data import write_prepared
from takifugu.papers.composition.experiments.measurements import write_results
from takifugu.priors import MarkovChain, MarkovRandomField, write_prior
from takifugu.translation import Translation
from takifugu.translation.accounting.tables import tabulate
from tests.papers.composition import synthetic_cells
from tests.papers.composition.small_datasets import prepared
from tests.priors.families import PRIORS
from tests.server.certificates import new_certificate
from torture.inputs.study_texts import BATCH, BIF, LABELS, METERS, POLICY, STAYS, WARDS

PERSON, LABEL, NUMBER = "Quillonvesper", "xanthicmorbus", "41.7193826"
CANARIES = (PERSON, LABEL, NUMBER)
PEOPLE, STEPS = 24, 12
STATE = "state-home"  # stands for the home of the person who runs it; not searched for leftovers
SEEN = "tmp"  # where temporary files go; must be empty afterwards
WARM = (  # what loads modules and compiles loops that many inputs need
    *(f"translate {prior.kind}.json --dp 0.1 --secrets-within 1" for prior in PRIORS),
    *(f"curve {prior.kind}.json --max-b 2" for prior in PRIORS),
    *("schedule show", "budget show stays", "dataset show meters", "token list", "ledger verify"),
    "reassess steep.json --released 0.1",
    *("check world-ward.toml", "translate a.json --cost costs.json", "dataset check meters"),
    *("plan meters linear --query weighted --epsilon 1", "reassess a.json --released 0.1"),
)
LINES = (
    "init",
    "dataset add stays stays.toml --about state",
    "prior new 0.9,0.1;0.2,0.8 --states home,ward --length 12 -o a.json",
    "prior fit stays --first-steps 8",
    "budget set stays 20",
    "dataset add wards wards.toml",
    "dataset add spare spare.toml",
    "dataset add meters meters.toml --secrets-within 10",
    "prior fit meters --kind gaussian --share 1/2",
    "budget set meters 5",
    "prior fit wards --first-days 6 --at-least 5",
    "budget set wards 2 --analyst ana",
    "budget set wards 4",
    "release stays histogram --epsilon 0.5 --yes --out result.csv",
    "plan stays histogram --epsilon 0.6 --out plan.json",
    "plan wards histogram --epsilon 0.4 --analyst ana --out asked.json",
    "ledger backup copy.ledger",
    "release stays count --values ward --epsilon 0.4 --yes --out result.json",
    "ledger export events.jsonl",
    "report write --out report.html",
    "report key own.key",
    "report sign report.html --key own.key",
    "token create --role analyst --name ana",
)


def rows(who: str) -> list[dict[str, object]]:
    """The rows of a table, whose people are called after ``who``; a fixed pattern."""
    found: list[dict[str, object]] = []
    for person in range(PEOPLE):
        for step in range(STEPS):
            pattern = (person * 7 + step * step * (person % 5 + 1)) % 5
            found.append(
                {
                    "person": f"{PERSON} {who}{person}",
                    "step": step,
                    "at": f"{date(2026, 1, 1) + timedelta(days=step)}T12:00:00",
                    "zone": ("north", "south")[person % 2],
                    "floor": 1 + person % 3 % 2,
                    "state": ("home", "ward")[pattern % 2],
                    "illness": LABEL
                    if person == 3 and step % 4 == 2
                    else ("none", "flu")[pattern // 3],
                    "score": NUMBER if person == 5 else f"{(pattern * 17 + step) % 90}.5",
                }
            )
    return found


def csv_text(table: list[dict[str, object]]) -> str:
    """A table as CSV."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(table[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    return out.getvalue()


def make_study(folder: Path, *, warm: bool = True, ledger: str = "") -> None:
    """Fill a folder; commands run in this process, and the current folder is changed.

    Args:
        folder: A new one.
        warm: Whether to load and compile what many inputs need.
        ledger: The address of a PostgreSQL ledger, for a server alone; by default a file.
    """
    folder.mkdir(parents=True)
    _tables(folder)
    _small_files(folder)
    os.environ["XDG_STATE_HOME"] = str(folder / STATE)
    for line in LINES:
        if ledger and line.startswith(("ledger", "report")):
            continue
        more = ["--ledger", ledger] if ledger and line == LINES[0] else []
        status, err = quietly(folder, [*line.split(), *more])
        if status:
            raise RuntimeError(f"takifugu {line}: {status} {err}")
        if line == LINES[0]:
            with (folder / "takifugu.toml").open("a", encoding="utf-8") as policy:
                policy.write("\n[server]\nport = 0\nworkers = 1\n")
    with (folder / "takifugu.toml").open("a", encoding="utf-8") as policy:
        policy.write(POLICY.partition("\n[server]")[0])
    for line in WARM if warm else ():
        quietly(folder, line.split())
    for line in ("schedule show", "budget show meters", "dataset show wards", "token list"):
        status, err = quietly(folder, line.split())
        if status:
            raise RuntimeError(f"takifugu {line}: {status} {err}")


def quietly(folder: Path, words: list[str]) -> tuple[int, str]:
    """Run a command in a folder; its status and what it said on stderr."""
    os.chdir(folder)
    out, err = io.StringIO(), io.StringIO()
    given, sys.argv = sys.argv, ["takifugu", *words]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as stop:
            return int(str(stop.code or 0)), err.getvalue()
        finally:
            sys.argv = given
    raise RuntimeError("main returned")


def _tables(folder: Path) -> None:
    for who, name in (("s", "stays"), ("p", "spare"), ("e", "extra")):
        (folder / f"{name}.csv").write_text(csv_text(rows(who)), encoding="utf-8")
    (folder / "more.csv.gz").write_bytes(gzip.compress(csv_text(rows("g")).encode(), mtime=0))
    for who, name in (("w", "wards"), ("m", "meters")):
        place = folder / f"{name}.source.csv"
        place.write_text(csv_text(rows(who)), encoding="utf-8")
        with duckdb.connect(
            str(folder / "meters.duckdb") if who == "m" else ":memory:"
        ) as database:
            if who == "m":
                database.execute(f"CREATE TABLE meters AS FROM read_csv('{place}')")
            else:
                goal = folder / "wards.parquet"
                database.execute(f"COPY (FROM read_csv('{place}')) TO '{goal}' (FORMAT parquet)")
        place.unlink()


def _small_files(folder: Path) -> None:
    texts = {
        "stays.toml": STAYS,
        "spare.toml": LABELS.replace("stays.csv", "spare.csv"),
        "extra.toml": LABELS.replace("stays.csv", "extra.csv"),
        "wards.toml": WARDS,
        "meters.toml": METERS,
        "zones.csv": "raw,label\nnorth,N\nsouth,S\n",
        "batch.toml": BATCH,
        "net.bif": BIF,
        "edges.txt": "state -> illness\n",
        "met.txt": "20 1 2\n40 1 2\n60 2 3\n",
        "pairs.json": '[["home", "ward"]]',
        "costs.json": '[["1/10", ["member", ["home"]]]]',
        "profile.json": json.dumps([0.1] * 12),
        "released.json": json.dumps(["0.1", "0.5@3:7"]),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "met.txt.gz").write_bytes(gzip.compress(texts["met.txt"].encode(), mtime=0))
    (folder / "net.bif.gz").write_bytes(gzip.compress(BIF.encode(), mtime=0))
    for prior in PRIORS:
        write_prior(prior, folder / f"{prior.kind}.json")
    steep = MarkovRandomField.ising({"a": 0.1, "b": 0.2}, {("a", "b"): 6.5})
    write_prior(steep, folder / "steep.json")
    examples = Path(__file__).resolve().parents[2] / "docs" / "examples"
    for example in sorted(examples.iterdir()):
        shutil.copy(example, folder / f"world-{example.name}")
    new_certificate(folder, "tls")
    write_results(synthetic_cells.results("one"), folder / "results.json")
    write_prepared(prepared(), folder / "prepared.json")
    chain = MarkovChain(np.array([[0.9, 0.1], [0.2, 0.8]]), ("home", "ward"), length=12)
    tabulate(Translation(chain), losses=(0.5, 2.0), share=0.1).save(folder / "table.json")
