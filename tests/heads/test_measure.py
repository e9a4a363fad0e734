"""The statistics of a head, on random heads where the answer is known and on the real ones."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax

from mhalib.heads import measure


def with_keys(trace, key):
    """The same heads with other keys: attention and results follow."""
    attention = softmax(trace.query @ key.swapaxes(-1, -2) / np.sqrt(key.shape[-1]), axis=-1)
    return replace(trace, key=key, attention=attention, head=attention @ trace.value)


@pytest.fixture
def equal_norms(tiny_trace):
    """Heads whose keys all have length 3."""
    return with_keys(tiny_trace, 3 * tiny_trace.key / np.linalg.norm(tiny_trace.key, axis=-1, keepdims=True))


def test_a_head_is_three_kernel_estimators(tiny_trace):
    """The identities hold to 1e-12 a query; with the published bandwidth, or without the prior, they do not."""
    errors = measure.identity_errors(tiny_trace)
    assert set(errors) == {"exponential", "gaussian_prior", "gaussian_prior_unit_length"}
    for error in errors.values():
        assert error.shape == tiny_trace.query.shape[:3]
        assert error.max() < 1e-12
    for form in ({"kernel": "exponential", "bandwidth": 8**-0.5}, {"kernel": "gaussian", "bandwidth": 8**0.25}):
        weights = measure.head_kernel_weights(tiny_trace, **form)
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-12)
        assert np.abs(weights - tiny_trace.attention).max() > 0.1


def test_results_are_nadaraya_watson_estimates(tiny_trace):
    """To 1e-12; results taken from another head are not."""
    assert measure.output_error(tiny_trace).max() < 1e-12
    shifted = replace(tiny_trace, head=tiny_trace.head[:, ::-1])
    assert measure.output_error(shifted).max() > 1e-3


def test_plain_gaussian_differs_by_the_key_norms(tiny_trace, equal_norms):
    """No distance when all keys are equally long, a plain one when they are not."""
    assert measure.plain_gaussian_tv(equal_norms).max() < 1e-12
    assert measure.plain_gaussian_tv(tiny_trace).max() > 0.1
    assert measure.key_norm_variation(equal_norms).max() < 1e-12
    assert measure.key_norm_variation(tiny_trace).min() > 0.05


def test_published_bandwidth_holds_for_unscaled_scores_on_the_unit_sphere_only(tiny_trace):
    """Dividing lengths by √d_k, a head with scores multiplied by √d_k has h = d_k^(-1/2); the head itself has not."""
    length = 8**-0.5
    sharper = with_keys(tiny_trace, tiny_trace.key)
    sharper = replace(sharper, attention=softmax(
        (length * sharper.query) @ (length * sharper.key).swapaxes(-1, -2) * 8, axis=-1))
    assert measure.published_bandwidth_tv(sharper, length=length).max() < 1e-12
    assert measure.published_bandwidth_tv(tiny_trace, length=length).max() > 0.1
    assert measure.published_bandwidth_tv(tiny_trace).max() > 0.1


def test_key_norm_prior_gives_the_same_at_every_bandwidth(tiny_trace):
    """Gaussian with prior equals exponential at any h, so one number serves for both readings."""
    for bandwidth in (0.5, 1.0, 3.0):
        forms = [measure.head_kernel_weights(tiny_trace, kernel=kernel, bandwidth=bandwidth, key_norm_prior=prior)
                 for kernel, prior in (("exponential", False), ("gaussian", True), ("gaussian", False))]
        np.testing.assert_allclose(forms[0], forms[1], atol=1e-12)
        assert np.abs(forms[0] - forms[2]).max() > 0.01


def test_effective_keys_of_known_weights():
    """k equal weights are k effective keys; unequal ones are fewer."""
    for k in (1, 3, 10):
        weights = np.zeros((1, 10))
        weights[0, :k] = 1 / k
        np.testing.assert_allclose(measure.effective_keys(weights), [k])
        np.testing.assert_allclose(measure.effective_fraction(weights), [10 / k])
    assert measure.effective_keys(np.array([[0.9, 0.1]]))[0] < 1.3


@pytest.mark.parametrize(("arguments", "message"), [
    ({"kernel": "gaussian", "bandwidth": 0.0}, "bandwidth must be a finite number > 0, got 0.0"),
    ({"kernel": "exponential", "bandwidth": -1.0}, "bandwidth must be a finite number > 0, got -1.0"),
    ({"kernel": "gaussian", "bandwidth": float("nan")}, "bandwidth must be a finite number > 0, got nan"),
    ({"kernel": "gaussian", "bandwidth": 0.0, "key_norm_prior": True}, "bandwidth must be a finite number > 0"),
    ({"kernel": "gaussian", "bandwidth": 1.0, "length": 0.0}, "length must be a finite number > 0, got 0.0"),
    ({"kernel": "cosine", "bandwidth": 1.0}, "kernel must be one of exponential, gaussian; got 'cosine'"),
])
def test_bad_kernel_arguments(tiny_trace, arguments, message):
    with pytest.raises(ValueError, match=message):
        measure.head_kernel_weights(tiny_trace, **arguments)


@pytest.mark.parametrize(("attention", "message"), [
    (np.ones(3) / 3, r"attention must have shape \(..., m, n\), got shape \(3,\)"),
    (np.ones((2, 0)), "attention must not be empty"),
    (np.array([[np.nan, 1.0]]), "attention must be finite"),
    (np.ones((2, 2)), "attention must sum to one over its last axis, off by 1"),
])
@pytest.mark.parametrize("function", [measure.effective_keys, measure.effective_fraction])
def test_bad_attention(function, attention, message):
    with pytest.raises(ValueError, match=message):
        function(attention)


def test_bad_length(tiny_trace):
    with pytest.raises(ValueError, match="length must be a finite number > 0, got -1"):
        measure.published_bandwidth_tv(tiny_trace, length=-1)
