"""The activity datasets: Capture24, and nights of sleep in its shape."""

from collections.abc import Mapping, Sequence
from hashlib import md5
from pathlib import Path

from takifugu.errors import InvalidFile
from takifugu.papers.composition.data.raw_tables import (
    EntryTable,
    FoundFiles,
    Progress,
    RequiredFile,
    join_tables,
    make_table,
    read_rows,
    text,
)

HELD_OUT = 8  # people of each group, as in the paper
EPOCH = 30  # seconds

STAGES = ("Wake", "N1", "N2", "N3", "REM")
MET = (
    "bicycling",
    "gym",
    "sitstand+activity",
    "sitstand+lowactivity",
    "sitting",
    "sleep",
    "sports",
    "standing",
    "vehicle",
    "walking",
    "walking+activity",
)


def capture24_table(key: str, found: FoundFiles, work: Path, progress: Progress) -> EntryTable:
    """The epochs of all participants: a table for each, so that a run can be taken up again."""
    samples, paths = found["samples"]
    dictionary = found["dictionary"]
    _refuse_other_labels(*dictionary)
    ages = dict(read_rows(*found["metadata"]))
    groups = {_pid(path): _age(_pid(path), ages) for path in paths}
    parts = held_out(groups)
    tables = []
    for done, path in enumerate(paths):
        progress(f"{key}: {path.name}", done, len(paths))
        pid = _pid(path)
        recipe = epochs(pid, groups[pid], parts[pid])
        files = {"samples": (samples, [path]), "dictionary": dictionary}
        tables.append(make_table(work / key / f"{pid}.parquet", recipe, files))
    return join_tables(work / f"{key}.parquet", tables)


def epochs(pid: str, age: str, part: str) -> str:
    """A recipe: the samples of one participant become epochs of 30 seconds.

    An epoch has the label that most of its samples have, where to have none counts as one; of
    two as frequent, the one that came first. Epochs without a label are left out.
    """
    return f"""
SELECT {text(pid)} AS entity, epoch AS at, label, {text(age)} AS "group", {text(part)} AS part
FROM (
  SELECT epoch, label,
         row_number() OVER (PARTITION BY epoch ORDER BY samples DESC, began) AS place
  FROM (
    SELECT time_bucket(INTERVAL {EPOCH} SECONDS, made.time) AS epoch,
           CASE WHEN made.annotation IS NOT NULL AND known.label IS NULL
                THEN error('takifugu: `annotation` holds what the dictionary does not; it must hold'
                           || ' annotations of the dictionary, or nothing')
                ELSE known.label END AS label,
           count(*) AS samples, min(made.time) AS began
    FROM {{samples}} AS made
    LEFT JOIN (
      SELECT annotation, min("label:WillettsMET2018") AS label FROM {{dictionary}} GROUP BY ALL
    ) AS known USING (annotation)
    GROUP BY ALL
  )
)
WHERE place = 1 AND label IS NOT NULL
"""  # noqa: S608 - quoted


def held_out(ages: Mapping[str, str]) -> dict[str, str]:
    """For each person ``release`` or ``fit``: 8 of each group, those whose MD5 hash comes first.

    The paper does not say which 8. A hash depends on nothing but the name.
    """
    parts = dict.fromkeys(ages, "fit")
    for group in sorted(set(ages.values())):
        people = [person for person, age in ages.items() if age == group]
        if len(people) <= HELD_OUT:
            raise InvalidFile(
                f"group {group}",
                given=f"has {len(people)} people",
                needed=f"have more than the {HELD_OUT} that are held out",
            )
        people.sort(key=lambda person: md5(person.encode(), usedforsecurity=False).hexdigest())
        parts |= dict.fromkeys(people[:HELD_OUT], "release")
    return parts


def _pid(path: Path) -> str:
    return path.name.removesuffix(".csv.gz")


def _age(pid: str, ages: Mapping[str, str]) -> str:
    if pid not in ages:
        raise InvalidFile(
            "metadata.csv", given=f"has no row for {pid}", needed="have one for every participant"
        )
    return ages[pid].replace("–", "-")


def _refuse_other_labels(needed: RequiredFile, paths: Sequence[Path]) -> None:
    """Raise if the dictionary leads to an activity that is not one of the paper's eleven."""
    for _, label in read_rows(needed, paths):
        if label not in MET:
            raise InvalidFile(
                f"{paths[0]}, column label:WillettsMET2018",
                given="holds another activity",
                needed=f"hold the paper's {len(MET)}: {', '.join(MET)}",
            )
