"""The page of a demonstration, and the same facts as JSON. Nothing is computed here."""

import json
from fractions import Fraction
from typing import Any

from takifugu import __version__
from takifugu.cli.demo_story import BUDGET, LARGEST, SPLIT, Story
from takifugu.reports.budget_figures import allowance_figure, odometer_figure
from takifugu.reports.curve_figures import curves_figure
from takifugu.reports.html_figures import drawing
from takifugu.reports.html_page import Facts, Page, Part, Quoted, Section, Table, Words
from takifugu.reports.release_figures import estimates_figure, ranking_table
from takifugu.session import Result

FURTHEST = 40  # entries exposed, in the figure of the curve
LABELS = 20  # in the figure of the shares


def page(story: Story) -> Page:
    """Everything that was made, asked and answered."""
    return Page(
        title="Top places of 77 countries, under Pufferfish privacy",
        lead=(
            f"A demonstration on a made-up world: {story.checked.rows:,} check-ins by"
            f" {story.checked.entities:,} users, drawn from a Markov model with seed {story.seed}."
            " Nobody is behind these rows, and so this page may show exact numbers beside"
            " released ones. Of real data it would show the released ones only.\n\n"
            "It is the owner's copy: it names the fingerprint of the data."
        ),
        sections=[
            _protected(story),
            _belief(story),
            _translation(story),
            _top(story),
            _shares(story),
            _refused(story),
            _budget(story),
            _fingerprints(story),
        ],
        foot=f"takifugu {__version__}, {story.began:%Y-%m-%d %H:%M} UTC.",
    )


def _protected(story: Story) -> Section:
    checked = story.checked
    return Section(
        "What is protected, and what is not",
        [
            Quoted(story.guarantee),
            Facts(
                {
                    "rows": checked.rows,
                    "users": checked.entities,
                    "rows of the busiest user": checked.longest,
                    "labels": checked.keys["place"],
                    "countries": checked.keys["country"],
                    "from": str(checked.first),
                    "to": str(checked.last),
                }
            ),
        ],
    )


def _belief(story: Story) -> Section:
    figure = curves_figure({"the fitted chain": story.curve}, epsilon=float(BUDGET), most=FURTHEST)
    return Section(
        "What an adversary may believe",
        [
            Words(
                f"A Markov chain of {len(story.fitted.chain.states)} states, fitted to"
                f" {int(story.fitted.counts.counts.sum()):,} moves of the first {SPLIT} days."
            ),
            Words(story.fitted.statement),
            drawing(
                figure,
                name="curve",
                caption=(
                    "The influence curve: if the b rows around a secret one are counted as fully"
                    " exposed, all others tell at most a(b) about it. The dashed line touches it"
                    f" where a budget of {BUDGET} allows most per row."
                ),
                alt="The influence curve of the fitted chain falls as more rows are exposed.",
            ),
        ],
    )


def _translation(story: Story) -> Section:
    found = story.translated
    table = found.table
    group = f"group: all {found.longest:,} rows at once"
    figure = allowance_figure(
        table.epsilon,
        {"transport": table.loss, "curve (the paper)": found.curve, group: found.group},
        budget=float(BUDGET),
    )
    columns = ["DP ε per row", "by transport", "by the curve", "by the group"]
    lists = (table.epsilon, table.loss, found.curve, found.group)
    rows = list(zip(*(values.tolist() for values in lists), strict=True))
    return Section(
        "What a loss per row comes to",
        [
            Words(
                "Mechanisms are ordinary differentially private ones. Their losses add up row by"
                " row, and the sum is translated once into what somebody with that belief learns."
                " All three translations are upper bounds; the least is used."
            ),
            drawing(
                figure,
                name="translation",
                caption=(
                    "Pufferfish ε of a DP ε on every row, by optimal transport, by the influence"
                    " curve, and by counting all rows of the busiest user at once."
                ),
                alt="The transport bound is lowest, then the curve; the group bound is far above.",
            ),
            Table(columns, rows, caption="Pufferfish ε, rounded up."),
            Facts(
                {
                    "at the last of these, by transport, at most": float(table.loss[-1]),
                    "and some mechanism leaks": found.leak,
                }
            ),
        ],
    )


def _top(story: Story) -> Section:
    first, second, third = story.right
    return Section(
        "First query: the top-3 places of every country",
        [
            _price(story.top),
            Words(f"How: {story.plans[0].reason}"),
            Words(
                f"Because the world is made up we may look: of {story.countries} countries"
                f" {first} first, {second} second and {third} third places are right. Small"
                " countries have few rows, and their ranking is mostly noise."
            ),
            ranking_table(
                story.top.columns,
                story.top.rows,
                caption="Released, the largest country first.",
            ),
        ],
    )


