"""Gaussian priors: real numbers that vary together, without bounds."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from takifugu._core.exact import exactly
from takifugu._core.numeric import Floats, frozen
from takifugu.errors import InvalidPrior, UnsoundRequest
from takifugu.priors.kernels import (
    AR1,
    MAX_COVARIANCE_ROWS,
    Covariance,
    Kernel,
    Matern,
    SquaredExponential,
    kernel_document,
    kernel_of,
    number,
    positive,
)
from takifugu.priors.prior import Prior, checked_length, known_keys
from takifugu.priors.secrets import Secrets


@dataclass(frozen=True, eq=False)
class Gaussian(Prior):
    r"""A Gaussian process: X ~ N(mean, variance · kernel), not truncated.

    Its secrets are pairs of numbers within a distance of each other:
    ``Secrets(within=10)`` is "which of two values at most 10 apart". There is no default distance,
    because no finite loss protects numbers that are arbitrarily far apart.

    >>> Gaussian(AR1(0.9), mean=120, variance=100).size is None
    True

    Attributes:
        kernel: `SquaredExponential`, `AR1`, `Matern` (correlations by lag, entries 0, 1, 2, …), or
            `Covariance`, written out.
        length: The number of entries; None if it is unbounded. A covariance has its own.
        mean: Of every entry, or of each.
        variance: Of every entry; of a stationary kernel alone.
    """

    kind: ClassVar[str] = "gaussian-process"
    hashed_as: ClassVar[str] = "GaussianProcess"  # `TruncatedGaussian` is hashed as Gaussian

    kernel: Kernel
    length: int | None = None
    mean: Floats | float = 0.0
    variance: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, SquaredExponential | AR1 | Matern | Covariance):
            raise InvalidPrior(
                "kernel",
                given=f"is a {type(self.kernel).__name__}",
                needed="be SquaredExponential, AR1, Matern or Covariance",
            )
        self._set(variance=positive(self.variance, "variance"))
        length = checked_length(self.length)
        if isinstance(self.kernel, Covariance):
            size = len(self.kernel.rows)
            if length not in (None, size) or self.variance != 1:
                raise InvalidPrior(
                    "length" if self.variance == 1 else "variance",
                    given="is beside a covariance of another size, or scales one",
                    needed="be left out: a covariance has its own",
                )
            length = size
        self._set(length=length, mean=_mean(self.mean, length))

    @property
    def entry_names(self) -> Sequence[int] | None:
        """The times 0, 1, …; None if their number is unbounded."""
        return None if self.length is None else range(self.length)

    @property
    def entry_values(self) -> Sequence[tuple[Hashable, ...]]:
        """None: the values are real numbers."""
        return ()

    @property
    def stationary(self) -> bool:
        """Whether correlations go by lags, so that entries follow one another."""
        return not isinstance(self.kernel, Covariance)

    def means(self, entries: Sequence[int]) -> Floats:
        """The mean of each of some entries."""
        own = np.asarray(self.mean, dtype=np.float64)
        return np.full(len(entries), float(own)) if own.ndim == 0 else own[list(entries)]

    def covariance(self, entries: Sequence[int]) -> Floats:
        """``[entry, entry]``: the covariance of some entries, to the nearest float."""
        if isinstance(self.kernel, Covariance):
            rows: Floats = self.kernel.rows[np.ix_(list(entries), list(entries))]
            return rows
        lags = np.abs(np.subtract.outer(np.asarray(entries), np.asarray(entries)))
        value, _ = self.kernel.sizes(lags)
        return np.where(lags == 0, 1.0, value * self.kernel.signs(lags)) * self.variance

    def least_deviation(self) -> float:
        """The root of a lower bound on the eigenvalues of the covariance, rounded down."""
        return float(np.sqrt(self.variance) * np.sqrt(self.kernel.least_eigenvalue())) * 0.999999

    def check_secrets(self, secrets: Secrets) -> None:
        """Refuse secrets that are not pairs of numbers within a distance."""
        secret_distance(secrets)

    def facts(self) -> dict[str, Any]:
        """What `takifugu prior show` prints, beside kind and fingerprint."""
        own: dict[str, Any] = {"length": self.length, "kernel": self.kernel.word}
        if not isinstance(self.kernel, Covariance):
            own |= self.kernel.parameters() | {"variance": self.variance}
        if np.ndim(self.mean) == 0:
            own["mean"] = float(self.mean)
        return own

    def _document(self) -> dict[str, Any]:
        mean = float(self.mean) if np.ndim(self.mean) == 0 else np.asarray(self.mean).tolist()
        own = {"kind": self.kind, "kernel": kernel_document(self.kernel), "mean": mean}
        if not isinstance(self.kernel, Covariance):
            own |= {"length": self.length, "variance": self.variance}
        return own

    @classmethod
    def _of_document(cls, document: Mapping[str, Any]) -> "Gaussian":
        """Read ``{"kind": "gaussian-process", "kernel": {"name": "ar1", "rho": 0.9}}``."""
        known_keys(document, cls.kind, ("kernel",), ("length", "mean", "variance"))
        return cls(
            kernel_of(document["kernel"]),
            document.get("length"),
            document.get("mean", 0.0),
            document.get("variance", 1.0),
        )


def _mean(given: Any, length: int | None) -> Floats | float:
    if isinstance(given, list | tuple) or (isinstance(given, np.ndarray) and given.ndim):
        if length is None or length > MAX_COVARIANCE_ROWS * 256 or len(given) != length:
            raise InvalidPrior(
                "mean",
                given=f"lists {len(given)} numbers",
                needed="be one number, or one for each entry",
            )
        means = [number(value, "mean") for value in given]
        if not np.isfinite(means).all():
            raise InvalidPrior("mean", given="is not finite", needed="hold finite numbers")
        return frozen(means)
    mean = number(given, "mean") + 0.0
    if not np.isfinite(mean):
        raise InvalidPrior("mean", given=f"is {mean}", needed="be finite")
    return mean


def secret_distance(secrets: Secrets) -> Fraction:
    """How far apart two numbers are that must not be told apart, at most; an error if not given."""
    if secrets.pairs is not None:
        raise UnsoundRequest(
            "the entries of a Gaussian are numbers, and the secrets are pairs of labels; give"
            " Secrets(within=r) (`--secrets-within r`) instead: which of two numbers at most r"
            " apart",
            field="secrets",
            reason="pairs",
        )
    if secrets.within is None:
        raise UnsoundRequest(
            "the entries of a Gaussian are numbers: say how far apart two of them may be that must"
            " not be told apart, as Secrets(within=r) (`--secrets-within r`); there is no default,"
            " because no finite loss protects all distances",
            field="secrets",
            reason="no-distance",
        )
    return exactly(secrets.within, "within")
