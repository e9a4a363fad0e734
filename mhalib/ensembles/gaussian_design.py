"""Closed-form label-noise variance of one head, n V/σ², when the keys are isotropic Gaussian or on a sphere.

At leading order in 1/n the variance of a self-normalised mean is $E[K^2]/(E K)^2$; these are that ratio.
"""

import numpy as np
from jaxtyping import Float
from scipy import special

from mhalib import validation


def exponential_noise_variance_at(
    norm2: float | Float[np.ndarray, "..."], beta: float,
) -> float | Float[np.ndarray, "..."]:
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

    $\varphi(2)/\varphi(1)^2$ with $\varphi(r) = E e^{r s\langle q,k\rangle} = {}_0F_1(; p/2; z^2/4)
    = \Gamma(p/2)(2/z)^\nu I_\nu(z)$, z = r s p, ν = p/2 - 1, s the scale of the scores (1/√p in a standard head).
    Raises ``ValueError`` for p < 2, scale ≤ 0, or a scale so large (2sp above about 700) that φ overflows. Source:
    equation `eq-neff-sphere` of the book.

    >>> round(sphere_noise_variance(1 / 8, 64), 5)
    2.58861
    """
    validation.at_least("head_dim", head_dim, 2)
    z = np.array([1, 2]) * validation.positive("scale", scale) * head_dim
    first, second = special.hyp0f1(head_dim / 2, z**2 / 4)
    if not np.isfinite(second):
        raise ValueError(f"scale must keep 2 * scale * head_dim below about 700, got {2 * scale * head_dim:.3g}")
    return float(second / first**2)
