"""What the version before tables of several columns wrote reads the same, and means the same."""

import json
from dataclasses import replace
from pathlib import Path

from takifugu.binding.prior_reading import terms_of
from takifugu.priors import Secrets
from takifugu.session.cells import cells_of, declared
from takifugu.session.plan_documents import read_plan
from takifugu.session.release_errors import StalePlan
from takifugu.translation.translation import Translation
from tests.project.studies import three_places
from tests.raising import raises
from tests.session import hospital

# As commit 0b0c5d6 computed them.
PRIOR = "a787ac1e88da3f9321c8ac491eb55a442a41e83ccdc61576f9bc0dd7ba60fb97"
EVERY_PAIR = "a1dca114e857eb11000e62c4a310c2e922f1fafde61d53243fdb0f538ed90642"
SOME = (
    "d7afd34d5c1783b5a8dc6345cdf0ec89c89e9b72d86f8c4bd7463b5ec1b1eb73",
    "307661629cb2e2f4d117d679d438541fe3bd3de596a5a5d4edae5d3b094dd381",
)
TRANSLATION = "82fa480429c539c5ffca405547aff674c5fc8e6d7d458d3093131fd162b472bf"
DECLARED = "c3cec4e15f70705494d6efc9b213e5d0e8fc2ed34e53c3f47b0105e7aa73891d"
CELLS = "18411a2f30880c83082ae7e8d3d79a44942e641278eea9405aa2f834f688e6f9"
RULES = {"about": "state", "over": [], "release_fitted_rows": False, "fits": []}
LOSS = "8729443174821691/72057594037927936"
PLAN = {
    "form": "takifugu-plan-1",
    "asked": {
        "dataset": "stays", "kind": "count", "analyst": None,
        "how": {"epsilon": "0.3", "values": ["home"]},
    },
    "dataset": "stays",
    "query": {"name": "count", "column": "state", "by": [], "values": ["home"]},
    "window": None,
    "groups": None,
    "mechanism": {
        "kind": "integer-laplace", "query": "count", "scale": 8.254546434962021,
        "sensitivity": {"l1": 1, "linf": 1},
        "loss": {"currency": "pure", "epsilon": LOSS, "epsilon_near": 0.12114536006054959},
        "error": {"deviation": 11.666556015280747, "interval": 25.0},
    },
    "cost": {
        "currency": "epsilon", "per_entry": LOSS, "delta": "0",
        "by_value": [[LOSS, ["member", ["home"]]]],
    },
    "cells": CELLS,
}  # fmt: skip


def test_terms_rules_and_cells_are_what_they_were(tmp_path: Path) -> None:
    project = three_places(tmp_path)
    found = project.load("stays")
    terms = terms_of(found.translation)
    assert (terms.prior, terms.secrets) == (PRIOR, EVERY_PAIR)
    assert found.translation.fingerprint == TRANSLATION
    assert found.rules == RULES
    assert declared(found.declaration) == DECLARED
    secrets = Secrets(entries=(1, 2), pairs=((("ward",), ("home",)),))
    some = terms_of(Translation(hospital.CHAIN, secrets, uncertainty=0.1))
    assert (some.prior, some.secrets) == SOME
    with project.engine(found) as engine:
        assert cells_of(engine, ("state",), tmp_path).fingerprint == CELLS


def test_a_plan_of_a_smaller_allowance_is_made_again(tmp_path: Path) -> None:
    """A version that came less close to ε planned more noise: its plan is refused by name."""
    project = three_places(tmp_path)
    text = json.dumps(PLAN).replace(LOSS, "4363867331576459/36028797018963968")
    (tmp_path / "plan.json").write_text(text.replace("8.254546434962021", "8.25616231691179"))
    plan = read_plan(tmp_path / "plan.json")
    with project.session("stays") as session:
        asked = replace(plan, options=session.resolved(plan.options))
        with raises(StalePlan):
            session.replan(asked)
        assert session.spent() == 0


def test_a_plan_file_is_the_plan_that_is_made_now(tmp_path: Path) -> None:
    project = three_places(tmp_path)
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    plan = read_plan(tmp_path / "plan.json")
    with project.session("stays") as session:
        asked = replace(plan, options=session.resolved(plan.options))
        made = session.replan(asked)
        assert session.release(made, accept_noise=True).cost.by_column is None
