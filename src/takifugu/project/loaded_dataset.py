"""A dataset of a project with the contents of its files, each read once."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from takifugu.binding.entries import Entries
from takifugu.binding.prior_reading import (
    PriorTranslation,
    SecretsOption,
    columns_of,
    fitted_labels,
    protected_column,
    refuse_misfit,
    translation_of,
)
from takifugu.binding.protected_values import Values, values_of
from takifugu.declarations import Amount, Category, Declaration, InvalidQuery
from takifugu.errors import InvalidPrior
from takifugu.ledger import Cells, Ledger
from takifugu.priors import FittedRows, Secrets, read_prior
from takifugu.priors.adversaries import against
from takifugu.priors.gaussian import Gaussian
from takifugu.priors.prior import Prior, SequencePrior
from takifugu.project.owner_changes import refuse_same_files
from takifugu.project.policy import DatasetPolicy, InvalidProject, PriorPolicy
from takifugu.project.project_cache import SLOW_STATES, KeptAllowances, Progress, keep_terms
from takifugu.session.cells import protected_cells
from takifugu.session.held_out import (
    ReleasableRows,
    against_earlier_rows,
    first_releasable,
    fitted_rows_of,
    releasable_rows,
)
from takifugu.tables import Engine
from takifugu.tables.scope import EVERYTHING, fitted_rows
from takifugu.translation.accounting.tables import TranslationTable
from takifugu.translation.rows.row_translation import RowTranslation
from takifugu.translation.translation import Translation

if TYPE_CHECKING:
    from takifugu.project.project import Project
    from takifugu.session.session import Session


@dataclass(frozen=True)
class LoadedDataset:
    """The policy of a dataset, with the contents of the files that it names.

    Attributes:
        name: What the project calls it.
        policy: Its part of the project file.
        file: The project file, whose folder relative paths start from.
        declaration: The declaration of its table.
    """

    name: str
    policy: DatasetPolicy
    file: Path
    declaration: Declaration

    def with_fitted_labels(self) -> "LoadedDataset":
        """The dataset whose labels are known, if its priors say them; itself if they are given."""
        if not self.declaration.unfitted or not self.policy.priors:
            return self
        labels = fitted_labels(
            self.priors, self.declaration, over=self.over, about=self.policy.about
        )
        return replace(self, declaration=self.declaration.with_labels(labels))

    @cached_property
    def about(self) -> str | None:
        """The protected column that the dataset is about; None if it is about several."""
        return self.columns[0] if len(self.columns) == 1 else None

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The protected columns that the dataset is about: the one that is named, or all."""
        if self.policy.about is None:
            return tuple(column.column for column in self.declaration.protected)
        return (protected_column(self.declaration, self.policy.about),)

    @property
    def priors(self) -> dict[str, Prior]:
        """The priors, named by their content, so that a file may be moved.

        Each knows the rows that it was fitted on: those that the policy names, and its own.
        """
        return {name: prior for name, (prior, _) in self._priors.items()}

    @property
    def over(self) -> dict[str, Entries | None]:
        """What the entries of each prior are, where the policy defines it."""
        return {name: entries for name, (_, entries) in self._priors.items()}

    @property
    def by_policy(self) -> tuple[tuple[PriorPolicy, Prior], ...]:
        """Each prior as the policy has it, beside its part of the policy.

        Where first days were fitted on, each is against somebody who knows these rows.
        """
        priors = {
            str(k): with_policy(self._against(policy), policy, self.declaration)
            for k, policy in enumerate(self.policy.priors)
        }
        readings = {str(k): policy.over for k, policy in enumerate(self.policy.priors)}
        given = against_earlier_rows(
            priors, self.secrets, readings, release=self.releases_fitted_rows
        )
        return tuple(zip(self.policy.priors, given.values(), strict=True))

    @cached_property
    def _priors(self) -> dict[str, tuple[Prior, Entries | None]]:
        if not self.policy.priors:
            raise InvalidProject(
                f"dataset, {self.name}, prior",
                given="is missing",
                needed="be given: `takifugu prior fit` fits one, or name a file in the project",
                reason="missing",
            )
        priors: dict[str, tuple[Prior, Entries | None]] = {}
        for policy, prior in self.by_policy:
            entries = None
            if policy.over is not None:
                entries = Entries(
                    policy.over,  # type: ignore[arg-type]
                    policy.positions or (),
                    household=policy.household,
                    member=policy.member,
                )
            known, before = priors.get(prior.fingerprint, (prior, entries))
            if entries != before:
                raise InvalidProject(
                    f"dataset, {self.name}, prior",
                    given="names one prior twice, with another `over` or other `positions`",
                    needed="name it once, or give both the same",
                    reason="named-twice",
                )
            priors[prior.fingerprint] = known.also_fitted_on(*prior.fitted_on), entries
        alone = len(priors) == 1
        return {"prior" if alone else f"prior {mark[:12]}": prior for mark, prior in priors.items()}

    def _against(self, policy: PriorPolicy) -> Prior:
        """A prior of the project, against the adversary that the policy names."""
        try:
            return against(self._files[policy.file], start=policy.start, known=policy.known)
        except InvalidPrior as error:
            raise InvalidProject(
                f"dataset, {self.name}, prior, {error.field}",
                given=error.given,
                needed=error.needed,
                reason=error.reason,
            ) from None

    @cached_property
    def _files(self) -> Mapping[str, Prior]:
        """By file each prior as it is written there; an error if a fitted one was changed."""
        priors = {}
        for policy in self.policy.priors:
            prior = read_prior(self.file.parent / policy.file)
            if policy.fingerprint not in (None, prior.fingerprint):
                raise InvalidProject(
                    policy.file,
                    given="was changed after it was entered into the project",
                    needed="be as it was; fit it again, or enter it as a prior of your own",
                    reason="changed",
                )
            priors[policy.file] = prior
        return priors

    @property
    def secrets(self) -> SecretsOption:
        """The secrets that are kept; by column if the policy has pairs by column."""
        entries, pairs, within = self.policy.entries, self.policy.pairs, self.policy.within
        if isinstance(pairs, Mapping):
            every = Secrets(entries=entries, within=within)
            named = {
                c: Secrets(entries=entries, pairs=column_pairs) for c, column_pairs in pairs.items()
            }
            return dict.fromkeys(self.columns, every) | named
        return Secrets(entries=entries, pairs=pairs, within=within)

    @cached_property
    def translation(self) -> PriorTranslation:
        """What losses on rows mean in Pufferfish privacy, by the present policy."""
        priors = self.priors
        if len(priors) > 1:
            _refuse_sizes(self.name, self._files)
        numbers = any(isinstance(column, Amount) for column in self.declaration.protected)
        process = any(isinstance(prior, Gaussian) for prior in priors.values())
        if self.policy.within is None and numbers and process:
            raise InvalidProject(
                f"dataset, {self.name}, secrets_within",
                given="is missing, and its prior is about numbers",
                needed="be given, as `--secrets-within 1` when it is added, or as the line"
                f" secrets_within = 1 under [dataset.{self.name}] in {self.file.name}: which of"
                " two values it is that are at most 1 apart is then kept secret",
                reason="missing",
            )
        made = translation_of(
            priors,
            self.secrets,
            self.policy.uncertainty,
            over=self.over,
            declaration=self.declaration,
            about=self.policy.about,
            where=self._where,
        )
        columns_of(made, self.declaration, self.policy.about)  # refuses a column that is not named
        if self.policy.table and isinstance(made, RowTranslation):
            raise InvalidProject(
                f"dataset, {self.name}, table",
                given="is true",
                needed="be left out: a table has one number for all of a row, and this prior says"
                " what a row's parts tell of each other",
                reason="superfluous",
            )
        return made

    @property
    def entry_translation(self) -> Translation:
        """The translation of priors whose entries are rows of one column."""
        made = self.translation
        if isinstance(made, Translation):
            return made
        raise InvalidProject(
            f"dataset, {self.name}, prior",
            given=f"is over the {made.over} of {', '.join(self.columns)}",
            needed="be about rows of one column here",
            reason="over",
        )

    @cached_property
    def values(self) -> Values | None:
        """What the priors know of the values of each column; None if there are no priors."""
        if not self.policy.priors:
            return None
        return values_of(self.translation, self.declaration, self.columns)

    @property
    def protected_cells(self) -> Cells:
        """What names the values of the protected columns, for `Ledger.spent`."""
        return protected_cells(self.declaration, self.columns, self.values)

    @property
    def releases_fitted_rows(self) -> bool:
        """Whether the owner lets rows be released that a prior was fitted on."""
        chosen = any(prior.fitted == "all-rows" for prior in self.policy.priors)
        return chosen or self.policy.release_fitted_rows

    @cached_property
    def releasable(self) -> ReleasableRows:
        """The rows that may be released from."""
        if not self.policy.priors:
            return ReleasableRows()
        return releasable_rows(
            fitted_rows_of(self.priors.values()),
            self.declaration,
            dataset=self.name,
            release=self.releases_fitted_rows,
        )

    @property
    def rules(self) -> dict[str, Any]:
        """The column and the rows that are released from, by the policy, as JSON."""
        fits = [_fit(prior) for prior in self.policy.priors if prior.fitted is not None]
        entries = [
            [
                prior.file,
                prior.over,
                *map(str, prior.positions or ()),
                *([] if prior.household is None else [prior.household, prior.member or ""]),
            ]
            for prior in self.policy.priors
            if prior.over is not None
        ]
        return {
            "about": list(self.columns) if self.about is None else self.about,
            "over": sorted(entries),
            "release_fitted_rows": self.policy.release_fitted_rows,
            "fits": sorted(fits, key=str),
        }

    def session(
        self,
        project: "Project",
        engine: Engine,
        ledger: Ledger,
        analyst: str | None,
        *,
        table: bool,
        progress: Progress | None,
    ) -> "tuple[Session, TranslationTable | None]":
        """Queries of ``analyst`` on the open table, and the translation table that they use.

        Terms, rules, priors and rows are compared once, and before a table is made.
        """
        from takifugu.session.session import Session

        translation = self.translation
        session = Session(
            engine,
            translation,
            ledger=ledger,
            dataset=self.name,
            over=self.over,
            release_fitted_rows=self.releases_fitted_rows,
            rules=self.rules,
            about=self.policy.about,
            analyst=analyst,
            home=project.folder,
            linear=self.policy.linear,
        )
        session.require_approval(self.policy.approval)
        keep_terms(project.folder, translation)
        if len(project.policy.datasets) > 1:
            refuse_same_files(project, self, ledger)
        cached = project.cached_table(self.name, translation, ledger, progress) if table else None
        broad = max(prior.breadth for prior in translation.priors.values())
        if progress is not None and cached is None and broad >= SLOW_STATES:
            progress(f"translating under a prior of {broad} entries or states")
        if cached is not None:
            session.use_table(cached.table, trusted=cached.own)
        if table:
            session.keep_allowances(KeptAllowances(project.folder, self.name, translation))
        return session, None if cached is None else cached.table

    def refuse_misfit(self, engine: Engine) -> None:
        """Raise if the priors do not fit the data."""
        known = {c.column: c.keys for c in self.declaration.protected if isinstance(c, Category)}
        engine = engine.with_labels(known) if engine.declaration.unfitted else engine
        refuse_misfit(self.translation, engine, self.columns, self.over, where=self._where)

    @property
    def _where(self) -> str:
        return (
            f"; it is the option --over of `takifugu dataset add`, and a line under"
            f" [[dataset.{self.name}.prior]] in {self.file.name}"
        )

    def refuse_unfit(self, engine: Engine) -> None:
        """Raise if nothing could be released: no rows left, misfit priors, unknown secrets."""
        _ = self.releasable
        self.refuse_misfit(engine)
        self.refuse_unknown_secrets()

    def refuse_unknown_secrets(self) -> None:
        """Raise if a secret is about a value that a prior does not have."""
        secrets = self.translation.secrets
        if not isinstance(secrets, Secrets):
            return  # refused when the translation was made
        for prior in self.priors.values():
            if isinstance(prior, SequencePrior) or secrets.entries is None:
                for values in prior.entry_values:
                    secrets.sides(values)


