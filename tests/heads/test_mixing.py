"""Matrix output weights: the combination identity, their geometry, and the label noise they let through."""

from dataclasses import replace

import numpy as np
import pytest

from mhalib import device
from mhalib.heads import mixing
from mhalib.heads.passages import passages


@pytest.fixture
def layer(tiny):
    return tiny.layers[0]


@pytest.fixture
def attention(tiny_trace):
    """The first layer's weights at five queries."""
    return tiny_trace.attention[0][:, :5]


@pytest.fixture
def scalar_layer(layer):
    """A layer with A_h = α_h A for α = 1, 2, 3."""
    scale = np.array([1.0, 2.0, 3.0])[:, None, None]
    return replace(layer, value=np.stack([layer.value[0]] * 3), output=layer.output[:1] * scale)


def test_a_layer_is_a_matrix_weighted_sum_of_estimators(tiny, tiny_trace):
    """To 1e-12; with the matrices of another layer it is not."""
    assert mixing.combination_error(tiny.layers, tiny_trace).shape == tiny_trace.hidden[:-1].shape[:2]
    assert mixing.combination_error(tiny.layers, tiny_trace).max() < 1e-12
    assert mixing.combination_error(tiny.layers[::-1], tiny_trace).max() > 1e-3


def test_products_from_factors_equal_those_of_the_matrices(layer):
    """tr(A Bᵀ) without forming A or B; the transposed pairing differs."""
    matrices = mixing.mixing_matrices(layer)
    assert matrices.shape == (3, 24, 24)
    np.testing.assert_allclose(mixing.mixing_products(layer), np.einsum("hde,gde->hg", matrices, matrices))
    assert not np.allclose(mixing.mixing_products(layer), np.einsum("hde,ged->hg", matrices, matrices))


def test_scalar_weights_are_recognised(layer, scalar_layer):
    """Proportional matrices have |cos| = 1 and no residual; random ones have neither."""
    np.testing.assert_allclose(np.abs(mixing.mixing_cosines(scalar_layer)), 1)
    assert mixing.scalar_weight_residual(mixing.mixing_products(scalar_layer)) < 1e-7
    off_diagonal = mixing.mixing_cosines(layer)[np.triu_indices(3, 1)]
    assert np.abs(off_diagonal).max() < 0.5
    assert mixing.scalar_weight_residual(mixing.mixing_products(layer)) > 0.5


def test_residual_is_that_of_the_best_common_matrix(layer):
    """Against the singular values of the stacked vec(A_h)."""
    singular = np.linalg.svd(mixing.mixing_matrices(layer).reshape(3, -1), compute_uv=False)
    expected = np.sqrt((singular[1:] ** 2).sum() / (singular**2).sum())
    np.testing.assert_allclose(mixing.scalar_weight_residual(mixing.mixing_products(layer)), expected)


def test_noise_variance_from_its_definition(layer, attention):
    """tr of the covariance of Σ_h A_h Σ_i w_hi ε_i, with the d × n d map written out at one query."""
    variance = mixing.noise_variance(layer, attention, 0.3)
    matrices = mixing.mixing_matrices(layer)
    for m in range(attention.shape[1]):
        total = 0.3 * (np.einsum("hi,hde->die", attention[:, m], matrices) ** 2).sum()
        own = 0.3 * sum((np.einsum("i,de->die", w, a) ** 2).sum()
                        for w, a in zip(attention[:, m], matrices, strict=True))
        np.testing.assert_allclose(variance.own[m] + variance.cross[m], total)
        np.testing.assert_allclose(variance.own[m], own)
    assert np.abs(variance.cross).min() > 1e-3 * variance.own.max()


def simulate(layer, attention, draws):
    """Mean and standard error of own, cross and total over 20 batches of draws, and their exact values."""
    batches = []
    for index in range(20):
        noise = device.stream("tests.heads.noise", index).standard_normal(
            (draws, attention.shape[-1], layer.value.shape[1]))
        part = mixing.simulated_noise(layer, attention, np.sqrt(0.3) * noise)
        batches.append([part.own.mean(), part.cross.mean(), (part.own + part.cross).mean()])
    exact = mixing.noise_variance(layer, attention, 0.3)
    predicted = np.array([exact.own.mean(), exact.cross.mean(), (exact.own + exact.cross).mean()])
    return np.mean(batches, axis=0), np.std(batches, axis=0, ddof=1) / np.sqrt(20), predicted


@pytest.mark.parametrize("name", ["layer", "scalar_layer"])
def test_simulated_noise_has_the_exact_mean(request, name, attention):
    """|z| < 5 for own, cross and total, with 10,000 draws."""
    mean, stderr, predicted = simulate(request.getfixturevalue(name), attention, draws=500)
    assert np.abs((mean - predicted) / stderr).max() < 5


def test_noise_without_covariances_is_rejected(scalar_layer, attention):
    """Negative control of the previous test: the own part alone is more than 5 standard errors off the total."""
    mean, stderr, predicted = simulate(scalar_layer, attention, draws=500)
    assert abs(mean[2] - predicted[0]) / stderr[2] > 5


def test_real_heads_partly_cancel_each_others_noise(encoder):
    """In layer 4 of the real model the cross part is negative: by formula, and by simulation within |z| < 5."""
    trace = encoder.trace(passages()[0].text)
    mean, stderr, predicted = simulate(encoder.layers[4], trace.attention[4][:, 10:14], draws=20)
    assert predicted[1] < 0
    assert np.abs((mean - predicted) / stderr).max() < 5
    assert abs(mean[2] - predicted[0]) / stderr[2] > 5


def test_scalar_weights_make_every_covariance_positive(scalar_layer, layer, attention):
    """Positive scalar weights give a positive cross part at every query; one matrix turned round a negative one."""
    assert mixing.noise_variance(scalar_layer, attention, 1.0).cross.min() > 0
    signs = np.array([1.0, -1.0, 1.0])[:, None, None]
    opposed = replace(scalar_layer, output=np.stack([scalar_layer.output[0]] * 3) * signs)
    assert mixing.noise_variance(opposed, attention, 1.0).cross.max() < 0


@pytest.mark.parametrize(("change", "message"), [
    (lambda a: a[:2], r"attention must have shape \(H, m, n\) with H = 3"),
    (lambda a: a[0], r"attention must have shape \(H, m, n\), got shape"),
    (lambda a: 2 * a, "attention must sum to one"),
    (lambda a: a * np.inf, "attention must be finite"),
    (lambda a: a[:, :0], "attention must not be empty"),
])
def test_bad_attention(layer, attention, change, message):
    noise = np.zeros((2, attention.shape[-1], 24))
    with pytest.raises(ValueError, match=message):
        mixing.noise_variance(layer, change(attention), 1.0)
    with pytest.raises(ValueError, match=message):
        mixing.simulated_noise(layer, change(attention), noise)


def test_bad_noise(layer, attention):
    with pytest.raises(ValueError, match="input_noise must be a finite number > 0, got 0"):
        mixing.noise_variance(layer, attention, 0)
    for shape in ((2, attention.shape[-1], 23), (2, 1, 24)):
        with pytest.raises(ValueError, match=r"noise must have shape \(draws, n, d\) with"):
            mixing.simulated_noise(layer, attention, np.zeros(shape))
