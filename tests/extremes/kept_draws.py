"""Which priors are kept: those of the oracles' families, with truths, and larger ones.

An oracle's family asks takifugu one question for an instance: it is noted when it is asked.
"""

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import inf
from time import process_time
from typing import Any, Literal
from unittest.mock import patch

import numpy as np

from takifugu._core.numeric import Floats
from takifugu.costs.cost import Column, Cost, Distance, Jointly, Matrix, Membership
from takifugu.errors import TakifuguError
from takifugu.priors import (
    AR1,
    BayesianNetwork,
    Covariance,
    Gaussian,
    HigherOrderChain,
    IndependentEntries,
    IntervalMarkovChain,
    MarkovChain,
    MarkovRandomField,
    Matern,
    Prior,
    Product,
    Secrets,
    SquaredExponential,
    TimeOfDayChain,
    TruncatedGaussian,
    household_contagion,
)
from takifugu.translation import LinearReleases, RowTranslation, Translation
from tests.extremes.kept_bounds import Answer, Ask, Kept, answered, say, secrets_document
from tests.oracles.all_vertices import TooManyMechanisms
from torture.oracles import curves, wider_worlds
from torture.oracles.comparison import Compared, Family
from torture.oracles.families import BY_NAME
from torture.oracles.runner import Refused, compared

Rng = np.random.Generator
SEED = 23
OF_FAMILY = 36  # priors of an oracle's family
MOST_TRIED = 110
SLOW = 0.6  # seconds of a question; of the slowest few `SLOWEST`
SLOWEST = 4.0
COMPILING = 0.5  # seconds more, until a question is given up, and the prior is asked no more
OFTEN_SLOW = ("total", "advised", "levelled", "composed", "table", "factor")
ORACLES = 7.0  # seconds of work for the oracles of one family
MOST_WORK = 14.0  # seconds of work for a family
UNBOUNDED = 7  # entries of a profile of an unbounded chain
LONG = 400  # entries beyond which profiles are not listed
METHODS = ("transport", "curve", "group")
LAST = "row by network"  # its route is chosen by what is not public


class TooSlow(Exception):
    """Something took longer than it may."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Give up after so much work; compiled code is waited for."""
    fired = False

    def late(*_: object) -> None:
        nonlocal fired
        fired = True
        raise TooSlow

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    except Exception as error:
        if fired:  # a compiler may have made another error of it
            raise TooSlow from error
        raise
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def drawn(only: str) -> Iterator[list[Kept]]:
    """What is kept, answered: family by family."""
    sources: list[tuple[str, Callable[[Rng], Iterator[Kept]]]] = [
        *((name, lambda rng, name=name: _of_oracle(rng, BY_NAME[name])) for name in _noted()),
        *((name, lambda rng, make=make: _of_curve(rng, make)) for name, make in CURVES.items()),
        *LARGER.items(),
    ]
    for name, source in sources:
        if only not in name:
            continue
        rng = np.random.default_rng([SEED, sum(name.encode())])
        began, new = process_time(), []
        for kept in source(rng):
            if process_time() > began + MOST_WORK * (9 if source is _chains else 1):
                break
            kept.family = kept.family or name
            kept.prior = json.loads(json.dumps(kept.prior))
            kept.secrets = json.loads(json.dumps(kept.secrets))
            if _answer(kept):
                new.append(kept)
        asked = sum(len(one.asked) for one in new)
        say(f"{name}: {len(new)} priors, {asked} questions, {process_time() - began:.1f} s")
        yield new


def _answer(kept: Kept) -> bool:
    """Answer what is asked; leave out what is refused, or slow."""
    listed = []
    try:
        translation = kept.translation()
    except TakifuguError:
        return False
    for ask, known in kept.asked:
        slowest = known.pop("slowest", SLOW)
        plain = json.loads(json.dumps(ask))
        try:
            began = process_time()
            with at_most(COMPILING + slowest):
                answer = answered(translation, plain)
            if process_time() > began + slowest:  # once more, with all that is compiled
                began = process_time()
                with at_most(2 * slowest):
                    answer = answered(kept.translation(), plain)
        except TakifuguError:
            continue
        except TooSlow:
            break
        except Exception as error:  # noqa: BLE001 - a defect that is not of the bounds
            say(f"{type(error).__name__}: {error}: {kept.family}: {str(plain)[:200]}")
            continue
        if process_time() - began <= slowest:
            listed.append((plain, {**answer, **known}))
    kept.asked = listed
    return bool(listed)


