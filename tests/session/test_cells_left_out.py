"""Cells that are left out: protected if the prior has a state for them, and said to be if not."""

from math import exp
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import takifugu as tf
from takifugu.drafting import Table
from tests.oracles import earlier_rows

EPOCHS = 6
STAGES = ("awake", "asleep")
SENSOR = np.array([[0.5, 0.49, 0.01], [0.49, 0.5, 0.01], [0, 0, 1]])  # once off, it stays off
START = np.array([0.5, 0.4, 0.1])


def nights() -> Table:
    rng = np.random.default_rng(0)
    rows = []
    for night in range(80):
        state = int(rng.choice(3, p=START))
        for epoch in range(EPOCHS):
            stage = (*STAGES, "off")[state]
            rows.append({"night": f"n{night}", "epoch": epoch, "stage": stage})
            state = int(rng.choice(3, p=SENSOR[state]))
    return tf.table(
        pd.DataFrame(rows),
        name="nights",
        entity="night",
        order="epoch",
        order_kind="number",
        protected={"stage": {"values": list(STAGES), "outside": "drop"}},
    )


def true_leak(scale: float) -> float:
    """Of a histogram with Laplace noise about any two of awake, asleep and off: by listing."""
    worst = 0.0
    for signs in np.ndindex(2, 2):
        each = [exp((2 * sign - 1) / scale) for sign in signs]
        found = earlier_rows.leak(
            lambda path, _: (SENSOR[path[-1]] if path else START).tolist(),
            {(): 1.0},
            [[*each, 1.0]] * EPOCHS,
            3,
        )
        worst = max(worst, found)
    return worst


def test_without_a_state_for_them_they_are_said_not_to_be_protected(tmp_path: Path) -> None:
    stages = tf.MarkovChain(SENSOR[:2, :2] / 0.99, states=STAGES, length=EPOCHS)
    with tf.Session(nights(), stages, ledger=tmp_path / "ledger", budget=1) as session:
        plan = session.plan.histogram(epsilon=1)
        said = " ".join(session.guarantee().split())
    assert true_leak(float(plan.mechanism.describe()["scale"])) > 1.5
    assert "Not protected: which cells of `stage` are left out." in said
    assert "protected too" not in said
    assert any("`stage`" in note and "not protected" in note for note in plan.notes)


def test_with_a_state_for_them_they_are_protected(tmp_path: Path) -> None:
    chain = tf.MarkovChain(SENSOR, states=(*STAGES, "off"), start=START, length=EPOCHS)
    with tf.Session(nights(), chain, ledger=tmp_path / "ledger", budget=1) as session:
        plan = session.plan.histogram(epsilon=1)
        said = " ".join(session.guarantee().split())
    assert true_leak(float(plan.mechanism.describe()["scale"])) <= 1
    assert "That a cell of `stage` is left out is protected too" in said
    assert not any("not protected" in note for note in plan.notes)


@pytest.mark.parametrize("states", [STAGES, (*STAGES, "off")])
def test_a_column_that_leaves_nothing_out_needs_no_word(
    tmp_path: Path, states: tuple[str, ...]
) -> None:
    frame = pd.DataFrame({"night": ["a", "a"], "epoch": [0, 1], "stage": ["awake", "asleep"]})
    table = tf.table(
        frame,
        name="nights",
        entity="night",
        order="epoch",
        order_kind="number",
        protected={"stage": list(states)},
    )
    chain = tf.MarkovChain(np.full((len(states),) * 2, 1 / len(states)), states=states, length=2)
    with tf.Session(table, chain, ledger=tmp_path / "ledger", budget=1) as session:
        assert "left out" not in session.guarantee()
