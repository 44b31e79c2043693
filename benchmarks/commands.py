"""What a person waits for: whole commands, start-up included, as multiples of two imports.

The reference is ``python -c "import duckdb, opendp"``, run in turns with each command: what any
program that counts with DuckDB and draws with OpenDP waits for before it begins. Two projects: ten
rows under a prior of two states, and check-ins like those of New York, 776,244 rows under a prior
of 41 states that was fitted on the first days. Bytecode is there, as it is from the second run on.

Commands are run as a person runs them the second time: what can be cached was cached by a first
run, which is printed too, and answers are new ones unless the command is a free repeat.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter

ROWS, PLACES, PEOPLE = 776_244, 41, 2_600
ROUNDS = 7
REFERENCE = ("-c", "import duckdb, opendp")
WANTED = {"small": {"plan": 4, "release": 4}, "check-ins": {"plan": 7, "release": 7}}
ALWAYS = {"free repeat": 3, "budget show": 3}

Cost = tuple[float, float]  # seconds of wall time, and of processors


@dataclass
class Project:
    """A folder to run commands in, and what they ask.

    Attributes:
        folder: The project.
        dataset: Its dataset.
        query: Kind and options of a query, without ε.
        asked: How often a new query was asked: each has an ε of its own.
    """

    folder: Path
    dataset: str
    query: tuple[str, ...]
    asked: int = 0
    commands: dict[str, Callable[[], tuple[str, ...]]] = field(init=False)

    def __post_init__(self) -> None:
        again = (self.dataset, *self.query, "--epsilon", "0.5")
        self.commands = {
            "plan": lambda: ("plan", *self._new()),
            "release": lambda: ("release", *self._new(), "--yes"),  # ten rows: noise
            "free repeat": lambda: ("release", *again),
            "budget show": lambda: ("budget", "show", self.dataset),
        }
        self.run("release", *again, "--yes")

    def _new(self) -> tuple[str, ...]:
        self.asked += 1
        return (self.dataset, *self.query, "--epsilon", f"0.5{self.asked:03d}")

    def run(self, *arguments: str) -> Cost:
        """What a command takes."""
        return _timed(self.folder, "-m", "takifugu", *arguments)


def run(rounds: int = ROUNDS, rows: int = ROWS) -> None:
    """Make both projects, and print what each command takes beside the reference."""
    with tempfile.TemporaryDirectory() as spare:
        os.environ |= {f"XDG_{kind}_HOME": f"{spare}/{kind}" for kind in ("STATE", "CACHE")}
        print(f"{'project':>10} {'command':>12} {'wall':>8} {'CPU':>8} {'×wall':>6} {'×CPU':>6}")
        for name, make in (("small", _small), ("check-ins", _check_ins)):
            project = make(Path(spare) / name, rows)
            for command, arguments in project.commands.items():
                _compare(name, command, project, arguments, rounds)


def _compare(
    name: str,
    command: str,
    project: Project,
    arguments: Callable[[], tuple[str, ...]],
    rounds: int,
) -> None:
    first = project.run(*arguments())
    found, reference = list[Cost](), list[Cost]()
    for _ in range(rounds):
        reference.append(_timed(project.folder, *REFERENCE))
        found.append(project.run(*arguments()))
    wall, busy = (median(one[which] for one in found) for which in (0, 1))
    ratios = [median(f[w] / r[w] for f, r in zip(found, reference, strict=True)) for w in (0, 1)]
    wanted = ALWAYS.get(command) or WANTED[name][command]
    print(
        f"{name:>10} {command:>12} {wall:>6.3f} s {busy:>6.3f} s {ratios[0]:>6.2f}"
        f" {ratios[1]:>6.2f}  wanted: at most {wanted}; the first took {first[0]:.2f} s"
    )


def _timed(folder: Path, *arguments: str) -> Cost:
    """Wall time and processor time of one process of Python, its threads included."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    began = perf_counter()
    process = subprocess.Popen(  # noqa: S603 - our own interpreter and arguments
        [sys.executable, *arguments], cwd=folder, stdout=subprocess.DEVNULL, env=env
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, arguments
    return perf_counter() - began, used.ru_utime + used.ru_stime


# --- the projects ---


def _small(folder: Path, _: int) -> Project:
    """Ten rows of two people; home or ward, in one of two zones."""
    folder.mkdir()
    days = [(person, day) for person in ("Ann", "Bea") for day in range(5)]
    rows = [f"{p},{d},{'ns'[d > 2]},{'home' if (d + len(p)) % 3 else 'ward'}" for p, d in days]
    (folder / "stays.csv").write_text("\n".join(["person,day,zone,state", *rows, ""]))
    (folder / "stays.toml").write_text(
        _declaration("stays.csv", "csv", "person", 'column = "day"\nkind = "number"', '"refuse"')
        + '[protected.state]\nvalues = ["home", "ward"]\noutside = "refuse"\n'
        + '[public.zone]\nvalues = ["n", "s"]\n'
    )
    for command in (
        ("init",),
        ("prior", "new", "0.9,0.1;0.2,0.8", "--states", "home,ward", "--out", "prior.json"),
        ("dataset", "add", "stays", "stays.toml", "--prior", "prior.json"),
        ("budget", "set", "stays", "1000"),
    ):
        _timed(folder, "-m", "takifugu", *command)
    return Project(folder, "stays", ("histogram", "--by", "zone"))


def _check_ins(folder: Path, rows: int) -> Project:
    """Check-ins of a city: 41 kinds of place, some rare, which tend to follow themselves."""
    import duckdb

    folder.mkdir()
    with duckdb.connect() as connection:
        connection.execute(
            f"""COPY (
                WITH drawn AS (
                    SELECT i, hash(i) % {PEOPLE} AS person, hash(i + 7) % 27648000 AS second,
                        (hash(i + 13) % 1000003 + 1) / 1000004 AS chance
                    FROM range({rows}) AS numbers(i)
                ), placed AS (
                    SELECT *, least((-9 * ln(chance))::BIGINT, {PLACES - 1}) AS kind FROM drawn
                ), stays AS (
                    SELECT *, lag(kind) OVER (PARTITION BY person ORDER BY second, i) AS before
                    FROM placed
                )
                SELECT i AS line, person::BIGINT AS "user",
                    TIMESTAMP '2012-04-03 18:00:00' + to_seconds(second::BIGINT) AS "at",
                    'part ' || (second // 21600) % 4 AS part,
                    'kind ' || CASE WHEN hash(i + 29) % 3 = 0 THEN coalesce(before, kind)
                        ELSE kind END AS kind
                FROM stays ORDER BY i
            ) TO '{folder}/checkins.parquet' (FORMAT parquet)"""  # noqa: S608 - our own numbers
        )
    kinds = ", ".join(f'"kind {i}"' for i in range(PLACES))
    parts = ", ".join(f'"part {i}"' for i in range(4))
    order = 'column = "at"\nkind = "time"\nzone = "UTC"'
    (folder / "checkins.toml").write_text(
        _declaration("checkins.parquet", "parquet", "user", order, '["line"]')
        + f'[protected.kind]\nvalues = [{kinds}]\noutside = "refuse"\n'
        + f"[public.part]\nvalues = [{parts}]\n"
    )
    for command in (
        ("init",),
        ("dataset", "add", "checkins", "checkins.toml"),
        ("prior", "fit", "checkins", "--first-days", "240"),
        ("budget", "set", "checkins", "16"),
    ):
        seconds, _ = _timed(folder, "-m", "takifugu", *command)
        print(f"# {' '.join(command[:2])}: {seconds:.1f} s")
    return Project(folder, "checkins", ("histogram", "--by", "part"))


def _declaration(path: str, kind: str, entity: str, order: str, ties: str) -> str:
    return (
        f'[source]\nkind = "{kind}"\npath = "{path}"\n[entity]\ncolumn = "{entity}"\n'
        f"[order]\n{order}\nties = {ties}\n"
    )


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--rows", type=int, default=ROWS)
    given = parser.parse_args()
    run(given.rounds, given.rows)


if __name__ == "__main__":
    main()
