"""The decomposition against brute force, and the ceiling law where it must hold and where it must not."""

import numpy as np
import pytest
import torch

from mhalib.device import stream
from mhalib.ensembles import decomposition, tied_heads
from mhalib.estimate import from_samples, z_test


@pytest.fixture
def problem():
    g = stream("test.problem")
    key, query = g.standard_normal((60, 3)), g.standard_normal((5, 3))
    weights = tied_heads.tied_weights(query, key, tied_heads.random_bases(g, 3, dim=3, head_dim=2),
                                      kernel="exponential", bandwidth=0.7)
    return weights, np.sin(key[:, 0]), np.sin(query[:, 0]), np.array([0.2, 0.3, 0.5])


def test_sample_decomposition_is_an_identity_of_numbers():
    predictions = stream("test.numbers").standard_normal((20, 3, 5))
    parts = decomposition.bias_variance_covariance(predictions, np.ones(5), np.array([0.2, 0.3, 0.5]))
    np.testing.assert_allclose(parts.bias2 + parts.variance + parts.covariance, parts.mse)
    brute = ((np.einsum("h,rhm->rm", [0.2, 0.3, 0.5], predictions) - 1) ** 2).mean(0)
    np.testing.assert_allclose(parts.mse, brute)


def test_prediction_given_the_design(problem):
    """Against 40,000 redraws of the labels; without the covariances it fails."""
    weights, signal, target, alpha = problem
    parts = decomposition.given_design(weights, signal, target, alpha, 0.5)
    noise = np.sqrt(0.5) * stream("test.redraws").standard_normal((40_000, 60))
    errors = ((signal + noise) @ np.einsum("h,hmn->mn", alpha, weights).T - target) ** 2
    assert z_test(from_samples(errors), parts.mse).passed
    assert not z_test(from_samples(errors), parts.mse - parts.covariance).passed
    np.testing.assert_allclose(parts.bias2 + parts.variance + parts.covariance, parts.mse)


def test_label_noise_covariance_is_positive_and_floored(problem):
    weights, *_ = problem
    cov = decomposition.label_noise_covariance(weights, 2.0)
    np.testing.assert_allclose(cov, 2.0 * np.einsum("hmn,gmn->mhg", weights, weights))
    assert (cov > 0).all()
    assert (np.einsum("h,g,mhg->m", *2 * [np.full(3, 1 / 3)], cov) >= 2.0 / 60).all()


def test_prediction_over_designs_is_unbiased():
    """Mean of 300 predictions from 10 designs each against 6000 direct errors; without the design part it fails."""
    query, target, alpha = np.array([[0.5, 0.5]]), np.array([0.5]), np.array([0.5, 0.5])

    def designs(g, size):
        key = 2 * g.standard_normal((size, 30, 2))
        bases = tied_heads.random_bases(g, size, 2, dim=2, head_dim=1)
        return key[..., 0], tied_heads.tied_weights(query, key, bases, kernel="gaussian", bandwidth=0.4)

    totals, partial = [], []
    for index in range(300):
        signal, weights = designs(stream("test.designs", index), 10)
        pieces = decomposition.over_designs(weights, signal, target, alpha, 1.0)
        totals.append(pieces.total)
        partial.append(pieces.total - pieces.design_variance - pieces.design_covariance)
    signal, weights = designs(stream("test.direct"), 6000)
    labels = signal + stream("test.direct-noise").standard_normal(signal.shape)
    direct = from_samples((np.einsum("h,rhmn,rn->rm", alpha, weights, labels)[:, 0] - 0.5) ** 2)
    assert z_test(direct - from_samples(np.array(totals)), 0.0).passed
    assert not z_test(direct - from_samples(np.array(partial)), 0.0).passed


def test_ceiling_variance_is_that_of_an_equicorrelated_mean():
    for heads in (1, 2, 7):
        cov = 3 * (0.8 * np.eye(heads) + 0.2)
        assert decomposition.ceiling_variance(3.0, 0.2, heads) == pytest.approx(cov.mean())
    assert decomposition.ceiling_variance(1.0, 0.5, [1, 2]).tolist() == [1.0, 0.75]
    assert decomposition.ceiling_variance(1.0, -0.5, 3) == pytest.approx(0, abs=1e-15)


def test_ceiling_discrepancy_of_an_exchangeable_family():
    """Zero for exchangeable members; seen when members beyond the fit are noisier, or when C is ignored."""
    g = stream("test.exchangeable")
    outputs = g.standard_normal((40, 50, 1, 3)) + g.standard_normal((40, 50, 12, 3))
    fitted, held_out = outputs[:, :, :6], outputs[:, :, 6:]
    assert z_test(decomposition.ceiling_discrepancy(fitted, held_out), 0.0).passed
    assert not z_test(decomposition.ceiling_discrepancy(fitted, held_out, correlated=False), 0.0).passed
    assert not z_test(decomposition.ceiling_discrepancy(fitted, 1.5 * held_out), 0.0).passed


def test_torch_and_numpy_agree(problem):
    _, _, target, alpha = problem
    ours = decomposition.given_design(*problem, 1.0)
    theirs = decomposition.given_design(*(torch.tensor(x) for x in problem), 1.0)
    assert isinstance(theirs.mse, torch.Tensor)
    np.testing.assert_allclose(theirs.mse, ours.mse)
    predictions = stream("test.kind").standard_normal((4, 3, 5))
    as_torch = decomposition.bias_variance_covariance(*(torch.tensor(x) for x in (predictions, target, alpha)))
    np.testing.assert_allclose(as_torch.mse, decomposition.bias_variance_covariance(predictions, target, alpha).mse)
