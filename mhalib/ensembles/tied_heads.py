"""Tied heads: query and key are the same orthonormal projection of their inputs, W_Q = W_K = Q_h."""

import numpy as np
from jaxtyping import Float

from mhalib import validation
from mhalib.ensembles.attention import kernel_weights


def random_bases(generator: np.random.Generator, *batch: int, dim: int, head_dim: int) -> Float[np.ndarray, "... d p"]:
    """Orthonormal bases of independent, uniformly distributed subspaces of dimension `head_dim`.

    Every matrix is the Q factor of a Gaussian one, so its range is uniform on the Grassmannian. Raises
    ``ValueError`` unless 1 ≤ head_dim ≤ dim and every batch size is at least 1. Cost: O(d p²) a basis.

    >>> basis = random_bases(np.random.default_rng(0), 3, dim=5, head_dim=2)
    >>> basis.shape, bool(np.allclose(basis.mT @ basis, np.eye(2)))
    ((3, 5, 2), True)
    """
    for size in batch:
        validation.at_least("batch", size, 1)
    if validation.at_least("head_dim", head_dim, 1) > validation.at_least("dim", dim, 1):
        raise ValueError(f"head_dim must be at most dim = {dim}, got {head_dim}")
    return np.linalg.qr(generator.standard_normal((*batch, dim, head_dim)))[0]


def project(
    points: Float[np.ndarray, "... n d"], bases: Float[np.ndarray, "... H d p"],
) -> Float[np.ndarray, "... H n p"]:
    """Coordinates of every point in every head: queries or keys of H tied heads.

    Leading axes broadcast. Raises ``ValueError`` for wrong shapes. Cost: O(H n d p).

    >>> project(np.array([[1.0, 2.0]]), np.eye(2)[None]).tolist()
    [[[1.0, 2.0]]]
    """
    points = validation.array("points", points, "... n d")
    return points[..., None, :, :] @ validation.array("bases", bases, "... H d p", d=points.shape[-1])


def tied_weights(
    query: Float[np.ndarray, "m d"],
    key: Float[np.ndarray, "... n d"],
    bases: Float[np.ndarray, "... H d p"],
    *,
    kernel: str,
    bandwidth: float,
) -> Float[np.ndarray, "... H m n"]:
    """Kernel weights of H tied heads at shared queries, for a batch of designs.

    Raises ``ValueError`` as `project` and `kernel_weights` do. Cost: O(H m n p) a design.

    >>> key = np.random.default_rng(0).standard_normal((7, 5, 3))
    >>> bases = random_bases(np.random.default_rng(1), 7, 2, dim=3, head_dim=1)
    >>> tied_weights(np.zeros((4, 3)), key, bases, kernel="gaussian", bandwidth=1.0).shape
    (7, 2, 4, 5)
    """
    return kernel_weights(project(query, bases), project(key, bases), kernel=kernel, bandwidth=bandwidth)
