"""The paper's Gaussian priors: real-valued entries that vary together, kept within bounds."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from takifugu._core.numeric import Floats
from takifugu.errors import InvalidPrior
from takifugu.priors.kernels import MAX_COVARIANCE_ROWS, checked_covariance, number
from takifugu.priors.prior import Prior, known_keys

TruncatedKernel = Literal["squared-exponential", "exponential"]


@dataclass(frozen=True, eq=False)
class TruncatedGaussian(Prior):
    r"""x ~ N(0, Σ) cut off to :math:`[-\gamma, \gamma]^n` (the paper, Example 5).

    The secrets are regions: "x_i lies in [r, r + δ]" against "x_i lies in [r′, r′ + δ]", for any
    two regions of one coordinate that do not overlap. The law without truncation is `Gaussian`.

    Attributes:
        covariance: Σ, symmetric and positive definite. Nothing is added to its diagonal: that
            would be another prior.
        bound: γ, how far a value can be from 0.
        width: δ, how wide a region is.
    """

    kind: ClassVar[str] = "gaussian"  # as files have called it since before `Gaussian`
    hashed_as: ClassVar[str] = "Gaussian"

    covariance: Floats
    bound: float
    width: float

    def __post_init__(self) -> None:
        sigma = checked_covariance(self.covariance)
        self._set(
            covariance=sigma,
            bound=number(self.bound, "bound"),
            width=number(self.width, "width"),
        )
        try:
            np.linalg.cholesky(sigma)
        except np.linalg.LinAlgError as error:
            raise InvalidPrior(
                "covariance",
                given="is not positive definite in float64",
                needed="be positive definite; take fewer entries or a shorter length scale"
                " (nothing is added to the diagonal, because that would change the prior)",
            ) from error
        if not 0 < self.bound < np.inf:  # also false for NaN
            raise InvalidPrior("bound", given=f"is {self.bound}", needed="be positive and finite")
        if not 0 < 2 * self.width <= 2 * self.bound:
            raise InvalidPrior(
                "width", given=f"is {self.width}", needed="be positive and at most `bound`"
            )

    @classmethod
    def process(
        cls,
        entries: int,
        *,
        length: float,
        kernel: TruncatedKernel = "squared-exponential",
        bound: float,
        width: float,
    ) -> "TruncatedGaussian":
        """Entries 0, 1, 2, … of a stationary process with unit variance.

        ``squared-exponential`` is exp(−(j−k)²/length), the paper's; ``exponential`` is
        exp(−|j−k|/length), an Ornstein-Uhlenbeck process.
        """
        if isinstance(entries, bool) or not isinstance(entries, int | np.integer):
            raise InvalidPrior("entries", given="is not a whole number", needed="be one")
        if not 1 <= entries <= MAX_COVARIANCE_ROWS:
            raise InvalidPrior(
                "entries", given=f"is {entries}", needed=f"be from 1 to {MAX_COVARIANCE_ROWS:,}"
            )
        length = number(length, "length")
        if not 0 < length < np.inf:
            raise InvalidPrior("length", given=f"is {length}", needed="be positive and finite")
        if not isinstance(kernel, str) or kernel not in ("squared-exponential", "exponential"):
            raise InvalidPrior(
                "kernel", given=f"is {kernel!r}", needed="be squared-exponential or exponential"
            )
        apart = np.abs(np.subtract.outer(np.arange(entries), np.arange(entries))).astype(float)
        power = 2 if kernel == "squared-exponential" else 1
        # e^−1000 is 0 in float64 already: nothing is divided beyond all floats
        return cls(np.exp(-np.minimum(apart**power, 1000 * length) / length), bound, width)

    @property
    def entries(self) -> int:
        """How many coordinates there are."""
        return len(self.covariance)

    @property
    def entry_names(self) -> Sequence[int]:
        """The coordinates 0, 1, …."""
        return range(self.entries)

    @property
    def entry_values(self) -> Sequence[tuple[Hashable, ...]]:
        """None: the values are real numbers."""
        return ()

    @classmethod
    def _of_document(cls, document: Mapping[str, Any]) -> "TruncatedGaussian":
        """Read a document: ``covariance``, or ``entries``, ``length`` and ``kernel``."""
        process = "entries", "length", "kernel"
        known_keys(document, cls.kind, (), ("covariance", "bound", "width", *process))
        if isinstance(document.get("kernel"), Mapping) or "bound" not in document:
            raise InvalidPrior(
                "bound" if "bound" not in document else "kernel",
                given="is not that of the truncated law",
                needed="be given for kind `gaussian`, which is truncated to ±`bound`; without"
                " truncation the kind is `gaussian-process`",
            )
        bound, width = (number(document.get(key), key) for key in ("bound", "width"))
        if "covariance" in document:
            return cls(document["covariance"], bound, width)
        entries, length = document.get("entries"), document.get("length")
        if entries is None or length is None:
            raise InvalidPrior(
                "covariance",
                given="is missing",
                needed="be given, or `entries` and `length` of a process instead",
            )
        kernel: TruncatedKernel = document.get("kernel", "squared-exponential")
        return cls.process(entries, length=length, kernel=kernel, bound=bound, width=width)
