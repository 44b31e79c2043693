"""More that is asked of a translation than its family compares: no oracle says its truth."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from takifugu.costs import Cost, Membership
from takifugu.influence import influence_curve
from takifugu.influence.network.network_curves import nearest_curve, network_curve, sampled_curve
from takifugu.losses import Total
from takifugu.priors import BayesianNetwork, MarkovRandomField
from takifugu.priors.secrets import Secrets
from takifugu.translation import (
    CurveTranslation,
    TabledTranslation,
    Translation,
    advise,
    allocate,
    approximate,
    compose,
    concentrated,
)
from takifugu.translation.accounting.composition import Release
from takifugu.translation.accounting.translation_table import tabulate, tabulate_at
from takifugu.translation.entry_costs import labels_of
from tests.extremes.kept_answers import DIRECT, TRANSLATED, Answer, curve_rows, some_entries, told
from tests.extremes.kept_curves import FURTHER as CURVES
from torture.oracles.comparison import Instance

LONG = 60  # entries beyond which nothing more is asked
SHORT = 6  # entries up to which ε is levelled one by one
FOREVER = 1e9  # seconds: nothing ends by the clock
OWN, FURTHER = "own", "further curves"


def asked_of(family: str) -> tuple[str, ...]:
    """The questions that may be asked of a family's instances."""
    if family in DIRECT:
        return (OWN, FURTHER) if family in CURVES else (OWN,)
    return (OWN, *QUESTIONS)


def answers(family: str, instance: Instance, question: str) -> list[Answer]:
    """All answers to one question about one instance."""
    if question == FURTHER:
        return list(CURVES[family](instance))
    if family in DIRECT:
        return list(DIRECT[family](instance))
    translation, unit, own = TRANSLATED[family](instance)
    if question == OWN:
        return list(own())
    if translation.size is not None and translation.size > LONG:
        return []
    return list(QUESTIONS[question](translation, min(max(float(unit), 0.02), 2.0)))


def _labels(translation: Translation) -> list[Any]:
    """The values that all priors have."""
    listed = [
        dict.fromkeys(value for column, value in labels_of(prior) if column is None)
        for prior in translation.priors.values()
    ]
    return [value for value in listed[0] if all(value in other for other in listed)]


def _methods(translation: Translation, e: float) -> Iterator[Answer]:
    found = translation.explain(e)
    yield told("loss", found, lambda: translation.bound(e), 1.0)
    for name, value in found.by_method.items():
        if value is not None:
            yield Answer(name, value)
    yield from some_entries(found.by_entry, 1.0)


def _allowances(translation: Translation, e: float) -> Iterator[Answer]:
    for method in ("best", "transport", "curve", "group"):
        if method != "curve" or translation.has_curve:
            yield Answer(method, allowed=float(translation.to_dp(e, method)), scale=0.0)


def _curve(translation: Translation, e: float) -> Iterator[Answer]:
    yield from curve_rows(translation.curve)
    yield Answer("by curve", float(CurveTranslation(translation.curve).to_pufferfish(e)))
    for prior in translation.priors.values():
        short = influence_curve(prior, translation.secrets, max_exposed=2)
        yield Answer("points", float(len(short.exposed)))
        yield from curve_rows(short, "2: ", rows=3)


def _search(translation: Translation, e: float) -> Iterator[Answer]:
    for prior in translation.priors.values():
        if isinstance(prior, BayesianNetwork | MarkovRandomField):
            rng = np.random.default_rng(round(e * 1000))
            yield from curve_rows(network_curve(prior, largest=3), "all: ")
            yield from curve_rows(network_curve(prior, largest=3, evaluations=2), "two: ")
            yield from curve_rows(nearest_curve(prior, largest=3), "nearest: ")
            yield from curve_rows(sampled_curve(prior, largest=3, samples=2, rng=rng), "drawn: ")


def _profile(translation: Translation, e: float) -> Iterator[Answer]:
    size = translation.size
    count = 7 if size is None else size
    profile = e * np.resize([1.0, 0.0, 2.0, 1.0, 0.5], count)
    found = translation.explain(profile)
    yield told("loss", found, lambda: translation.bound(profile), 1.0)
    yield from some_entries(found.by_entry, 1.0)


def _uncertain(translation: Translation, e: float) -> Iterator[Answer]:
    looser = replace(translation, uncertainty=0.05)
    for method in ("transport", "curve", "group"):
        if method != "curve" or translation.has_curve:
            yield Answer(method, looser.bound(e, method).value)
    yield Answer("allowed", allowed=float(looser.to_dp(1 + e)), scale=0.0)


