r"""Which entries of a network depend on which: read from a file, or found as a Chow-Liu tree.

**The Chow-Liu tree.** Of all laws in which every entry depends on at most one other, the one that
is nearest to an empirical law (least relative entropy, so largest likelihood) has its edges along a
spanning tree with the largest sum of mutual informations, and the pairwise tables of the data
(Chow & Liu, IEEE Trans. Inf. Theory, 1968). For a tree with edges :math:`(p(i), i)`

.. math:: D(\hat P \| P_{tree}) = -\sum_i I(X_i; X_{p(i)}) + \sum_i H(X_i) - H(X),

and only the first sum depends on the tree.
"""

from collections.abc import Collection, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import combinations
from math import fsum, log
from pathlib import Path

from takifugu._core.atomic import read_whole
from takifugu._core.numeric import Integers
from takifugu.errors import InvalidFile, InvalidPrior
from takifugu.priors.documents import read_prior
from takifugu.priors.networks import BayesianNetwork

ARROW = "->"
DIGITS = 12  # of mutual informations that are compared; what differs beyond them is a tie
MAX_LISTED_NAMES = 10

Parents = dict[str, tuple[str, ...]]


def mutual_information(counts: Integers) -> float:
    r"""The mutual information of two columns by ``[x, y]``, how many rows have each pair, in nats.

    :math:`\sum_{xy} \frac{n_{xy}}{n}\log\frac{n\,n_{xy}}{n_x n_y}`. The sum is rounded once, so
    that it does not depend on the order of the labels or on which column comes first.
    """
    rows, columns = counts.sum(axis=1).tolist(), counts.sum(axis=0).tolist()
    total = sum(rows)
    if not total:
        return 0.0
    terms = (
        many * log(many * total / (row * column))
        for row, line in zip(rows, counts.tolist(), strict=True)
        for column, many in zip(columns, line, strict=True)
        if many
    )
    return float(max(fsum(terms), 0.0) / total)


def chow_liu_tree(
    columns: Sequence[str], tables: Mapping[tuple[str, str], Integers]
) -> tuple[Parents, dict[tuple[str, str], float]]:
    """The tree with the largest sum of mutual informations, and those of its edges.

    ``tables`` has ``[value of a, value of b]`` for each pair (a, b) of columns, in either order. Of
    edges that tell equally much the first by name is taken; two columns that are independent in the
    counts are not joined. Every edge leads away from the column that is the first by name.
    """
    informations = dict[tuple[str, str], float]()
    for a, b in combinations(sorted(columns), 2):
        table = tables[a, b] if (a, b) in tables else tables[b, a].T
        informations[a, b] = mutual_information(table)
    ranked = sorted(
        informations, key=lambda pair: (-float(f"{informations[pair]:.{DIGITS}g}"), pair)
    )
    group = {column: column for column in columns}
    joined: dict[str, list[str]] = {column: [] for column in columns}
    edges = dict[tuple[str, str], float]()
    for a, b in ranked:
        if group[a] != group[b] and informations[a, b] > 0:
            edges[a, b] = informations[a, b]
            joined[a].append(b)
            joined[b].append(a)
            group |= {c: group[a] for c, mark in group.items() if mark == group[b]}
    parents: Parents = {}
    for root in sorted(columns):
        waiting: list[tuple[str, tuple[str, ...]]] = [(root, ())]
        while waiting:
            column, above = waiting.pop()
            if column not in parents:
                parents[column] = above
                waiting += [(other, (column,)) for other in sorted(joined[column])]
    return {column: parents[column] for column in columns}, edges


def read_structure(path: Path) -> Parents:
    """The parents of each entry: of a BIF file, or of lines "parent -> child".

    An entry that depends on nothing and that nothing depends on has a line of its own. What follows
    a # is left out.
    """
    if path.name.endswith((".bif", ".bif.gz", ".json")):
        network = read_prior(path)
        if not isinstance(network, BayesianNetwork):
            raise InvalidFile(
                str(path), given=f"is a {network.kind}", needed="be a Bayesian network"
            )
        return {
            str(entry): tuple(map(str, above))
            for entry, above in zip(network.entries, network.parents, strict=True)
        }
    text = read_whole(path, needed="have lines 'parent -> child', or be a BIF file")
    return parse_structure(text, str(path))


def parse_structure(text: str, place: str = "structure") -> Parents:
    """The parents of each entry, from lines "parent -> child".

    An error tells numbers of lines, not what is on them: the file may be one of protected rows.
    """
    parents: Parents = {}
    lines: dict[tuple[str, str], int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        names = [name.strip() for name in line.partition("#")[0].split(ARROW)]
        if names == [""]:
            continue
        if len(names) > 2 or not all(names):
            raise InvalidFile(
                place,
                given=f"has something else than an edge on line {number}",
                needed="have one edge on each line, as 'parent -> child'",
            )
        parents.setdefault(names[0], ())
        if len(names) == 2:
            parent, child = names
            before = lines.setdefault((parent, child), number)
            if before != number:
                raise InvalidFile(
                    place,
                    given=f"has the edge of line {before} again on line {number}",
                    needed="have each edge once",
                )
            parents[child] = (*parents.get(child, ()), parent)
    if not parents:
        raise InvalidFile(place, given="has no edges", needed="have lines 'parent -> child'")
    return parents


def checked_structure(
    parents: Mapping[str, Sequence[str]], columns: Collection[str], field: str = "structure"
) -> Parents:
    """The parents of each of ``columns``; an error if others are named, or if there is a cycle.

    Names that are no columns are counted, not told: they may come from a file of protected rows.
    """
    named = {*parents, *(name for above in parents.values() for name in above)}
    if named != set(columns):
        parts = []
        if more := named - set(columns):
            parts.append(
                f"{len(more)} of its names {'is no column' if len(more) == 1 else 'are none'}"
            )
        if missing := sorted(set(columns) - named):
            parts.append(f"it does not name {_listed(missing)}")
        raise InvalidPrior(
            field,
            given=f"does not name the columns of the prior ({'; '.join(parts)})",
            needed="name each of them; one that depends on nothing has a line of its own",
            reason="names-differ",
        )
    complete = {column: tuple(parents.get(column, ())) for column in columns}
    if cycle := find_cycle(complete):
        raise InvalidPrior(
            field,
            given=f"has the cycle {f' {ARROW} '.join(cycle)}",
            needed="be free of cycles: turn or leave out one of these edges",
            reason="cycle",
        )
    return complete


def find_cycle(parents: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Entries along a cycle, each a parent of the next, the first again at the end; or none."""
    try:
        TopologicalSorter({entry: parents[entry] for entry in sorted(parents)}).prepare()
    except CycleError as error:
        return tuple(error.args[1])
    return ()


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:MAX_LISTED_NAMES]) + (", …" if len(names) > MAX_LISTED_NAMES else "")
