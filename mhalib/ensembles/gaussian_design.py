"""Closed-form label-noise variance of one head, n V/σ², when the keys are isotropic Gaussian or on a sphere.

At leading order in 1/n the variance of a self-normalised mean is $E[K^2]/(E K)^2$; these are that ratio.
"""

import numpy as np
from jaxtyping import Float
from scipy import special

from mhalib import validation


def noise_variance(h: float, head_dim: int) -> float:
    r"""n V/σ² of a Gaussian-kernel head, averaged over queries from N(0, I): $\kappa(h)^p$.

    $\kappa(h) = (1+h^2)^{3/2}/(h^2\sqrt{3+h^2})$. Keys are N(0, I) in the p = `head_dim` dimensions of the head,
    `h` is the bandwidth. Raises ``ValueError`` for h ≤ 0 or p < 1. Leading order in 1/n: it needs κ^p/n ≲ 0.3.
    Source: equation `eq-kappa` of the book.

    >>> round(noise_variance(1.0, 2), 12)
    2.0
    """
    squared = validation.positive("h", h) ** 2
    kappa = (1 + squared) ** 1.5 / (squared * np.sqrt(3 + squared))
    return float(kappa ** validation.at_least("head_dim", head_dim, 1))


def exponential_noise_variance_at(norm2: Float[np.ndarray, "..."], beta: float) -> Float[np.ndarray, "..."]:
    r"""n V(x)/σ² = n/n_eff of an exponential-kernel head with Gaussian keys at a query of squared norm `norm2`.

    $e^{\beta^2\lVert q\rVert^2}$ with β = 1/h². Raises ``ValueError`` for β ≤ 0 or a negative squared norm.
    Source: equation `eq-neff-gaussian` of the book.

    >>> exponential_noise_variance_at(np.array([4.0]), 0.5).round(6).tolist()
    [2.718282]
    """
    norm2 = validation.array("norm2", norm2, "...")
    if np.any(norm2 < 0):
        raise ValueError(f"norm2 must be >= 0, got {float(np.min(norm2))!r}")
    return np.exp(validation.positive("beta", beta) ** 2 * norm2)


def sphere_noise_variance(scale: float, head_dim: int) -> float:
    r"""n V/σ² = n/n_eff of a softmax head when queries and keys are uniform on the sphere of radius √p.

    $\varphi(2)/\varphi(1)^2$ with $\varphi(r) = E e^{r s\langle q,k\rangle}
    = \Gamma(p/2)(2/z)^\nu I_\nu(z)$, z = r s p, ν = p/2 - 1, s the scale of the scores (1/√p in a standard head).
    Raises ``ValueError`` for scale ≤ 0 or p < 2. Source: equation `eq-neff-sphere` of the book.

    >>> round(sphere_noise_variance(1 / 8, 64), 5)
    2.58861
    """
    order = validation.at_least("head_dim", head_dim, 2) / 2 - 1
    z = validation.positive("scale", scale) * head_dim

    def log_phi(argument: float) -> float:
        bessel = np.log(special.ive(order, argument)) + argument
        return special.gammaln(order + 1) + order * np.log(2 / argument) + bessel

    return float(np.exp(log_phi(2 * z) - 2 * log_phi(z)))
