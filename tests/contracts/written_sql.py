"""What every query of an engine answers, beside the answer to the SQL that Ibis writes for it."""

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

from takifugu.tables.engine import Engine
from takifugu.tables.relations import Relation
from takifugu.tables.sql_writer import sql


def compare_with_ibis(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Have every engine compare from now on; how many answers were equal, by their first step."""
    pytest.importorskip("ibis", reason="a package of the developers: `make nightly` installs it")
    equal = Counter[str]()
    plain = {name: getattr(Engine, name) for name in ("_run", "_public")}

    def checked(name: str) -> Any:
        def run(self: Engine, relation: Relation) -> list[tuple[Any, ...]]:
            found: list[tuple[Any, ...]] = plain[name](self, relation)
            equal[_compared(self, relation, found)] += 1
            return found

        return run

    for name in plain:
        monkeypatch.setattr(Engine, name, checked(name))
    return equal


def _compared(engine: Engine, relation: Relation, found: Sequence[tuple[Any, ...]]) -> str:
    from tests.oracles import ibis_relations

    try:
        text = ibis_relations.sql(relation, engine._backend.dialect)
    except ibis_relations.NotInIbis:
        return "not in Ibis"
    backend = engine._backend
    theirs = type(backend).rows(backend, text)  # a test may count the statements of this one
    ours = Counter(tuple(map(_plain, row)) for row in found)
    assert ours == Counter(tuple(map(_plain, row)) for row in theirs), (
        sql(relation, backend.dialect),
        text,
    )
    return type(relation).__name__


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, Decimal) and value == int(value) else value