# what oracles compare


@dataclass(frozen=True)
class _Noted:
    translation: Translation | RowTranslation
    ask: Ask


def _noted() -> list[str]:
    return [
        name for name in BY_NAME if not name.startswith(("curve:", "finite")) and LAST not in name
    ]


@contextmanager
def _noting() -> Iterator[list[_Noted]]:
    """What is asked of a translation, and not by itself."""
    noted: list[_Noted] = []
    inside = 0

    def spied(whole: Any, make: Callable[..., Ask]) -> Any:
        def spy(self: Any, *given: Any, **named: Any) -> Any:
            nonlocal inside
            if not inside and not named:
                asked = Translation(self.prior, self.secrets) if make is _linear else self
                noted.append(_Noted(asked, make(*given)))
            inside += 1
            try:
                return whole(self, *given, **named)
            finally:
                inside -= 1

        return spy

    with ExitStack() as stack:
        for owner, name, make in (
            (Translation, "explain", lambda dp: ["loss", np.asarray(dp).tolist()]),
            (Translation, "explain_cost", _costs),
            (Translation, "cost_bound", _costs),
            (Translation, "to_dp", lambda target: ["allowed", float(target)]),
            (Translation, "to_cost", lambda unit, t: ["factor", unit.document(), float(t)]),
            (RowTranslation, "losses", lambda *costs: ["cost", *(c.document() for c in costs)]),
            (LinearReleases, "laplace", _linear),
        ):
            stack.enter_context(patch.object(owner, name, spied(getattr(owner, name), make)))
        yield noted


def _costs(costs: Any) -> Ask:
    if isinstance(costs, Cost):
        return ["cost", costs.document()]
    if costs.by_entry is None:
        return ["cost", *(one.document() for one in costs.anywhere)]
    listed = list(dict.fromkeys(costs.by_entry))
    places = [listed.index(one) for one in costs.by_entry]
    return ["costs", [one.document() for one in listed], places]


def _linear(listed: Any) -> Ask:
    queries = []
    for query, _ in listed:
        weights = dict(query.weights)
        queries.append([float(weights.get(k, 0)) for k in range(max(weights) + 1)])
    return ["linear", queries, [str(scale) for _, scale in listed]]


def _of_oracle(rng: Rng, family: Family) -> Iterator[Kept]:
    began, count = process_time(), 0
    for _ in range(MOST_TRIED):
        if count >= OF_FAMILY or process_time() > began + ORACLES:
            return
        instance = json.loads(json.dumps(family.draw(rng)))
        try:
            with _noting() as noted, at_most(4.0):
                truths = list(compared(family, instance))
        except (Refused, TooManyMechanisms, TooSlow, AssertionError):
            continue
        if not noted or not truths:
            continue
        first = noted[0]
        known: Answer = {}
        if first.ask[0] not in ("allowed", "factor"):
            known["truth"] = _truth(
                truths, family.off, isinstance(first.translation, RowTranslation)
            )
        kept = _kept(first.translation)
        kept.asked = [(first.ask, known)]
        if isinstance(first.translation, RowTranslation):
            kept.asked += [(["allowed", 0.7], {}), (["allowed", 0.05], {})]
        else:
            kept.asked += _more(rng, first.translation, 5)
        count += 1
        yield kept
        if count % 6 == 0 and isinstance(first.translation, Translation):
            off = Kept("", kept.prior, kept.secrets, 0.05)
            off.asked = [(["loss", 0.3], {}), (["allowed", 1.2], {})]
            off.asked += [(["loss", 0.3, method], {}) for method in METHODS]
            yield off


def _truth(truths: list[Compared], off: float, rows: bool) -> list[float | None]:
    some = truths if rows else truths[:1]
    least, most = max(float(one.least) for one in some), max(float(one.most) for one in some)
    room = off + 1e-13
    return [float(f"{least * (1 - room):.15g}"), None if most == inf else most * (1 + room)]


