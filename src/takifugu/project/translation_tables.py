"""Translation tables kept beside a project, because some translations take minutes.

A table that is read back is verified. It must be for these priors, secrets and uncertainty,
made by this version and unchanged since (its own fingerprint); and because whoever changes a file
can write a new fingerprint too, the translation itself is asked about every allowance that a budget
rests on. A table that it does not confirm is computed anew. (The price that is told for a release
is held against the translation as well: see `PolicySession`.)
"""

from collections.abc import Callable, Iterable
from fractions import Fraction
from math import inf
from pathlib import Path

from takifugu import __version__
from takifugu.errors import InvalidFile, TakifuguError, UnsoundRequest
from takifugu.translation.accounting.translation_table import TranslationTable, tabulate
from takifugu.translation.translation import Translation

FOLDER = ".takifugu"  # of a project, for what can be made again
MANY = 20  # states from which on a translation takes seconds
LEAST = 0.05  # the smallest Pufferfish loss that a table covers
MOST = 16  # beyond this budget nothing is tabulated
SHARE = 0.04  # by how much neighbouring points differ: what is looked up is less by at most that

Progress = Callable[[str], None]


def reach(budgets: Iterable[Fraction]) -> int | None:
    """The loss that a table must reach for these budgets: a power of 2; None if that is too far.

    So a table is made anew only when a budget doubles, and it then keeps its points.
    """
    largest = max((*budgets, Fraction(1)))
    return next((2**k for k in range(MOST.bit_length()) if largest <= 2**k), None)


def table_path(folder: Path, name: str, translation: Translation, most: int) -> Path:
    """Where the table of a dataset is kept: one for each translation, reach and version."""
    mark = f"{translation.fingerprint[:16]}.{most}.{__version__}"
    return folder / FOLDER / f"{name}.{mark}.table.json"


def pays(translation: Translation) -> bool:
    """Whether to look a translation up unless the policy says: with many states it is slow.

    The table takes as long as some dozens of translations. A coarse rule, but the same every
    time: what is looked up is a little less than what is computed, so the same query must not
    be now one and now the other.
    """
    return max(prior.breadth for prior in translation.priors.values()) >= MANY


def project_table(
    path: Path,
    translation: Translation,
    budgets: Iterable[Fraction],
    *,
    most: int,
    share: float = SHARE,
    progress: Progress | None = None,
) -> TranslationTable | None:
    """The table at ``path`` if it can be confirmed for ``budgets``, else one that is made now.

    None if there is nothing to tabulate: then the translation is asked each time.
    """
    say = progress or _silent
    try:
        known = TranslationTable.load(path, translation)
        say("confirming the table")
        if all(_confirmed(known, translation, budget) for budget in budgets):
            return known
    except InvalidFile:
        pass  # none there, or not one to be used
    try:
        made = tabulate(
            translation,
            losses=(LEAST, float(most)),
            share=share,
            progress=lambda k, n: say(f"tabulating, {k} of about {n}"),
        )
    except UnsoundRequest:
        return None
    _keep(made, path)
    return made


def _confirmed(table: TranslationTable, translation: Translation, budget: Fraction) -> bool:
    """Whether the translation itself finds the allowance of the table within the budget."""
    if budget <= 0:
        return True
    try:
        allowed = float(table.to_dp(float(budget)))
    except UnsoundRequest:  # below the table: it allows nothing
        return True
    loss = float(translation.to_pufferfish(allowed))
    return loss < inf and Fraction(loss) <= budget


def _keep(table: TranslationTable, path: Path) -> None:
    """Write the table for the next time; a folder that cannot be written to is no harm."""
    try:
        path.parent.mkdir(exist_ok=True)
        table.save(path)
    except (OSError, TakifuguError):
        return


def _silent(_: str) -> None:
    return
