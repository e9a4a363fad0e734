"""Every public function refuses bad input with a ``ValueError`` that names the argument: one table covers them all."""

import importlib
import inspect
import pkgutil
from dataclasses import replace

import numpy as np
import pytest

import mhalib
from mhalib import claims, device, estimate, plotting, validation
from mhalib.ensembles import attention, decomposition, gaussian_design, tied_heads, weighting
from mhalib.heads import encoder, layouts, measure, mixing
from mhalib.heads.encoder import Trace
from mhalib.heads.layouts import Layer

ones = np.ones
thirds = np.full(3, 1 / 3)
weights = np.full((3, 2, 4), 0.25)
heads = ones((2, 6, 3))
layer = Layer("layer", heads, heads, heads, heads, ones((2, 3)), ones((2, 3)), ones((2, 3)), ones(6))
projected = ones((1, 2, 4, 3))
trace = Trace(tokens=("a",) * 4, hidden=ones((2, 4, 6)), query=projected, key=projected, value=projected,
              attention=np.full((1, 2, 4, 4), 0.25), head=projected, output=ones((1, 4, 6)))
axes = plotting.figure()[1][0]

# What a bad value of an argument can be: an array of fixed or free shape, a number > 0, a count, rows of sum one …
ARRAY, FREE, ROWS = "array", "free", "rows"
POSITIVE, COUNT, RATE, CHOICE, TEXT = "positive", "count", "rate", "choice", "text"

