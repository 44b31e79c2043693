r"""Kernels fitted to autocorrelations, and how well they are known.

Every family has one parameter. AR(1) and Matérn ν = 1/2 take it from the correlation at lag 1 (the
Yule-Walker estimate, which is efficient for AR(1)); the others from all lags, by least squares
weighted with the number of products that each lag rests on.

**Standard errors** are those of Bartlett (1946) for a stationary Gaussian process with the fitted
kernel: with N products the errors of the correlations at lags i and j have the covariance

.. math:: \frac1N \sum_{m=-∞}^{∞} ρ_{m+i}ρ_{m+j} + ρ_{m-i}ρ_{m+j} + 2ρ_iρ_jρ_m^2
          - 2ρ_iρ_mρ_{m+j} - 2ρ_jρ_mρ_{m+i},

which counts that values near one another carry less than independent ones; for AR(1) at lag 1 it is
(1 − ρ²)/N. A parameter moves with the correlations by the derivative of its estimate (delta
method). They assume that entities are independent and that the kernel is right: where the notes of
a fit say that it is not, they say too little.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import exp, inf, log

import numpy as np

from takifugu._core.numeric import Floats, Integers, frozen
from takifugu.declarations.table_errors import InvalidQuery
from takifugu.errors import one_of
from takifugu.priors import AR1, Matern, SquaredExponential
from takifugu.priors.kernels import StationaryKernel

MAX_BARTLETT_LAG = 20_000  # lags of Bartlett's sum
NEGLIGIBLE = 1e-7  # a correlation below it adds nothing to a standard error
SCALES = np.exp(np.linspace(log(0.02), log(1e7), 600))  # where least squares looks first
NARROWINGS = 80  # of a bracket, to the accuracy of float64
DERIVATIVE_STEP = 1e-5  # relative, of a derivative

ByLagOne = Callable[[float], float]


@dataclass(frozen=True)
class KernelFamily:
    """One family of kernels.

    Attributes:
        word: As an option names it.
        parameter: What its one parameter is called.
        make: The kernel with that parameter.
        by_lag_one: The parameter that has a given correlation at lag 1; None for least squares.
    """

    word: str
    parameter: str
    make: Callable[[float], StationaryKernel]
    by_lag_one: ByLagOne | None = None


FAMILIES: Mapping[str, KernelFamily] = {
    family.word: family
    for family in (
        KernelFamily("ar1", "rho", AR1, lambda correlation: correlation),
        KernelFamily(
            "matern-1/2", "scale", lambda scale: Matern("1/2", scale), lambda c: -1 / log(c)
        ),
        KernelFamily("matern-3/2", "scale", lambda scale: Matern("3/2", scale)),
        KernelFamily("matern-5/2", "scale", lambda scale: Matern("5/2", scale)),
        KernelFamily("squared-exponential", "scale", SquaredExponential),
    )
}
CANDIDATES = ("ar1", "matern-3/2", "matern-5/2", "squared-exponential")  # ν = 1/2 is an AR(1)


@dataclass(frozen=True, eq=False)
class KernelFit:
    """A kernel beside the correlations that it was fitted to.

    Attributes:
        family: Of which it is.
        kernel: The kernel.
        parameter: Its parameter.
        error: The standard error of the parameter.
        empirical: ``[lag]`` from 0 on: the correlations that were counted.
        errors: ``[lag]``: their standard errors, if the kernel is right; 0 at lag 0.
        misfit: The weighted mean of squared differences over the lags from 1 on.
    """

    family: KernelFamily
    kernel: StationaryKernel
    parameter: float
    error: float
    empirical: Floats
    errors: Floats
    misfit: float

    @property
    def fitted(self) -> Floats:
        """``[lag]`` from 0 on: the correlations of the kernel."""
        return correlations_of(self.kernel, len(self.empirical) - 1)

    def raised(self, margin: float) -> StationaryKernel:
        """The kernel with its parameter raised, away from 0, by so many standard errors.

        All correlations of the families here grow in size with the size of their parameter, and
        so does the loss of a clamped sum, which adds up their sizes. So what holds for this kernel
        holds for every one of its family with a parameter between 0 and this one.
        """
        sign = -1.0 if self.parameter < 0 else 1.0
        parameter = sign * (abs(self.parameter) + margin * self.error)
        if self.family.word == "ar1" and not abs(parameter) < 1:
            raise InvalidQuery(
                "margin",
                given=f"of {margin:g} standard errors reaches a correlation of 1",
                needed="be less, or fit on more rows: at 1 one value tells all others, and no"
                " finite loss protects them",
                reason="unit-root",
            )
        return self.family.make(parameter)


def fit_kernel(word: str, correlations: Floats, products: Integers) -> KernelFit:
    """The kernel of a family for ``correlations``, by lag from 0 on."""
    if word not in FAMILIES:
        raise InvalidQuery("kernel", given=f"is {word!r:.60}", needed=one_of(FAMILIES))
    family, first = FAMILIES[word], float(correlations[1])
    if not abs(first) < 1:
        raise InvalidQuery(
            "kernel",
            given="would have a correlation of 1 or more at lag 1",
            needed="be positive definite: the rows hardly vary from one to the next; fit on more"
            " rows, declare a finer step, or take only some of them",
            reason="indefinite",
        )
    if word != "ar1" and not first > 0:
        raise InvalidQuery(
            "kernel",
            given=f"is {word}, and the correlation at lag 1 is negative or 0",
            needed="be ar1, the only one here with negative correlations",
            reason="negative",
        )
    if family.by_lag_one is not None:
        parameter = family.by_lag_one(first)
    else:
        parameter = _least_squares(family, correlations, products)
    kernel = family.make(parameter)
    covariance = bartlett(kernel, products)
    return KernelFit(
        family,
        kernel,
        parameter,
        _parameter_error(family, parameter, covariance, products),
        frozen(correlations),
        frozen(np.sqrt(np.concatenate([[0.0], np.diag(covariance)]))),
        _misfit(kernel, correlations, products),
    )


def best_kernel(correlations: Floats, products: Integers) -> KernelFit:
    """The family that is nearest to all correlations; AR(1) where the first is not positive."""
    words = CANDIDATES if correlations[1] > 0 else ("ar1",)
    fits = [fit_kernel(word, correlations, products) for word in words]
    return min(fits, key=lambda fit: fit.misfit)


def correlations_of(kernel: StationaryKernel, lags: int) -> Floats:
    """``[lag]`` from 0 on: the correlations of a kernel, to the nearest float."""
    at = np.arange(lags + 1)
    sizes, _ = kernel.sizes(at)
    return np.where(at == 0, 1.0, sizes * kernel.signs(at))


def bartlett(kernel: StationaryKernel, products: Integers) -> Floats:
    """``[lag, lag]`` from 1 on: the covariance of the errors of correlations, by Bartlett."""
    lags = len(products) - 1
    every = correlations_of(kernel, MAX_BARTLETT_LAG + lags)
    near = np.flatnonzero(np.abs(every) > NEGLIGIBLE)
    reach = min(int(near[-1]) + lags + 1, MAX_BARTLETT_LAG)
    around = np.arange(-reach, reach + 1)
    at = np.arange(1, lags + 1)[:, None]
    ahead, behind = every[np.abs(around + at)], every[np.abs(around - at)]  # [lag, m]
    here, own = every[np.abs(around)], every[1 : lags + 1]
    cross = ahead @ here
    total = (
        (ahead + behind) @ ahead.T
        - 2 * np.outer(own, cross)
        - 2 * np.outer(cross, own)
        + 2 * np.outer(own, own) * float(here @ here)
    )
    root = np.sqrt(np.asarray(products[1:], dtype=np.float64))
    covariance: Floats = total / np.outer(root, root)
    return covariance


def _misfit(kernel: StationaryKernel, correlations: Floats, products: Integers) -> float:
    apart = correlations - correlations_of(kernel, len(correlations) - 1)
    return float(np.average(apart[1:] ** 2, weights=products[1:]))


def _least_squares(family: KernelFamily, correlations: Floats, products: Integers) -> float:
    """The scale of least squares: the best of many, then a bracket around it narrowed."""

    def misfit(logarithm: float) -> float:
        return _misfit(family.make(exp(logarithm)), correlations, products)

    logs = np.log(SCALES)
    best = int(np.argmin([misfit(float(x)) for x in logs]))
    low, high = float(logs[max(best - 1, 0)]), float(logs[min(best + 1, len(logs) - 1)])
    inner = (5**0.5 - 1) / 2
    for _ in range(NARROWINGS):
        left, right = high - inner * (high - low), low + inner * (high - low)
        low, high = (low, right) if misfit(left) <= misfit(right) else (left, high)
    return exp((low + high) / 2)


def _parameter_error(
    family: KernelFamily, parameter: float, covariance: Floats, products: Integers
) -> float:
    """By the derivative of the estimate: of lag 1, or of the normal equation."""
    lags, step = len(products) - 1, DERIVATIVE_STEP * abs(parameter)
    if family.word == "ar1":
        return float(np.sqrt(covariance[0, 0]))
    slope = (
        correlations_of(family.make(parameter + step), lags)
        - correlations_of(family.make(parameter - step), lags)
    )[1:] / (2 * step)
    weights = np.asarray(products[1:], dtype=np.float64)
    if family.by_lag_one is not None:
        weights = np.eye(1, lags)[0]
    bent = float((weights * slope) @ slope)
    if not bent > 0:
        return inf
    pull = weights * slope / bent
    return float(np.sqrt(pull @ covariance @ pull))
