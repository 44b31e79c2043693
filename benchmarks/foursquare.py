"""Files of the shape and size of the paper's check-ins, prepared; time and peak memory of each.

``python -m benchmarks.foursquare --rows 33263633 --folder SOMEWHERE`` makes the two files once and
keeps them there. Beside the preparation stands how long it takes merely to read them through.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

ROWS, PER_PERSON, PER_VENUE, COUNTRIES = 1_000_000, 125, 9, 77


def run(rows: int = ROWS, folder: Path | None = None) -> None:
    """Make the files if they are not there, and print what preparing them takes."""
    with tempfile.TemporaryDirectory() as spare:
        place = (folder or Path(spare)) / f"foursquare-{rows}"
        if not place.exists():
            began = perf_counter()
            generate(place, rows)
            print(f"made {rows:,} rows in {perf_counter() - began:.1f} s")
        with tempfile.TemporaryDirectory(dir=place.parent) as work:
            for step in ("read through", "prepare", "prepare again"):
                print(_measured(step, place, Path(work)))


def generate(folder: Path, rows: int) -> None:
    """Write check-ins and venues as dataset_TIST2015 has them; categories of the paper's map."""
    import duckdb

    from takifugu.papers.composition.data.raw_tables import text
    from takifugu.priors.labels import foursquare_labels

    raw = sorted({name for members in foursquare_labels().members.values() for name in members})
    names = ", ".join(text(name) for name in raw)
    people, venues = max(rows // PER_PERSON, 1), max(rows // PER_VENUE, 1)
    folder.mkdir(parents=True)
    with duckdb.connect(config={"memory_limit": "2GB"}) as connection:
        options = "(FORMAT csv, DELIMITER '\t', HEADER false, QUOTE '')"
        venue = "lpad(to_hex(hash({0}) % 281474976710656), 12, '0') || lpad(to_hex({0}), 12, '0')"
        connection.execute(
            f"""COPY (
                SELECT {venue.format("i")}, (i % 18000) / 100 - 90, (i % 36000) / 100 - 180,
                    [{names}][1 + least(
                        (-60 * ln((hash(i + 13) % 1000003 + 1) / 1000004))::BIGINT, {len(raw) - 1}
                    )],
                    chr(65 + (i % {COUNTRIES} // 26)::INT) || chr(65 + (i % {COUNTRIES} % 26)::INT)
                FROM range({venues}) AS numbers(i)
            ) TO {text(str(folder / "dataset_TIST2015_POIs.txt"))} {options}"""  # noqa: S608 - ours
        )
        connection.execute(
            f"""COPY (
                SELECT hash(i) % {people}, {venue.format(f"(hash(i + 5) % {venues})::BIGINT")},
                    strftime(
                        TIMESTAMP '2012-04-03 18:00:00'
                            + to_seconds((i * 46000000 // {rows})::BIGINT),
                        '%a %b %d %H:%M:%S +0000 %Y'
                    ), (hash(i + 9) % 24)::BIGINT * 60 - 720
                FROM range({rows}) AS numbers(i)
            ) TO {text(str(folder / "dataset_TIST2015_Checkins.txt"))} {options}"""  # noqa: S608 - ours
        )


def _measured(step: str, folder: Path, work: Path) -> str:
    """Time and peak memory of one step, in a process of its own, imports not counted."""
    code = f"""
import resource
from pathlib import Path
from time import perf_counter, process_time
from takifugu.papers.composition.data import SOURCES, prepare
from takifugu.papers.composition.data.raw_tables import inspect_file
import takifugu.tables.backends.duckdb_backend, duckdb
source, folder = SOURCES["foursquare"], Path({str(folder)!r})
began, busy = perf_counter(), process_time()
if {step!r} == "read through":
    for needed in source.files.values():
        inspect_file(needed, folder / needed.name)
else:
    found = prepare(source, folder, Path({str(work)!r}), lambda *_: None)
    assert found.chain.transition.shape == (78, 78)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
spent = f"{{perf_counter() - began:7.1f}} s, processor {{process_time() - busy:7.1f}} s"
print(f"{step:13} {{spent}}, {{peak:6.0f}} MB")
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)  # noqa: S603 - ours
    return done.stdout.strip()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    run(given.rows, given.folder)
