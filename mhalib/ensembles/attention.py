"""Attention heads and Nadaraya–Watson estimators: dense kernel weights, and a streaming estimator."""

import math

import torch
from jaxtyping import Float

from mhalib import validation
from mhalib.device import same_kind, tensor
from mhalib.validation import Array

KERNELS = ("exponential", "gaussian")
# Query rows and key rows of one block: on a CPU the scores of a block stay in the second-level cache.
CPU_BLOCK, DEVICE_BLOCK = (128, 1024), (4096, 8192)


@same_kind
def nadaraya_watson(
    query: Float[Array, "... m d"],
    key: Float[Array, "... n d"],
    value: Float[Array, "... n"] | Float[Array, "... n c"],
    *,
    kernel: str = "exponential",
    bandwidth: float,
    block: int | None = None,
) -> tuple[Float[Array, "..."], Float[Array, "... m"]]:
    r"""The Nadaraya–Watson estimate at every query, and its label-noise variance factor, in one streaming pass.

    $\hat m(q) = \sum_i w_i(q) y_i$ with $w_i(q) \propto K(q, k_i)$, where $K$ is ``exp(<q, k>/h²)`` for the
    exponential kernel (a softmax head of scale 1/h²) and ``exp(-|q-k|²/2h²)`` for the Gaussian one.

    Parameters
    ----------
    query, key : points of dimension d; leading batch axes must agree.
    value : one number, or a vector of length c, for every key.
    kernel : ``"exponential"`` or ``"gaussian"``.
    bandwidth : h > 0 (not its square).
    block : keys per block, by default 1024 on a CPU; the result does not depend on it beyond round-off.

    Returns
    -------
    m : estimates, shape (..., m) or (..., m, c) as the values are.
    v : $\sum_i w_i(q)^2$, shape (..., m): the label-noise variance is σ²v, and 1/v is the effective number of keys.

    Raises ``ValueError`` for wrong shapes, empty, NaN or infinite input, or bandwidth ≤ 0. Cost: O(mnd) time,
    O(m + n) memory besides one block; a running maximum makes it exact for scores of any size. Gaussian data are
    centred first, which keeps float32 accurate. Source: arXiv 2605.20271 (kernel form of a head); Theorem
    `thm-nw-identity` and Section `sec-streaming` of the book.

    >>> m, v = nadaraya_watson([[0.0]], [[1.0], [-1.0]], [0.0, 2.0], bandwidth=1.0)
    >>> m.tolist(), v.round(12).tolist()
    ([1.0], [0.5])
    """
    query, key, value, scalar = _checked(query, key, value)
    validation.one_of("kernel", kernel, KERNELS)
    h = validation.positive("bandwidth", bandwidth)
    rows, columns = CPU_BLOCK if key.device.type == "cpu" else DEVICE_BLOCK
    columns = columns if block is None else validation.at_least("block", block, 1)
    batch = key.shape[:-2]
    q, k, y = (x.reshape(-1, *x.shape[-2:]) for x in (query, key, value))
    if kernel == "gaussian":
        centre = k.mean(1, keepdim=True)
        q, k = q - centre, k - centre
    q, k = q / h, k / h
    offset = 0.5 * k.square().sum(-1) if kernel == "gaussian" else k.new_zeros(k.shape[:-1])
    y1 = torch.cat([y, torch.ones_like(y[..., :1])], -1)
    parts = [_stream(q[:, i:i + rows], k, offset, y1, columns) for i in range(0, q.shape[1], rows)]
    m, v = (torch.cat(part, 1).reshape(*batch, q.shape[1], -1) for part in zip(*parts, strict=True))
    return (m[..., 0] if scalar else m), v[..., 0]


@same_kind
def attention_head(
    query: Float[Array, "... m d"],
    key: Float[Array, "... n d"],
    value: Float[Array, "... n"] | Float[Array, "... n c"],
    *,
    scale: float,
) -> tuple[Float[Array, "..."], Float[Array, "... m"]]:
    r"""A softmax attention head: the output at every query, and $\sum_i w_i^2$, by the dense textbook formula.

    Shapes and errors as in `nadaraya_watson`; `scale` > 0 multiplies the scores (1/√d_k in a standard head).
    Cost: O(mn) memory, so it serves as a reference at moderate size. Source: Vaswani et al. (2017), equation 1.

    >>> attention_head([[0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], [0.0, 2.0], scale=1.0)[0].tolist()
    [1.0]
    """
    query, key, value, scalar = _checked(query, key, value)
    weights = torch.softmax(validation.positive("scale", scale) * query @ key.mT, -1)
    m = weights @ value
    return (m[..., 0] if scalar else m), weights.square().sum(-1)


