"""Every dataset that the reproduction knows, and what was chosen where the paper leaves it open."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from takifugu.declarations import Order
from takifugu.errors import InvalidFile
from takifugu.papers.composition.data import capture24 as people
from takifugu.papers.composition.data import simulated
from takifugu.papers.composition.data.preparation import (
    DatasetInfo,
    DrawnCounts,
    Entries,
    PaperDataset,
    activities,
    by_days,
    by_people,
    check_ins,
)
from takifugu.papers.composition.data.raw_tables import Column, RequiredFile, one_table

HOURS = tuple(f"{hour:02d}" for hour in range(24))

TIST_CHECKINS_FILE = RequiredFile(
    "dataset_TIST2015_Checkins.txt",
    (
        Column("user", "whole"),
        Column("venue", "text"),
        Column("utc_time", "check-in time"),
        Column("offset_minutes"),
    ),
    "tab",
)
TIST_POIS_FILE = RequiredFile(
    "dataset_TIST2015_POIs.txt",
    (
        Column("venue", "text"),
        Column("latitude"),
        Column("longitude"),
        Column("category", "label"),
        Column("country", "text"),
    ),
    "tab",
    encodings=("utf-8", "latin-1"),
)
TSMC_COLUMNS = (
    Column("user", "whole"),
    Column("venue"),
    Column("category_id"),
    Column("category", "label"),
    Column("latitude"),
    Column("longitude"),
    Column("offset_minutes", "whole"),
    Column("utc_time", "check-in time"),
)
TSMC_NYC_FILE, TSMC_TKY_FILE = (
    RequiredFile(
        f"dataset_TSMC2014_{city}.txt", TSMC_COLUMNS, "tab", encodings=("utf-8", "latin-1")
    )
    for city in ("NYC", "TKY")
)
NYC_FILE = RequiredFile(
    "checkins_nyc.csv.gz",
    (
        Column("user_idx", "whole"),
        Column("cat", "label"),
        Column("unix_s", "whole"),
        Column("hour", "whole"),
    ),
)
JAKARTA_FILE = RequiredFile(
    "checkins_jakarta.csv.gz",
    (
        Column("user_id", "whole"),
        Column("row", "whole"),
        Column("hour_of_week", "whole"),
        Column("est_hours", "whole"),
        Column("category_name_inferred", "label"),
    ),
)


def _hour_of_day(hour: str, column: str, low: int, high: int) -> str:
    """SQL for the name of a group; ``hour`` is made of ``column``, which is from low to high."""
    return (
        f"CASE WHEN {column} BETWEEN {low} AND {high} THEN lpad(({hour})::VARCHAR, 2, '0')"
        f" ELSE error('takifugu: `{column}` is out of range; it must be from {low} to {high}') END"
    )


# A check-in at a venue that the second file does not have is an entry, "other", of no country.
TIST_ENTRIES = """
SELECT made.user AS entity, made.utc_time AS at, made.line AS row,
       place.category AS label, place.country AS "group"
FROM {checkins} AS made
LEFT JOIN (
  SELECT venue, min(category) AS category, min(country) AS country FROM {pois} GROUP BY venue
) AS place USING (venue)
"""
TSMC_ENTRIES = """
SELECT "user" AS entity, utc_time AS at, line AS row, category AS label,
       strftime(utc_time + to_minutes(offset_minutes), '%H') AS "group"
FROM {checkins}
"""
NYC_ENTRIES = f"""
SELECT user_idx AS entity, unix_s AS at, line AS row, cat AS label,
       {_hour_of_day("hour", "hour", 0, 23)} AS "group"
FROM {{checkins}}
"""  # noqa: S608 - nothing in it comes from outside
# The rows are in the order of time. The estimate of the hour is a lower bound; the largest one so
# far is one too, and never goes back.
JAKARTA_ENTRIES = f"""
SELECT user_id AS entity, max(est_hours) OVER (ORDER BY row) // 24 AS at, row,
       category_name_inferred AS label,
       {_hour_of_day("(hour_of_week - 1) % 24", "hour_of_week", 1, 168)} AS "group"
