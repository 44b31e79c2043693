"""Every dataset that the reproduction knows, and what was chosen where the paper leaves it open."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from takifugu.declarations import Order
from takifugu.errors import InvalidFile
from takifugu.papers.composition.data import capture24 as people
from takifugu.papers.composition.data import published_check_ins as checkins
from takifugu.papers.composition.data import simulated, world_parameters
from takifugu.papers.composition.data.paper_dataset import DrawnCounts, Entries, PaperDataset
from takifugu.papers.composition.data.preparation import (
    DatasetInfo,
    activities,
    by_days,
    by_people,
    check_ins,
)
from takifugu.papers.composition.data.raw_tables import one_table

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
        known_facts={"rows": world_parameters.PAPER_ROWS, "groups": 77},
    ),
    {"checkins": checkins.TIST_CHECKINS, "pois": checkins.TIST_POIS},
    YANG,
    "Yang, Zhang & Qu, ACM TIST 7(3), 2016;"
    " Yang, Zhang, Chen & Qu, J. Netw. Comput. Appl. 55, 2015",
    Entries(
        partial(one_table, checkins.TIST),
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
            partial(one_table, checkins.TSMC),
            partial(check_ins, order=UTC, groups=checkins.HOURS),
            by_days,
        ),
    )
    for key, city, needed in (
        ("tsmc-nyc", "New York", checkins.TSMC_NYC),
        ("tsmc-tky", "Tokyo", checkins.TSMC_TKY),
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
    {"checkins": checkins.NYC_CUT},
    YANG,
    YANG_2015,
    Entries(
        partial(one_table, checkins.NYC),
        partial(
            check_ins,
            order=Order("at", "unix", "America/New_York", ties=("row",)),
            groups=checkins.HOURS,
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
    {"checkins": checkins.JAKARTA_CUT},
    YANG,
    "Yang, Qu, Yang & Cudré-Mauroux, WWW 2019",
    Entries(
        partial(one_table, checkins.JAKARTA),
        partial(check_ins, order=Order("at", "number", ties=("row",)), groups=checkins.HOURS),
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
        (BY_COUNTRY, *world_parameters.CALIBRATION_NOTES),
        world_parameters.CALIBRATED,
    ),
    {},
    "",
    "",
    DrawnCounts(
        world_parameters.PAPER_ROWS,
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
