"""The texts of the study: declarations, a policy, a batch, a network."""

from pathlib import Path

_TEXTS = Path(__file__).with_name("texts")
STAYS, WARDS, METERS, POLICY, BATCH, BIF = (
    (_TEXTS / name).read_text(encoding="utf-8")
    for name in ("stays.toml", "wards.toml", "meters.toml", "policy.toml", "batch.toml", "net.bif")
)
LABELS = STAYS.partition("[protected.score]")[0] + STAYS[STAYS.index("[public.zone]") :]
