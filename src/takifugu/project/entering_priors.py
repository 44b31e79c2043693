"""Priors that enter a project: fitted on the rows of a dataset, or made for it.

The file of a prior has its fingerprint in its name, so that the last write, of the project file, is
the one that counts. Both are recorded in the ledger.
"""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from takifugu._core.rounding import float_down
from takifugu.declarations import read_declaration
from takifugu.ledger import Ledger
from takifugu.priors import Prior, write_prior
from takifugu.project import policy_writing as write
from takifugu.project.policy import DatasetPolicy, InvalidProject, Policy, read_policy
from takifugu.project.policy_writing import policy_of
from takifugu.session.held_out import PUBLISHED, fitted_rows_of, refuse_publishing
from takifugu.tables import open_engine
from takifugu.tables.opening import BackendName

if TYPE_CHECKING:
    from takifugu.advice.prior_advice import PriorAdvice
    from takifugu.fitting import FitOptions, Fitted
    from takifugu.project.project import Project
    from takifugu.translation.protocol import LossTranslation

NamedPrior = TypeVar("NamedPrior", bound=Prior)


def fit(
    project: "Project",
    name: str,
    options: "FitOptions",
    *,
    replace: bool = False,
    keep: bool = False,
    backend: BackendName | None = None,
    tested: bool = False,
    publish_rows: str | None = None,
) -> tuple["Project", Path, Any, "Fitted"]:
    """Fit a prior on the rows of a dataset and enter it; the project, file, prior and fit.

    The file has the fingerprint in its name, so that the last write, of the project file, is
    the one that counts. Earlier priors are replaced or kept, as requested. With ``tested`` the
    fit knows whether the prior describes its rows.

    Labels that are to be found on the fitted rows are found anew with ``replace``, by the rule
    of the prior before it unless the options have another; a prior that is added has those of
    the ones before it, and so counts as fitted on their rows too.

    A fit on rows that earlier releases protected is refused, unless the owner confirms them by
    name with ``publish_rows``; see `takifugu.session.held_out`. So is one on rows that another
    ledger of this user has charged, unless the owner counts them separately.
    """
    policy = _replaceable(project, name, replace=replace, keep=keep)
    loaded = project.load(name)
    declared = read_declaration(project.folder / policy.declaration)
    declaration = declared if replace else loaded.declaration
    least = _least(policy)
    with open_engine(declaration, backend=backend) as engine, project.ledger() as ledger:
        from takifugu.fitting import fit_prior
        from takifugu.tables import identities

        about = _about(loaded.about, options)
        columns = options.columns or about or tuple(c.column for c in declaration.protected)
        ledger.refuse_rows_of_others(name, identities(engine, columns))
        fitted = fit_prior(
            engine,
            about,
            options,
            tested=tested,
            sized=True,
            every_pair=policy.pairs is None,
            at_least=least,
        )
        if declared.unfitted and not declaration.unfitted:  # of the rows of another prior
            rows = fitted_rows_of(loaded.priors.values())
            fitted = dataclasses.replace(fitted, prior=fitted.prior.also_fitted_on(*rows))
        published = refuse_publishing(
            ledger,
            name,
            (fitted.rows,),
            engine.declaration,
            prior=None,
            confirmed=() if publish_rows is None else (publish_rows,),
            how="--publish-rows '{}'",
        )
        prior = fitted.prior
        file = f"{name}.{prior.fingerprint[:12]}.prior.json"
        section = policy_of(file, prior, fitted, declaration)
        if least is not None and declared.unfitted and not fitted.labels:  # a rule to keep
            section["at_least"] = least
        section |= _adversary(policy) if replace else {}

        def fits(policy: Policy) -> None:
            _ = project.under(policy).load(name).translation

        path = _write_prior(project, name, prior, section, replace=replace, check=fits)
        made = project.under(read_policy(project.file))
        how = "all-rows" if fitted.split is None else section["fitted"]
        replaced = replace and bool(policy.priors)
        details = {PUBLISHED: list(published)} if published else {}
        made.record_policy(
            ledger, name, how="fitted", files=[file], rows=how, replaced=replaced, **details
        )
        _remove_unused(made, policy, ledger)
    return made, path, prior, fitted


def advice(
    project: "Project",
    name: str,
    fitted: "Fitted",
    *,
    progress: Callable[[str], None] | None = None,
) -> "PriorAdvice":
    """Whether a prior that was fitted for a dataset suits: what its budget allows under it.

    With the secrets and the uncertainty of the dataset; a budget of 1 if it has none yet.
    """
    from takifugu.translation.translation import Translation

    budget = project.budget(name)
    made = project.load(name).translation
    translation: LossTranslation | None = made
    if len(made.priors) > 1:
        translation = None
        if isinstance(made, Translation):
            translation = Translation(fitted.prior, made.secrets, made.uncertainty)
    epsilon = 1.0 if budget is None else float_down(budget)
    return fitted.advice(epsilon, translation=translation, progress=progress)


