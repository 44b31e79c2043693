"""Where real data lies: the folder that ``TAKIFUGU_DATA`` names, or `shared/data` beside us."""

import os
from pathlib import Path

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
DATA = Path(os.environ.get("TAKIFUGU_DATA") or BESIDE)
CHECKINS = DATA / "checkins_nyc.csv.gz"
WARD = DATA / "hospital_contacts.csv.gz"
