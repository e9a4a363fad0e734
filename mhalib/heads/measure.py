"""What the theory of Nadaraya–Watson heads says of a trained head, one number a layer, head and query.

A `Trace` holds the queries and keys of every head on one text; the functions compute what the head would do
under another reading of them. The n tokens are the keys and, in turn, the queries.
Source: arXiv 2605.20271, Section 2.
"""

import numpy as np
from jaxtyping import Float

from mhalib import validation
from mhalib.ensembles.attention import kernel_weights, nadaraya_watson, norm_prior, total_variation
from mhalib.heads.encoder import Trace

PerQuery = Float[np.ndarray, "L H n"]


def head_kernel_weights(
    trace: Trace, *, kernel: str, bandwidth: float, length: float = 1.0, key_norm_prior: bool = False
) -> Float[np.ndarray, "L H n n"]:
    """Return every head's Nadaraya–Watson weights for a kernel on its own queries and keys.

    Queries and keys are multiplied by `length` first. With `key_norm_prior`, key i carries the prior weight
    exp(|k_i|²/2h²), which makes the Gaussian kernel equal to the exponential one. Rows sum to one.

    Raises ``ValueError`` for an unknown kernel, or a bandwidth or length that is not positive.
    Cost: O(L H n² d_k).
    """
    length = validation.positive("length", length)
    query, key = length * trace.query, length * trace.key
    prior = norm_prior(key, bandwidth=bandwidth) if key_norm_prior else np.zeros(key.shape[:-1])
    weights = np.empty_like(trace.attention)
    for head in np.ndindex(weights.shape[:2]):  # one head at a time stays in cache
        weights[head] = kernel_weights(
            query[head], key[head], kernel=kernel, bandwidth=bandwidth, log_prior=prior[head]
        )
    return weights


def identity_errors(trace: Trace) -> dict[str, PerQuery]:
    """Return how far a head is from three Nadaraya–Watson estimators that it equals: zero up to round-off.

    They are the exponential kernel with h = d_k^(1/4); the Gaussian kernel with the same h and the key-norm
    prior; and the latter with all lengths divided by √d_k and h = d_k^(-1/4). Entries: largest absolute
    difference of a query's weights.
    """
    d_k = trace.query.shape[-1]
    gaussian = {"kernel": "gaussian", "key_norm_prior": True}
    forms = {
        "exponential": {"kernel": "exponential", "bandwidth": d_k**0.25},
        "gaussian_prior": {"bandwidth": d_k**0.25} | gaussian,
        "gaussian_prior_unit_length": {"bandwidth": d_k**-0.25, "length": d_k**-0.5} | gaussian,
    }
    return {
        name: np.abs(head_kernel_weights(trace, **form) - trace.attention).max(-1)
        for name, form in forms.items()
    }


def output_error(trace: Trace) -> PerQuery:
    """Return how far a head's result is from `nadaraya_watson` on its queries, keys and values."""
    h = trace.query.shape[-1] ** 0.25
    estimate, _ = nadaraya_watson(trace.query, trace.key, trace.value, kernel="exponential", bandwidth=h)
    return np.abs(estimate - trace.head).max(-1)


def plain_gaussian_tv(trace: Trace) -> PerQuery:
    """Return the total variation between a head and the Gaussian kernel with h = d_k^(1/4) and no prior.

    This is the effect of the key norms: zero when all keys of the head are equally long.
    """
    plain = head_kernel_weights(trace, kernel="gaussian", bandwidth=trace.query.shape[-1] ** 0.25)
    return total_variation(trace.attention, plain)


def published_bandwidth_tv(trace: Trace, *, length: float = 1.0) -> PerQuery:
    """Return the total variation between a head and the exponential kernel with the published h = d_k^(-1/2).

    `length` multiplies queries and keys first: 1 takes them as they are, ``d_k**-0.5`` is the reading most
    favourable to the claim. The Gaussian kernel with its key-norm prior gives the same numbers.
    """
    published = head_kernel_weights(
        trace, kernel="exponential", bandwidth=trace.query.shape[-1] ** -0.5, length=length
    )
    return total_variation(trace.attention, published)


def effective_keys(attention: Float[np.ndarray, "... m n"]) -> Float[np.ndarray, "... m"]:
    """Return n_eff = 1/Σ_i w_i², the number of keys that a query effectively averages, between 1 and n.

    Raises ``ValueError`` for entries that are not finite or weights that do not sum to one.

    >>> effective_keys(np.array([[0.25, 0.25, 0.25, 0.25], [1.0, 0.0, 0.0, 0.0]]))
    array([4., 1.])
    """
    attention = validation.array("attention", attention, "... m n")
    validation.sums_to_one("attention", attention)
    return 1 / (attention**2).sum(-1)


def effective_fraction(attention: Float[np.ndarray, "... m n"]) -> Float[np.ndarray, "... m"]:
    """Return n Σ_i w_i² = n/n_eff: 1 for the plain average, about e at random initialisation, n for one key.

    >>> effective_fraction(np.array([[0.25, 0.25, 0.25, 0.25], [1.0, 0.0, 0.0, 0.0]]))
    array([1., 4.])
    """
    keys = effective_keys(attention)
    return np.shape(attention)[-1] / keys


def key_norm_variation(trace: Trace) -> Float[np.ndarray, "L H"]:
    """Return the coefficient of variation of a head's key norms |k_i| over the tokens of the text."""
    norms = np.linalg.norm(trace.key, axis=-1)
    return norms.std(-1) / norms.mean(-1)
