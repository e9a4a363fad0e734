"""The statistics of a real model's heads over the eight passages, computed afresh or read from the package.

Run ``python -m mhalib.heads.tables`` to rewrite the stored statistics from the installed model.
"""

import json
from pathlib import Path

import numpy as np

from mhalib.estimate import monte_carlo
from mhalib.heads import measure, mixing
from mhalib.heads.encoder import (
    MODEL_PACKAGE,
    MODEL_SHA256,
    MODEL_VERSION,
    Encoder,
    Trace,
    installed_model,
)
from mhalib.heads.passages import passages

STORED = Path(__file__).parent / "data" / "all-minilm-l6-v2.json"
NOISE_DRAWS = 1000
ROUND_OFF = ("identity_error_exponential", "identity_error_gaussian_prior",
             "identity_error_gaussian_prior_unit_length", "output_error", "combination_error")


def model_statistics(encoder: Encoder) -> dict[str, np.ndarray]:
    """Return every table of this page for one model, over all tokens of the eight passages.

    - Shape (L, H), largest over all queries: ``identity_error_*`` (three forms), ``output_error``.
    - Shape (L, H), mean over all queries: ``plain_gaussian_tv``, ``published_bandwidth_tv``,
      ``published_bandwidth_tv_unit_length``, ``effective_fraction``, ``effective_keys``. The first standard
      error of the fraction, ``effective_fraction_stderr``, takes queries as independent; the other,
      ``effective_fraction_stderr_between``, only passages.
    - Shape (L, H), mean over passages: ``key_norm_variation``.
    - Shape (L,): ``combination_error`` (largest), ``scalar_weight_residual``, and the mean over queries of
      the label-noise variance for input noise of variance 1, ``noise_own`` and ``noise_cross``.
    - Shape (L,), on eight queries of the first passage: ``noise_ratio``, the simulated label-noise variance over
      the exact one, with ``noise_ratio_stderr``; and ``noise_ratio_own``, what pairs h = h' alone would give.
      ``noise_draws`` is the number of draws.
    - Shape (L, H, H): ``mixing_cosines``. Shape (8,): ``tokens``, the length of every passage.

    Cost for all-MiniLM-L6-v2: 8 s on one core, 0.4 GB beside the libraries.
    """
    tables = [_trace_tables(encoder, encoder.trace(passage.text)) for passage in passages()]
    stacked = {name: [table[name] for table in tables] for name in tables[0]}
    result = {}
    for name, parts in stacked.items():
        reduce = np.max if name in ROUND_OFF else np.mean
        result[name] = reduce(np.concatenate(parts, axis=-1), axis=-1)
    fractions = stacked["effective_fraction"]
    result["effective_fraction_stderr"] = _standard_error(np.concatenate(fractions, axis=-1))
    result["effective_fraction_stderr_between"] = _standard_error(
        np.stack([part.mean(-1) for part in fractions], axis=-1)
    )
    result["mixing_cosines"] = np.stack([mixing.mixing_cosines(layer) for layer in encoder.layers])
    result["scalar_weight_residual"] = np.array(
        [mixing.scalar_weight_residual(mixing.mixing_products(layer)) for layer in encoder.layers]
    )
    result |= _simulated_noise(encoder, encoder.trace(passages()[0].text).attention)
    result["tokens"] = np.array([part.shape[-1] for part in fractions])
    return result


def stored_statistics() -> dict[str, np.ndarray]:
    """Return the statistics that come with this package, computed from the model with SHA-256 `MODEL_SHA256`.

    >>> stored_statistics()["effective_fraction"].shape
    (6, 12)
    """
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    if stored["sha256"] != MODEL_SHA256:
        raise ValueError(f"{STORED} was computed from another model, SHA-256 {stored['sha256']}")
    return {name: np.array(table) for name, table in stored["tables"].items()}


