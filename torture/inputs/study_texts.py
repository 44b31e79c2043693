"""The texts of the study: declarations, a policy, a batch, a network."""

STAYS = """\
title = "Stays"
[source]
kind = "csv"
path = "stays.csv"
[entity]
column = "person"
[order]
column = "step"
kind = "number"
ties = "refuse"
[protected.state]
values = ["home", "ward"]
outside = "refuse"
[protected.illness]
values = ["none", "flu"]
outside = "other"
other = "rest"
[protected.score]
bounds = [0, 100]
step = 0.1
missing = "drop"
[public.zone]
values = ["north", "south"]
[public.floor]
values = [1, 2]
"""
LABELS = STAYS.partition("[protected.score]")[0] + STAYS[STAYS.index("[public.zone]") :]
WARDS = """\
[source]
kind = "parquet"
path = "wards.parquet"
[entity]
column = "person"
[order]
column = "at"
kind = "time"
zone = "UTC"
ties = "refuse"
[protected.illness]
values = "from the fitted rows"
[public.zone]
values = "from the data"
"""
METERS = """\
[source]
kind = "duckdb"
path = "meters.duckdb"
table = "meters"
[entity]
column = "person"
[order]
column = "step"
kind = "number"
ties = "refuse"
[protected.score]
bounds = [0, 100]
step = 1
missing = "refuse"
[public.floor]
values = [1, 2]
[public.zone]
values = { codebook = "zones.csv", column = "label", raw = "raw" }
"""
POLICY = """
[dataset.meters.linear.weighted]
column = "score"
by = "floor"
weights = { 1 = 1, 2 = "1/2" }

[schedule.monthly]
dataset = "stays"
kind = "histogram"
epsilon = "1/8"
every = 4
last = 4
from = 8
folder = "published"
accept_noise = true

[server]
port = 0
workers = 1
"""
BATCH = """\
[[release]]
name = "places"
dataset = "stays"
kind = "histogram"
by = ["zone"]
epsilon = "1/10"
accept_noise = true
out = "places.csv"

[[release]]
name = "late"
dataset = "stays"
kind = "count"
values = ["ward"]
window = ["10", ""]
epsilon = 0.1
accept_noise = true
"""
BIF = """\
network unknown {
}
variable rain {
  type discrete [ 2 ] { yes, no };
}
variable wet {
  type discrete [ 2 ] { yes, no };
}
probability ( rain ) {
  table 0.2, 0.8;
}
probability ( wet | rain ) {
  (yes) 0.9, 0.1;
  (no) 0.2, 0.8;
}
"""
