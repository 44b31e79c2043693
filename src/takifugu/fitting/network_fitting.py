"""Fit a Bayesian network to the columns of a row: all tables are counted in one pass."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import log, prod, sqrt
from typing import Any

import numpy as np

from takifugu._core.exact import is_finite
from takifugu._core.numeric import Floats, Integers
from takifugu.declarations.columns import Amount
from takifugu.declarations.table_errors import InvalidQuery
from takifugu.errors import TooLarge
from takifugu.fitting.fit_kinds import Estimate, name_of
from takifugu.fitting.fit_options import FitOptions
from takifugu.fitting.goodness import (
    MATERIAL_SHARE,
    MAX_BARS,
    FitTest,
    GoodnessOfFit,
    Panel,
    conclude,
    log_tail,
    p_words,
)
from takifugu.priors import Name
from takifugu.priors.network_structure import (
    Parents,
    checked_structure,
    chow_liu_tree,
    mutual_information,
)
from takifugu.priors.networks import BayesianNetwork
from takifugu.tables.aggregates import Histogram
from takifugu.tables.engine import Engine
from takifugu.tables.run_counting import dropping_refused
from takifugu.tables.scope import EVERYTHING, Scope
from takifugu.visible import four_digits

SMOOTHING = 1.0  # added to every count by default
MAX_NETWORK_LABELS = 1_000  # of a column of a network: losses are bounded for each pair of them
MAX_TABLE_CELLS = 2**20  # cells of one table
MAX_LISTED_TABLES = 12  # tables that the statement lists one by one
DEVIATIONS = 6  # standard deviations beyond which rows count as dependent
MAX_THIN_TABLES = 5  # tables that it lists otherwise


def fit_network(
    engine: Engine, columns: tuple[str, ...], train: Scope, options: FitOptions
) -> Estimate:
    r"""A network with a given structure, or a Chow-Liu tree, whose tables are smoothed counts.

    P(x | parents) = (n(x, parents) + α) / (n(parents) + α k), the posterior mean under a symmetric
    Dirichlet law, where k is the number of labels. Rows are taken to be independent.
    """
    alpha = SMOOTHING if options.smoothing is None else options.smoothing
    if not (alpha >= 0 and is_finite(alpha)):
        raise InvalidQuery("smoothing", given=f"is {alpha}", needed="be 0 or more")
    keys = {column: _labels(engine, column) for column in columns}
    parents, tables, information = _counted(engine, keys, train, options.structure)
    rows = int(tables[columns[0]].sum())
    if not rows:
        raise InvalidQuery(
            "rows", given="to fit on are none", needed="be at least one", reason="no-rows"
        )
    network = BayesianNetwork(
        entries=columns,
        states=tuple(keys.values()),
        parents=tuple(parents[column] for column in columns),
        tables=tuple(_smoothed(column, tables[column], alpha) for column in columns),
        name="fitted",
    )
    thin = {column: _thinnest(parents[column], keys, tables[column]) for column in columns}
    facts: dict[str, Any] = {
        "rows": rows,
        "smoothing": alpha,
        "tables": {
            column: {"parents": list(parents[column]), "rows": rows, "least": thin[column][0]}
            for column in columns
        },
        "mutual_information": {f"{a} - {b}": value for (a, b), value in information.items()},
    }
    rests = (_sentence(rows, alpha, parents, thin, options.structure is None),)
    notes = (*_notes(engine, keys, tables), *_dependent_rows(engine, columns, train))
    return Estimate(network, rows, "rows", rests, notes, facts, over="row")


def _dependent_rows(engine: Engine, columns: tuple[str, ...], train: Scope) -> tuple[str, ...]:
    """A warning where the rows of an entity tell about one another, which a network rules out.

    For the labels of a column in successive rows G² = 2 n I is about chi-square, of mean and half
    the variance (k − 1)², if rows are independent.
    """
    longest = engine.lengths(train).longest
    if longest < 2:
        return ()
    dependent = {}
    for column in columns:
        counts = engine.transitions(column, train).counts
        seen = counts[np.ix_(*(np.flatnonzero(counts.sum(axis=axis)) for axis in (1, 0)))]
        freedom = (seen.shape[0] - 1) * (seen.shape[1] - 1)
        told = mutual_information(counts)
        if 2 * int(counts.sum()) * told > freedom + DEVIATIONS * sqrt(2 * freedom):
            dependent[column] = told
    if not dependent:
        return ()
    worst = max(dependent, key=lambda column: dependent[column])
    return (
        f"the rows of one entity are not independent, as a network takes them to be: {worst} tells"
        f" {four_digits(dependent[worst])} nats about that of the next row; fit a chain on joint"
        f" states instead (kind markov with columns {','.join(columns)}), or declare tables in"
        " which an entity has one row",
    )


def _labels(engine: Engine, column: str) -> tuple[Name, ...]:
    declared = next((c for c in engine.declaration.protected if c.column == column), None)
    if isinstance(declared, Amount):
        raise InvalidQuery(
            "columns",
            given=f"name {column}, a column of numbers",
            needed="name columns of labels for a network",
            reason="numbers",
        )
    category = engine.declaration.category(column)
    if category.outside == "drop":
        raise dropping_refused(column)
    keys = engine.keys(column)
    if len(keys) < 2:
        raise InvalidQuery(
            column,
            given="has one label",
            needed="have at least two for a network; leave it out of `columns`",
            reason="one-value",
        )
    if len(keys) > MAX_NETWORK_LABELS:
        raise TooLarge(
            f"{column} has {len(keys):,} labels; a column of a network has at most"
            f" {MAX_NETWORK_LABELS:,}: merge labels in the declaration, or leave the column out",
            size=len(keys),
            limit=MAX_NETWORK_LABELS,
        )
    return keys


def _counted(
    engine: Engine,
    keys: Mapping[str, tuple[Name, ...]],
    train: Scope,
    structure: Mapping[str, Sequence[str]] | None,
) -> tuple[Parents, dict[str, Integers], dict[tuple[str, str], float]]:
    """The parents of each column, ``[parent, …, own value]`` of each, and what its edges tell."""
    columns = tuple(keys)
    is_tree = structure is None and len(columns) > 1
    parents: Parents = dict.fromkeys(columns, ())
    if structure is not None:
        parents = checked_structure(structure, columns)
    sets: Sequence[tuple[str, ...]] = tuple(combinations(columns, 2))
    if not is_tree:
        families = [(*parents[column], column) for column in columns]
        for *above, column in families:
            cells = prod(len(keys[name]) for name in (*above, column))
            if cells > MAX_TABLE_CELLS:
                raise TooLarge(
                    f"the table of {column} given {', '.join(above)} has {cells:,} cells;"
                    f" at most {MAX_TABLE_CELLS:,}: give it fewer parents, or merge labels",
                    size=cells,
                    limit=MAX_TABLE_CELLS,
                )
        sets = tuple({frozenset(family): family for family in families}.values())
    counted = engine.cross_tabulations(sets, train)
    information: dict[tuple[str, str], float] = {}
    if is_tree:
        pairs = {(a, b): table.counts for (a, b), table in zip(sets, counted, strict=True)}
        parents, information = chow_liu_tree(columns, pairs)
    tables = {column: _counts_of((*parents[column], column), counted) for column in columns}
    return parents, tables, information


def _counts_of(family: tuple[str, ...], counted: Sequence[Histogram]) -> Integers:
    """``[parent, …, own value]``: from the table that has these columns, and maybe others."""
    table = next(table for table in counted if set(family) <= set(table.columns))
    others = tuple(k for k, name in enumerate(table.columns) if name not in family)
    left = [name for name in table.columns if name in family]
    counts: Integers = table.counts.sum(axis=others) if others else table.counts
    return np.transpose(counts, [left.index(name) for name in family])


def _smoothed(column: str, counts: Integers, alpha: float) -> Any:
    size = counts.shape[-1]
    total = counts.sum(axis=-1, keepdims=True) + alpha * size
    if (total == 0).any():
        raise InvalidQuery(
            "smoothing",
            given=f"is 0, and {int((total == 0).sum()):,} combinations of the parents of {column}"
            " were never seen",
            needed="be above 0, or the structure have fewer parents",
            reason="unseen",
        )
    return (counts + alpha) / total


def _thinnest(
    parents: tuple[str, ...], keys: Mapping[str, tuple[Name, ...]], counts: Integers
) -> tuple[int, str]:
    """How many rows the least seen combination of parents has, and which it is."""
    rows = counts.sum(axis=-1)
    place = np.unravel_index(int(np.argmin(rows)), rows.shape)
    words = " and ".join(
        f"{name} = {name_of(keys[name][i])}" for name, i in zip(parents, place, strict=True)
    )
    return int(rows.min()), words


def _sentence(
    rows: int,
    alpha: float,
    parents: Parents,
    thin: Mapping[str, tuple[int, str]],
    found: bool,
) -> str:
    """What the tables rest on, in one sentence."""
    children = sorted((c for c in parents if parents[c]), key=lambda c: (thin[c][0], c))
    listed = children if len(children) <= MAX_LISTED_TABLES else children[:MAX_THIN_TABLES]
    parts = [
        f"{column} given {', '.join(parents[column])}: at least {thin[column][0]:,} rows"
        f" ({thin[column][1]})"
        for column in listed
    ]
    left = len(children) - len(listed)
    more = f"; {left} more tables on at least {thin[children[len(listed)]][0]:,}" if left else ""
    how = "a Chow-Liu tree" if found else "a given structure"
    tables = f" By combination of parents, {'; '.join(parts)}{more}." if parts else ""
    return (
        f"It is {how} over {len(parents)} columns and rests on {rows:,} rows, with {alpha:g} added"
        f" to every count.{tables}"
    )


def _notes(
    engine: Engine, keys: Mapping[str, tuple[Name, ...]], tables: Mapping[str, Integers]
) -> tuple[str, ...]:
    notes = []
    for column, table in tables.items():
        seen = table.sum(axis=tuple(range(table.ndim - 1)))
        never = [name_of(keys[column][int(i)]) for i in np.flatnonzero(seen == 0)]
        if never:
            shown = ", ".join(never[:MAX_THIN_TABLES]) + (
                ", …" if len(never) > MAX_THIN_TABLES else ""
            )
            notes.append(f"never seen in the rows that were counted: {column} = {shown}")
    unseen = {
        column: f"{int((rows == 0).sum()):,} of {rows.size:,} for {column}"
        for column, table in tables.items()
        if not (rows := table.sum(axis=-1)).all()
    }
    if unseen:
        listed = ", ".join(list(unseen.values())[:MAX_THIN_TABLES])
        more = (
            f" and {len(unseen) - MAX_THIN_TABLES} more columns"
            if len(unseen) > MAX_THIN_TABLES
            else ""
        )
        notes.append(
            f"combinations of parents that were never seen, after which all labels are taken to be"
            f" equally likely: {listed}{more}"
        )
    others = [c.column for c in engine.declaration.protected if c.column not in keys]
    if others:
        notes.append(
            f"it says nothing about {', '.join(others)}, which the declaration protects too"
        )
    return tuple(notes)


MAX_SUMMED_CELLS = 2**22  # cells of a table on the way to the law of a pair
MAX_SUMMED_NAMES = 52  # that numpy can sum over at once


def network_goodness(
    engine: Engine, network: BayesianNetwork, scope: Scope = EVERYTHING
) -> GoodnessOfFit:
    r"""Which pairs of columns depend on each other beyond the network, on the rows of ``scope``.

    For two columns that are not joined, the counts :math:`n_{ab}` of N rows are compared with the
    law :math:`p_{ab}` that the network implies for the pair:
    :math:`G^2 = 2\sum n_{ab}\log(n_{ab}/(N p_{ab}))` is about chi-square if the network is right,
    and :math:`(G^2 - \mathrm{df})/2N` is what the two tell about each other that the network does
    not know, in nats. The p-value of the worst pair is multiplied by the number of pairs
    (Bonferroni).
    """
    joined = {
        frozenset((str(parent), str(child)))
        for child, above in zip(network.entries, network.parents, strict=True)
        for parent in above
    }
    names = [str(entry) for entry in network.entries]
    pairs = [pair for pair in combinations(names, 2) if frozenset(pair) not in joined]
    if not pairs:
        sentence = "The network joins all columns: it leaves no pair out."
        return GoodnessOfFit((FitTest("left out", "fits", sentence, {}),))
    tables = engine.cross_tabulations(pairs, scope)
    counts = {pair: table.counts for pair, table in zip(pairs, tables, strict=True)}
    return GoodnessOfFit((left_out_test(network, counts),))


def left_out_test(network: BayesianNetwork, counts: Mapping[tuple[str, str], Integers]) -> FitTest:
    """The worst of some pairs, from how many rows have each two values."""
    measured = sorted(_measured(network, counts), key=lambda one: (-one["share"], one["pair"]))
    skipped = len(counts) - len(measured)
    numbers: dict[str, Any] = {
        "pairs": measured[:MAX_BARS],
        "tested": len(measured),
        "skipped": skipped,
    }
    if not measured:
        sentence = "What the network leaves out was not tested: it is too dense to be summed over."
        return FitTest("left out", "not tested", sentence, numbers)
    worst = measured[0]
    log_p = min(worst["log_p"] + log(len(measured)), 0.0)
    first, second = worst["pair"]
    facts = (
        f"{first} and {second} tell {four_digits(100 * worst['share'])} % of each other's"
        f" uncertainty beyond it ({p_words(log_p)} for the worst of {len(measured):,} pairs)"
    )
    panel = Panel(
        "What two columns tell about each other beyond the network",
        "nats a row",
        tuple(" – ".join(one["pair"]) for one in measured[:MAX_BARS]),
        tuple(one["gain"] for one in measured[:MAX_BARS]),
    )
    return conclude(
        *("left out", log_p, worst["share"] >= MATERIAL_SHARE, numbers, panel),
        fits=f"The network leaves out no pair of columns: at most {facts}.",
        little=f"The network leaves out little: {facts}.",
        not_at_all=f"The network leaves something out: {facts}. Give it a structure with that edge"
        " (--structure), and see whether the loss grows.",
    )


def _measured(
    network: BayesianNetwork, counts: Mapping[tuple[str, str], Integers]
) -> Iterator[dict[str, Any]]:
    for pair, table in counts.items():
        law = pair_law(network, *pair)
        total = int(table.sum())
        if law is None or not total:
            continue
        n = table.astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(n > 0, n * np.log(n / (total * law)), 0.0)
        statistic = max(2 * float(terms.sum()), 0.0)
        seen = [int((n.sum(axis=axis) > 0).sum()) - 1 for axis in (0, 1)]
        degrees = max(seen[0], 0) * max(seen[1], 0)
        gain = max(statistic - degrees, 0.0) / (2 * total)
        uncertain = min(_entropy(n.sum(axis=1)), _entropy(n.sum(axis=0)))
        yield {
            "pair": list(pair),
            "statistic": statistic,
            "degrees": degrees,
            "log_p": log_tail(statistic, degrees),
            "gain": gain,
            "share": min(gain / uncertain, 1.0) if uncertain > 0 else 0.0,
        }


def _entropy(counts: Floats) -> float:
    share = counts[counts > 0] / counts.sum()
    return float(-(share * np.log(share)).sum())


def pair_law(network: BayesianNetwork, first: str, second: str) -> Floats | None:
    """``[value of first, value of second]`` by the network; None if that is out of reach.

    Only ancestors of the two matter; the others sum to 1.
    """
    number = {str(entry): i for i, entry in enumerate(network.entries)}
    wanted, waiting = set[str](), [first, second]
    while waiting:
        entry = waiting.pop()
        if entry not in wanted:
            wanted.add(entry)
            waiting += [str(parent) for parent in network.parents[number[entry]]]
    if len(wanted) > MAX_SUMMED_NAMES:
        return None
    place = {entry: i for i, entry in enumerate(sorted(wanted))}
    tables: list[Any] = []
    scopes: list[set[int]] = []
    sizes = dict[int, int]()
    for entry in place:
        axes = [place[str(name)] for name in (*network.parents[number[entry]], entry)]
        table = network.tables[number[entry]]
        tables += [table, axes]
        scopes.append(set(axes))
        sizes |= dict(zip(axes, table.shape, strict=True))
    law = [place[first], place[second]]
    steps = np.einsum_path(*tables, law, optimize="greedy")[0]
    for merged in steps[1:]:  # the largest table on the way must not be out of reach
        joint = set[int]().union(*(scopes[k] for k in merged))
        if prod(sizes[name] for name in joint) > MAX_SUMMED_CELLS:
            return None
        scopes = [scope for k, scope in enumerate(scopes) if k not in merged]
        scopes.append(joint & set(law).union(*scopes))
    return np.asarray(np.einsum(*tables, law, optimize=steps), dtype=np.float64)