@same_kind
def kernel_weights(
    query: Float[Array, "... m d"],
    key: Float[Array, "... n d"],
    *,
    kernel: str,
    bandwidth: float,
    log_prior: Float[Array, "... n"] | None = None,
) -> Float[Array, "... m n"]:
    """The normalised kernel weights of every query over the keys, straight from the definition of the kernel.

    `log_prior` holds the logarithm of a positive weight for every key (default: all equal). Shapes and errors as
    in `nadaraya_watson`. Cost: O(mn) memory. Source: Nadaraya (1964), Watson (1964).

    >>> kernel_weights([[0.0]], [[0.0], [5.0]], kernel="gaussian", bandwidth=1.0).round(6).tolist()
    [[0.999996, 4e-06]]
    """
    query, key, _, _ = _checked(query, key, None)
    validation.one_of("kernel", kernel, KERNELS)
    h = validation.positive("bandwidth", bandwidth)
    logarithm = query @ key.mT / h**2 if kernel == "exponential" else \
        -(query.unsqueeze(-2) - key.unsqueeze(-3)).square().sum(-1) / (2 * h**2)
    if log_prior is not None:
        prior = tensor(validation.array("log_prior", log_prior, "... n", n=key.shape[-2]))
        logarithm = logarithm + prior.to(logarithm).unsqueeze(-2)
    return (logarithm - logarithm.logsumexp(-1, keepdim=True)).exp()


def norm_prior(key: Float[Array, "... n d"], *, bandwidth: float) -> Float[Array, "... n"]:
    r"""The log prior weight $\lVert k_i\rVert^2/2h^2$ that turns a Gaussian head into a softmax head.

    Raises ``ValueError`` for empty or non-finite keys, or bandwidth ≤ 0. Cost: O(nd). Source: Theorem
    `thm-nw-identity` of the book.

    >>> norm_prior([[3.0, 4.0]], bandwidth=1.0).tolist()
    [12.5]
    """
    key = validation.array("key", key, "... n d")
    return 0.5 * (key**2).sum(-1) / validation.positive("bandwidth", bandwidth) ** 2


def total_variation(first: Float[Array, "... n"], second: Float[Array, "... n"]) -> Float[Array, "..."]:
    """Total variation distance, in [0, 1], between two rows of weights that each sum to one.

    Raises ``ValueError`` for different shapes or rows that do not sum to one. Cost: O(n) a row.

    >>> float(total_variation([1.0, 0.0], [0.0, 1.0]))
    1.0
    """
    first = validation.sums_to_one("first", validation.array("first", first, "... n"))
    second = validation.sums_to_one("second", validation.array("second", second, "... n"))
    if first.shape != second.shape:
        raise ValueError(f"second must have the shape of first, {tuple(first.shape)}, got {tuple(second.shape)}")
    return 0.5 * abs(first - second).sum(-1)


def _stream(q, k, offset, y1, columns: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Estimate and sum of squared weights for one block of queries, over blocks of keys."""
    peak = q.new_full((*q.shape[:2], 1), -math.inf)
    # Weights below the least are raised to it: it is far beneath round-off, and denormal numbers are slow.
    least = 0.9 * math.log(torch.finfo(q.dtype).tiny)
    total, squares = q.new_zeros((*q.shape[:2], y1.shape[-1])), torch.zeros_like(peak)
    for start in range(0, k.shape[1], columns):
        part = slice(start, start + columns)
        scores = torch.baddbmm(offset[:, None, part], q, k[:, part].mT, beta=-1)
        higher = torch.maximum(peak, scores.amax(-1, keepdim=True))
        shrink = (peak - higher).exp_()
        peak = higher
        scores.sub_(peak).clamp_(min=least).exp_()
        # One product a block, then one sum: an accumulating product would add a million terms one by one.
        total.mul_(shrink).add_(torch.bmm(scores, y1[:, part]))
        squares.mul_(shrink.square()).add_(torch.linalg.vector_norm(scores, dim=-1, keepdim=True).square())
    return total[..., :-1] / total[..., -1:], squares / total[..., -1:].square()


def _checked(query, key, value) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None, bool]:
    """The arguments as tensors of one type and device, values with a last axis, and whether that axis was added."""
    query = validation.array("query", query, "... m d")
    key = validation.array("key", key, "... n d", d=query.shape[-1])
    if key.shape[:-2] != query.shape[:-2]:
        raise ValueError(f"key must have the batch axes of query, {tuple(query.shape[:-2])}, "
                         f"got shape {tuple(key.shape)}")
    own = tensor(query)
    key = tensor(key).to(own)
    if value is None:
        return own, key, None, False
    value = validation.array("value", value, "...")
    scalar = value.ndim == key.ndim - 1
    value = validation.array("value", value, "... n" if scalar else "... n c", n=key.shape[-2])
    value = tensor(value).to(own)
    value = value.unsqueeze(-1) if scalar else value
    if value.shape[:-1] != key.shape[:-1]:
        raise ValueError(f"value must have leading axes {tuple(key.shape[:-1])} like the keys, "
                         f"got {tuple(value.shape[:-1])}")
    return own, key, value, scalar

