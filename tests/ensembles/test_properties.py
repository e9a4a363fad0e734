"""Properties that hold for every input: searched for counterexamples with hypothesis, on small problems."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mhalib.ensembles import attention, decomposition, weighting

numbers = st.floats(-5, 5, allow_nan=False, width=32)
bandwidths = st.floats(0.05, 20)
kernels = st.sampled_from(attention.KERNELS)
sizes = st.tuples(st.integers(1, 4), st.integers(1, 12), st.integers(1, 3))


@st.composite
def problems(draw):
    """Queries, keys and values of any small sizes, with duplicates, zeros and constant coordinates."""
    m, n, d = draw(sizes)
    return tuple(draw(arrays(float, shape, elements=numbers)) for shape in ((m, d), (n, d), (n,)))


few = settings(max_examples=60, deadline=None, derandomize=True, database=None)


@few
@given(problems(), kernels, bandwidths)
def test_an_estimate_is_a_mean_of_the_values(problem, kernel, h):
    """Weights lie on the simplex; the estimate between the values' extremes; 1/n ≤ v ≤ 1."""
    query, key, value = problem
    weights = attention.kernel_weights(query, key, kernel=kernel, bandwidth=h)
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-12)
    m, v = attention.nadaraya_watson(query, key, value, kernel=kernel, bandwidth=h)
    assert (m >= value.min() - 1e-12).all()
    assert (m <= value.max() + 1e-12).all()
    assert (v >= (1 - 1e-12) / len(key)).all()
    assert (v <= 1 + 1e-12).all()


@few
@given(problems(), kernels, bandwidths, st.randoms(use_true_random=False))
def test_order_of_keys_and_size_of_blocks_do_not_matter(problem, kernel, h, random):
    query, key, value = problem
    order = random.sample(range(len(key)), len(key))
    m, v = attention.nadaraya_watson(query, key, value, kernel=kernel, bandwidth=h)
    other_m, other_v = attention.nadaraya_watson(
        query, key[order], value[order], kernel=kernel, bandwidth=h, block=random.randint(1, 5))
    np.testing.assert_allclose(other_m, m, atol=1e-11)
    np.testing.assert_allclose(other_v, v, rtol=1e-9)


@few
@given(problems(), bandwidths, numbers)
def test_invariances(problem, h, shift):
    """Gaussian: moving all points; exponential: moving the keys; both: turning all points, affine maps of values."""
    query, key, value = problem

    def estimate(q, k, y, kernel):
        return attention.nadaraya_watson(q, k, y, kernel=kernel, bandwidth=h)[0]

    turn = np.linalg.qr(np.arange(1.0, query.shape[1] ** 2 + 1).reshape(query.shape[1], -1) + np.eye(query.shape[1]))[0]
    tolerance = 1e-9 * (1 + 1 / h**2)
    for kernel in attention.KERNELS:
        plain = estimate(query, key, value, kernel)
        np.testing.assert_allclose(estimate(query @ turn, key @ turn, value, kernel), plain, atol=tolerance)
        np.testing.assert_allclose(estimate(query, key, 3 * value - 2, kernel), 3 * plain - 2, atol=1e-10)
    np.testing.assert_allclose(estimate(query + shift, key + shift, value, "gaussian"),
                               estimate(query, key, value, "gaussian"), atol=tolerance)
    np.testing.assert_allclose(estimate(query, key + shift, value, "exponential"),
                               estimate(query, key, value, "exponential"), atol=tolerance)


@few
@given(arrays(float, (4, 6), elements=numbers), st.floats(0.1, 3))
def test_optimal_weights_beat_every_other(factor, ridge):
    cov = factor @ factor.T + ridge * np.eye(4)
    best = weighting.ensemble_variance(weighting.optimal_weights(cov), cov)
    for rival in (weighting.uniform_weights(4), weighting.fibonacci_weights(4), weighting.geometric_weights(4, 0.5)):
        assert best <= weighting.ensemble_variance(rival, cov) * (1 + 1e-9)


@few
@given(arrays(float, (2, 3, 5), elements=numbers), arrays(float, 2, elements=st.floats(-3, 3)))
def test_noise_floor(scores, alpha):
    """n Var / σ² ≥ (Σα)² for weights of any sign."""
    weights = np.exp(scores)
    weights /= weights.sum(-1, keepdims=True)
    cov = decomposition.label_noise_covariance(weights, 1.0)
    assert (5 * np.einsum("h,g,mhg->m", alpha, alpha, cov) >= alpha.sum() ** 2 - 1e-9).all()