# function: (good arguments, {argument: kinds of bad values})
TABLE = {
    attention.nadaraya_watson: (
        dict(query=ones((2, 3)), key=ones((4, 3)), value=ones(4), kernel="gaussian", bandwidth=1.0, block=2),
        dict(query=ARRAY, key=ARRAY, value=ARRAY, kernel=CHOICE, bandwidth=POSITIVE, block=COUNT)),
    attention.attention_head: (
        dict(query=ones((2, 3)), key=ones((4, 3)), value=ones((4, 2)), scale=1.0),
        dict(query=ARRAY, key=ARRAY, value=ARRAY, scale=POSITIVE)),
    attention.kernel_weights: (
        dict(query=ones((2, 3)), key=ones((4, 3)), kernel="gaussian", bandwidth=1.0, log_prior=ones(4)),
        dict(query=ARRAY, key=ARRAY, kernel=CHOICE, bandwidth=POSITIVE, log_prior=ARRAY)),
    attention.norm_prior: (dict(key=ones((4, 3)), bandwidth=1.0), dict(key=FREE, bandwidth=POSITIVE)),
    attention.total_variation: (dict(first=thirds, second=thirds), dict(first=ROWS, second=ROWS)),
    decomposition.bias_variance_covariance: (
        dict(predictions=ones((4, 3, 2)), target=ones(2), weights=thirds),
        dict(predictions=ARRAY, target=ARRAY, weights=ARRAY)),
    decomposition.label_noise_covariance: (
        dict(weights=weights, noise_variance=1.0), dict(weights=ROWS, noise_variance=POSITIVE)),
    decomposition.given_design: (
        dict(weights=weights, signal=ones(4), target=ones(2), output_weights=thirds, noise_variance=1.0),
        dict(weights=ROWS, signal=ARRAY, target=ARRAY, output_weights=ARRAY, noise_variance=POSITIVE)),
    decomposition.over_designs: (
        dict(weights=np.stack([weights] * 5), signal=ones((5, 4)), target=ones(2), output_weights=thirds,
             noise_variance=1.0),
        dict(weights=ROWS, signal=ARRAY, target=ARRAY, output_weights=ARRAY, noise_variance=POSITIVE)),
    decomposition.ceiling_variance: (
        dict(variance=1.0, correlation=0.5, heads=4), dict(variance=POSITIVE, correlation=RATE, heads=POSITIVE)),
    decomposition.ceiling_discrepancy: (
        dict(fitted=np.arange(48.0).reshape(4, 3, 2, 2), held_out=ones((4, 3, 5, 2))),
        dict(fitted=ARRAY, held_out=ARRAY)),
    gaussian_design.exponential_noise_variance_at: (dict(norm2=ones(3), beta=1.0), dict(norm2=FREE, beta=POSITIVE)),
    gaussian_design.sphere_noise_variance: (dict(scale=1.0, head_dim=4), dict(scale=POSITIVE, head_dim=COUNT)),
    tied_heads.project: (dict(points=ones((4, 3)), bases=ones((2, 3, 2))), dict(points=ARRAY, bases=ARRAY)),
    tied_heads.tied_weights: (
        dict(query=ones((2, 3)), key=ones((4, 3)), bases=ones((2, 3, 2)), kernel="gaussian", bandwidth=1.0),
        dict(query="array as points", key="array as points", bases=ARRAY, kernel=CHOICE, bandwidth=POSITIVE)),
    weighting.optimal_weights: (dict(cov=np.eye(3)), dict(cov=ARRAY)),
    weighting.uniform_weights: (dict(heads=3), dict(heads=COUNT)),
    weighting.geometric_weights: (dict(heads=3, ratio=0.5), dict(heads=COUNT, ratio=POSITIVE)),
    weighting.fibonacci_weights: (dict(heads=3), dict(heads=COUNT)),
    weighting.ensemble_variance: (dict(weights=thirds, cov=np.eye(3)), dict(weights=ROWS, cov=ARRAY)),
    weighting.heterogeneity_threshold: (
        dict(scheme=weighting.fibonacci_weights(4), variances=lambda q: q ** -np.arange(4.0), low=0.5, high=1.0),
        dict(scheme=ROWS)),
    weighting.plug_in_inflation: (dict(samples=9, heads=3), dict(samples=COUNT, heads=COUNT)),
    estimate.Estimate: (dict(mean=1.0, stderr=0.1, n=9), dict(mean=FREE, stderr=FREE, n=COUNT)),
    estimate.from_samples: (dict(samples=ones(4)), dict(samples=FREE)),
    estimate.monte_carlo: (
        dict(draw=lambda g, size: g.standard_normal(size), name="a.b", samples=9, batch=3),
        dict(name=TEXT, samples=COUNT, batch=COUNT)),
    estimate.z_test: (
        dict(estimate=estimate.Estimate(1.0, 0.1, 9), predicted=1.0, false_alarm=0.01),
        dict(predicted=FREE, false_alarm=RATE)),
    estimate.slope: (
        dict(x=np.arange(4.0), y=np.arange(4.0), stderr=ones(4), confidence=0.9),
        dict(x=ARRAY, y=ARRAY, stderr=ARRAY, confidence=RATE)),
    claims.exact: (
        dict(label="a", measured=1.0, predicted=1.0, tolerance=0.1, control=2.0),
        dict(measured=FREE, tolerance=POSITIVE, control=FREE)),
    claims.ztest: (
        dict(label="a", estimate=estimate.Estimate(1.0, 0.1, 9), predicted=1.0, control=9.0, false_alarm=0.01),
        dict(predicted=FREE, control="free as predicted", false_alarm=RATE)),
    claims.bound: (
        dict(label="a", measured=1.0, at_least=0.0, control=-1.0), dict(measured=FREE, control=FREE)),
    claims.quote: (dict(name="a", text="b"), dict(name=TEXT, text=TEXT)),
    device.choose: (dict(name="cpu"), dict(name="choice as device")),
    device.to_device: (dict(array=ones(2)), dict(array=FREE)),
    device.stream: (dict(name="a.b", index=1), dict(name=TEXT, index="index")),
    device.provenance: (dict(seconds=1.0), dict(seconds=POSITIVE)),
    plotting.figure: (
        dict(columns=1, rows=1, width=1.0, height=1.0),
        dict(columns=COUNT, rows=COUNT, width=POSITIVE, height=POSITIVE)),
    plotting.points: (
        dict(axes=axes, x=ones(2), estimate=estimate.Estimate(ones(2), ones(2), 9), label="a", colour="blue"),
        dict(x=ARRAY, colour=CHOICE)),
    layouts.load_heads: (dict(path="nowhere"), dict(path=TEXT)),
    layouts.split_heads: (dict(name="key", weight=ones((4, 3)), heads=2), dict(weight="ragged rows as key")),
    encoder.Encoder: (dict(path="nowhere"), dict(path=TEXT)),
    measure.head_kernel_weights: (
        dict(trace=trace, kernel="gaussian", bandwidth=1.0, length=1.0, key_norm_prior=True),
        dict(kernel=CHOICE, bandwidth=POSITIVE, length=POSITIVE)),
    measure.published_bandwidth_tv: (dict(trace=trace, length=1.0), dict(length=POSITIVE)),
    measure.effective_keys: (dict(attention=weights), dict(attention=ROWS)),
    measure.effective_fraction: (dict(attention=weights), dict(attention=ROWS)),
    mixing.scalar_weight_residual: (dict(products=np.eye(3)), dict(products=ARRAY)),
    mixing.noise_variance: (
        dict(layer=layer, attention=np.full((2, 3, 4), 0.25), input_noise=1.0),
        dict(attention=ROWS, input_noise=POSITIVE)),
    mixing.simulated_noise: (
        dict(layer=layer, attention=np.full((2, 3, 4), 0.25), noise=ones((5, 4, 6))),
        dict(attention=ROWS, noise=ARRAY)),
}

