"""The matrix weights with which a real layer adds up its heads, and the label-noise covariance they give.

A layer's result is Σ_h A_h m_h(x) plus a constant, with A_h = W_O^h W_V^h a d × d matrix of rank d_k and m_h
the Nadaraya–Watson estimate of the layer's own inputs. Source: arXiv 2605.20271, Section 2, corrected.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from mhalib import validation
from mhalib.heads.encoder import Trace
from mhalib.heads.layouts import Layer


class NoiseVariance(NamedTuple):
    """Variance of a layer's result a query, summed over its d coordinates: pairs h = h', and pairs h ≠ h'."""

    own: Float[np.ndarray, "..."]
    cross: Float[np.ndarray, "..."]


def mixing_matrices(layer: Layer) -> Float[np.ndarray, "H d d"]:
    """Return the output weight A_h = W_O^h W_V^h of every head, as d × d matrices. Cost: O(H d² d_k)."""
    return layer.output @ layer.value.swapaxes(1, 2)


def combination_error(layers: tuple[Layer, ...], trace: Trace) -> Float[np.ndarray, "L n"]:
    """Return the largest difference between a layer's attention output and Σ_h A_h m_h(x) + constant.

    m_h(x) = Σ_i w_i x_i averages the layer's inputs with the head's weights; the constant collects the value
    and output biases, because weights sum to one. Zero up to round-off.
    """
    errors = []
    for layer, x, attention, output in zip(layers, trace.hidden, trace.attention, trace.output, strict=False):
        constant = np.einsum("hdk,hk->d", layer.output, layer.value_bias) + layer.output_bias
        combined = ((attention @ x) @ mixing_matrices(layer).swapaxes(1, 2)).sum(0) + constant
        errors.append(np.abs(output - combined).max(-1))
    return np.stack(errors)


def mixing_products(layer: Layer) -> Float[np.ndarray, "H H"]:
    """Return tr(A_h A_h'ᵀ) for all pairs of heads, from the factors alone. Cost: O(H² d d_k²)."""
    output = np.einsum("hda,gdb->hgab", layer.output, layer.output, optimize=True)
    value = np.einsum("hda,gdb->hgab", layer.value, layer.value, optimize=True)
    return (output * value).sum((-2, -1))


def mixing_cosines(layer: Layer) -> Float[np.ndarray, "H H"]:
    """Return the cosine of the angle between A_h and A_h' in the Frobenius inner product, for all pairs.

    Scalar output weights need every cosine to be ±1: A_h = α_h A for one common A.
    """
    products = mixing_products(layer)
    norms = np.sqrt(np.diag(products))
    return products / np.outer(norms, norms)


def scalar_weight_residual(products: Float[np.ndarray, "H H"]) -> float:
    """Return the relative error of the best approximation A_h ≈ α_h A by scalars α_h and one common matrix A.

    `products` are those of `mixing_products`. 0 for a scalar-weighted ensemble, √(1 - 1/H) when the A_h are
    orthogonal and equally large. The best A is the leading singular vector of the stacked vec(A_h) (Eckart–Young).
    Raises ``ValueError`` for a matrix that is not square or not finite.

    >>> scalar_weight_residual(np.outer([1.0, 2.0], [1.0, 2.0]))
    0.0
    """
    products = validation.array("products", products, "H H")
    eigenvalues = np.linalg.eigvalsh(products)
    return float(np.sqrt(eigenvalues[:-1].clip(min=0).sum() / eigenvalues.sum()))


def noise_variance(layer: Layer, attention: Float[np.ndarray, "H m n"], input_noise: float) -> NoiseVariance:
    """Return the exact label-noise variance of the layer's result at m queries, for fixed attention.

    White noise of variance `input_noise` in every coordinate of the n inputs, seen by the value path only,
    adds input_noise Σ_{h,h'} tr(A_h A_h'ᵀ) ⟨w_h, w_h'⟩, summed over the d coordinates of the result. Shapes
    (m,). `own` is positive; `cross`, unlike for positive scalar weights, can be negative.

    Raises ``ValueError`` for a wrong shape, rows that do not sum to one, or a variance that is not positive.
    """
    attention = _layer_attention(layer, attention)
    input_noise = validation.positive("input_noise", input_noise)
    terms = np.einsum("hg,hmi,gmi->mhg", mixing_products(layer), attention, attention, optimize=True)
    own = np.einsum("mhh->m", terms)
    return NoiseVariance(own=input_noise * own, cross=input_noise * (terms.sum((1, 2)) - own))


def simulated_noise(
    layer: Layer, attention: Float[np.ndarray, "H m n"], noise: Float[np.ndarray, "draws n d"]
) -> NoiseVariance:
    """Return, for every draw of input noise, the squared change of the layer's result at m queries.

    The noise is pushed through W_V, the fixed weights and W_O. Shapes (draws, m), with mean `noise_variance`.
    Memory: O(draws H m d). Raises ``ValueError`` for a wrong shape or rows that do not sum to one.
    """
    attention = _layer_attention(layer, attention)
    noise = validation.array("noise", noise, "draws n d", n=attention.shape[-1], d=layer.value.shape[1])
    averaged = attention @ noise[:, None]
    change = averaged @ layer.value @ layer.output.swapaxes(1, 2)
    own = (change**2).sum((1, 3))
    return NoiseVariance(own=own, cross=(change.sum(1) ** 2).sum(-1) - own)


def _layer_attention(layer: Layer, attention) -> Float[np.ndarray, "H m n"]:
    attention = validation.array("attention", attention, "H m n", H=len(layer.value))
    return validation.sums_to_one("attention", attention)