def enter_prior(
    project: "Project",
    name: str,
    prior: Callable[[bool], NamedPrior],
    *,
    over: str,
    replace: bool = False,
    keep: bool = False,
    backend: BackendName | None = None,
) -> tuple["Project", Path, NamedPrior]:
    """Write a prior beside the project file and enter it for a dataset, if it fits its data.

    ``prior`` makes it, given whether the entities of the table are whole numbers. Earlier
    priors are replaced or kept, as requested.
    """
    policy = _replaceable(project, name, replace=replace, keep=keep)
    declared = read_declaration(project.folder / policy.declaration)
    with open_engine(declared, backend=backend) as engine, project.ledger() as ledger:
        made = prior(engine.whole_entities)
        file = f"{name}.{made.fingerprint[:12]}.prior.json"
        section: dict[str, Any] = {"file": file, "fingerprint": made.fingerprint, "over": over}
        section |= _adversary(policy) if replace else {}
        least = _least(policy)
        section |= {} if least is None else {"at_least": least}

        def fits(policy: Policy) -> None:
            project.under(policy).load(name).refuse_unfit(engine)

        path = _write_prior(project, name, made, section, replace=replace, check=fits)
        entered = project.under(read_policy(project.file))
        replaced = replace and bool(policy.priors)
        entered.record_policy(ledger, name, how="entered", files=[file], replaced=replaced)
        _remove_unused(entered, policy, ledger)
    return entered, path, made


def _replaceable(project: "Project", name: str, *, replace: bool, keep: bool) -> DatasetPolicy:
    """The policy of a dataset, unless it has priors and it is not said what becomes of them."""
    policy = project.dataset(name)
    if policy.priors and replace == keep:
        raise InvalidProject(
            f"dataset, {name}, prior",
            given="exists already",
            needed="be replaced (--replace) or kept beside the new one (--add)",
            reason="exists",
        )
    return policy


def _remove_unused(project: "Project", before: DatasetPolicy, ledger: Ledger) -> None:
    """Remove files of priors that were fitted here and replaced before there was a budget.

    Under a budget the earlier prior is part of the published policy, and its price is shown
    when another one is accepted: that file stays, and so does every file written by hand.
    """
    if ledger.positions(before.name):
        return
    named = {prior.file for dataset in project.policy.datasets.values() for prior in dataset.priors}
    for prior in before.priors:
        own = f"{before.name}.{(prior.fingerprint or '')[:12]}.prior.json"
        if prior.fingerprint is not None and prior.file == own and own not in named:
            (project.folder / own).unlink(missing_ok=True)


def _write_prior(
    project: "Project",
    name: str,
    prior: Prior,
    section: Mapping[str, Any],
    *,
    replace: bool,
    check: Callable[[Policy], None],
) -> Path:
    """Write the file that ``section`` names, then the section; neither if it is refused."""
    path = project.folder / str(section["file"])
    new = not path.exists()
    write_prior(prior, path)
    try:
        write.add_prior(project.file, name, section, replace=replace, check=check)
    except BaseException:
        if new:
            path.unlink(missing_ok=True)
        raise
    return path


def _adversary(policy: DatasetPolicy) -> dict[str, str]:
    """What the replaced priors say of the adversary, which holds for the one in their place."""
    adversaries = {(prior.start, prior.known) for prior in policy.priors}
    if len(adversaries) > 1:
        raise InvalidProject(
            f"dataset, {policy.name}, prior",
            given="have different `start` or `known`, which a new prior is to keep",
            needed="have the same, or be edited by hand before they are replaced",
            reason="adversaries-differ",
        )
    start, known = next(iter(adversaries), (None, None))
    stated = {"start": start, "known": known}
    return {key: value for key, value in stated.items() if value is not None}


def _least(policy: DatasetPolicy) -> int | None:
    """How many entities a label needs that a fit finds, by the priors there are; None: no rule."""
    return max((prior.at_least for prior in policy.priors if prior.at_least), default=None)


def _about(column: str | None, options: "FitOptions") -> tuple[str, ...]:
    """The columns that a prior of a dataset is about, if the options name none."""
    from takifugu.fitting.fit_options import KINDS

    one = KINDS[str(options.kind)].columns == "the one"
    return (column,) if one and column is not None else ()