# Public names whose arguments are not numbers from outside: records, results of other functions, the checks themselves.
ELSEWHERE = {
    "claims": {"verdict", "record", "registry", "Check", "Record", "VerdictError"},  # tests/shared/test_claims.py
    "device": {"dtype", "tensor", "same_kind"},
    "scale": {"current", "pick"},  # tests/shared/test_small.py
    "estimate": {"ZTest", "Slope"},
    "plotting": {"use_style"},
    "validation": {"array", "positive", "between", "at_least", "one_of", "sums_to_one", "covariance"},  # used by all
    "decomposition": {"BVC", "Pieces"},
    "tied_heads": {"random_bases"},  # below
    "encoder": {"Trace", "installed_model"},  # tests/heads
    "layouts": {"Layer", "Layout", "weights_file", "read_config", "open_weights", "read_tensor"},  # tests/heads
    "measure": {"identity_errors", "output_error", "plain_gaussian_tv", "key_norm_variation"},  # of a trace
    "mixing": {"NoiseVariance", "mixing_matrices", "combination_error", "mixing_products", "mixing_cosines"},
    "passages": {"Passage", "passages"},
    "tables": {"model_statistics", "stored_statistics", "statistics", "write"},
}


def with_entry(value, entry):
    changed = np.array(value, dtype=type(entry) if isinstance(entry, complex) else float)
    changed.flat[0] = entry
    return changed


def bad_values(kind: str, good):
    """Bad values of one kind, by what is wrong with them."""
    family = kind.split()[0]
    if family in ("array", "free", "rows"):
        value = np.asarray(good, dtype=float)
        yield "NaN", with_entry(value, np.nan)
        yield "infinite", with_entry(value, np.inf)
        yield "complex", with_entry(value, 1j)
        yield "text", np.full(value.shape, "x")
        yield "ragged", [[1.0], [1.0, 2.0]]
        yield "empty", np.empty((*value.shape[:-1], 0))
        if family != "free":
            yield "too few axes", value.flat[0]
            yield "too long an axis", np.concatenate([value, value[..., :1]], -1)
        if family == "rows":
            yield "rows that do not sum to one", 2 * value
    elif family == "positive":
        yield from {"zero": 0.0, "negative": -1.0, "NaN": np.nan, "infinite": np.inf, "text": "x", "none": None}.items()
    elif family == "count":
        yield from {"zero": 0, "negative": -3, "fraction": 1.5, "text": "x", "true": True}.items()
    elif family == "index":
        yield from {"negative": -3, "fraction": 1.5, "text": "x"}.items()
    elif family == "rate":
        yield from {"too large": 1.5, "too small": -2.0, "NaN": np.nan, "text": "x"}.items()
    elif family == "choice":
        yield from {"unknown": "x", "none-like": "None"}.items()
    elif family == "text":
        yield from {"empty": "", "blank": " ", "missing": "nowhere/at/all"}.items()
    elif family == "ragged":
        yield "rows that heads do not divide", ones((5, 3))


# What these functions may not refuse: a value that is good in another reading, or the documented default.
ALLOWED = {
    (claims.quote, "name", "blank"), (claims.quote, "text", "blank"),
    (claims.quote, "name", "missing"), (claims.quote, "text", "missing"),
    (device.choose, "name", "empty"),
    (estimate.slope, "x", "too long an axis"),  # then y is too short
    (attention.total_variation, "first", "too long an axis"),  # then the second is too short
    (attention.attention_head, "value", "too long an axis"),  # values of any length
    (tied_heads.project, "bases", "too long an axis"), (tied_heads.tied_weights, "bases", "too long an axis"),
}

CASES = [
    pytest.param(function, good, argument, [*kind.split(" as "), argument][1], bad,
                 id=f"{function.__name__}-{argument}-{reason}".replace(" ", "_"))
    for function, (good, kinds) in TABLE.items() for argument, kind in kinds.items()
    for reason, bad in bad_values(kind, good[argument]) if (function, argument, reason) not in ALLOWED
]


