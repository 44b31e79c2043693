"""One page with all tables and figures of a run, and what differs from the paper and why."""

import base64
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape

from papers.composition.differences import DIFFERENCES
from papers.composition.formats import html
from papers.composition.results import About, Results
from papers.composition.tables import ORIGIN, tables

TITLE = "Composition for Pufferfish Privacy, run again"
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 78rem; margin: 2rem auto;
  padding: 0 1rem; }
h1, h2, h3 { line-height: 1.2; }
h2 { margin-top: 3rem; border-bottom: 1px solid #ddd; }
figure { margin: 1.5rem 0; }
figure img { max-width: 100%; }
figcaption { color: #555; }
.wide { overflow-x: auto; margin: 1.5rem 0; }
table.results { border-collapse: collapse; font-size: .82rem; font-variant-numeric: tabular-nums; }
table.results caption { text-align: left; padding-bottom: .4rem; font-size: .9rem; }
table.results td, table.results th { padding: .15rem .5rem; text-align: right;
  white-space: nowrap; }
table.results thead th { text-align: center; border-bottom: 1px solid #999; }
table.results tr.block th { text-align: left; padding-top: .6rem; font-style: italic; }
table.results small { color: #777; }
table.results span { color: #4c72b0; }
.origin { padding: .5rem .8rem; background: #f4f4f4; border-left: 4px solid #8c8c8c; }
.origin.simulated { background: #fff4e5; border-color: #dd8452; }
.origin.paper { background: #eef4ee; border-color: #55a868; }
.yes { color: #2a7d3f; font-weight: 600; }
.no { color: #b3261e; font-weight: 600; }
dt { font-weight: 600; margin-top: .8rem; }
"""


@dataclass(frozen=True)
class Shown:
    """A figure on the page: the dataset it belongs to, "" for none; what it shows; its SVG."""

    data: str
    caption: str
    svg: bytes


@dataclass(frozen=True)
class Claim:
    """A statement about the results of one dataset: whether it holds, and in how many cells."""

    data: str
    claim: str
    holds: bool
    detail: str


def page(
    results: Results,
    figures: Iterable[Shown],
    claims: Iterable[Claim],
    notices: Iterable[str] = (),
) -> str:
    """The whole page, with its figures in it: one file that can be sent around."""
    drawn, said = list(figures), list(claims)
    body = [f"<h1>{escape(TITLE)}</h1>", *_introduction(results)]
    body += [f'<p class="origin">{escape(notice)}</p>' for notice in notices]
    body += ["<h2>What differs from the paper</h2>", *_differences()]
    keys = {one.key for one in results.about}
    general = [shown for shown in drawn if shown.data not in keys]
    if general:
        body += ["<h2>The paper's own figures</h2>", *map(_figure, general)]
    for one in results.about:
        body += _section(
            one,
            results,
            [shown for shown in drawn if shown.data == one.key],
            [claim for claim in said if claim.data == one.key],
        )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(TITLE)}</title><style>{STYLE}</style></head><body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _introduction(results: Results) -> Iterator[str]:
    yield (
        "<p>The three most frequent labels of every group, released under Pufferfish privacy"
        " against an adversary who knows the Markov chain (Bai, He, Gu, Kifer, Maeng).</p>"
    )
    if results.about:
        listed = "".join(
            f'<li><a href="#{escape(one.key)}">{escape(one.title)}</a> ({escape(one.origin)})</li>'
            for one in results.about
        )
        yield f"<ul>{listed}</ul>"


def _differences() -> Iterator[str]:
    listed = "".join(
        f"<dt>{escape(one.what)}</dt><dd>{escape(one.why)}</dd>" for one in DIFFERENCES
    )
    yield f"<dl>{listed}</dl>"


def _section(
    one: About, results: Results, figures: list[Shown], claims: list[Claim]
) -> Iterator[str]:
    yield f'<h2 id="{escape(one.key)}">{escape(one.title)}</h2>'
    yield f'<p class="origin {escape(one.origin)}">{escape(ORIGIN[one.origin])}</p>'
    facts = {"groups": f"{one.groups} ({one.group_by})", "labels": one.labels, **one.facts}
    yield f"<p>{escape('; '.join(f'{name}: {value}' for name, value in facts.items()))}.</p>"
    if one.notes:
        yield "<ul>" + "".join(f"<li>{escape(note)}</li>" for note in one.notes) + "</ul>"
    if claims:
        yield "<h3>What the results show</h3><ul>"
        for claim in claims:
            mark = '<span class="yes">yes</span>' if claim.holds else '<span class="no">no</span>'
            yield f"<li>{mark} {escape(claim.claim)}: {escape(claim.detail)}</li>"
        yield "</ul>"
    yield from map(_figure, figures)
    for table in tables(one, results.of(one.key)):
        yield f'<div class="wide">{html(table)}</div>'


def _figure(shown: Shown) -> str:
    content = base64.b64encode(shown.svg).decode()
    return (
        f'<figure><img alt="{escape(shown.caption)}" src="data:image/svg+xml;base64,{content}">'
        f"<figcaption>{escape(shown.caption)}</figcaption></figure>"
    )