def with_policy(prior: Prior, policy: PriorPolicy, declaration: Declaration) -> Prior:
    """The prior as the policy has it: fitted on the rows that the policy names, and on its own.

    The policy is about this very table, whatever its files are called by now, so that it stands
    for the prior's own provenance where both name the same rows.
    """
    if policy.fitted is None:
        return prior
    rows = replace(
        fitted_rows(declaration, EVERYTHING),
        before=policy.released_from,
        share=policy.share,
        salt=policy.salt,
        words=policy.statement,
    )
    others = [rule for rule in prior.fitted_on if not _same(rule, rows, declaration)]
    return replace(prior, fitted_on=(rows, *others))


def _same(rule: FittedRows, rows: FittedRows, declaration: Declaration) -> bool:
    """Whether a prior and the policy name the same rows; a policy rounds the start up."""
    if rule.before is not None and rows.before is not None:
        try:
            rule = replace(rule, before=first_releasable(rule.before, declaration))
        except InvalidQuery:
            return False
    return rule.same_limits(rows)


def _fit(prior: PriorPolicy) -> dict[str, Any]:
    start = prior.released_from
    return {
        "prior": prior.fingerprint,
        "fitted": prior.fitted,
        "released_from": start if start is None or isinstance(start, int) else start.isoformat(),
        "share": None if prior.share is None else str(prior.share),
        "salt": prior.salt,
    }


def _refuse_sizes(name: str, priors: Mapping[str, Prior]) -> None:
    """Raise if the priors of a dataset, by file, are about different numbers of entries."""
    sizes = {file: prior.size for file, prior in priors.items()}
    first, *others = sizes.items()
    for other in others:
        if other[1] != first[1]:
            given = " and ".join(
                f"{file} is about {entries_in_words(n)}" for file, n in (first, other)
            )
            raise InvalidProject(
                f"dataset, {name}, prior",
                given=given,
                needed="be about the same number of entries in each; write or fit one again"
                " (--length)",
                reason="sizes-differ",
            )


def entries_in_words(size: int | None) -> str:
    """How many entries a prior is about."""
    return "an unbounded sequence" if size is None else f"{size} entries"