def _shares(story: Story) -> Section:
    every = [
        (str(label), low, middle, high, exact)
        for (label, middle, low, high), exact in zip(
            story.shares.rows, story.exact_shares, strict=True
        )
    ]
    best = sorted(every, key=lambda row: -row[2])[:LABELS]
    labels, lows, middles, highs, exact = zip(*best, strict=True)
    figure = estimates_figure(
        labels, middles, lows, highs, exact=exact, axis=f"share of the rows of {LARGEST}"
    )
    return Section(
        f"Second query: where people of {LARGEST} go",
        [
            _price(story.shares),
            Words(f"How: {story.plans[1].reason}"),
            drawing(
                figure,
                name="shares",
                caption=(
                    f"The {len(best)} largest released shares of {len(every)}, with their 95 %"
                    " intervals for the noise, and the exact shares of this made-up world."
                ),
                alt="Released shares with intervals; most intervals hold the exact share.",
            ),
            Table(
                ["place", "share", "from", "to", "exact"],
                [(label, middle, low, high, true) for label, low, middle, high, true in best],
                caption="The same as numbers. A share below 0 is noise; it is released as drawn.",
            ),
        ],
    )


def _refused(story: Story) -> Section:
    parts: list[Part] = [
        Words("The third query asked for every count of every country."),
        Quoted(str(story.refused or "It was answered."), alarm=True),
        Words(
            "The first query asked again "
            + ("gave the same answer, for free." if story.again.free else "was charged again.")
        ),
    ]
    return Section(f"Third query: {'refused' if story.refused else 'answered'}", parts)


def _budget(story: Story) -> Section:
    answered = len(story.readings)
    asked = ["top-3", f"shares in {LARGEST}", "all counts"]
    figure = odometer_figure(
        asked[:answered],
        [reading.epsilon for reading in story.readings],
        asked[answered:],
        budget=float(BUDGET),
    )
    events = [
        (event.seq, f"{event.at:%H:%M:%S}", event.kind, _loss(event.body), f"{event.hash[:24]}…")
        for event in story.events
    ]
    (position,) = story.positions
    return Section(
        "The budget over time",
        [
            drawing(
                figure,
                name="odometer",
                caption="The Pufferfish ε of everything released so far, after each query.",
                alt="What was spent rises with each answer and stays below the budget.",
            ),
            Facts(
                {
                    "budget": float(BUDGET),
                    "spent": story.spent,
                    "the worst row has lost": ", ".join(
                        f"DP ε = {float(total.epsilon):.6g}" for total in position.worst
                    ),
                    "ledger": f"{story.report.events} events, "
                    + ("sound" if story.report.sound else "NOT sound"),
                    "head": f"{story.report.head.seq}:{story.report.head.hash}",
                }
            ),
            Table(
                ["", "at (UTC)", "event", "DP ε per row", "hash"],
                events,
                caption="The ledger. A hash covers its event and all before it.",
            ),
        ],
    )


def _fingerprints(story: Story) -> Section:
    charge = story.plans[0].charge
    return Section(
        "Fingerprints",
        [
            Words(
                "SHA-256 of what the guarantee is about. Every charge in the ledger names what its"
                " cells are, the prior, the secrets and the translation it was made under; and the"
                " data, by a hash that is keyed and not shown."
            ),
            Facts(
                {
                    "declaration": story.declaration.fingerprint,
                    "cells": charge.cells.fingerprint,
                    "prior": charge.prior,
                    "secrets": charge.secrets,
                    "translation": charge.translation,
                }
            ),
        ],
    )


def _price(result: Result) -> Facts:
    cost = result.cost
    return Facts(
        {
            "Pufferfish ε alone": cost.alone,
            "on top of what was spent before": cost.marginal,
            "left after it": cost.left,
            "DP ε per row": float(cost.per_entry),
        }
    )


def _loss(body: Any) -> str:
    loss = body.get("loss", {}).get("epsilon")
    return "" if loss is None else f"{float(Fraction(loss)):.6g}"


# --- JSON ---


def facts(story: Story) -> dict[str, Any]:
    """What `takifugu demo --json` prints, but for the names of the files."""
    table, fitted = story.translated.table, story.fitted
    refused = story.refused
    return {
        "seed": story.seed,
        "world": {
            "rows": story.checked.rows,
            "users": story.checked.entities,
            "longest": story.checked.longest,
            "first": str(story.checked.first),
            "last": str(story.checked.last),
        },
        "prior": {
            "states": len(fitted.chain.states),
            "moves": int(fitted.counts.counts.sum()),
            "statement": fitted.statement,
        },
        "translation": {
            "per_entry": table.epsilon.tolist(),
            "exact": table.loss.tolist(),
            "curve": story.translated.curve.tolist(),
            "group": story.translated.group.tolist(),
            "leak": story.translated.leak,
        },
        "budget": BUDGET,
        "releases": [json.loads(result.to_json()) for result in (story.top, story.shares)],
        "right": list(story.right),
        "again_free": story.again.free,
        "refused": None
        if refused is None
        else {"message": str(refused), "alone": refused.alone, "most": str(refused.most)},
        "spent": story.spent,
        "head": vars(story.report.head),
        "sound": story.report.sound,
        "seconds": dict(story.seconds),
    }