def statistics() -> tuple[dict[str, np.ndarray], str]:
    """Return the tables of `model_statistics` and a sentence that says where they come from.

    They are computed from the installed model; where it is not installed, the stored ones are read. Raises
    ``ValueError`` if the installed model is not the expected one. Cost: about 8 s and 0.6 GB, or a file read.
    """
    folder = installed_model()
    if folder is None:
        return stored_statistics(), (
            f"Stored statistics of {MODEL_PACKAGE} {MODEL_VERSION}: the model is not installed here, "
            "nothing was recomputed."
        )
    return model_statistics(Encoder(folder)), f"Computed here from {MODEL_PACKAGE} {MODEL_VERSION}."


def _trace_tables(encoder: Encoder, trace: Trace) -> dict[str, np.ndarray]:
    noise = [mixing.noise_variance(layer, attention, 1.0)
             for layer, attention in zip(encoder.layers, trace.attention, strict=True)]
    identities = measure.identity_errors(trace)
    return {f"identity_error_{name}": error for name, error in identities.items()} | {
        "output_error": measure.output_error(trace),
        "combination_error": mixing.combination_error(encoder.layers, trace),
        "plain_gaussian_tv": measure.plain_gaussian_tv(trace),
        "published_bandwidth_tv": measure.published_bandwidth_tv(trace),
        "published_bandwidth_tv_unit_length": measure.published_bandwidth_tv(
            trace, length=trace.query.shape[-1] ** -0.5
        ),
        "effective_fraction": measure.effective_fraction(trace.attention),
        "effective_keys": measure.effective_keys(trace.attention),
        "key_norm_variation": measure.key_norm_variation(trace)[..., None],
        "noise_own": np.stack([part.own for part in noise]),
        "noise_cross": np.stack([part.cross for part in noise]),
    }


def _simulated_noise(encoder: Encoder, attention: np.ndarray) -> dict[str, np.ndarray]:
    spread = np.linspace(0, attention.shape[-1] - 1, 8).astype(int)
    ratios, own = [], []
    for index, (layer, weights) in enumerate(zip(encoder.layers, attention[:, :, spread], strict=True)):
        exact = mixing.noise_variance(layer, weights, 1.0)
        total = (exact.own + exact.cross).sum()

        def draw(generator, size, layer=layer, weights=weights, total=total):
            noise = generator.standard_normal((size, weights.shape[-1], layer.value.shape[1]))
            return sum(mixing.simulated_noise(layer, weights, noise)).sum(-1) / total

        ratios.append(monte_carlo(draw, name=f"heads.noise-{index}", samples=NOISE_DRAWS, batch=50))
        own.append(exact.own.sum() / total)
    return {"noise_ratio": np.array([ratio.mean for ratio in ratios]),
            "noise_ratio_stderr": np.array([ratio.stderr for ratio in ratios]),
            "noise_ratio_own": np.array(own), "noise_draws": np.array([NOISE_DRAWS])}


def _standard_error(samples: np.ndarray) -> np.ndarray:
    return samples.std(-1, ddof=1) / np.sqrt(samples.shape[-1])


def write() -> None:
    """Rewrite the stored statistics from the installed model."""
    folder = installed_model()
    if folder is None:
        raise SystemExit(f"install {MODEL_PACKAGE}=={MODEL_VERSION} first")
    tables = model_statistics(Encoder(folder))
    content = {
        "package": MODEL_PACKAGE, "version": MODEL_VERSION, "sha256": MODEL_SHA256,
        "passages": [passage.title for passage in passages()],
        "tables": {name: _rounded(table) for name, table in tables.items()},
    }
    STORED.write_text(json.dumps(content) + "\n", encoding="utf-8")


def _rounded(table: np.ndarray) -> list:
    nine_digits = [json.loads(f"{entry:.9g}") for entry in table.flat]
    return np.array(nine_digits).reshape(table.shape).tolist()


if __name__ == "__main__":
    write()
