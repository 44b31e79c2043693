"""What is cached beside a project: translation tables, and the terms that the owner accepted.

Some translations take minutes. A cached table is verified when it is loaded: it must be for these
priors, secrets and uncertainty, made by this version and unchanged since. Beside it lies a mark of
its content under the key of the ledger (HMAC), made when the table is computed here: whoever does
not have the key cannot write a mark that fits another table. The key is its owner's alone, as the
ledger is; whoever has it can write a ledger that shows nothing spent, and needs no table.

A table without a mark that fits (from an earlier version, copied from another project, edited) is
not trusted: the translation itself confirms every allowance that a budget rests on, and the price
of each release (`Session`). One that it does not confirm is computed anew. That takes about
a second longer, most of it to load what was compiled.

The ledger holds the fingerprints of the accepted terms (`ledger.events.decisions`). To compute
what is spent under them after the policy has changed, the priors and secrets themselves are cached,
under those fingerprints; what is read back is used only if it has them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from hmac import compare_digest
from math import inf
from pathlib import Path
from typing import Any

from takifugu import __version__
from takifugu._core.atomic import write_whole
from takifugu._core.exact import exactly
from takifugu.binding.prior_reading import PriorTranslation, row_translation, terms_of
from takifugu.costs.cost import Cost
from takifugu.errors import InvalidFile, TakifuguError, UnsoundRequest
from takifugu.ledger import Ledger, Terms
from takifugu.priors import Secrets, from_document, read_prior
from takifugu.priors.documents import read_json, write_json
from takifugu.priors.networks import NetworkPrior
from takifugu.translation.accounting.tables import TranslationTable, tabulate
from takifugu.translation.rows.row_translation import RowTranslation
from takifugu.translation.translation import Translation

CACHE_FOLDER = ".takifugu"  # of a project, for what can be made again
SLOW_STATES = 20  # states from which on a translation takes seconds
LEAST_TABLED_LOSS = 0.05  # the smallest Pufferfish loss that a table covers
LARGEST_TABLED_BUDGET = 16  # beyond this budget nothing is tabulated
ALLOWANCES_FORM = "takifugu-allowances-1"
MAX_ALLOWANCES = 1000  # in a file; the oldest go first
TABLE_POINT_SHARE = (
    0.04  # of neighbouring points: an allowance from a table is less by at most that
)

Progress = Callable[[str], None]


def reach(budgets: Iterable[Fraction]) -> int | None:
    """The loss that a table must reach for these budgets: a power of 2; None if that is too far.

    So a table is made anew only when a budget doubles, and it then keeps its points.
    """
    largest = max((*budgets, Fraction(1)))
    return next((2**k for k in range(LARGEST_TABLED_BUDGET.bit_length()) if largest <= 2**k), None)


def budgets_of(ledger: Ledger, name: str) -> frozenset[Fraction]:
    """Every ε that somebody may spend on a dataset."""
    return frozenset(
        position.epsilon for position in ledger.positions(name) if position.epsilon is not None
    )


def table_path(folder: Path, name: str, translation: Translation, most: int) -> Path:
    """Where the table of a dataset is kept: one for each translation, reach and version."""
    mark = f"{translation.fingerprint[:16]}.{most}.{__version__}"
    return folder / CACHE_FOLDER / f"{name}.{mark}.table.json"


def pays(translation: Translation) -> bool:
    """Whether a translation is cached as a table by default: with many states it is slow.

    The table takes as long as some dozens of translations, so that of a network, which takes a
    fraction of a second, would cost more than it saves. A coarse rule, but the same every time: an
    allowance from a table is a little less than the computed one, so the same query must not get
    now one and now the other.
    """
    chains = [p for p in translation.priors.values() if not isinstance(p, NetworkPrior)]
    return max((prior.breadth for prior in chains), default=0) >= SLOW_STATES


@dataclass(frozen=True)
class CachedTable:
    """A table of a project.

    Attributes:
        table: The table.
        own: Whether it was computed here: now, or before, by its mark. Otherwise what is read from
            it must be confirmed by the translation.
    """

    table: TranslationTable
    own: bool


def project_table(
    path: Path,
    translation: Translation,
    budgets: Iterable[Fraction],
    *,
    most: int,
    mark: Callable[..., str],
    progress: Progress | None = None,
) -> CachedTable | None:
    """The table at ``path`` if it is one of ours or can be confirmed, else one that is made now.

    None if there is nothing to tabulate: then the translation is computed each time.

    Args:
        path: Where it is kept.
        translation: What it is a table of.
        budgets: What must be confirmed, if it is not known to be ours.
        most: The largest loss that it reaches.
        mark: The keyed hash of the ledger (`Ledger.mark`).
        progress: Called with what is being done.
    """
    say = progress or _silent
    try:
        known = TranslationTable.load(path, translation)
        if _is_ours(known, path, mark):
            return CachedTable(known, own=True)
        say("confirming the table")
        if all(_confirmed(known, translation, budget) for budget in budgets):
            return CachedTable(known, own=False)
    except InvalidFile:
        pass  # none there, or not one to be used
    try:
        made = tabulate(
            translation,
            losses=(LEAST_TABLED_LOSS, float(most)),
            share=TABLE_POINT_SHARE,
            progress=lambda k, n: say(f"tabulating, {k} of about {n}"),
        )
    except UnsoundRequest:
        return None
    keep_table(made, path, mark)
    return CachedTable(made, own=True)


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


def keep_table(table: TranslationTable, path: Path, mark: Callable[..., str]) -> None:
    """Write a table that was computed here; a folder that cannot be written to does no harm."""
    with suppress(OSError, TakifuguError):
        path.parent.mkdir(exist_ok=True)
        table.save(path)
        write_whole(_mark_beside(path), f"{_mark_of(table, mark)}\n")


def _is_ours(table: TranslationTable, path: Path, mark: Callable[..., str]) -> bool:
    """Whether the mark beside a table fits its content: then it was computed with this ledger."""
    with suppress(OSError, ValueError, TakifuguError):
        stored_mark = _mark_beside(path).read_text(encoding="ascii").strip()
        return compare_digest(stored_mark, _mark_of(table, mark))
    return False


def _mark_of(table: TranslationTable, mark: Callable[..., str]) -> str:
    return mark("computed table", __version__, table.fingerprint)  # which pins what it is about


def _mark_beside(path: Path) -> Path:
    return path.with_name(f"{path.name.removesuffix('.json')}.mark")


def _silent(_: str) -> None:
    return


class KeptAllowances:
    """The allowances by value of one translation: one search for each query and ε.

    To find how much of a cost a Pufferfish loss allows takes several translations; to confirm it
    takes one. So the factor that was found is cached, by the shape of the query and the loss, for
    one translation and version. It is never trusted: the session translates it again, and uses it
    only if its loss is within what was asked for. A file that was changed can make a release
    noisier, or dearer to compute, and nothing else.
    """

    def __init__(self, folder: Path, name: str, translation: PriorTranslation) -> None:
        mark = f"{translation.fingerprint[:16]}.{__version__}"
        self._path = folder / CACHE_FOLDER / f"{name}.{mark}.allowances.json"
        self._mark = translation.fingerprint

    def find(self, unit: Cost, pufferfish: float) -> Fraction | None:
        """The factor of ``unit`` that was found for a Pufferfish loss; None if there is none."""
        return self._read().get((unit, pufferfish))

    def keep(self, unit: Cost, pufferfish: float, factor: Fraction) -> None:
        """Write a factor for the next time; a folder that cannot be written to does no harm."""
        factors = self._read()
        factors.pop((unit, pufferfish), None)
        factors[unit, pufferfish] = factor
        latest = list(factors.items())[-MAX_ALLOWANCES:]
        document = {
            "form": ALLOWANCES_FORM,
            "translation": self._mark,
            "allowed": [[cost.document(), loss.hex(), str(f)] for (cost, loss), f in latest],
        }
        with suppress(OSError, TakifuguError):
            self._path.parent.mkdir(exist_ok=True)
            write_json(document, self._path)

    def _read(self) -> dict[tuple[Cost, float], Fraction]:
        """What the file holds; nothing if it is not there, of another translation, or damaged."""
        factors: dict[tuple[Cost, float], Fraction] = {}
        with suppress(TakifuguError, AttributeError, KeyError, TypeError, ValueError):
            document: Any = read_json(self._path, needed="be cached allowances")
            if document["form"] == ALLOWANCES_FORM and document["translation"] == self._mark:
                for cost, loss, factor in document["allowed"]:
                    allowed = exactly(factor, "factor")
                    if allowed > 0:
                        factors[Cost.of_document(cost), float.fromhex(loss)] = allowed
        return factors


TERMS_FORM = "takifugu-terms-1"


def _place(folder: Path, terms: Terms) -> Path:
    return folder / CACHE_FOLDER / f"{terms.prior[:24]}.{terms.secrets[:24]}.terms.json"


def keep_terms(folder: Path, translation: PriorTranslation) -> None:
    """Cache priors and secrets for when they are replaced; a failure does no harm."""
    path = _place(folder, terms_of(translation))
    if path.exists():
        return
    secrets = translation.secrets
    with suppress(OSError, TakifuguError, AttributeError, TypeError, ValueError):
        document: dict[str, Any] = {
            "form": TERMS_FORM,
            "priors": {key: prior.to_document() for key, prior in translation.priors.items()},
            "uncertainty": translation.uncertainty,
        }
        if isinstance(translation, RowTranslation):
            from takifugu.translation.rows.household import Household

            document["over"] = translation.over
            if isinstance(translation, Household):
                document["grouping"] = list(translation.grouping)
        if isinstance(secrets, Secrets):
            document |= _secrets_document(secrets)
        else:
            document["columns"] = {
                c: _secrets_document(column_secrets) for c, column_secrets in secrets.items()
            }
        path.parent.mkdir(exist_ok=True)
        write_json(document, path)


def _secrets_document(secrets: Secrets) -> dict[str, Any]:
    pairs = secrets.pairs
    document: dict[str, Any] = {
        "entries": None if secrets.entries is None else list(secrets.entries),
        "pairs": None if pairs is None else [[list(a), list(b)] for a, b in pairs],
    }
    return document if secrets.within is None else document | {"within": str(secrets.within)}


def _secrets_of(document: Mapping[str, Any]) -> Secrets:
    entries, pairs = document["entries"], document["pairs"]
    return Secrets(
        entries=None if entries is None else tuple(entries),
        pairs=None if pairs is None else tuple((tuple(a), tuple(b)) for a, b in pairs),
        within=document.get("within"),
    )


def kept_terms(
    folder: Path, name: str, terms: Terms, like: PriorTranslation
) -> PriorTranslation | None:
    """The translation under ``terms``, if its priors are cached; None if they are not."""
    for made in _candidates(folder, name, terms, like):
        if terms_of(made) == terms:
            return made
    return None


def _candidates(
    folder: Path, name: str, terms: Terms, like: PriorTranslation
) -> Iterator[PriorTranslation]:
    yield like
    with suppress(TakifuguError, AttributeError, KeyError, TypeError, ValueError):
        document = read_json(_place(folder, terms), needed="be kept terms")
        priors = {key: from_document(prior) for key, prior in document["priors"].items()}
        if "columns" in document:
            secrets = {column: _secrets_of(one) for column, one in document["columns"].items()}
            household, member = document.get("grouping", (None, None))
            yield row_translation(
                document["over"],
                priors,
                secrets,
                document["uncertainty"],
                grouping=(household, member),
            )
        else:
            yield Translation(priors, _secrets_of(document), uncertainty=document["uncertainty"])
    if not isinstance(like, Translation):
        return
    for file in sorted(folder.glob(f"{name}.*.prior.json")):  # one that was fitted before
        with suppress(TakifuguError, ValueError):
            yield Translation(
                {"prior": read_prior(file)}, like.secrets, uncertainty=like.uncertainty
            )