FROM {{checkins}}
"""  # noqa: S608 - nothing in it comes from outside


YANG = "https://sites.google.com/site/yangdingqi/home/foursquare-dataset"
OXFORD = "https://ora.ox.ac.uk/objects/uuid:99d7c092-d865-4a19-b096-cc16440cd001"
DREEM = "https://github.com/Dreem-Organization/dreem-learning-evaluation"
YANG_2015 = "Yang, Zhang, Zheng & Yu, IEEE Trans. SMC: Systems 45(1), 2015"

UTC = Order("at", "time", "UTC", ties=("row",))

MERGED = (
    "Categories are merged by the paper's map, read without regard to accents, case and repeated"
    " blanks: it writes `Cafe` and `Ramen / Noodle House` where the data has `Café` and two blanks."
)
BY_COUNTRY = (
    "The country of a check-in is that of its venue and is public: protected is which of the 78"
    " labels an entry has."
)
BY_HOUR = (
    "One city has no countries: the groups are the 24 hours of the day, local time, which are"
    " public."
)
HELD_OUT = (
    "The paper does not say which 8 people of a group are held out: here those whose names have the"
    " first MD5 hashes."
)

FOURSQUARE = PaperDataset(
    DatasetInfo(
        "foursquare",
        "Foursquare check-ins, 77 countries",
        "foursquare",
        "paper",
        "country",
        (
            MERGED,
            BY_COUNTRY,
            "Days are days of UTC, from that of the first check-in on.",
        ),
        known_facts={"rows": simulated.PAPER_ROWS, "groups": 77},
    ),
    {"checkins": TIST_CHECKINS_FILE, "pois": TIST_POIS_FILE},
    YANG,
    "Yang, Zhang & Qu, ACM TIST 7(3), 2016;"
    " Yang, Zhang, Chen & Qu, J. Netw. Comput. Appl. 55, 2015",
    Entries(
        partial(one_table, TIST_ENTRIES),
        partial(check_ins, order=UTC),
        by_days,
    ),
)
TSMC_NYC, TSMC_TKY = (
    PaperDataset(
        DatasetInfo(
            key,
            f"Foursquare check-ins, {city}",
            "foursquare",
            "real",
            "hour of the day",
            (
                MERGED,
                BY_HOUR,
                "Days are days of UTC, from that of the first check-in on.",
            ),
        ),
        {"checkins": needed},
        YANG,
        YANG_2015,
        Entries(
            partial(one_table, TSMC_ENTRIES),
            partial(check_ins, order=UTC, groups=HOURS),
            by_days,
        ),
    )
    for key, city, needed in (
        ("tsmc-nyc", "New York", TSMC_NYC_FILE),
        ("tsmc-tky", "Tokyo", TSMC_TKY_FILE),
    )
)
NYC = PaperDataset(
    DatasetInfo(
        "nyc",
        "Foursquare check-ins, New York, a cut",
        "foursquare",
        "real",
        "hour of the day",
        (
            MERGED,
            BY_HOUR,
            "By hour of the week 92 of 168 groups tie within the first four places; by hour of the"
            " day 2 of 24 do.",
            "Days are days in New York.",
        ),
    ),
    {"checkins": NYC_FILE},
    YANG,
    YANG_2015,
    Entries(
        partial(one_table, NYC_ENTRIES),
        partial(
            check_ins,
            order=Order("at", "unix", "America/New_York", ties=("row",)),
            groups=HOURS,
        ),
        by_days,
    ),
    derived=True,
)
JAKARTA = PaperDataset(
    DatasetInfo(
        "jakarta",
        "Foursquare check-ins, Jakarta, a cut",
        "foursquare",
        "real",
        "hour of the day",
        (
            MERGED,
            BY_HOUR,
            "By hour of the week 63 of 162 groups tie within the first four places; by hour of the"
            " day 1 of 24 does.",
            "There are no timestamps: a day is 24 hours of `est_hours`, a lower bound on the hours"
            " since the first Monday, of which the largest so far is taken.",
            "Categories are codes; those whose name could not be inferred are `other`.",
        ),
    ),
    {"checkins": JAKARTA_FILE},
    YANG,
    "Yang, Qu, Yang & Cudré-Mauroux, WWW 2019",
    Entries(
        partial(one_table, JAKARTA_ENTRIES),
        partial(check_ins, order=Order("at", "number", ties=("row",)), groups=HOURS),
        by_days,
    ),
    derived=True,
)
CAPTURE24 = PaperDataset(
    DatasetInfo(
        "capture24",
        "Capture24, activities of 151 participants",
        "capture24",
        "paper",
        "age group",
        (
            HELD_OUT,
            "An entry is an epoch of 30 seconds of the clock: annotations are given 100 times a"
            " second and stay the same for minutes, and the paper names no unit (30 seconds is a"
            " usual window for these labels; the authors' benchmark takes 10).",
            "An epoch has the label of most of its samples; one that mostly has none is left out,"
            " and what came before it is followed by what came after.",
            "Transitions from an activity to itself are counted, as for check-ins.",
        ),
        known_facts={"entities": 151, "groups": 4},
    ),
    {"samples": people.PARTICIPANTS, "dictionary": people.DICTIONARY, "metadata": people.METADATA},
    OXFORD,
    "Chan et al., Capture-24, Oxford University Research Archive, 2021; Scientific Data 11, 2024",
    Entries(
        people.capture24_table,
        partial(activities, order=Order("at", "time", "UTC"), states=people.MET),
        by_people,
    ),
)
SLEEP = PaperDataset(
    DatasetInfo(
        "sleep",
        "Sleep stages of 80 people (Dreem open datasets), in the shape of Capture24",
        "capture24",
        "real",
        "group of people",
        (
            HELD_OUT,
            "The groups are `dodh`, 25 healthy people, and `dodo`, 55 with sleep apnea; the states"
            " are the five stages, an entry is an epoch of 30 seconds.",
            "An epoch has the stage that most of its five scorers gave it, of two as frequent that"
            " of the first scorer; one that nobody scored is left out.",
        ),
    ),
    {"hypnograms": people.HYPNOGRAMS},
    DREEM,
    "Guillot, Sauvet, During & Thorey, IEEE Trans. Neural Syst. Rehabil. Eng. 28(9), 2020",
    Entries(
        partial(one_table, people.NIGHTS),
        partial(activities, order=Order("at", "number"), states=people.STAGES),
        by_people,
    ),
    derived=True,
)

SIMULATED_CHECK_INS = PaperDataset(
    DatasetInfo(
        "simulated-checkins",
        "Synthetic check-ins, 77 countries",
        "foursquare",
        "simulated",
        "country",
        (BY_COUNTRY, *simulated.CALIBRATION_NOTES),
        simulated.CALIBRATED,
    ),
    {},
    "",
    "",
    DrawnCounts(
        simulated.PAPER_ROWS,
        simulated.described_check_ins,
        simulated.check_ins_identity,
        simulated.draw_check_ins,
    ),
)
SIMULATED_ACTIVITIES = PaperDataset(
    DatasetInfo(
        "simulated-activities",
        "Synthetic activities, 151 people",
        "capture24",
        "simulated",
        "age group",
        (
            "Synthetic: a day of 151 people in epochs of 30 seconds from the model of"
            f" takifugu.synthetic, seed {simulated.SEED}. No person is real.",
            HELD_OUT,
        ),
    ),
    {},
    "",
    "",
    Entries(
        simulated.activities_table,
        partial(activities, order=Order("at", "number"), states=people.MET),
        by_people,
    ),
)

REAL = (FOURSQUARE, TSMC_NYC, TSMC_TKY, NYC, JAKARTA, CAPTURE24, SLEEP)
SIMULATED = (SIMULATED_CHECK_INS, SIMULATED_ACTIVITIES)
SOURCES: Mapping[str, PaperDataset] = {source.key: source for source in (*REAL, *SIMULATED)}


def find(folder: Path | str | None) -> list[PaperDataset]:
    """The datasets that have files in ``folder`` or a folder in it; without one, the simulated.

    One identifying file is enough: if others are missing, `prepare` names them.
    """
    if folder is None:
        return list(SIMULATED)
    if not Path(folder).is_dir():
        raise InvalidFile(
            str(folder), given="is not a folder", needed="hold the files of a dataset"
        )
    return [
        source
        for source in REAL
        if any(
            needed.identifying and needed.within(Path(folder)) for needed in source.files.values()
        )
    ]