def _kept(translation: Translation | RowTranslation) -> Kept:
    priors = [prior.to_document() for prior in translation.priors.values()]
    if isinstance(translation, RowTranslation):
        secrets = {name: secrets_document(one) for name, one in translation.secrets.items()}
        return Kept("", priors[0], secrets, translation.uncertainty, translation.over)
    several = len(priors) > 1
    secrets = secrets_document(translation.secrets)
    return Kept("", priors if several else priors[0], secrets, translation.uncertainty)


# what else is asked


def _nats(rng: Rng) -> float:
    """Mostly ordinary, with few digits."""
    if rng.random() < 0.1:
        return float(10.0 ** rng.integers(-9, -3))
    return float(f"{np.exp(rng.uniform(np.log(0.02), np.log(3))):.3g}")


def _labels(translation: Translation) -> list[Any]:
    listed = []
    for prior in translation.priors.values():
        parts = prior.parts.values() if isinstance(prior, Product) else [prior]
        for part in parts:
            if isinstance(part, Gaussian | TruncatedGaussian) or getattr(part, "columns", None):
                return []
            listed += [list(dict.fromkeys(values)) for values in part.entry_values]
    return [value for value in listed[0] if all(value in other for other in listed)]


def valued(rng: Rng, labels: list[Any]) -> Cost:
    """A count of a set, of two, a distance, or any matrix; sometimes more than one of them."""
    e = Fraction(str(_nats(rng)))
    match rng.integers(6):
        case 0 | 1:
            return Cost.of({Membership([labels[int(rng.integers(len(labels)))]]): e})
        case 2 if len(labels) > 2:
            some = rng.permutation(len(labels))[: len(labels) // 2].tolist()
            one = Cost.of({Membership([labels[k] for k in some]): e})
            return one + Cost.of({Membership([labels[some[0]]]): e / 2})
        case 3 if all(str(label).isdigit() for label in labels):
            return Cost.of({Distance(0, max(2, len(labels) // 2)): e})
        case 4:
            table = rng.integers(0, 4, (len(labels), len(labels)))
            np.fill_diagonal(table, 0)
            return Cost.of({Matrix(labels, (table / 2).tolist()): e})
        case _:
            return Cost.of({Membership([labels[0]]): e}) + Cost.any(e / 3)


def _more(rng: Rng, translation: Translation, count: int) -> list[tuple[Ask, Answer]]:
    """Other questions, of which some are drawn."""
    e, t = _nats(rng), _nats(rng)
    size, labels = translation.size, _labels(translation)
    entries = UNBOUNDED if size is None else size
    asks: list[Ask] = [
        *(["loss", e], ["loss", _nats(rng)], ["allowed", t], ["allowed", _nats(rng)]),
        ["total", str(e), "1/1000000000", "1/20", "1/1000000"],
        ["total", "1/10", "0", "0", "0"],
        *(["allowed", t, m] for m in METHODS if m != "curve" or translation.has_curve),
        *(["loss", e, m] for m in METHODS if m != "curve" or translation.has_curve),
        *(["approximate", e, 1e-7], ["concentrated", e / 9, 1e-6], ["table", e, 2 * e]),
        ["composed", [f"{e / 2}", f"{e / 3}@0:{(entries + 1) // 2}", f"{e / 5},1e-9"], 1e-6],
    ]
    if entries <= 6:
        asks += [["levelled", t], ["advised", t]]
    if translation.has_curve:
        asks += [["curve", 2], ["curve", 5]]
    if entries <= LONG:
        asks += [["loss", (e * rng.choice([0, 0.5, 1, 1, 2], entries)).tolist()] for _ in (0, 1, 2)]
    if len(labels) > 1:
        cost, other = valued(rng, labels), valued(rng, labels)
        asks += [["cost", cost.document()], ["cost", other.document()]] * 2
        asks += [["cost", cost.document(), other.document()]]
        asks += [["factor", cost.document(), t], ["factor", other.document(), 4.0, cost.document()]]
        if entries <= LONG:
            places = rng.integers(2, size=entries).tolist()
            asks += [["costs", [cost.document(), other.document()], places]] * 2
    chosen = [asks[k] for k in sorted(rng.permutation(len(asks))[:count].tolist())]
    return [(ask, {}) for ask in sorted(chosen, key=lambda ask: ask[0] in OFTEN_SLOW)]


# curves


CURVES: dict[str, Callable[[Any], Any]] = {
    "curve: networks and fields": curves.network,
    "curve: attractive fields": curves.attractive,
    "curve: short chains": lambda instance: curves.short_chain(instance)[0],
    "curve: long chains": lambda instance: curves.long_chain(instance)[0],
    "curve: intervals": curves.intervals,
    "curve: truncated Gaussian": wider_worlds.truncated_gaussian,
}


def _of_curve(rng: Rng, make: Callable[[Any], Any]) -> Iterator[Kept]:
    draw = BY_NAME["curve: truncated Gaussian"].draw
    truncated = make is wider_worlds.truncated_gaussian
    for _ in range(OF_FAMILY):
        instance = draw(rng) if truncated else {"seed": int(rng.integers(2**53))}
        translation = Translation(make(instance))
        kept = _kept(translation)
        kept.asked = [(["curve", 3], {}), (["curve", 8], {}), (["loss", _nats(rng)], {})]
        kept.asked += _more(rng, translation, 3)
        yield kept


# larger ones, of round numbers


def law(rng: Rng, size: int, sure: float = 1.0) -> Floats:
    """A law of thousandths; the sum is 1 but for one rounding."""
    counts = rng.multinomial(1000 - size, rng.dirichlet(np.full(size, sure))) + 1
    return np.asarray(counts / 1000)


def rows(rng: Rng, size: int) -> Floats:
    """Plain, with large values on the diagonal, near to each other, or with few large values."""
    kind = rng.integers(4)
    table = np.array([law(rng, size, 0.3 if kind == 3 else 1.0) for _ in range(size)])
    if kind == 1:
        table = np.round(0.1 * table + 0.9 * np.eye(size), 4)
    elif kind == 2:
        table = np.round(0.9 * table[[0] * size] + 0.1 * table, 4)
    return table


def groups(rng: Rng, labels: tuple[Any, ...]) -> Secrets:
    """All pairs, or two groups of values."""
    if len(labels) < 3 or rng.random() < 0.6:
        return Secrets()
    order = [labels[k] for k in rng.permutation(len(labels))]
    cut = int(rng.integers(1, len(labels)))
    return Secrets(pairs=((tuple(order[:cut]), tuple(order[cut:])),))


def asked(
    rng: Rng, prior: Any, secrets: Secrets | None = None, *, count: int = 6, off: float = 0.0
) -> Kept:
    """A prior with some of all questions."""
    translation = Translation(prior, secrets or Secrets(), off)
    kept = _kept(translation)
    kept.asked = _more(rng, translation, count)
    return kept


def names(size: int) -> tuple[str, ...]:
    """Labels that are numbers too."""
    return tuple(str(k) for k in range(size))


def _chains(rng: Rng) -> Iterator[Kept]:
    lengths: tuple[int | None, ...] = (1, 2, 5, 30, 300, 10_000, None)
    starts = ("stationary", "given", "unknown", "stationary, known", "given, known", "both")
    found = [
        (size, length, start)
        for size, length, start in product((2, 3, 4, 6, 10, 24, 32), lengths, starts)
        for _ in range({2: 4, 3: 4, 4: 3, 6: 2}.get(size, 1))
        if size < 24 or length in (2, 5, 30, None)
    ]
    for k in rng.permutation(len(found)).tolist():
        yield _chain(rng, *found[k])


def _chain(rng: Rng, size: int, length: int | None, start: str) -> Kept:
    known = "any" if "known" in start or start == "both" else "none"
    first: Any = {"given": law(rng, size), "stat": "stationary"}.get(
        "given" if start.startswith("given") else start[:4], "unknown"
    )
    made: dict[str, Any] = {"start": first, "length": length, "known": known}
    try:
        prior = MarkovChain(rows(rng, size), names(size), **made)
    except TakifuguError:  # an unbounded chain is stationary
        prior = MarkovChain(rows(rng, size), names(size), **{**made, "start": "stationary"})
    secrets = groups(rng, names(size)) if length is None or length <= 30 else Secrets()
    off = 0.02 if rng.random() < 0.08 else 0.0
    kept = asked(rng, prior, secrets, off=off, count=6 if size < 24 else 3)
    kept.family = f"chain, {start}" if length is not None else f"unbounded chain, {start}"
    if size >= 10:
        kept.family = f"chain, {size} states"
    return kept


def _large(rng: Rng) -> Iterator[Kept]:
    """78 states, as many as a fitted study has."""
    for length in (30, None):
        table = 0.6 * rng.dirichlet(np.full(78, 0.5), 78) + 0.4 * np.eye(78)
        table = np.round(table, 4) + 1e-4
        prior = MarkovChain(table / table.sum(axis=1, keepdims=True), names(78), length=length)
        kept = _kept(Translation(prior))
        cost = Cost.of({Membership(["3", "9"]): "0.4"})
        asks: list[Ask] = [["loss", 0.5], ["cost", cost.document()]]
        kept.asked = [(ask, {"slowest": 15.0}) for ask in asks]
        yield kept


def _higher(rng: Rng) -> Iterator[Kept]:
    for order, size, length in product((2, 3), (2, 3, 4), (2, 5, 30, 300, None)):
        if size**order > 16:
            continue
        for _ in range(4):
            shape = (size,) * order
            table = np.array([law(rng, size) for _ in range(size**order)]).reshape(*shape, size)
            prior = HigherOrderChain(table, names(size), length)
            yield asked(rng, prior, groups(rng, names(size)))


def _hours(rng: Rng) -> Iterator[Kept]:
    for hours, size, length in product((2, 4, 24), (2, 3, 4), (5, 30, 96, None)):
        for _ in range(2):
            table = np.array([rows(rng, size) for _ in range(hours)])
            start: Any = ("stationary", "unknown", law(rng, size))[int(rng.integers(3))]
            if length is None:
                start = "stationary"
            try:
                prior = TimeOfDayChain(table, names(size), start, length)
            except TakifuguError:
                continue
            yield asked(rng, prior, groups(rng, names(size)))


def rounded(values: Floats, digits: int) -> Floats:
    """Values with few digits, so that documents are short."""
    short: Floats = np.round(values, digits)
    return short


def _first_value(prior: Any) -> Any:
    return prior.entry_values[0][0][0] if prior.entry_values else "well"


def _intervals(rng: Rng) -> Iterator[Kept]:
    for size, length in product((2, 3, 4, 6), (1, 2, 5, 30, 300, None)):
        for _ in range(6 if size < 4 else 3):
            middle, width = rows(rng, size), float(rng.choice([0.0, 0.01, 0.05, 0.2]))
            low, high = (rounded(np.clip(middle + w, 0, 1), 4) for w in (-width, width))
            start: Literal["any", "stationary"] = "stationary" if rng.integers(2) else "any"
            try:
                prior = IntervalMarkovChain(low, high, names(size), start, length)
            except TakifuguError:
                continue
            yield asked(rng, prior, groups(rng, names(size)))


def _joint(rng: Rng) -> Iterator[Kept]:
    """Chains on joint states: costs on one of several columns, secrets about a column."""
    for shape, length in product(((2, 2), (2, 3), (3, 3), (2, 2, 2)), (1, 2, 5, 30, None)):
        columns = ("a", "b", "c")[: len(shape)]
        states = tuple(product(*(names(n) for n in shape)))
        for over, _ in product((None, "sequence"), range(2)):
            prior = MarkovChain(rows(rng, len(states)), states, length=length, columns=columns)
            e = Fraction(str(_nats(rng)))
            some = Cost.of({Column("b", Membership(["1"])): e})
            more = some + Cost.of({Jointly(["a", "b"]): e / 3})
            asks: list[Ask] = [
                *(["cost", some.document()], ["cost", more.document()]),
                *(["factor", some.document(), 1.0], ["allowed", 0.8]),
            ]
            if over is None:
                column = columns[int(rng.integers(len(columns)))]
                kept = _kept(Translation(prior, Secrets.of_column(column, columns, states)))
                asks += [["loss", _nats(rng)], ["loss", 0.3, "curve"]]
            else:
                secrets = {name: secrets_document(Secrets()) for name in columns}
                kept = Kept("", prior.to_document(), secrets, over=over)
            kept.asked = [(ask, {}) for ask in asks]
            yield kept


def _households(rng: Rng) -> Iterator[Kept]:
    for people, length in product((2, 3), (2, 5, 30, None)):
        for _ in range(3):
            rates = dict(zip(("background", "infection", "recovery"), law(rng, 4), strict=False))
            made: dict[str, Any] = {k: float(v) for k, v in rates.items()}
            if length is not None:
                made |= {"start": 0.2, "length": length}
            prior = household_contagion(people, **made)
            secrets = {"health": secrets_document(Secrets())}
            kept = Kept("", prior.to_document(), secrets, over="household")
            ill = _first_value(prior)
            count = Cost.of({Membership([ill]): str(_nats(rng))})
            asks: list[Ask] = [
                *(["cost", count.document()], ["cost", Cost.any(str(_nats(rng))).document()]),
                *(["cost", (count + Cost.any("0.1")).document()], ["allowed", 0.9]),
                ["factor", count.document(), 0.5],
            ]
            kept.asked = [(ask, {"slowest": 2.0}) for ask in asks]
            yield kept


def _table_rows(rng: Rng) -> Iterator[Kept]:
    for count in range(24):
        prior = _network(rng, 3 + count % 3, 1 + count % 2)
        secrets = {str(name): secrets_document(Secrets()) for name in prior.entries}
        kept = Kept("", prior.to_document(), secrets, over="row", off=0.05 * (count % 6 == 5))
        e = str(_nats(rng))
        one = Cost.of({Column("n0", Membership(["1"])): e})
        asks: list[Ask] = [
            *(["cost", one.document()], ["cost", Cost.of({Jointly(["n0", "n1"]): e}).document()]),
            ["cost", (one + Cost.of({Column("n2", Membership(["0"])): e})).document()],
            *(["cost", Cost.any(e).document()], ["allowed", 1.0], ["factor", one.document(), 1.0]),
        ]
        kept.asked = [(ask, {}) for ask in asks]
        yield kept


def _network(rng: Rng, nodes: int, parents: int) -> BayesianNetwork:
    sizes = [int(rng.choice([2, 2, 3])) for _ in range(nodes)]
    above = [
        sorted(rng.permutation(j)[: int(rng.integers(0, parents + 1))].tolist())
        for j in range(nodes)
    ]
    tables = []
    for size, over in zip(sizes, above, strict=True):
        shape = [sizes[k] for k in over]
        listed = np.array([law(rng, size) for _ in range(int(np.prod(shape, dtype=int)))])
        tables.append(listed.reshape(*shape, size))
    entries = tuple(f"n{j}" for j in range(nodes))
    return BayesianNetwork(
        *(entries, tuple(names(n) for n in sizes)),
        *(tuple(tuple(entries[k] for k in over) for over in above), tuple(tables)),
    )


def _networks(rng: Rng) -> Iterator[Kept]:
    for nodes, parents in product((2, 3, 5, 8, 12, 20), (1, 2, 3)):
        for _ in range(4):
            yield asked(rng, _network(rng, nodes, parents))


def _edges(shape: str, nodes: int) -> list[tuple[int, int]]:
    wide = max(2, round(nodes**0.5))
    match shape:
        case "tree":
            return [((k - 1) // 2, k) for k in range(1, nodes)]
        case "ring":
            return [(k, (k + 1) % nodes) for k in range(nodes)]
        case _:
            across = [(k, k + 1) for k in range(nodes - 1) if (k + 1) % wide]
            return across + [(k, k + wide) for k in range(nodes - wide)]


def _fields(rng: Rng) -> Iterator[Kept]:
    for nodes, sign, size, shape in product(
        (3, 6, 12, 20), (1, 0, -1), (2, 2, 3), ("tree", "ring", "grid")
    ):
        if nodes:
            edges = _edges(shape, nodes)
            entries = tuple(f"n{j}" for j in range(nodes))
            strength = float(rng.choice([0.2, 0.6, 1.2]))
            drawn_ = strength * rng.normal(size=(len(edges), size, size))
            if sign:
                level = sign * np.abs(drawn_[:, 0, 0])
                drawn_ = level[:, None, None] * np.eye(size)
            prior = MarkovRandomField(
                *(entries, tuple(names(size) for _ in entries)),
                tuple(rounded(np.exp(0.4 * rng.normal(size=size)), 3) for _ in entries),
                tuple((entries[i], entries[j]) for i, j in edges),
                tuple(rounded(np.exp(one), 3) for one in drawn_),
            )
            kept = asked(rng, prior, groups(rng, names(size)), count=5)
            signs = {1: "attractive", 0: "any signs", -1: "repelling"}
            kept.family = f"field: {shape}, {signs[sign]}"
            yield kept


def _others(rng: Rng) -> Iterator[Kept]:
    """Tables, independent entries and people, several priors; with uncertainty."""
    for k in range(40):
        size, length = 2 + k % 3, 2 + k % 4
        chains = [MarkovChain(rows(rng, size), names(size), length=length) for _ in range(3)]
        off = (0.0, 0.0, 0.05, 0.2)[k % 4]
        secrets = groups(rng, names(size))
        laws = {f"n{j}": dict(zip(names(size), law(rng, size), strict=True)) for j in range(length)}
        alone = IndependentEntries(
            {n: {v: float(p) for v, p in d.items()} for n, d in laws.items()}
        )
        people = Product({"ann": chains[0], "bob": chains[1]})
        several: dict[str, tuple[Any, Secrets]] = {
            "independent, larger": (alone, secrets),
            "people, larger": (people, secrets),
            "several priors, larger": (chains, secrets),
        }
        if size**length <= 81:
            several["table, larger"] = (chains[2].explicit(), Secrets())
        for name, (prior, kept_secret) in several.items():
            kept = asked(rng, prior, kept_secret, count=5, off=off)
            kept.family = name
            yield kept


def _gaussians(rng: Rng) -> Iterator[Kept]:
    for k in range(60):
        size = (1, 2, 5, 30, 300, None)[k % 6]
        kernels: list[Any] = [
            *(AR1(float(rng.choice([0.3, 0.9, -0.5]))), SquaredExponential(float(_nats(rng)))),
            Matern(("1/2", "3/2", "5/2")[k % 3], float(_nats(rng))),
        ]
        kernel, length = kernels[int(rng.integers(3))], size
        if size is not None and size <= 5 and k % 2:
            root = np.round(rng.normal(size=(size, size)), 2)
            kernel, length = Covariance(root @ root.T + np.eye(size)), None
        prior: Prior = Gaussian(kernel, length, mean=float(k % 3))
        if k % 10 == 9 and size is not None:
            prior = TruncatedGaussian.process(min(size, 5), length=2, bound=4, width=0.5)
            yield asked(rng, prior)
            continue
        within = Fraction(int(rng.integers(1, 5)), 2)
        kept = _kept(Translation(prior, Secrets(within=within), 0.05 * (k % 12 == 11)))
        far, e = int(rng.choice([1, 3, 50])), str(_nats(rng))
        cost = Cost.of({Distance(-far, far): e})
        count = 5 if prior.size is None else prior.size
        asks: list[Ask] = [
            *(["cost", cost.document()], ["factor", cost.document(), 1.0]),
            *(["loss", 0.2], ["allowed", 1.0]),
            ["cost", cost.document(), Cost.any("0.01").document()],
            ["total", "1/10", "1/1000000000", "1/20", "1/1000000"],
        ]
        if count <= LONG:
            asks.append(["costs", [cost.document(), []], rng.integers(2, size=count).tolist()])
            queries = rng.integers(-1, 2, (2, count)).tolist()
            asks.append(["linear", [q if any(q) else [1] * count for q in queries], ["2", "5/2"]])
        kept.asked = [(ask, {}) for ask in asks]
        yield kept


LARGER: dict[str, Callable[[Rng], Iterator[Kept]]] = {
    "chains of all lengths": _chains,
    "higher order": _higher,
    "time of day": _hours,
    "intervals, larger": _intervals,
    "joint columns": _joint,
    "households": _households,
    "rows of a network": _table_rows,
    "networks, larger": _networks,
    "fields, larger": _fields,
    "other families, larger": _others,
    "Gaussian, larger": _gaussians,
    "chain, 78 states": _large,
}
