"""One protocol for translations: who implements it, what it costs to import, what it inherits."""

import ast
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import takifugu.translation as package
from takifugu.costs.losses import Approximate, Concentrated, Loss, Pure, Total
from takifugu.errors import UnsoundRequest
from takifugu.influence import chain_curve
from takifugu.priors import MarkovChain, Secrets
from takifugu.translation import (
    CurveTranslation,
    LossTranslation,
    TabledTranslation,
    Translation,
    tabulate,
)
from takifugu.translation.protocol import rho_within
from takifugu.translation.rows.columns_of_row import JointColumns

CHAIN = MarkovChain(np.array([[0.9, 0.1], [0.2, 0.8]]), length=12)
EXACT = Translation(CHAIN)
OF_COLUMN = MarkovChain(CHAIN.transition, states=((0,), (1,)), columns=("x",), length=12)
TABLE = tabulate(EXACT, losses=(0.2, 4.0), share=0.05)
IMPLEMENTERS: dict[str, LossTranslation] = {
    "Translation": EXACT,
    "TranslationTable": TABLE,
    "TabledTranslation": TabledTranslation(EXACT, TABLE),
    "CurveTranslation": CurveTranslation(chain_curve(CHAIN)),
    "RowTranslation": JointColumns({"chain": OF_COLUMN}, {"x": Secrets()}),
}
DELTA = Fraction(1, 10**6)
SOURCES = Path(package.__file__).parents[1]


@pytest.mark.nightly
def test_the_protocol_lists_its_implementers() -> None:
    found = {
        node.name
        for path in SOURCES.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
        if any(isinstance(base, ast.Name) and base.id == "LossTranslation" for base in node.bases)
    }
    listed = LossTranslation.__doc__ or ""
    assert found == set(IMPLEMENTERS)
    assert all(f"takifugu.translation.{name}`" in listed for name in found)


@pytest.mark.nightly
def test_to_import_the_protocol_loads_no_solver() -> None:
    check = (
        "import sys, takifugu.translation.protocol\n"
        "loaded = {'numba', 'scipy', 'takifugu.priors', 'takifugu.influence'} & set(sys.modules)\n"
        "sys.exit(', '.join(loaded) or 0)"
    )
    subprocess.run([sys.executable, "-c", check], check=True, env={"PYTHONPATH": "src"})  # noqa: S603


def test_every_public_name_can_be_imported() -> None:
    names = dir(package)
    assert names == sorted(names) == vars(package)["__all__"]
    for name in names:
        assert getattr(package, name).__name__ == name
    unknown = "nothing_of_the_kind"
    with pytest.raises(AttributeError):
        getattr(package, unknown)


@pytest.mark.parametrize("name", IMPLEMENTERS)
def test_both_directions_agree_on_the_safe_side(name: str) -> None:
    translation = IMPLEMENTERS[name]
    for target in (0.25, 1.0, 3.9):
        allowed = float(translation.to_dp(target))
        assert 0 < allowed < target
        assert float(translation.to_pufferfish(allowed)) <= target
        assert float(EXACT.to_pufferfish(allowed)) <= target


@pytest.mark.costly
@pytest.mark.parametrize("name", IMPLEMENTERS)
@settings(max_examples=20)
@given(epsilon=st.fractions(Fraction(1, 4), 3), share=st.fractions(0, 1))
def test_what_a_filter_admits_is_within_the_budget(
    name: str, epsilon: Fraction, share: Fraction
) -> None:
    """Read anew, at the δ of the budget: the search for the least ε ends a little above it."""
    translation = IMPLEMENTERS[name]
    allowed = Fraction(float(translation.to_dp(float(epsilon))))
    kept = translation.filter(allowed, epsilon, DELTA)
    first = Total().plus(Pure(share * allowed / 2))
    some = kept.delta / 4
    kinds: list[Callable[[Fraction], Loss]] = [Pure, Concentrated, lambda e: Approximate(e, some)]
    for kind in kinds:
        room = kept.room(first, kind(Fraction(0)))
        total = first.plus(kind(room))
        assert kept.admits(total)
        if room > 0:
            assert translation.total_to_pufferfish(total, DELTA) <= float(epsilon) * 1.06


@pytest.mark.parametrize("name", IMPLEMENTERS)
def test_concentrated_losses_are_translated_both_ways(name: str) -> None:
    translation = IMPLEMENTERS[name]
    rho = rho_within(translation, 1.0, DELTA)
    assert 0 < rho <= rho_within(EXACT, 1.0, DELTA) * Fraction(1001, 1000)
    assert translation.total_to_pufferfish(Total(rho=rho), DELTA) <= 1.0
    assert translation.total_to_pufferfish(Total(rho=rho), Fraction(0)) == np.inf


def test_a_table_with_its_translation_behind_has_no_ends() -> None:
    first, last = float(TABLE.loss[0]), float(TABLE.epsilon[-1])
    tabled = TabledTranslation(EXACT, TABLE)
    assert tabled.least == first and tabled.fingerprint == TABLE.fingerprint
    assert tabled.to_dp(first / 2) == 0.0 == tabled.to_dp(0.0) and tabled.to_dp(first) > 0
    for dp in (0.0, last / 3, last, 3 * last):
        assert float(EXACT.to_pufferfish(dp)) <= tabled.to_pufferfish(dp)
    with pytest.raises(UnsoundRequest):
        TABLE.to_pufferfish(3 * last)
    everywhere = TabledTranslation(EXACT, TABLE, least=0)
    assert everywhere.least == 0 < everywhere.to_dp(first / 2) <= float(EXACT.to_dp(first / 2))
    for wrong in (np.nan, -1.0, np.inf):
        for both in (tabled, everywhere):
            with pytest.raises(UnsoundRequest):
                both.to_dp(wrong)
            with pytest.raises(UnsoundRequest):
                both.to_pufferfish(wrong)


def test_what_has_no_identity_says_so() -> None:
    class Plain(LossTranslation):
        def to_pufferfish(self, dp: float, /) -> float:
            return dp

        def to_dp(self, pufferfish: float, /) -> float:
            return pufferfish

    assert Plain().fingerprint is None and Plain().least == 0
    assert EXACT.fingerprint == Translation(CHAIN).fingerprint != TABLE.fingerprint
