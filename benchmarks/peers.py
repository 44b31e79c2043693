"""Top 3 labels of every country with the libraries that people would use instead, in one run.

``python -m benchmarks.peers --folder KEEP`` makes in KEEP a file of visits of the paper's size and
an environment for each library, both once, and prints time, processor time and peak memory of each
beside plain DuckDB, which protects nothing. ``python -m benchmarks peers`` does it with a million
rows in `out/peers`. `docs/explanation/peers.md` has a table of it: ``--write`` renews that.

Each answers in processes of its own, in turns, at the same ε for each entry (`benchmarks._peers`).
Whole processes are measured: the interpreter, imports, Spark where there is one, the work. What is
released must agree with the exact ranking wherever that is decided by more than the noise can be.
takifugu also keeps what a prior costs in a file, which it computes once: told separately.
"""

import argparse
import json
import os
import platform
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import log
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks._peers.answers import KEYS, PLACES, Top
from benchmarks._peers.environments import (
    FLOOR,
    PEERS,
    ROOT,
    NotInstalled,
    Peer,
    interpreter,
    last_line,
    version,
)
from benchmarks._peers.measured_page import MEASURED, renew, table
from benchmarks._peers.measuring import measured
from benchmarks._visits import PAPER, PLAIN, made

ROWS, ROUNDS, EPSILON = 1_000_000, 3, 1.0
KEPT = ROOT / "out" / "peers"
GIBIBYTES, SECONDS = 12.0, 900.0
FALSE_ALARM = 1e-9  # how probable it may be that noise alone makes a right answer look wrong

Exact = Mapping[tuple[str, str], int]
Figures = dict[str, Any]


def run(
    rows: int = ROWS,
    folder: Path = KEPT,
    rounds: int = ROUNDS,
    only: Sequence[str] = (),
    gibibytes: float = GIBIBYTES,
    seconds: float = SECONDS,
    epsilon: float = EPSILON,
) -> Figures:
    """Make what is not there, ask everybody in turns, print a table, and return its figures."""
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    asked = [peer for peer in PEERS if peer == FLOOR or not only or peer.environment in only]
    if not only or "takifugu" in only:
        asked += [peer for peer in PEERS if peer.environment is None and peer not in asked]
    pythons, failed = _installed(asked, folder)
    path = made(rows, folder)
    exact = exact_counts(path)
    limits: Any = {"gibibytes": gibibytes, "seconds": seconds}
    found: dict[Peer, list[Figures]] = {peer: [] for peer in asked if peer in pythons}
    with tempfile.TemporaryDirectory(dir=folder) as spare:
        place = Path(spare)
        once = _believed(found, pythons, place, epsilon, limits)
        for turn in range(rounds):
            for peer, ones in found.items():
                if peer in failed:
                    continue
                one = _asked(peer, pythons[peer], path, place, turn, epsilon, limits)
                if "failed" in one:
                    failed[peer] = one["failed"]
                else:
                    one |= agreement(one["top"], exact, epsilon, rounds)
                    ones.append(one)
                told = one.get("failed") or _short(one)
                print(f"round {turn + 1}, {peer.name}: {told}", flush=True)
    document = _document(asked, found, failed, pythons, rows, rounds, epsilon, once)
    print(table(document))
    return document


def _installed(asked: Sequence[Peer], folder: Path) -> tuple[dict[Peer, Path], dict[Peer, str]]:
    pythons: dict[Peer, Path] = {}
    failed: dict[Peer, str] = {}
    for peer in asked:
        try:
            pythons[peer] = interpreter(peer, folder)
        except NotInstalled as outcome:
            failed[peer] = f"not installed: {outcome.message}"
            print(f"{peer.name}: {failed[peer]}", flush=True)
    if FLOOR not in pythons:
        raise SystemExit(f"nothing to compare with: {failed[FLOOR]}")
    return pythons, failed


def exact_counts(path: Path) -> Exact:
    """The true counts; this also reads the file once before anybody is timed."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute(f"CREATE VIEW visits AS FROM '{path}'")
        rows = connection.execute(PLAIN["histogram"]).fetchall()
    return dict.fromkeys(KEYS, 0) | {(country, label): count for country, label, count in rows}


def _environment(place: Path, cache: str) -> dict[str, str]:
    """No settings of ours for Python, and folders of its own for what takifugu remembers."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    folders = {"XDG_STATE_HOME": str(place / "state"), "XDG_CACHE_HOME": str(place / cache)}
    return env | folders | {"PYTHONPATH": str(ROOT)}


def _believed(
    found: Mapping[Peer, object],
    pythons: Mapping[Peer, Path],
    place: Path,
    epsilon: float,
    limits: Any,
) -> Figures | None:
    """What it takes to compute once what takifugu's prior costs; the file is used by all rounds."""
    ours = [peer for peer in found if peer.environment is None]
    if not ours:
        return None
    command = [str(pythons[ours[0]]), "-m", "benchmarks._peers.by_takifugu", "prior"]
    env = _environment(place, "prior")
    out = place / "prior.measured.json"
    figures = measured([*command, str(epsilon), str(place)], out=out, cwd=ROOT, env=env, **limits)
    if figures["status"]:
        raise SystemExit(f"takifugu's prior: {figures['stopped'] or last_line(figures['errors'])}")
    kept = json.loads((place / "table.json").read_text("utf-8"))
    return {key: figures[key] for key in ("wall", "processor", "peak")} | {"loss": kept["loss"][-1]}


