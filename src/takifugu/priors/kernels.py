r"""Kernels of Gaussian processes: how much two entries vary together.

A stationary kernel is known by its correlations ρ(k) at the lags 0, 1, 2, …. The families here are
positive definite on the whole line (on the integers for `AR1`), so that every number of entries has
a Gaussian law and nothing needs to be checked: `SquaredExponential` and `Matern` have a positive
spectral density, and AR(1) is the law of :math:`X_{t+1} = ρ X_t + Z_t`. |ρ(k)| falls with k in all.

What a translation needs of them is :math:`\sum_k |ρ(k)|` over all integers, in closed form. With
:math:`h = a/2` and :math:`S(a) = \sum_k e^{-a|k|} = \coth h` the Matérn kernels are sums of
:math:`a^m|k|^m e^{-a|k|}`, and :math:`\sum_k |k|^m e^{-a|k|} = (-1)^m S^{(m)}(a)`:

* ν = 1/2, a = 1/ℓ: :math:`\coth h`
* ν = 3/2, a = √3/ℓ: :math:`\coth h + h / \sinh^2 h`
* ν = 5/2, a = √5/ℓ: :math:`\coth h + h / \sinh^2 h + \tfrac23 h^2 \cosh h / \sinh^3 h`
* AR(1): (1 + |ρ|)/(1 − |ρ|)
* squared exponential: by Poisson's summation
  :math:`\sum_k e^{-k^2/ℓ} = \sqrt{πℓ}\,(1 + 2\sum_{m≥1} e^{-π^2 ℓ m^2})`, for small ℓ term by term.

The parameters count as exact, as the float64 they are; every number below says which way it is
rounded.

A covariance that is written out is a matrix of floats, taken as exact. It is proven to be positive
semidefinite, or refused.

*Floating point.* If Cholesky's algorithm in float64 runs to the end on B then
:math:`R^T R = B + E` with :math:`|E_{ij}| ≤ φ \sqrt{B_{ii} B_{jj}}`, φ = γ/(1 − γ), γ = γ(n + 1),
in whatever order its sums are taken (Demmel, 1989; Higham, Theorem 10.3). So
:math:`‖E‖_2 ≤ φ\,\mathrm{tr} B`, and B + c·1 is positive semidefinite for every c ≥ φ tr B. Run on
B = A − c·1 this proves A (Rump, 2006). Before that rows and columns are scaled by powers of 2,
which is exact, to diagonals between 1 and 4.

*Exact.* What is singular, or nearly so, cannot pass that. Small matrices are then eliminated over
the rationals: A is positive semidefinite if and only if every pivot is 0 or more, and each pivot of
0 has nothing else in its row.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from takifugu._core.numeric import Floats, Integers, numbers
from takifugu._core.rounding import UNIT, float_down, float_up
from takifugu.errors import InvalidPrior

TINY = 2.0**-1022  # stands for a positive number that float64 may have rounded to 0
MAX_COVARIANCE_ROWS = 4096  # a covariance of 128 MiB
MAX_EIGENVALUE_ROWS = 1024  # rows of a covariance whose least eigenvalue is computed
SMOOTHNESS = {"1/2": Fraction(1, 2), "3/2": Fraction(3, 2), "5/2": Fraction(5, 2)}
_FAR = 1000.0  # e^−1000 is 0 in float64
_LONG = 8.0  # ℓ from which one term of Poisson's sum is all that float64 can hold


class StationaryKernel(Protocol):
    """Correlations ρ(k) that depend on the lag k alone.

    Implementers: `SquaredExponential`, `AR1`, `Matern`.
    """

    word: ClassVar[str]

    def sizes(self, lags: Integers) -> tuple[Floats, Floats]:
        """The size of ρ(k) at each lag, and how many units of roundoff it is off."""

    def signs(self, lags: Integers) -> Floats:
        """The sign of ρ(k): 1, −1, or 0 where it is 0."""
        return np.ones(np.shape(lags))

    def total(self) -> float:
        """The sum of the sizes of ρ(k) over all integers k, rounded up."""

    def least_eigenvalue(self) -> float:
        """A lower bound on the eigenvalues of correlations of any number of entries.

        That is the least value of the spectral density on the integers, which adds up the one on
        the line, at frequencies 2π apart; that one falls with the frequency, so its value at π is
        a bound.
        """

    def parameters(self) -> dict[str, Any]:
        """What a document holds beside the name."""
        own = {name: getattr(self, name) for name in parameter_names(type(self))}
        return {name: str(v) if isinstance(v, Fraction) else v for name, v in own.items()}

    def most(self, lags: Integers) -> Floats:
        """The size of ρ(k) at each lag, rounded up; 0 only where it is."""
        value, off = self.sizes(lags)
        raised = np.maximum(value * (1 + off * UNIT), TINY)
        return np.where(self.signs(lags) == 0, 0.0, np.where(lags == 0, 1.0, raised))

    def least(self, lags: Integers) -> Floats:
        """The size of ρ(k) at each lag, rounded down."""
        value, off = self.sizes(lags)
        lowered = np.where(value > TINY, value * (1 - off * UNIT), 0.0)
        return np.where(self.signs(lags) == 0, 0.0, np.where(lags == 0, 1.0, lowered))


@dataclass(frozen=True)
class SquaredExponential(StationaryKernel):
    """exp(−k²/ℓ): smooth (the paper's kernel). ``scale`` is ℓ.

    >>> round(SquaredExponential(2.0).total(), 5)
    2.50663
    """

    word: ClassVar[str] = "squared-exponential"

    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive(self.scale, "scale"))

    def sizes(self, lags: Integers) -> tuple[Floats, Floats]:
        """The size of ρ(k) at each lag, and how many units of roundoff it is off."""
        apart = np.asarray(lags, dtype=np.float64)
        with np.errstate(over="ignore"):
            power = np.minimum(apart**2 / self.scale, _FAR)
        return np.exp(-power), 16 + 8 * power

    def total(self) -> float:
        """The sum over all integers, rounded up."""
        if self.scale >= _LONG:  # the other terms are below 1e-33 of this one
            return math.sqrt(math.pi) * math.sqrt(self.scale) * (1 + 16 * UNIT)
        lags = np.arange(1, 128)  # e^(−128²/8) is 0
        return _raised(1 + 2 * float(self.most(lags).sum()) + 256 * TINY, 256)

    def least_eigenvalue(self) -> float:
        """The spectral density √(πℓ)·exp(−ω²ℓ/4) at π, rounded down."""
        power = math.pi**2 * self.scale / 4
        if power > _FAR / 2:
            return 0.0
        return math.sqrt(math.pi * self.scale) * math.exp(-power) * (1 - (64 + 8 * power) * UNIT)


@dataclass(frozen=True)
class AR1(StationaryKernel):
    """ρ^k: an autoregression of order 1. ``rho`` lies between −1 and 1.

    >>> AR1(-0.5).total()
    3.0
    """

    word: ClassVar[str] = "ar1"

    rho: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", number(self.rho, "rho"))
        if not -1 < self.rho < 1:  # also false for NaN
            raise InvalidPrior("rho", given=f"is {self.rho}", needed="be above -1 and below 1")

    def sizes(self, lags: Integers) -> tuple[Floats, Floats]:
        """The size of ρ(k) at each lag, and how many units of roundoff it is off."""
        apart = np.asarray(lags, dtype=np.float64)
        decay = -math.log(abs(self.rho)) if self.rho else _FAR
        power = np.minimum(apart * decay, _FAR)
        return np.exp(-power), 16 + 8 * power

    def signs(self, lags: Integers) -> Floats:
        """The sign of ρ(k)."""
        odd = np.asarray(lags) % 2 == 1
        if self.rho == 0:
            return np.where(np.asarray(lags) == 0, 1.0, 0.0)
        return np.where(odd & (self.rho < 0), -1.0, 1.0)

    def total(self) -> float:
        """The geometric series, rounded up."""
        size = abs(Fraction(self.rho))
        return float_up((1 + size) / (1 - size))

    def least_eigenvalue(self) -> float:
        """The least value of the spectral density, at one end, rounded down."""
        size = abs(Fraction(self.rho))
        return float_down((1 - size) / (1 + size))


@dataclass(frozen=True)
class Matern(StationaryKernel):
    """Matérn's kernel of smoothness ν = 1/2, 3/2 or 5/2 and length scale ℓ = ``scale``.

    With a = √(2ν)/ℓ: e^(−ak), (1 + ak)·e^(−ak), (1 + ak + (ak)²/3)·e^(−ak). ν = 1/2 is the
    exponential kernel of an Ornstein-Uhlenbeck process.

    >>> round(Matern("3/2", 2.0).total(), 5), round(Matern("5/2", 2.0).total(), 5)
    (4.62229, 4.77056)
    """

    word: ClassVar[str] = "matern"

    nu: Fraction
    scale: float

    def __init__(self, nu: object, scale: float) -> None:
        smoothness = SMOOTHNESS.get(nu) if isinstance(nu, str) else _half(nu)
        if smoothness is None:
            raise InvalidPrior("nu", given=f"is {nu!r:.40}", needed="be 1/2, 3/2 or 5/2")
        object.__setattr__(self, "nu", smoothness)
        object.__setattr__(self, "scale", positive(scale, "scale"))

    @property
    def _steep(self) -> float:
        """a, which a sum of entries one apart falls by."""
        return math.sqrt(2 * self.nu) / self.scale

    def sizes(self, lags: Integers) -> tuple[Floats, Floats]:
        """The size of ρ(k) at each lag, and how many units of roundoff it is off."""
        with np.errstate(over="ignore", invalid="ignore"):
            power = np.asarray(lags, dtype=np.float64) * self._steep
        power = np.minimum(np.where(np.asarray(lags) == 0, 0.0, power), _FAR)
        grown = {1: np.ones_like(power), 3: 1 + power, 5: 1 + power + power**2 / 3}
        return grown[self.nu.numerator] * np.exp(-power), 32 + 16 * power

    def total(self) -> float:
        """The closed form, rounded up."""
        half = self._steep / 2
        if half > _FAR:
            return 1 + 4 * UNIT  # the other terms are below e^−1000
        steep = math.tanh(half)
        if half < TINY or steep == 0:
            return math.inf
        value, shrunk = 1 / steep, half / math.sinh(min(half, 700.0))
        if self.nu.numerator >= 3:
            value += shrunk / math.sinh(min(half, 700.0))
        if self.nu.numerator == 5:
            value += 2 / 3 * shrunk**2 / steep
        return _raised(value, 64)

    def least_eigenvalue(self) -> float:
        """The spectral density at π, rounded down: a power of a²/(a² + ω²), over a."""
        share = self._steep / math.hypot(self._steep, math.pi)
        scaled = {1: 2 * share**2, 3: 4 * share**4, 5: 16 / 3 * share**6}[self.nu.numerator]
        return scaled / self._steep * (1 - 64 * UNIT) if share > 1e-30 else 0.0


@dataclass(frozen=True, eq=False)
class Covariance:
    """A covariance written out, row by row: symmetric and positive semidefinite.

    Nothing is added to its diagonal: that would be another prior. What cannot be shown to be
    positive semidefinite, as the exact numbers given, is refused.
    """

    word: ClassVar[str] = "covariance"

    rows: Floats

    def __post_init__(self) -> None:
        rows = checked_covariance(self.rows)
        object.__setattr__(self, "rows", rows)
        if len(rows) > MAX_COVARIANCE_ROWS:
            raise InvalidPrior(
                "covariance",
                given=f"has {len(rows)} rows",
                needed=f"have at most {MAX_COVARIANCE_ROWS:,}",
            )
        if not (np.diag(rows) > 0).all():
            raise InvalidPrior(
                "covariance",
                given="has a variance of 0 or below",
                needed="have positive variances: leave out an entry that is known",
                reason="variance",
            )
        if not is_positive_semidefinite(rows):
            raise InvalidPrior(
                "covariance",
                given="is not positive semidefinite, or too close to the edge to tell",
                needed="be a covariance; name a kernel instead of writing out its rounded numbers"
                " (nothing is added to the diagonal, because that would change the prior)",
                reason="indefinite",
            )

    @cached_property
    def _eigenvalue(self) -> float:
        if len(self.rows) > MAX_EIGENVALUE_ROWS:
            return 0.0
        near = 0.999 * float(np.linalg.eigvalsh(self.rows)[0])
        lowered = self.rows.copy()
        np.fill_diagonal(lowered, np.nextafter(np.diag(self.rows) - near, -np.inf))
        proven = near > 0 and (np.diag(lowered) > 0).all() and is_positive_semidefinite(lowered)
        return near if proven else 0.0

    def least_eigenvalue(self) -> float:
        """A lower bound on the least eigenvalue; 0 if none was proven."""
        return self._eigenvalue


Kernel = SquaredExponential | AR1 | Matern | Covariance


def kernel_of(document: Any) -> Kernel:
    """The kernel of a document: ``{"name": "ar1", "rho": 0.5}``."""
    if not isinstance(document, Mapping):
        raise InvalidPrior("kernel", given="is not an object", needed="be one, with a `name`")
    families: dict[str, Any] = {
        family.word: family for family in (SquaredExponential, AR1, Matern, Covariance)
    }
    name = document.get("name")
    if not isinstance(name, str) or name not in families:
        raise InvalidPrior(
            "kernel", given=f"has the name {name!r:.60}", needed=f"be one of {', '.join(families)}"
        )
    family = families[name]
    needed = parameter_names(family)
    for key in (*document, *needed):
        if key not in ("name", *needed) or key not in document:
            raise InvalidPrior(
                f"kernel, {key}",
                given="is missing" if key in needed else "is not a key of this kernel",
                needed=f"be one of name, {', '.join(needed)}, all of which are given",
            )
    kernel: Kernel = family(*(document[key] for key in needed))
    return kernel


def parameter_names(family: type[Any]) -> tuple[str, ...]:
    """What a kernel of a family is made from: its fields."""
    return tuple(part.name for part in fields(family))


def kernel_document(kernel: Kernel) -> dict[str, Any]:
    """What `kernel_of` reads."""
    if isinstance(kernel, Covariance):
        return {"name": kernel.word, "rows": kernel.rows.tolist()}
    return {"name": kernel.word, **kernel.parameters()}


def checked_covariance(values: Any) -> Floats:
    """A square, finite and symmetric matrix."""
    rows = numbers(values, "covariance", InvalidPrior, needed="be a list of rows")
    if rows.ndim != 2 or rows.shape[0] != rows.shape[1] or not rows.size:
        raise InvalidPrior("covariance", given=f"has shape {rows.shape}", needed="be square")
    if not np.isfinite(rows).all() or not np.array_equal(rows, rows.T):
        raise InvalidPrior("covariance", given="is not symmetric or not finite", needed="be both")
    return rows


def number(value: object, name: str) -> float:
    """A number as float64; true, false and text are refused."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number | Fraction):
        raise InvalidPrior(name, given="is missing or not a number", needed="be a number")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidPrior(
            name, given="is too large for float64", needed="be a number that float64 can hold"
        ) from error


def positive(value: object, name: str) -> float:
    """A number above 0 that float64 holds with all its digits."""
    size = number(value, name)
    if not TINY <= size < math.inf:  # also false for NaN
        raise InvalidPrior(
            name, given=f"is {size}", needed=f"be positive, at least {TINY:.3g}, and finite"
        )
    return size


def _half(value: object) -> Fraction | None:
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
        return None
    return next((nu for nu in SMOOTHNESS.values() if nu == value), None)


def _raised(value: float, units: int) -> float:
    return value * (1 + units * UNIT)


MAX_EXACT_ROWS = 32  # rows of a matrix that is eliminated over the rationals


def is_positive_semidefinite(matrix: Floats) -> bool:
    """Whether a finite symmetric ``matrix`` with a positive diagonal is proven to be so."""
    return _by_floats(matrix) or (len(matrix) <= MAX_EXACT_ROWS and _by_rationals(matrix))


def _by_floats(matrix: Floats) -> bool:
    size = len(matrix)
    _, power = np.frexp(np.diag(matrix))
    half = -((power - 1) // 2)  # the diagonal becomes at least 1 and below 4
    with np.errstate(under="ignore", over="ignore"):
        scaled = np.ldexp(matrix, (half[:, None] + half[None]).astype(np.int32))
    if not np.isfinite(scaled).all():  # an entry far above the diagonal's geometric mean
        return False
    diagonal = np.diag(scaled)
    units = (size + 2) * UNIT
    # twice φ·tr B, and what underflow may have taken away
    shift = 2 * units / (1 - 2 * units) * float(diagonal.sum()) * (1 + 8 * UNIT) + size * 2.0**-1000
    shifted = scaled.copy()
    np.fill_diagonal(shifted, np.nextafter(diagonal - shift, -np.inf))
    try:
        np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        return False
    return True


def _by_rationals(matrix: Floats) -> bool:
    """Elimination over the whole numbers (Bareiss, 1968): every division below is exact."""
    exact = [[Fraction(value) for value in row] for row in matrix.tolist()]
    common = max(value.denominator for row in exact for value in row)  # powers of 2
    rows = [[int(value * common) for value in row] for row in exact]
    before = 1
    while rows:
        first, *others = rows
        pivot = first[0]
        if pivot < 0 or (pivot == 0 and any(first)):
            return False
        if pivot == 0:
            rows = [row[1:] for row in others]
            continue
        rows = [
            [(pivot * row[k] - row[0] * first[k]) // before for k in range(1, len(row))]
            for row in others
        ]
        before = pivot
    return True