def _one_entry(translation: Translation, e: float) -> Iterator[Answer]:
    if translation.entries is None or len(translation.entries) < 2:
        return
    if translation.secrets.within is not None:
        return
    for entry in (translation.entries[0], translation.entries[1]):
        one = replace(translation, secrets=replace(translation.secrets, entries=(entry,)))
        found = one.explain(e)
        yield told(f"entry {entry}", found, lambda one=one: one.bound(e), 1.0)  # type: ignore[misc]


def _valued(translation: Translation, e: float) -> Iterator[Answer]:
    if not (labels := _labels(translation)):
        return
    cost = Cost.of({Membership([labels[0]]): Fraction(e)})
    found = translation.explain_cost(cost)
    yield told("loss", found, lambda: translation.cost_bound(cost), 1.0)
    more = Cost.any(Fraction(e) / 4)
    yield Answer("more", translation.cost_to_pufferfish(cost, more))
    room = 2 * float(translation.cost_to_pufferfish(cost, more))
    if 0 < room < np.inf:
        factor = translation.to_cost(cost, room, spent=(more,), beside=(cost,))
        yield Answer("factor", allowed=float(factor), scale=0.0)


def _allocated(translation: Translation, e: float) -> Iterator[Answer]:
    found = allocate(translation, e)
    yield Answer("least", found.loss, allowed=found.constant)
    if translation.size is not None and translation.size <= SHORT:
        found = allocate(translation, e, objective="total")
        yield Answer("total", allowed=found.total, scale=0.0)


def _composed(translation: Translation, e: float) -> Iterator[Answer]:
    found = approximate(translation, e, 1e-7)
    yield Answer("approximate ε", found.epsilon, method=found.method)
    yield Answer("approximate δ", found.delta, scale=1e-9)
    found = concentrated(translation, e / 9, 1e-6)
    yield Answer("concentrated", found.epsilon, method=found.method)
    total = Total(Fraction(e), Fraction(1, 10**9), Fraction(e) / 9)
    yield Answer("total", translation.total_to_pufferfish(total, Fraction(1, 10**6)))
    size = translation.size or 9
    texts = [f"{e / 2}", f"{e / 3}@0:{(size + 1) // 2}"]
    for several in (texts, [*texts, f"{e / 5},1e-9"], [*texts, f"rho={e / 50}"]):
        both = compose(translation, [Release.read(text) for text in several], delta=1e-6)
        yield Answer(f"{len(several)} releases {several[-1][:3]}", both.epsilon, both.lower)
        yield Answer(f"δ of {several[-1][:3]}", both.delta, scale=1e-9)
        if both.theorem_7 is not None:
            yield Answer("Theorem 7", both.theorem_7)


def _tabled(translation: Translation, e: float) -> Iterator[Answer]:
    table = tabulate_at(translation, [e / 4, e / 2, e])
    tabled = TabledTranslation(translation, table)
    for dp in (e / 5, e / 3, 2 * e):
        yield Answer(f"{dp / e:.3g} of it", tabled.to_pufferfish(dp))
    yield Answer("allowed", allowed=tabled.to_dp(float(table.loss[1]) * 1.01), scale=0.0)
    total = Total(Fraction(e) / 3, Fraction(1, 10**9), Fraction(0))
    yield Answer("total", tabled.total_to_pufferfish(total, Fraction(1, 10**6)))


def _table(translation: Translation, e: float) -> Iterator[Answer]:
    table = tabulate(translation, losses=(e, 2 * e), share=0.3)
    yield Answer("points", float(len(table.epsilon)))
    for k in (0, len(table.epsilon) // 2, -1):
        yield Answer(f"point {k}", float(table.loss[k]), allowed=float(table.epsilon[k]))


def _advice(translation: Translation, e: float) -> Iterator[Answer]:
    found = advise(translation, e, seconds=FOREVER)
    if found.allowed is not None:
        yield Answer("allowed", allowed=found.allowed, scale=0.0)
    yield Answer("tried", float(found.tried))
    for remedy in found.remedies[:6]:
        yield Answer(remedy.change, allowed=remedy.allowed, scale=0.0)


def _grouped(translation: Translation, e: float) -> Iterator[Answer]:
    """The first value against all others."""
    if len(labels := _labels(translation)) < 3:
        return
    first, *others = labels
    one = replace(translation, secrets=Secrets(pairs=(((first,), tuple(others)),)))
    found = one.explain(e)
    yield told("loss", found, lambda: one.bound(e), 1.0)
    yield Answer("allowed", allowed=float(one.to_dp(e)), scale=0.0)


QUESTIONS: dict[str, Callable[[Translation, float], Iterator[Answer]]] = {
    "methods": _methods,
    "allowances": _allowances,
    "curve": _curve,
    "search": _search,
    "profile": _profile,
    "uncertain": _uncertain,
    "one entry": _one_entry,
    "valued": _valued,
    "allocated": _allocated,
    "composed": _composed,
    "tabled": _tabled,
    "table": _table,
    "advice": _advice,
    "grouped": _grouped,
}