@pytest.mark.parametrize(("function", "good", "argument", "name", "bad"), CASES)
def test_bad_value_is_refused_by_name(function, good, argument, name, bad):
    with pytest.raises(ValueError, match=rf"\b{name}\b|got shape|samples"):
        function(**good | {argument: bad})


@pytest.mark.parametrize("function", [f for f in TABLE if f not in (layouts.load_heads, encoder.Encoder)],
                         ids=lambda f: f.__name__)
def test_good_values_are_accepted(function, monkeypatch):
    """The control: with nothing changed, nothing is raised."""
    monkeypatch.setattr(claims, "display", lambda *args, **kwargs: None)
    function(**TABLE[function][0])


def test_the_table_covers_every_public_function():
    for module in pkgutil.walk_packages(mhalib.__path__, "mhalib."):
        members = vars(importlib.import_module(module.name))
        public = {name for name, member in members.items() if not name.startswith("_")
                  and getattr(member, "__module__", None) == module.name
                  and (inspect.isclass(member) or callable(member)) and not hasattr(member, "__bound__")}
        covered = {f.__name__ for f in TABLE if f.__module__ == module.name}
        missing = public - covered - ELSEWHERE.get(module.name.rpartition(".")[2], set())
        assert not missing, f"{module.name}: {sorted(missing)}"


@pytest.mark.parametrize(("call", "message"), [
    (lambda: tied_heads.random_bases(np.random.default_rng(0), dim=3, head_dim=4), "head_dim must be at most dim = 3"),
    (lambda: tied_heads.random_bases(np.random.default_rng(0), 0, dim=3, head_dim=2), "batch must be an integer >= 1"),
    (lambda: attention.nadaraya_watson(ones((2, 3)), ones((4, 3)), 1.0, bandwidth=1.0), "value must have shape"),
    (lambda: attention.nadaraya_watson(ones((5, 2, 3)), ones((4, 3)), ones(4), bandwidth=1.0), "batch axes of query"),
    (lambda: attention.nadaraya_watson(ones((5, 2, 3)), ones((5, 4, 3)), ones((2, 4)), bandwidth=1.0),
     "value must have leading axes"),
    (lambda: attention.total_variation(thirds, np.stack([thirds, thirds])), "shape of first"),
    (lambda: weighting.optimal_weights(ones((2, 2))), "cov must be positive definite, smallest eigenvalue"),
    (lambda: weighting.optimal_weights([[1.0, 0.5], [0.0, 1.0]]), "cov must be symmetric, off by 0.5"),
    (lambda: weighting.plug_in_inflation(5, 5), "samples must be an integer >= 6, got 5"),
    (lambda: weighting.fibonacci_weights(1001), "heads must be at most 1000"),
    (lambda: weighting.geometric_weights(3, 1.5), r"ratio must be a number in \[0, 1\], got 1.5"),
    (lambda: weighting.heterogeneity_threshold(thirds, lambda q: q * ones(3), 0.5, 1.0), "must bracket a tie"),
    (lambda: decomposition.ceiling_variance(1.0, -0.5, 5), "impossible for 5 exchangeable heads"),
    (lambda: decomposition.ceiling_variance(1.0, 0.5, 2.5), "heads must be integers >= 1, got 2.5"),
    (lambda: decomposition.bias_variance_covariance(ones((1, 3, 2)), ones(2), thirds), "integer >= 2, got 1"),
    (lambda: estimate.z_test(estimate.Estimate(1.0, 0.0, 9), 1.0), "estimate.stderr must be > 0"),
    (lambda: estimate.Estimate(1.0, -0.1, 9), "stderr must be >= 0"),
    (lambda: estimate.slope(ones(4), np.arange(4.0)), "x must not be constant"),
    (lambda: estimate.slope(np.arange(2.0), np.arange(2.0)), "x must hold at least 3 points"),
    (lambda: estimate.slope(np.arange(4.0), np.arange(4.0), stderr=np.zeros(4)), "stderr must be > 0"),
    (lambda: gaussian_design.exponential_noise_variance_at(np.array([-1.0]), 1.0), "norm2 must be >= 0"),
    (lambda: mixing.noise_variance(replace(layer, name="x"), weights, 1.0), "attention must have shape"),
])
def test_particular_conditions(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_validators_accept_scalars_of_every_kind():
    for value in (2, 2.0, np.float32(2), np.int64(2), np.array(2.0)):
        assert validation.positive("x", value) == 2.0
