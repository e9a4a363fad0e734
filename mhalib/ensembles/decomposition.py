"""The error of an ensemble as bias², variance and covariance, and the ceiling law of exchangeable families."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from mhalib import validation
from mhalib.device import same_kind, tensor
from mhalib.estimate import Estimate, from_samples
from mhalib.validation import Array


@dataclass(frozen=True)
class BVC:
    """Bias², summed weighted variances, summed weighted covariances and mean squared error, at every query."""

    bias2: Float[Array, " m"]
    variance: Float[Array, " m"]
    covariance: Float[Array, " m"]
    mse: Float[Array, " m"]


def bias_variance_covariance(
    predictions: Float[Array, "R H m"], target: Float[Array, " m"], weights: Float[Array, " H"],
) -> BVC:
    r"""The sample decomposition of the error of $\sum_h\alpha_h\hat m_h$ over R independent replicates.

    Moments divide by R, so that mse = bias2 + variance + covariance is an identity of numbers: it describes a
    data set and proves nothing (see `given_design` for a prediction). Raises ``ValueError`` for wrong shapes,
    non-finite entries or fewer than two replicates. Cost: O(R H² m). Source: arXiv 2605.20271, Theorem 3.1.

    >>> parts = bias_variance_covariance(np.array([[[1.0], [3.0]], [[2.0], [6.0]]]), np.zeros(1), np.array([.5, .5]))
    >>> [float(x[0]) for x in (parts.bias2, parts.variance, parts.covariance, parts.mse)]
    [9.0, 0.625, 0.375, 10.0]
    """
    predictions = validation.array("predictions", predictions, "R H m")
    replicates, heads, queries = predictions.shape
    validation.at_least("predictions.shape[0]", replicates, 2)
    target = validation.array("target", target, "m", m=queries)
    weights = validation.array("weights", weights, "H", H=heads)
    centred = predictions - predictions.mean(0)
    cov = _einsum("rhm,rgm->mhg", centred, centred) / replicates
    combined = _einsum("h,rhm->rm", weights, predictions)
    return BVC((combined.mean(0) - target) ** 2, *_own_and_cross(weights, cov), ((combined - target) ** 2).mean(0))


def label_noise_covariance(weights: Float[Array, "... H m n"], noise_variance: float) -> Float[Array, "... m H H"]:
    r"""Covariance of head outputs given the design: $\sigma^2\langle w_h(x), w_{h'}(x)\rangle$ at every query.

    `weights` are kernel weights over the n keys (each row sums to one), `noise_variance` is σ² > 0. Raises
    ``ValueError`` otherwise. Cost: O(H² m n). Source: Proposition `prop-label-noise` of the book.

    >>> label_noise_covariance(np.full((2, 1, 4), 0.25), 1.0).tolist()
    [[[0.25, 0.25], [0.25, 0.25]]]
    """
    weights = validation.sums_to_one("weights", validation.array("weights", weights, "... H m n"))
    return validation.positive("noise_variance", noise_variance) * _einsum("...hmn,...gmn->...mhg", weights, weights)


def given_design(
    weights: Float[Array, "H m n"],
    signal: Float[Array, " n"],
    target: Float[Array, " m"],
    output_weights: Float[Array, " H"],
    noise_variance: float,
) -> BVC:
    r"""The predicted decomposition given the design, assembled from analytic pieces with no draw of the noise.

    `weights` are kernel weights, `signal` the regression function at the keys, `target` at the queries,
    `output_weights` the α_h (independent of the labels), `noise_variance` σ² > 0. The bias is
    $\sum_h\alpha_h\langle w_h, f\rangle - f(x)$; covariances come from `label_noise_covariance`. Raises
    ``ValueError`` for wrong shapes. Cost: O(H² m n). Source: Theorem `thm-bvc` of the book.

    >>> parts = given_design(np.full((1, 1, 2), 0.5), np.ones(2), np.zeros(1), np.ones(1), 1.0)
    >>> float(parts.bias2[0]), float(parts.mse[0])
    (1.0, 1.5)
    """
    cov = label_noise_covariance(weights, noise_variance)
    heads, queries, keys = weights.shape
    signal = validation.array("signal", signal, "n", n=keys)
    target = validation.array("target", target, "m", m=queries)
    alpha = validation.array("output_weights", output_weights, "H", H=heads)
    bias2 = (_einsum("h,hmn,n->m", alpha, weights, signal) - target) ** 2
    variance, covariance = _own_and_cross(alpha, cov)
    return BVC(bias2, variance, covariance, bias2 + variance + covariance)


@dataclass(frozen=True)
class Pieces:
    """Unbiased estimates of the five parts of the unconditional error, averaged over queries."""

    bias2: float
    noise_variance: float
    noise_covariance: float
    design_variance: float
    design_covariance: float

    @property
    def total(self) -> float:
        """The mean squared error that the five parts predict."""
        return (self.bias2 + self.noise_variance + self.noise_covariance
                + self.design_variance + self.design_covariance)


def over_designs(
    weights: Float[np.ndarray, "R H m n"],
    signal: Float[np.ndarray, "R n"],
    target: Float[np.ndarray, " m"],
    output_weights: Float[np.ndarray, " H"],
    noise_variance: float,
) -> Pieces:
    r"""The predicted decomposition over random designs, from R independent designs and no draw of the noise.

    By total covariance $C_{hh'} = \sigma^2 E\langle w_h, w_{h'}\rangle
    + \mathrm{Cov}(\langle w_h, f\rangle, \langle w_{h'}, f\rangle)$: a noise part and a design part. The squared
    bias is corrected for its own sampling variance. Arguments as in `given_design`, with one design a row. Raises
    ``ValueError`` for wrong shapes or fewer than two designs. Cost: O(R H² m n). Source: Theorem `thm-bvc`.

    >>> weights = np.full((2, 1, 1, 4), 0.25)
    >>> over_designs(weights, np.array([[0.0] * 4, [1.0] * 4]), np.zeros(1), np.ones(1), 2.0)
    Pieces(bias2=0.0, noise_variance=0.5, noise_covariance=0.0, design_variance=0.5, design_covariance=0.0)
    """
    weights = np.asarray(validation.array("weights", weights, "R H m n"))
    designs, heads, queries, keys = weights.shape
    validation.at_least("weights.shape[0] (designs)", designs, 2)
    signal = np.asarray(validation.array("signal", signal, "R n", R=designs, n=keys))
    target = np.asarray(validation.array("target", target, "m", m=queries))
    alpha = np.asarray(validation.array("output_weights", output_weights, "H", H=heads))
    smoothed = np.einsum("rhmn,rn->rhm", weights, signal)
    centred = smoothed - smoothed.mean(0)
    noise = label_noise_covariance(weights, noise_variance).mean((0, 1))
    design = np.einsum("rhm,rgm->hg", centred, centred) / (designs - 1) / queries
    parts = (float(part) for cov in (noise, design) for part in _own_and_cross(alpha, cov))
    combined = np.einsum("h,rhm->rm", alpha, smoothed) - target
    bias2 = float((combined.mean(0) ** 2 - combined.var(0, ddof=1) / designs).mean())
    return Pieces(bias2, *parts)


def ceiling_variance(variance: float, correlation: float, heads) -> float | Float[np.ndarray, " k"]:
    r"""Variance of the mean of H exchangeable estimators: $V\{\rho + (1-\rho)/H\}$.

    `variance` > 0, `correlation` in [-1, 1], `heads` one or several integers ≥ 1. Raises ``ValueError``
    otherwise, or if the correlation is impossible for that many heads. Source: Theorem `thm-ceiling` of the book.

    >>> round(ceiling_variance(2.0, 0.35, 6), 6)
    0.916667
    """
    count = np.asarray(validation.array("heads", heads, "..."))
    if np.any(count < 1) or np.any(count != np.round(count)):
        raise ValueError(f"heads must be integers >= 1, got {heads!r}")
    rho = validation.between("correlation", correlation, -1, 1)
    result = validation.positive("variance", variance) * (rho + (1 - rho) / count)
    if np.any(result < 0):
        raise ValueError(f"correlation {correlation!r} is impossible for {heads!r} exchangeable heads")
    return float(result) if result.ndim == 0 else result


def ceiling_discrepancy(
    fitted: Float[np.ndarray, "G R H m"], held_out: Float[np.ndarray, "G R B m"], *, correlated: bool = True,
) -> Estimate:
    r"""Observed minus predicted variance of the mean of B held-out members, in units of a member's variance.

    Every group g of R independent replicates gives unbiased moments: mean variance V and mean covariance C of the
    H `fitted` members, and the variance of the mean of the B `held_out` members. The law predicts
    $C + (V - C)/B$, which is linear in both, so the mean over groups estimates zero without bias; with
    `correlated=False` the prediction is V/B, which is wrong unless C = 0. Raises ``ValueError`` for fewer than
    two replicates or fitted members. Cost: one pass. Source: Theorem `thm-ceiling` of the book.

    >>> draws = np.random.default_rng(0).standard_normal((50, 10, 8, 3))
    >>> round(ceiling_discrepancy(draws[:, :, :4], draws[:, :, 4:]).mean, 1)
    0.0
    """
    fitted = np.asarray(validation.array("fitted", fitted, "G R H m"))
    groups, replicates, heads, queries = fitted.shape
    held_out = np.asarray(validation.array("held_out", held_out, "G R B m", G=groups, R=replicates, m=queries))
    validation.at_least("fitted.shape[1] (replicates)", replicates, 2)
    validation.at_least("fitted.shape[2] (members)", heads, 2)
    of_mean = fitted.mean(2).var(1, ddof=1)
    variance = fitted.var(1, ddof=1).mean(1)
    covariance = (heads * of_mean - variance) / (heads - 1) if correlated else np.zeros_like(variance)
    members = held_out.shape[2]
    observed = held_out.mean(2).var(1, ddof=1)
    difference = (observed - covariance - (variance - covariance) / members).mean(-1)
    return from_samples(difference) * (1 / variance.mean())


def _own_and_cross(alpha, cov) -> tuple:
    """Parts of α'Cα from the diagonal of the covariance matrices (..., H, H) and from the rest."""
    own = _einsum("h,...hh->...", alpha**2, cov)
    return own, _einsum("h,g,...hg->...", alpha, alpha, cov) - own


@same_kind
def _einsum(equation: str, *operands: Array) -> Array:
    return torch.einsum(equation, *(tensor(x) for x in operands))
