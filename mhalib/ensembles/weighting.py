"""Output weights of an ensemble: optimal, uniform, geometric, Fibonacci, and when one beats another."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy import optimize

from mhalib import validation


def optimal_weights(cov: Float[np.ndarray, "H H"]) -> Float[np.ndarray, " H"]:
    r"""The weights of sum one with the least variance, $C^{-1}\mathbf 1/\mathbf 1^\top C^{-1}\mathbf 1$.

    `cov` is the covariance matrix of the heads (add $bb^\top$ for biases b); weights may be negative. Raises
    ``ValueError`` unless it is symmetric positive definite. Cost: O(H³). Source: Bates and Granger (1969);
    Theorem `thm-optimal-weights` of the book.

    >>> optimal_weights(np.diag([1.0, 3.0])).tolist()
    [0.75, 0.25]
    """
    solution = np.linalg.solve(validation.covariance("cov", cov), np.ones(len(cov)))
    return solution / solution.sum()


def uniform_weights(heads: int) -> Float[np.ndarray, " H"]:
    """Equal weights 1/H. Raises ``ValueError`` for fewer than one head.

    >>> uniform_weights(4).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    return np.full(validation.at_least("heads", heads, 1), 1 / heads)


def geometric_weights(heads: int, ratio: float) -> Float[np.ndarray, " H"]:
    r"""Weights $\alpha_h \propto r^{h-1}$, best head first, for a ratio r in (0, 1].

    Raises ``ValueError`` for fewer than one head or a ratio outside (0, 1]. Source: arXiv 2605.20271, Theorem 7.1.

    >>> geometric_weights(2, 0.5).round(6).tolist()
    [0.666667, 0.333333]
    """
    validation.positive("ratio", ratio)
    weights = validation.between("ratio", ratio, 0, 1) ** np.arange(validation.at_least("heads", heads, 1))
    return weights / weights.sum()


def fibonacci_weights(heads: int) -> Float[np.ndarray, " H"]:
    r"""Weights $\alpha_h \propto F_{H+1-h}$ ($F_1 = F_2 = 1$), best head first.

    Raises ``ValueError`` for fewer than one head or more than 1000 (overflow). Source: arXiv 2605.20271,
    Theorem 7.1.

    >>> (fibonacci_weights(4) * 7).round(12).tolist()
    [3.0, 2.0, 1.0, 1.0]
    """
    if validation.at_least("heads", heads, 1) > 1000:
        raise ValueError(f"heads must be at most 1000, got {heads}")
    numbers = [1, 1]
    while len(numbers) < heads:
        numbers.append(numbers[-1] + numbers[-2])
    total = sum(numbers[:heads])
    return np.array([number / total for number in reversed(numbers[:heads])])


def ensemble_variance(weights: Float[np.ndarray, " H"], cov: Float[np.ndarray, "H H"]) -> float:
    r"""Variance $\alpha^\top C\alpha$ of a weighted sum of heads.

    Raises ``ValueError`` unless `weights` sum to one and `cov` is symmetric positive definite of that size.

    >>> ensemble_variance(np.array([0.5, 0.5]), np.eye(2))
    0.5
    """
    cov = validation.covariance("cov", cov)
    alpha = validation.sums_to_one("weights", np.asarray(validation.array("weights", weights, "H", H=len(cov))))
    return float(alpha @ cov @ alpha)


def heterogeneity_threshold(
    scheme: Float[np.ndarray, " H"],
    variances: Callable[[float], Float[np.ndarray, " H"]],
    low: float,
    high: float,
) -> float:
    """The heterogeneity in [low, high] at which a weighting of independent heads ties with uniform weights.

    `variances(x)` gives the head variances at heterogeneity x, best head first. Raises ``ValueError`` when the
    order of the two does not change over the interval. Cost: about 10 evaluations; accurate to 1e-12. Source:
    Section `sec-weights` of the book.

    >>> round(heterogeneity_threshold(fibonacci_weights(4), lambda q: q ** -np.arange(4.0), 0.5, 1.0), 4)
    0.8066
    """
    scheme = validation.sums_to_one("scheme", np.asarray(validation.array("scheme", scheme, "H")))

    def excess(x: float) -> float:
        spread = np.asarray(validation.array("variances(x)", variances(x), "H", H=len(scheme)))
        return scheme**2 @ spread - spread.sum() / len(scheme) ** 2

    ends = excess(low), excess(high)
    if np.sign(ends[0]) == np.sign(ends[1]):
        raise ValueError(f"low and high must bracket a tie, got {ends[0]:.3g} at {low} and {ends[1]:.3g} at {high}")
    return float(optimize.brentq(excess, low, high, xtol=1e-13))


def plug_in_inflation(samples: int, heads: int) -> float:
    r"""Expected excess variance factor $(m-1)/(m-H)$ of optimal weights estimated from m pilot residuals.

    Exact for Gaussian residuals of known (zero) mean. Raises ``ValueError`` unless m > H ≥ 1. Source: Proposition
    `prop-plug-in` of the book.

    >>> round(plug_in_inflation(11, 5), 4)
    1.6667
    """
    validation.at_least("heads", heads, 1)
    return (validation.at_least("samples", samples, heads + 1) - 1) / (samples - heads)
