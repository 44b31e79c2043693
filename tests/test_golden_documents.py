"""Documents that were written once are read, mean the same, and are written the same.

``python -m tests.test_golden_documents`` adds what `golden_documents.json` lacks, and changes
nothing that it has: files, plans and ledgers hold these texts and marks.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from takifugu.priors import (
    Covariance,
    Gaussian,
    MarkovChain,
    Matern,
    Prior,
    Secrets,
    SquaredExponential,
    from_document,
    household_contagion,
)
from takifugu.priors.documents import KINDS
from takifugu.session.plan_documents import plan_from_document, plan_to_document
from takifugu.session.query_options import QueryOptions
from takifugu.session.release_result import result_from_document
from takifugu.translation import RowTranslation, Translation, TranslationTable, tabulate
from takifugu.translation.rows.columns_of_row import ColumnsOfRow, JointColumns
from takifugu.translation.rows.household import Household
from tests.priors.families import CHAIN, PRIORS, secrets_of

FILE = Path(__file__).with_name("golden_documents.json")
ROWS = np.array([[0.8, 0.2], [0.3, 0.7]])
JOINT = MarkovChain(
    np.full((4, 4), 0.25),
    (("0", "a"), ("0", "b"), ("1", "a"), ("1", "b")),
    length=3,
    columns=("x", "y"),
)
ASKED = {"kind": "count", "values": "ward", "epsilon": "0.3"}
BY_KIND: dict[str, Prior] = {
    **{prior.kind: prior for prior in PRIORS},
    "markov-chain, unbounded": MarkovChain(ROWS),
    "markov-chain, start": MarkovChain(ROWS, start=np.array([0.25, 0.75]), length=3),
    "markov-chain, unknown start": MarkovChain(ROWS, start="unknown", length=3),
    "markov-chain, known": MarkovChain(ROWS, length=3, known="any"),
    "markov-chain, by step": MarkovChain(
        np.array([ROWS, ROWS[::-1]]), start=np.array([0.5, 0.5]), length=3
    ),
    "markov-chain, columns": JOINT,
    "gaussian-process, covariance": Gaussian(Covariance(np.array([[2.0, 0.5], [0.5, 1.0]]))),
    "gaussian-process, Matern": Gaussian(Matern("3/2", 2.0), 4),
    "gaussian-process, unbounded": Gaussian(SquaredExponential(2.0), variance=4.0),
}
TRANSLATIONS: dict[str, Callable[[], Translation | RowTranslation]] = {
    **{kind: lambda p=prior: Translation(p, secrets_of(p)) for kind, prior in BY_KIND.items()},  # type: ignore[misc]
    "groups": lambda: Translation(CHAIN, Secrets(entries=(1,), pairs=((("home",), ("ward",)),))),
    "uncertain": lambda: Translation(CHAIN, uncertainty=0.1),
    "several": lambda: Translation([CHAIN, PRIORS[1]]),
    "named": lambda: Translation({"one": CHAIN, "other": PRIORS[1]}),
    "row": lambda: ColumnsOfRow({"p": PRIORS[6]}, {"a": Secrets()}),
    "sequence": lambda: JointColumns({"p": JOINT}, {"x": Secrets(), "y": Secrets()}, 0.1),
    "household": lambda: Household(
        {
            "sis": household_contagion(
                2, background=0.1, infection=0.2, recovery=0.4, start=0.2, length=4
            )
        },
        {"health": Secrets()},
    ),
}


def _table(folder: Path) -> Any:
    tabulate(Translation(CHAIN), losses=(0.5, 1.0), share=0.4).save(folder / "table.json")
    return json.loads((folder / "table.json").read_text(encoding="utf-8"))


def _released(folder: Path) -> tuple[Any, Any]:
    from tests.session.world import opened

    with opened(folder) as (session, *_):
        plan = session.plan(QueryOptions.from_document(ASKED))
        result = session.release(plan, accept_noise=True)
        return plan_to_document(plan), json.loads(json.dumps(result.document()))


def _golden() -> Any:
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}


GOLDEN = _golden()


def test_every_kind_has_a_golden_document() -> None:
    assert {prior["kind"] for prior in GOLDEN["priors"].values()} == set(KINDS)
    assert set(GOLDEN["priors"]) == set(BY_KIND)
    assert set(GOLDEN["translations"]) == set(TRANSLATIONS)


@pytest.mark.parametrize("name", BY_KIND)
def test_a_prior_is_read_and_written_as_it_was(name: str) -> None:
    found = from_document(GOLDEN["priors"][name])
    assert found.fingerprint == GOLDEN["fingerprints"][name] == BY_KIND[name].fingerprint
    assert json.loads(json.dumps(found.to_document())) == GOLDEN["priors"][name]


@pytest.mark.parametrize("name", TRANSLATIONS)
def test_a_translation_has_the_mark_that_it_had(name: str) -> None:
    assert TRANSLATIONS[name]().fingerprint == GOLDEN["translations"][name]


def test_a_table_is_read_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "table.json").write_text(json.dumps(GOLDEN["table"]), encoding="utf-8")
    table = TranslationTable.load(tmp_path / "table.json", Translation(CHAIN))
    assert table.fingerprint == GOLDEN["table fingerprint"]
    table.save(tmp_path / "again.json")
    again = json.loads((tmp_path / "again.json").read_text(encoding="utf-8"))
    assert again == GOLDEN["table"]


def test_a_plan_and_a_result_are_read_and_written_as_they_were() -> None:
    plan = plan_from_document(GOLDEN["plan"], QueryOptions.from_document(ASKED))
    assert json.loads(json.dumps(plan_to_document(plan))) == GOLDEN["plan"]
    result = result_from_document(GOLDEN["result"])
    assert json.loads(json.dumps(result.document())) == GOLDEN["result"]


def main() -> int:
    """Add what the file lacks."""
    found = dict(GOLDEN)
    for part, made in (
        ("priors", {name: prior.to_document() for name, prior in BY_KIND.items()}),
        ("fingerprints", {name: prior.fingerprint for name, prior in BY_KIND.items()}),
        ("translations", {name: make().fingerprint for name, make in TRANSLATIONS.items()}),
    ):
        found[part] = {**made, **found.get(part, {})}
    with TemporaryDirectory() as folder:
        if "table" not in found:
            found["table"] = _table(Path(folder))
            table = TranslationTable.load(Path(folder) / "table.json", Translation(CHAIN))
            found["table fingerprint"] = table.fingerprint
        if "plan" not in found:
            found["plan"], found["result"] = _released(Path(folder))
    FILE.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
