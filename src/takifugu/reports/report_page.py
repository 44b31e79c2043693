"""A privacy report as a page, for a data protection officer who never heard of Pufferfish."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from takifugu.reports.curve_figures import curves_figure
from takifugu.reports.html_page import (
    Cell,
    Definitions,
    Drawing,
    FactList,
    Listing,
    Notice,
    Page,
    PageTable,
    Paragraphs,
    Part,
    Section,
    Verbatim,
)
from takifugu.reports.plot_files import drawing
from takifugu.reports.prior_figures import prior_figures
from takifugu.reports.report_sentences import (
    GLOSSARY,
    counted,
    moment,
    prior_means,
    summary,
    unbroken,
)
from takifugu.reports.report_signature import LEDGER_MARK, ledger_mark
from takifugu.reports.report_values import (
    PrivacyReport,
    ReportedBudget,
    ReportedDataset,
    ReportedLedger,
    ReportedPrior,
    ReportedRelease,
)
from takifugu.reports.result_figure import ranking_numbers, result_figure
from takifugu.reports.spending_figure import spending_figure
from takifugu.visible import four_digits, visible

MAX_EXPOSED = 40  # entries, in the figure of an influence curve
MAX_ROWS = 300  # of a table in the report
MAX_PANELS, MAX_BARS, PANELS_ACROSS = 6, 20, 2  # of a figure in the report
MAX_FIGURE_INCHES = 12.5  # inches of two panels side by side: on paper they are two thirds as large
PUBLISHED = (
    "The tables and figures under “Releases” are results that were released, noise included: treat"
    " them as published. What this report says of the prior, the declaration and the ledger is part"
    " of the published policy. Nothing in it was read from a protected table for this report."
)


def report_page(report: PrivacyReport, *, title: str = "Privacy report", lead: str = "") -> Page:
    """The page; the same values give the same bytes. ``lead`` comes before everything else."""
    as_of = f"As of event {report.ledger.seq} of the ledger, written on {moment(report.ledger.at)}."
    names = ", ".join(dataset.name for dataset in report.datasets)
    about = f"About the dataset{'s' if len(report.datasets) > 1 else ''} {names}."
    if not report.datasets:
        about = "The project has no datasets yet."
    some = "" if report.whole else " The project has others, which this report leaves out."
    sections = [
        Section("Summary", *_summary(report)),
        *(_dataset(part, f"d{place}") for place, part in enumerate(report.datasets, 1)),
        _ledger(report.ledger),
        _versions(report),
        Section("Words used here", [Definitions(GLOSSARY)]),
    ]
    words = "\n\n".join(part for part in (lead, f"{about}{some} {as_of}") if part)
    version = report.software.get("takifugu", "")
    state = report.ledger
    return Page(
        title,
        words,
        sections,
        foot=f"Made by takifugu {version}. {as_of}",
        marks={LEDGER_MARK: ledger_mark(state.origin, state.seq, state.hash)},
    )


def _summary(report: PrivacyReport) -> tuple[list[Part], list[Section]]:
    """A few sentences for each dataset."""
    first: list[Part] = []
    if not report.ledger.sound:
        first.append(
            Notice(
                "The ledger did not verify: what this report says of budgets and releases may be"
                " wrong. See “The ledger”.",
                alarm=True,
            )
        )
    published = Notice(PUBLISHED)
    if len(report.datasets) == 1:
        (only,) = report.datasets
        return [*first, Listing(summary(only, report.ledger), numbered=True), published], []
    return [*first, published], [
        Section(dataset.name, [Listing(summary(dataset, report.ledger), numbered=True)])
        for dataset in report.datasets
    ]


def _dataset(dataset: ReportedDataset, mark: str) -> Section:
    parts: list[Part] = []
    if dataset.title:
        parts.append(Paragraphs(dataset.title))
    parts += [Notice(note) for note in dataset.notes]
    return Section(
        f"Dataset {dataset.name}",
        parts,
        [
            _columns(dataset),
            _guarantee(dataset),
            _priors(dataset, mark),
            _budget(dataset, mark),
            _releases(dataset, mark),
            _decisions(dataset),
        ],
    )


def _columns(dataset: ReportedDataset) -> Section:
    return Section(
        "What is protected, and what is public",
        [
            PageTable(
                ["column", "what it is", "values"],
                [(column.name, column.part, column.values) for column in dataset.columns],
                caption="The columns that exist for queries. All others are never read.",
            ),
            Paragraphs(
                f"{dataset.secrets} Taken as known to everyone: that a row exists and how many"
                f" there are, whose it is ({dataset.entity}), its place in the order, its public"
                " columns, and the lists of values above."
            ),
        ],
    )


def _guarantee(dataset: ReportedDataset) -> Section:
    if not dataset.guarantee:
        missing = (
            "There is no prior yet, so that nothing can be released and nothing is guaranteed."
        )
        return Section("The guarantee", [Paragraphs(missing)])
    related = f": {dataset.related}" if dataset.related else ""
    parts: list[Part] = [
        Paragraphs(
            "Published statistics always tell something. The guarantee limits how much they tell"
            f" about any single cell, also through others that are related to it{related}. It is"
            " stated for an adversary who already"
            " believes the prior below, sees everything that was published, and wants to know which"
            " of two values one protected cell holds. However they combine what was published, the"
            " odds between the two values change by a factor of at most e^ε.\n\n"
            "ε is a number above 0: the smaller, the less can be learned. A budget is the largest ε"
            " that all releases together may ever reach; a query that would exceed it is refused."
        )
    ]
    budget = dataset.budget
    if budget is not None:
        odds = {
            "from everything published so far": budget.spent_odds,
            "if the whole budget were spent": budget.full_odds,
        }
        listed = [
            f"{when[0].upper()}{when[1:]}: {unbroken(words)}."
            for when, words in odds.items()
            if words
        ]
        if listed:
            parts.append(Listing(listed))
    parts += [
        Paragraphs(
            "What it does not cover: it says nothing about an adversary with another prior, about"
            " columns that are not protected, or about what somebody knew before."
        ),
        Paragraphs("In the words that analysts see:", leads=True),
        Verbatim(dataset.guarantee),
    ]
    return Section("The guarantee", parts)


def _priors(dataset: ReportedDataset, mark: str) -> Section:
    if not dataset.priors:
        return Section("What an adversary may believe: the prior", [Paragraphs("None yet.")])
    parts: list[Part] = [
        Paragraphs(
            "A prior is what the guarantee assumes that an adversary may believe about the values"
            " before anything is released: above all, how strongly the rows of one person are"
            " related. The more strongly they are, the more one release can tell, and the less may"
            " be released."
        )
    ]
    several = len(dataset.priors) > 1
    if several:
        parts.append(Paragraphs("The guarantee holds against each of these priors."))
    sections = [
        Section(f"Prior {place}: {prior.words}", list(_prior(prior, f"{mark}-p{place}")))
        for place, prior in enumerate(dataset.priors, 1)
    ]
    if not several:
        parts.append(Paragraphs(f"Here it is {dataset.priors[0].words}."))
        parts += _prior(dataset.priors[0], f"{mark}-p1")
        sections = []
    if dataset.curve is not None and len(dataset.curve.exposed) > 1:
        last = f" The first {MAX_EXPOSED} are drawn." if len(dataset.curve.exposed) > 40 else ""
        figure = drawing(
            curves_figure({"the prior": dataset.curve}, most=MAX_EXPOSED),
            name=f"{mark}-curve",
            caption="The influence curve: if the b entries around a secret one are counted as fully"
            f" exposed, all others reveal at most a(b) about it.{last} The faster it falls, the"
            " sooner rows forget each other.",
            alt=_curve_alt(dataset),
        )
        if several:
            sections.append(Section("How far a secret reaches", [figure]))
        else:
            parts.append(figure)
    return Section("What an adversary may believe: the prior", parts, sections)


def _curve_alt(dataset: ReportedDataset) -> str:
    curve = dataset.curve
    if curve is None:
        return ""
    leak = curve.pooled()
    ends = [
        f"{four_digits(float(leak[k]), 'up')} with {int(curve.exposed[k])} exposed"
        for k in (0, len(leak) - 1)
    ]
    return f"The influence curve goes from {ends[0]} to {ends[1]} entries."


def _prior(prior: ReportedPrior, mark: str) -> Iterator[Part]:
    yield Paragraphs(prior_means(prior.prior))
    yield Paragraphs(" ".join(prior.origin))
    yield FactList({**prior.facts, "file": prior.file, "fingerprint": prior.prior.fingerprint})
    if prior.named:
        for place, shown in enumerate(prior_figures(prior.prior), 1):
            name = f"{mark}-{place}"
            yield drawing(shown.figure, name=name, caption=shown.caption, alt=shown.alt)


def _budget(dataset: ReportedDataset, mark: str) -> Section:
    parts: list[Part] = []
    if dataset.spending:
        last = dataset.spending[-1]
        releases = sum(event.released for event in dataset.spending)
        allowed = "no budget is set" if last.budget is None else f"the budget is {last.budget:g}"
        parts.append(
            drawing(
                spending_figure(dataset.spending),
                name=f"{mark}-budget",
                caption="What was spent after each event that released something or changed the"
                " budget, under the prior and the secrets of today; and the budget of the dataset.",
                alt=f"After {counted(releases, 'release')} ε ="
                f" {four_digits(last.spent, 'up')} is spent, and {allowed}.",
            )
        )
    if dataset.budgets:
        parts.append(
            PageTable(
                ["budget of", "ε allowed", "δ", "spent", "left"],
                [_budget_row(budget) for budget in dataset.budgets],
                caption="Spent is rounded up, left down. An analyst's budget counts beside that of"
                " the dataset.",
            )
        )
    if not parts:
        parts.append(Paragraphs("No budget is set, so that nothing can be released."))
    return Section("The budget over time", parts)


def _budget_row(budget: ReportedBudget) -> list[str | None]:
    return [
        "the dataset" if budget.analyst is None else f"analyst {budget.analyst}",
        None if budget.epsilon is None else four_digits(budget.epsilon, "down"),
        four_digits(budget.delta, "down"),
        None if budget.spent is None else four_digits(budget.spent, "up"),
        None if budget.left is None else four_digits(budget.left, "down"),
    ]


def _releases(dataset: ReportedDataset, mark: str) -> Section:
    if not dataset.releases:
        return Section("Releases", [Paragraphs("Nothing was released yet.")])
    many = counted(len(dataset.releases), "release")
    intro = Paragraphs(
        f"{many}, in the order of the ledger. A query that was answered before costs nothing when"
        " it is asked again: the stored answer is given, and it stands here once. Queries that were"
        " refused released nothing and leave no event."
    )
    parts = [
        release_section(release, place, f"{mark}-r{place}")
        for place, release in enumerate(dataset.releases, 1)
    ]
    return Section("Releases", [intro], parts)


def release_section(release: ReportedRelease, number: int, mark: str) -> Section:
    """The section of a release; ``mark`` begins the names of its figures."""
    whom = "no analyst was named" if release.analyst is None else f"to {release.analyst}"
    facts: dict[str, Cell] = {
        "released": f"{moment(release.at)}, {whom}",
        "rows": release.rows,
        "ε alone": None if release.alone is None else four_digits(release.alone, "up"),
        "ε on top": None if release.on_top is None else four_digits(release.on_top, "up"),
        "how it is protected": release.method,
        "predicted error": release.error,
        "drawn by": release.software,
        "event": f"{release.seq}, hash {release.hash}",
    }
    parts: list[Part] = [
        Paragraphs(release.question),
        FactList({name: value for name, value in facts.items() if value not in (None, "")}),
        *(Paragraphs(note) for note in release.notes),
    ]
    if release.table:
        figure = figure_of(release, mark)
        parts += [] if figure is None else [figure]
        parts.append(table_of(release))
    return Section(f"Release {number}: {release.title}", parts)


def figure_of(release: ReportedRelease, mark: str) -> Drawing | None:
    """Its numbers with their intervals; None for a ranking, whose table says it all."""
    numbers = _numbers(release)
    if release.ranked or numbers is None or not numbers:
        return None
    figure = result_figure(
        release.columns,
        [tuple(row) for row in release.table],
        by=tuple(release.by),
        title="",
        most_panels=MAX_PANELS,
        most_bars=MAX_BARS,
        across=PANELS_ACROSS,
        tallest=MAX_FIGURE_INCHES,
    )
    most = max(numbers, key=lambda row: row[-3])
    named = " ".join(map(str, most[:-3])) or "all rows"
    quantile = str(release.columns[-1]).startswith("high level")
    ends = f" (from {four_digits(most[-2])} to {four_digits(most[-1])})"
    if quantile or most[-2] is None:
        ends = ""
    return drawing(
        figure,
        name=mark,
        caption="What was published: points are the released numbers"
        + (
            ", with the levels that they lie between."
            if quantile
            else ", bars their 95 % intervals for the noise."
        ),
        alt=f"{len(numbers):,} released numbers; the largest is {four_digits(most[-3])}{ends}, for"
        f" {named}.",
    )


def _numbers(release: ReportedRelease) -> list[Sequence[Any]] | None:
    """The rows that have an estimate and both ends; None if the table is not of that form."""
    if len(release.columns) < 3 or not str(release.columns[-3]).startswith("estimate"):
        return None
    return [row for row in release.table if isinstance(row[-3], int | float)]


def table_of(release: ReportedRelease) -> PageTable:
    """The table that was published; a ranking has a row for each place."""
    numbers = 0 if _numbers(release) is None else 3  # what comes before them names the row
    caption = "The same as a table."
    if release.ranked:
        numbers = ranking_numbers(release.columns)
        caption = "The ranking, one line for each place."
        if str(release.columns[-1]).startswith("probability"):
            caption += " The probability, where it is known, is that of the place being right."
    rows = [_line(row, numbers) for row in release.table]
    if len(rows) > MAX_ROWS:
        caption += f" The first {MAX_ROWS} of {len(rows):,} lines."
    return PageTable(list(release.columns), rows[:MAX_ROWS], caption)


def _line(row: Sequence[Any], numbers: int) -> list[Cell]:
    """Keys as they are written, and not as numbers: 2012 is a year; then the numbers."""
    keys = len(row) - numbers
    return [*(None if key is None else str(key) for key in row[:keys]), *row[keys:]]


def _decisions(dataset: ReportedDataset) -> Section:
    if not dataset.decisions:
        return Section("Decisions of the owner", [Paragraphs("None is recorded.")])
    table = PageTable(
        ["event", "when (UTC)", "what"],
        [(str(event.seq), _short_time(event.at), event.words) for event in dataset.decisions],
        caption="Each is an event of the ledger, with the user name of whoever decided.",
    )
    return Section("Decisions of the owner", [table])


def _ledger(ledger: ReportedLedger) -> Section:
    seen = "none" if ledger.witness is None else f"event {ledger.witness}"
    facts = FactList(
        {
            "events": ledger.events,
            "last event": str(ledger.seq),
            "written": moment(ledger.at),
            "hash of the last event": ledger.hash,
            "seen by a witness": seen,
            "verification": "sound" if ledger.sound else "NOT sound",
        }
    )
    parts: list[Part] = [
        Paragraphs(
            "The ledger records every charge before anything protected is read. Each event carries"
            " a hash of itself and of all before it, so that no event can be changed, removed or"
            " inserted without a trace. For this report the whole chain was read, and all totals"
            " were computed again from the events."
        ),
        facts,
    ]
    if not ledger.sound:
        parts.append(Notice("A verification found:", alarm=True))
        parts.append(Listing([visible(problem) for problem in ledger.problems]))
    parts += [
        Paragraphs(
            "To verify it yourself, run this in the folder of the project. Keep the number and the"
            " hash of the last event: they also show whether an older copy of the ledger is put"
            " back later.",
            leads=True,
        ),
        Verbatim(f"takifugu ledger verify --anchor {ledger.seq}:{ledger.hash}"),
    ]
    return Section("The ledger", parts)


def _versions(report: PrivacyReport) -> Section:
    return Section(
        "Software and policy",
        [
            Paragraphs("Noise is drawn by OpenDP, from a cryptographic source, without a seed."),
            FactList({**report.software, "fingerprint of the policy file": report.policy}),
        ],
    )


def _short_time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}"
