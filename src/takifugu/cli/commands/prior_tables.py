"""The numbers of a prior, as `takifugu prior show` prints them: all, or the largest."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from takifugu.visible import four_digits, visible

if TYPE_CHECKING:
    from takifugu.priors import Prior

WHOLE = 10  # states of a matrix that is shown whole
LISTED = 10  # moves, states, edges or values that are listed


def tables_of(prior: "Prior") -> Iterator[str]:
    """Lines with the matrix of a chain, the edges of a network or the means of a process."""
    from takifugu.priors import (
        BayesianNetwork,
        Gaussian,
        IntervalMarkovChain,
        MarkovChain,
        MarkovRandomField,
    )
    from takifugu.priors.prior import state_text

    if isinstance(prior, MarkovChain) and prior.homogeneous:
        yield from _chain([state_text(state) for state in prior.states], prior.kernel())
    elif isinstance(prior, IntervalMarkovChain):
        names = [state_text(state) for state in prior.states]
        if len(names) <= WHOLE:
            cells = [
                [f"{four_digits(low)}–{four_digits(high)}" for low, high in zip(a, b, strict=True)]
                for a, b in zip(prior.lower.tolist(), prior.upper.tolist(), strict=True)
            ]
            yield "each step, from the row to the column, between"
            yield from _table(names, cells)
    elif isinstance(prior, BayesianNetwork):
        edges = [
            (above, entry)
            for entry, parents in zip(prior.entries, prior.parents, strict=True)
            for above in parents
        ]
        yield from _edges(edges, " -> ", len(prior.entries))
    elif isinstance(prior, MarkovRandomField):
        yield from _edges(prior.edges, " -- ", len(prior.entries))
    elif isinstance(prior, Gaussian):
        yield from _means(prior)


def _chain(names: Sequence[str], kernel: Any) -> Iterator[str]:
    if len(names) <= WHOLE:
        yield "each step, from the row to the column"
        yield from _table(names, [[four_digits(p) for p in row] for row in kernel.tolist()])
        return
    stays = sorted(((float(kernel[k, k]), name) for k, name in enumerate(names)), reverse=True)
    yield f"stays, the {LISTED} most likely of {len(names):,}"
    for p, name in stays[:LISTED]:
        yield f"  {_shown(name)}  {four_digits(p)}"
    moves = sorted(
        (
            (float(kernel[x, y]), before, after)
            for x, before in enumerate(names)
            for y, after in enumerate(names)
            if x != y
        ),
        key=lambda move: (-move[0], move[1], move[2]),
    )
    yield f"moves, the {LISTED} most likely of {len(moves):,}"
    for p, before, after in moves[:LISTED]:
        yield f"  {_shown(before)} -> {_shown(after)}  {four_digits(p)}"


def _table(names: Sequence[str], cells: Sequence[Sequence[str]]) -> Iterator[str]:
    shown = [_shown(name) for name in names]
    first = max(map(len, shown))
    widths = [max(len(name), *(len(row[k]) for row in cells)) for k, name in enumerate(shown)]
    head = (name.rjust(width) for name, width in zip(shown, widths, strict=True))
    yield f"  {'':<{first}}  {'  '.join(head)}"
    for name, row in zip(shown, cells, strict=True):
        line = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        yield f"  {name:<{first}}  {'  '.join(line)}"


def _edges(edges: Sequence[tuple[Any, Any]], arrow: str, nodes: int) -> Iterator[str]:
    few = "" if len(edges) <= LISTED else f", the first {LISTED}"
    yield f"{len(edges):,} edges between {nodes:,} entries{few}"
    for one, other in edges[:LISTED]:
        yield f"  {_shown(str(one))}{arrow}{_shown(str(other))}"


def _means(prior: Any) -> Iterator[str]:
    means = prior.mean
    if getattr(means, "ndim", 0) == 0:
        return
    numbers = [float(value) for value in means]
    low, high = four_digits(min(numbers)), four_digits(max(numbers))
    yield f"means of {len(numbers):,} entries, from {low} to {high}"


def _shown(name: str) -> str:
    text = visible(name)
    return text if len(text) <= 24 else f"{text[:23]}…"
