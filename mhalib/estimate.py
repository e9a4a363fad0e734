"""Estimates with standard errors, batched Monte Carlo, slopes with intervals, and tests that state their errors."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy import stats

from mhalib import validation
from mhalib.device import stream

FALSE_ALARM = 1e-6


@dataclass(frozen=True)
class Estimate:
    """A mean of `n` independent samples with its standard error; `mean` and `stderr` may be arrays.

    Raises ``ValueError`` for n < 2, a negative standard error, or entries that are not finite.

    >>> Estimate(1.0, 0.1, 100) - 0.5
    Estimate(mean=0.5, stderr=0.1, n=100)
    """

    mean: float | Float[np.ndarray, "..."]
    stderr: float | Float[np.ndarray, "..."]
    n: int

    def __post_init__(self) -> None:
        validation.array("mean", self.mean, "...")
        validation.at_least("n", self.n, 2)
        if np.any(np.asarray(validation.array("stderr", self.stderr, "...")) < 0):
            raise ValueError(f"stderr must be >= 0, got {self.stderr!r}")
        for name in ("mean", "stderr"):
            if np.ndim(getattr(self, name)) == 0:
                object.__setattr__(self, name, float(getattr(self, name)))

    def __sub__(self, other: "Estimate | float") -> "Estimate":
        """Difference from a number, or from an independent estimate (variances add, the smaller n is kept)."""
        if isinstance(other, Estimate):
            return Estimate(self.mean - other.mean, np.hypot(self.stderr, other.stderr), min(self.n, other.n))
        return Estimate(self.mean - other, self.stderr, self.n)

    def __mul__(self, factor: float) -> "Estimate":
        """The estimate in other units."""
        return Estimate(self.mean * factor, self.stderr * abs(factor), self.n)

    __rmul__ = __mul__

    def __getitem__(self, index) -> "Estimate":
        """One entry of an array-valued estimate."""
        return Estimate(np.asarray(self.mean)[index], np.asarray(self.stderr)[index], self.n)


def from_samples(samples: Float[np.ndarray, "n ..."]) -> Estimate:
    """The mean over the first axis of independent samples, with its standard error.

    Raises ``ValueError`` for fewer than two samples or entries that are not finite. Cost: one pass.

    >>> from_samples(np.array([1.0, 2.0, 3.0]))
    Estimate(mean=2.0, stderr=0.5773502691896258, n=3)
    """
    values = np.asarray(validation.array("samples", samples, "..."))
    if values.ndim == 0 or len(values) < 2:
        raise ValueError(f"samples must hold at least 2 samples on the first axis, got shape {values.shape}")
    return Estimate(values.mean(0), values.std(0, ddof=1) / np.sqrt(len(values)), len(values))


def monte_carlo(
    draw: Callable[[np.random.Generator, int], Float[np.ndarray, "batch ..."]],
    *,
    name: str,
    samples: int,
    batch: int,
) -> Estimate:
    """The mean of `samples` independent draws, made in batches so that memory stays that of one batch.

    `draw(generator, size)` returns `size` samples on its first axis. Batch number i draws from the stream
    `(name, i)`, so the result does not depend on anything drawn elsewhere. Moments are merged by the pairwise
    update of Chan, Golub and LeVeque (1983). Cost: samples/batch calls of `draw`.

    Raises ``ValueError`` if `draw` returns a wrong number of samples.

    >>> monte_carlo(lambda g, size: g.standard_normal(size), name="doctest.mc", samples=1000, batch=300).n
    1000
    """
    validation.at_least("samples", samples, 2)
    validation.at_least("batch", batch, 1)
    count, mean, squares = 0, 0.0, 0.0
    for index, start in enumerate(range(0, samples, batch)):
        size = min(batch, samples - start)
        values = np.asarray(validation.array("draw(generator, size)", draw(stream(name, index), size), "..."))
        if values.shape[:1] != (size,):
            raise ValueError(f"draw(generator, {size}) must return {size} samples, got shape {values.shape}")
        shift = values.mean(0) - mean
        squares = squares + ((values - values.mean(0)) ** 2).sum(0) + shift**2 * count * size / (count + size)
        mean = mean + shift * size / (count + size)
        count += size
    return Estimate(mean, np.sqrt(squares / (count - 1) / count), count)


@dataclass(frozen=True)
class ZTest:
    """Outcome of `z_test`: the standardised deviation, the verdict, and the errors that the test can make.

    `z` is the largest deviation in absolute value and `worst` its entry (flat index); `false_alarm` the chance that
    a true prediction fails; `detectable` the smallest deviation that fails with probability at least 1 - false_alarm.
    """

    z: float
    worst: int
    threshold: float
    passed: bool
    false_alarm: float
    detectable: float


def z_test(estimate: Estimate, predicted, *, false_alarm: float = FALSE_ALARM) -> ZTest:
    """Test that an estimate agrees with its prediction, at a stated false-alarm rate over all its entries.

    The threshold is the two-sided Student quantile with n - 1 degrees of freedom, divided over the entries
    (Bonferroni). It is exact for Gaussian samples and asymptotic otherwise: use at least 1000 samples, or at
    least 20 means of large batches. Raises ``ValueError`` for a standard error of zero. Cost: O(entries).

    >>> z_test(Estimate(1.02, 0.01, 10_000), 1.0).passed
    True
    >>> z_test(Estimate(1.10, 0.01, 10_000), 1.0).passed
    False
    """
    target = np.asarray(validation.array("predicted", predicted, "..."))
    validation.between("false_alarm", false_alarm, 1e-300, 0.5)
    if not np.all(np.asarray(estimate.stderr) > 0):
        raise ValueError(f"estimate.stderr must be > 0 for a z-test, got {estimate.stderr!r}")
    deviations = (np.asarray(estimate.mean) - target) / estimate.stderr
    threshold = float(stats.t.isf(false_alarm / 2 / deviations.size, estimate.n - 1))
    worst = int(np.abs(deviations).argmax())
    z = float(deviations.flat[worst])
    detectable = 2 * threshold * float(np.max(estimate.stderr))
    return ZTest(z, worst, threshold, abs(z) <= threshold, false_alarm, detectable)


@dataclass(frozen=True)
class Slope:
    """A fitted slope with its standard error and two-sided confidence interval."""

    value: float
    intercept: float
    stderr: float
    low: float
    high: float


def slope(
    x: Float[np.ndarray, " n"],
    y: Float[np.ndarray, " n"],
    *,
    stderr: Float[np.ndarray, " n"] | None = None,
    confidence: float = 0.95,
) -> Slope:
    """The least-squares slope of y on x with a confidence interval.

    With `stderr` (known standard errors of y) points are weighted by 1/stderr² and the interval is normal;
    without, errors are taken as equal and unknown and the interval is Student's with n - 2 degrees of freedom.
    Raises ``ValueError`` for fewer than three points, unequal lengths, or constant x.

    >>> fit = slope(np.arange(5.0), 2 * np.arange(5.0) + 1)
    >>> round(fit.value, 12), round(fit.intercept, 12)
    (2.0, 1.0)
    """
    x = np.asarray(validation.array("x", x, "n"))
    y = np.asarray(validation.array("y", y, "n", n=len(x)))
    validation.between("confidence", confidence, 0.5, 1 - 1e-12)
    if len(x) < 3:
        raise ValueError(f"x must hold at least 3 points, got {len(x)}")
    if np.ptp(x) == 0:
        raise ValueError(f"x must not be constant, got {x[0]!r} everywhere")
    errors = np.ones(len(x)) if stderr is None else np.asarray(validation.array("stderr", stderr, "n", n=len(x)))
    if np.any(errors <= 0):
        raise ValueError(f"stderr must be > 0, got {errors.min()!r}")
    weights = errors**-2 / (errors**-2).sum()
    centred = x - weights @ x
    spread = (weights * centred**2).sum()
    value = (weights * centred) @ y / spread
    intercept = weights @ y - value * (weights @ x)
    if stderr is None:
        noise = np.sum((y - intercept - value * x) ** 2) / (len(x) - 2)
        error, quantile = np.sqrt(noise / len(x) / spread), stats.t.isf((1 - confidence) / 2, len(x) - 2)
    else:
        error, quantile = (spread * (errors**-2).sum()) ** -0.5, stats.norm.isf((1 - confidence) / 2)
    return Slope(*map(float, (value, intercept, error, value - quantile * error, value + quantile * error)))
