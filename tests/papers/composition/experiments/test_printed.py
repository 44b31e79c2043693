"""The printed numbers are those of the paper, and are kept as they are printed."""

import re

import pytest

from takifugu.papers.composition.experiments.measurements import (
    printed_majority,
    printed_number,
    printed_numbers,
)
from tests.real_data import DATA

PAPER = DATA.parent / "paper" / "composition-for-pufferfish-privacy.tex"
BLOCK = re.compile(r"\\begin\{tabular\}(.*?)\\end\{tabular\}(.*?)\\label\{(.*?)\}", re.DOTALL)


def test_both_tables_are_whole() -> None:
    numbers = printed_numbers()
    assert len(numbers) == 2 * 6 * 12
    keys = {(n.mechanism, n.uncertain, n.epsilon, n.metric) for n in numbers}
    assert len(keys) == len(numbers)
    assert {n.epsilon for n in numbers} == {0.5, 1, 2, 3, 4, 5}


def test_numbers_are_on_our_scale() -> None:
    slip = printed_number(
        "foursquare", "MQM, split budget", uncertain=False, epsilon=0.5, metric="acc@3"
    )
    assert slip is not None and slip.text == "20.83" and slip.value == pytest.approx(0.2083)
    error = printed_number("foursquare", "Ours-Exp", uncertain=True, epsilon=0.5, metric="l1")
    assert error is not None and error.value == 3838
    assert printed_number("capture24", "Ours-Exp", uncertain=True, epsilon=1, metric="l1") is None


def test_majority_is_a_count_of_groups() -> None:
    assert printed_majority("foursquare") == pytest.approx(43 / (3 * 77), abs=5e-5)
    assert printed_majority("capture24") == pytest.approx(2 / (3 * 4), abs=5e-5)


@pytest.mark.real_data
def test_the_paper_prints_these_numbers() -> None:
    if not PAPER.exists():
        pytest.skip("the paper's source is not here")
    tex = PAPER.read_text(encoding="utf-8")
    found: dict[str, list[list[str]]] = {}
    for tabular, caption, label in BLOCK.findall(tex):
        rows = [
            [re.sub(r"\\textbf|[{}\\%\s]", "", cell) for cell in line.split("&")]
            for line in tabular.splitlines()
            if re.match(r"\s*[0-9.]+\s*&", line)
        ]
        if rows and "Foursquare" in caption:
            found[label] = rows
    assert len(found) == 2
    for label, rows in found.items():
        ours = [n for n in printed_numbers() if n.table == label]
        for epsilon, *cells in rows:
            row = [n for n in ours if n.epsilon == float(epsilon)]
            assert [n.text for n in row] == [cell.removesuffix("%") for cell in cells]
            order = [("Ours-Exp", False), ("MQM, split budget", False), ("Ours-Exp", True)]
            assert [(n.mechanism, n.uncertain) for n in row][::3][:3] == order
    assert "18.61\\%" in tex and "16.67\\%" in tex
