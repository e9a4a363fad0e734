"""Kernel weights, heads and the streaming estimator against one another and against extended precision."""

import numpy as np
import pytest
import torch

from mhalib.device import stream
from mhalib.ensembles import attention


def draws(name, *shapes):
    g = stream(f"test.{name}")
    return [g.standard_normal(shape) for shape in shapes]


def reference(query, key, value, kernel, h):
    """Estimate and sum of squared weights in extended precision, from the definition."""
    q, k, y = (np.asarray(x, np.longdouble) for x in (query, key, value))
    if kernel == "exponential":
        logarithm = (q[..., :, None, :] * k[..., None, :, :]).sum(-1) / h**2
    else:
        logarithm = -((q[..., :, None, :] - k[..., None, :, :]) ** 2).sum(-1) / (2 * h**2)
    weights = np.exp(logarithm - logarithm.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return (weights[..., None] * y[..., None, :, :]).sum(-2), (weights**2).sum(-1)


@pytest.mark.parametrize("kernel", attention.KERNELS)
@pytest.mark.parametrize("h", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("block", [None, 1, 7, 1000])
def test_streaming_equals_the_definition(kernel, h, block):
    query, key, value = draws("streaming", (9, 3), (150, 3), (150, 2))
    m, v = attention.nadaraya_watson(query, key, value, kernel=kernel, bandwidth=h, block=block)
    expected_m, expected_v = reference(query, key, value, kernel, h)
    np.testing.assert_allclose(m, expected_m.astype(float), rtol=0, atol=1e-12)
    np.testing.assert_allclose(v, expected_v.astype(float), rtol=1e-11)


def test_control_wrong_bandwidth_or_kernel_is_seen():
    query, key, value = draws("control", (9, 3), (150, 3), (150, 2))
    expected, _ = reference(query, key, value, "gaussian", 1.0)
    for options in ({"kernel": "exponential", "bandwidth": 1.0}, {"kernel": "gaussian", "bandwidth": 1.01}):
        assert abs(attention.nadaraya_watson(query, key, value, **options)[0] - expected.astype(float)).max() > 1e-3


@pytest.mark.parametrize("kernel", attention.KERNELS)
def test_round_off_does_not_grow_with_the_number_of_keys(kernel):
    """1e-12 at 300,000 keys against extended precision; adding the terms one by one would miss it."""
    query, key, value = draws("many-keys", (2, 4), (300_000, 4), (300_000, 1))
    m, v = attention.nadaraya_watson(query, key, value, kernel=kernel, bandwidth=0.5)
    expected_m, expected_v = reference(query, key, value, kernel, 0.5)
    assert abs(m - expected_m.astype(float)).max() < 1e-13
    assert abs(v / expected_v.astype(float) - 1).max() < 1e-13


@pytest.mark.parametrize("batch", [(), (5,), (2, 3)])
@pytest.mark.parametrize("kernel", attention.KERNELS)
def test_batches_are_independent_problems(batch, kernel):
    query, key, value = draws("batch", (*batch, 4, 3), (*batch, 11, 3), (*batch, 11, 2))
    for _ in range(20):
        scratch = np.full((64, 64, 64), 31.0)  # memory that a forgotten initialisation would pick up
        del scratch
        m, v = attention.nadaraya_watson(query, key, value, kernel=kernel, bandwidth=0.8)
        for index in np.ndindex(*batch):
            expected_m, expected_v = reference(query[index], key[index], value[index], kernel, 0.8)
            np.testing.assert_allclose(m[index], expected_m.astype(float), atol=1e-12)
            np.testing.assert_allclose(v[index], expected_v.astype(float), rtol=1e-11)


def test_scalar_values_drop_the_last_axis():
    query, key, value = draws("scalar", (4, 3), (11, 3), (11,))
    for estimate in (lambda y: attention.nadaraya_watson(query, key, y, bandwidth=1.0),
                     lambda y: attention.attention_head(query, key, y, scale=1.0)):
        assert estimate(value)[0].shape == (4,)
        np.testing.assert_array_equal(estimate(value)[0], estimate(value[:, None])[0][:, 0])


def test_head_equals_exponential_kernel_and_fused_attention():
    query, key, value = draws("head", (6, 8), (40, 8), (40, 8))
    head, v = attention.attention_head(query, key, value, scale=8**-0.5)
    streamed, v_streamed = attention.nadaraya_watson(query, key, value, bandwidth=8**0.25)
    fused = torch.nn.functional.scaled_dot_product_attention(*(torch.tensor(x)[None] for x in (query, key, value)))
    np.testing.assert_allclose(streamed, head, atol=1e-13)
    np.testing.assert_allclose(fused[0], head, atol=1e-13)
    np.testing.assert_allclose(v_streamed, v, rtol=1e-12)


@pytest.mark.parametrize("kernel", attention.KERNELS)
def test_huge_scores_stay_finite(kernel):
    """Scores of 1e8 would overflow without the running maximum; the answer is the winning key's value."""
    key = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    scores = np.array([1.0, 0.0, -1.0]) / 1e-4**2
    m, v = attention.nadaraya_watson(key[:1], key, np.array([5.0, 7.0, 9.0]), kernel=kernel, bandwidth=1e-4, block=1)
    assert (m.tolist(), v.tolist()) == ([5.0], [1.0])
    with np.errstate(over="ignore", invalid="ignore"):
        assert np.isnan(np.exp(scores)[0] / np.exp(scores).sum())


def test_gaussian_kernel_is_translation_invariant_in_single_precision():
    """Shifting all points by 100 costs no digits, because the data are centred; the raw expansion loses half."""
    query, key, value = (x.astype(np.float32) for x in draws("shift", (20, 4), (500, 4), (500, 1)))
    options = {"kernel": "gaussian", "bandwidth": 0.3}
    exact, _ = attention.nadaraya_watson((query + 100).astype(float), (key + 100).astype(float), value, **options)
    shifted, _ = attention.nadaraya_watson(query + 100, key + 100, value, **options)
    assert shifted.dtype == np.float32
    assert abs(shifted - exact).max() < 1e-3
    q, k = (torch.tensor(x + 100) for x in (query, key))
    raw = torch.softmax((q @ k.T - 0.5 * k.square().sum(1)) / 0.3**2, -1) @ torch.tensor(value)
    assert abs(raw.numpy() - exact).max() > 1e-2


@pytest.mark.parametrize("kernel", attention.KERNELS)
def test_weights_are_the_definition(kernel):
    query, key = draws("weights", (5, 3), (20, 3))
    weights = attention.kernel_weights(query, key, kernel=kernel, bandwidth=0.7)
    m, _ = reference(query, key, np.eye(20), kernel, 0.7)
    np.testing.assert_allclose(weights, m.astype(float), atol=1e-14)


def test_prior_turns_gaussian_into_softmax():
    query, key = draws("prior", (5, 3), (20, 3))
    prior = attention.norm_prior(key, bandwidth=0.7)
    softmax = attention.kernel_weights(query, key, kernel="exponential", bandwidth=0.7)
    gaussian = attention.kernel_weights(query, key, kernel="gaussian", bandwidth=0.7, log_prior=prior)
    plain = attention.kernel_weights(query, key, kernel="gaussian", bandwidth=0.7)
    assert attention.total_variation(softmax, gaussian).max() < 1e-14
    assert attention.total_variation(softmax, plain).min() > 0.01


def test_torch_in_torch_out_with_gradients():
    query, key, value = (torch.tensor(x, requires_grad=True) for x in draws("torch", (4, 3), (9, 3), (9,)))
    head, _ = attention.attention_head(query, key, value, scale=0.5)
    head.sum().backward()
    assert all(torch.isfinite(x.grad).all() for x in (query, key, value))


def test_read_only_input_is_left_alone():
    query, key, value = draws("read-only", (4, 3), (9, 3), (9,))
    for x in (query, key, value):
        x.flags.writeable = False
    attention.nadaraya_watson(query, key, value, kernel="gaussian", bandwidth=1.0)
