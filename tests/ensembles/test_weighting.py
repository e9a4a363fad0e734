"""Output weights against direct minimisation, exact fractions and known thresholds."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize

from mhalib.device import stream
from mhalib.ensembles import weighting


def test_optimal_weights_minimise():
    factor = stream("test.cov").standard_normal((5, 9))
    cov = factor @ factor.T
    found = optimize.minimize(lambda a: a @ cov @ a, np.full(5, 0.2), method="SLSQP", options={"ftol": 1e-15},
                              constraints={"type": "eq", "fun": lambda a: a.sum() - 1})
    best = weighting.optimal_weights(cov)
    np.testing.assert_allclose(best, found.x, atol=1e-5)
    assert weighting.ensemble_variance(best, cov) == pytest.approx(1 / np.linalg.inv(cov).sum())
    assert weighting.ensemble_variance(weighting.uniform_weights(5), cov) > 1.01 / np.linalg.inv(cov).sum()


@pytest.mark.parametrize("heads", [1, 2, 3, 10, 90])
def test_fibonacci_weights_are_the_exact_fractions(heads):
    numbers = [1, 1]
    while len(numbers) < heads:
        numbers.append(sum(numbers[-2:]))
    exact = [float(Fraction(x, sum(numbers[:heads]))) for x in numbers[:heads][::-1]]
    np.testing.assert_allclose(weighting.fibonacci_weights(heads), exact, rtol=1e-15)


def test_equal_heads_close_forms():
    """Uniform 1/H, geometric (1 - r)/(1 + r), Fibonacci to the golden ratio's power -3: not -2."""
    golden = (1 + 5**0.5) / 2
    assert (weighting.uniform_weights(7) ** 2).sum() == pytest.approx(1 / 7)
    assert (weighting.geometric_weights(400, 0.8) ** 2).sum() == pytest.approx(0.2 / 1.8)
    assert (weighting.fibonacci_weights(60) ** 2).sum() == pytest.approx(golden**-3, rel=1e-10)
    assert (weighting.fibonacci_weights(60) ** 2).sum() != pytest.approx(golden**-2, rel=0.1)


@pytest.mark.parametrize(("heads", "expected"), [(4, 0.8066), (8, 0.8151), (12, 0.8352), (16, 0.8535), (32, 0.8990)])
def test_geometric_thresholds(heads, expected):
    def variances(q):
        return q ** -np.arange(heads)
    scheme = weighting.fibonacci_weights(heads)
    root = weighting.heterogeneity_threshold(scheme, variances, 0.5, 1.0)
    assert root == pytest.approx(expected, abs=5e-5)
    tie = scheme**2 @ variances(root) / (variances(root).sum() / heads**2)
    assert tie == pytest.approx(1, abs=1e-10)


def test_structured_weights_are_optimal_for_their_own_profile():
    for scheme in (weighting.geometric_weights(6, 0.7), weighting.fibonacci_weights(6)):
        np.testing.assert_allclose(weighting.optimal_weights(np.diag(1 / scheme)), scheme)
        shared = np.diag(1 / scheme) + 0.3
        np.testing.assert_allclose(weighting.optimal_weights(shared), scheme)
        assert not np.allclose(weighting.optimal_weights(np.diag(1 / scheme**2)), scheme, atol=1e-3)


def test_plug_in_inflation_limits():
    assert weighting.plug_in_inflation(10**9, 5) == pytest.approx(1)
    assert weighting.plug_in_inflation(6, 5) == 5
    assert weighting.plug_in_inflation(7, 1) == 1
