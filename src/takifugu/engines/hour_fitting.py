"""Fit a chain with a matrix for each hour of the day, where rows are one an hour."""

from takifugu.engines.engine import Engine
from takifugu.engines.fit_kinds import Estimate, FitOptions
from takifugu.engines.scope import Scope


def fit_by_hour(
    engine: Engine, columns: tuple[str, ...], train: Scope, options: FitOptions
) -> Estimate:
    raise NotImplementedError