def _asked(
    peer: Peer, python: Path, path: Path, place: Path, turn: int, epsilon: float, limits: Any
) -> Figures:
    """One answer of one peer, and what it took; or why there is none."""
    mark = f"{peer.name} {turn}"
    answer, out = place / f"{mark}.json", place / f"{mark}.measured.json"
    cache = "known" if peer.cached else f"unknown {turn}"
    command = [str(python), "-m", f"benchmarks._peers.{peer.module}", str(path), str(epsilon)]
    more = [str(place), str(place / f"{mark}.ledger")] if peer.environment is None else []
    how: Any = {"cwd": place, "env": _environment(place, cache), "out": out, **limits}
    if peer.cached and not turn:  # a first session that is not counted: it makes the cache
        measured([*command, str(answer), more[0], str(place / "before.ledger")], **how)
    figures = measured([*command, str(answer), *more], **how)
    if figures["stopped"]:
        return {"failed": f"stopped: {figures['stopped']}"}
    if figures["status"]:
        return {"failed": last_line(figures["errors"])}
    told: Figures = json.loads(answer.read_text("utf-8"))
    return figures | told


def agreement(top: Top, exact: Exact, epsilon: float, rounds: int) -> Figures:
    """How many places are right, and how many are wrong by more than noise can explain.

    No noise of scale 2/ε of all that are drawn is larger than ``bound``, except with probability
    `FALSE_ALARM`: a label can only stand in the place of another if their counts differ by less
    than twice that.
    """
    bound = 2 / epsilon * log(len(KEYS) * rounds * len(PEERS) / FALSE_ALARM)
    right = wrong = decided = 0
    for country in dict.fromkeys(country for country, _ in KEYS):
        counts = {label: exact[country, label] for place, label in KEYS if place == country}
        ranked = sorted(counts, key=lambda label: (-counts[label], label))
        given = top.get(country, [])
        for place in range(PLACES):
            true, near = ranked[place], [ranked[place + 1], *ranked[max(place - 1, 0) : place]]
            told = given[place] if place < len(given) else None
            right += told == true
            decided += all(abs(counts[true] - counts[label]) > 2 * bound for label in near)
            wrong += told is None or abs(counts[told] - counts[true]) > 2 * bound
    return {"right": right, "wrong": wrong, "decided": decided}


def _short(one: Figures) -> str:
    return (
        f"{one['wall']:.2f} s, {one['processor']:.2f} s of processors, {one['peak']:.0f} MiB,"
        f" {one['wrong']} wrong"
    )


def _document(
    asked: Sequence[Peer],
    found: Mapping[Peer, Sequence[Figures]],
    failed: Mapping[Peer, str],
    pythons: Mapping[Peer, Path],
    rows: int,
    rounds: int,
    epsilon: float,
    once: Figures | None,
) -> Figures:
    """What is kept: medians of the rounds, without names of people or machines."""
    peers = []
    for peer in asked:
        one: Figures = {"name": peer.name, "package": peer.package}
        if peer in pythons:
            one["version"] = version(pythons[peer], peer.package)
        if peer in failed:
            one["failed"] = failed[peer]
        else:
            keys = ("wall", "processor", "peak", "start", "work")
            one |= {key: round(median(each[key] for each in found[peer]), 3) for key in keys}
            one |= {key: min(each[key] for each in found[peer]) for key in ("right", "decided")}
            one["wrong"] = max(each["wrong"] for each in found[peer])
        peers.append(one)
    return {
        "rows": rows,
        "epsilon": epsilon,
        "rounds": rounds,
        "date": datetime.now(UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[2], 1),
        "python": platform.python_version(),
        "java": _java(),
        "once": once and {key: round(value, 3) for key, value in once.items()},
        "peers": peers,
    }


def _java() -> str | None:
    try:
        told = subprocess.run(
            ["java", "-version"],  # noqa: S607 - whichever Spark would take
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return told.stderr.splitlines()[0]


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=PAPER)
    parser.add_argument("--folder", type=Path, default=KEPT, help="kept: data and environments")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--epsilon", type=float, default=EPSILON, help="of each entry")
    parser.add_argument("--memory", type=float, default=GIBIBYTES, help="GiB; more is stopped")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of one answer")
    names = sorted({peer.environment or "takifugu" for peer in PEERS})
    parser.add_argument("--only", nargs="+", choices=names, default=[], metavar="PEER")
    parser.add_argument("--write", action="store_true", help=f"renew {MEASURED.name} and its page")
    given = parser.parse_args()
    if given.write and given.only:
        parser.error("--write needs all of them in one run, so not --only")
    if given.rows < 1 or given.rounds < 1 or not 0 < given.epsilon < float("inf"):
        parser.error("--rows, --rounds and --epsilon must be positive")
    document = run(
        given.rows,
        given.folder,
        given.rounds,
        given.only,
        given.memory,
        given.seconds,
        given.epsilon,
    )
    if given.write:
        for path in renew(document):
            print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
