"""The streaming Nadaraya–Watson estimator against fused attention: time side by side, and peak memory.

Run `make bench`. Prints one JSON object a row: sizes, seconds of both (median of interleaved repeats), their ratio
with its range, and the error of both against the dense formula in float64 on five queries. The last rows give the
peak memory of one call with a million keys and a thousand queries, each measured in a process of its own.
"""

import json
import re
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch

from mhalib.device import stream
from mhalib.ensembles.attention import kernel_weights, nadaraya_watson

ROWS = [  # keys, queries, dimension, kernel, bandwidth, floating type
    (100_000, 200, 4, "gaussian", 0.5, torch.float64),
    (100_000, 1000, 4, "exponential", 0.5, torch.float64),
    (100_000, 1000, 32, "exponential", 2.5, torch.float64),
    (1_000_000, 1000, 4, "gaussian", 0.5, torch.float64),
    (100_000, 1000, 4, "gaussian", 0.5, torch.float32),
    (100_000, 1000, 32, "exponential", 2.5, torch.float32),
    (100_000, 1000, 32, "exponential", 0.5, torch.float32),  # so sharp that most weights underflow
]
REPEATS = 5


def fused(query, key, value, kernel, h):
    """The same estimate by torch's fused attention; Gaussian scores by one augmented coordinate, after centring."""
    if kernel == "gaussian":
        centre = key.mean(0)
        query, key = query - centre, key - centre
        query = torch.cat([query, torch.ones_like(query[:, :1])], 1)
        key = torch.cat([key, -0.5 * key.square().sum(1, keepdim=True)], 1)
    arguments = (x[None, None] for x in (query, key, value))
    return torch.nn.functional.scaled_dot_product_attention(*arguments, scale=1 / h**2)[0, 0]


def seconds(call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def problem(n, m, dim, dtype=torch.float64):
    g = stream("benchmarks.streaming", dim)
    return [torch.tensor(g.standard_normal(shape), dtype=dtype) for shape in ((m, dim), (n, dim), (n, 1))]


def row(n, m, dim, kernel, h, dtype) -> dict:
    query, key, value = problem(n, m, dim, dtype)

    def ours():
        return nadaraya_watson(query, key, value, kernel=kernel, bandwidth=h)[0]

    def theirs():
        return fused(query, key, value, kernel, h)

    dense = kernel_weights(query[:5].double(), key.double(), kernel=kernel, bandwidth=h) @ value.double()
    errors = [float((call()[:5] - dense).abs().max()) for call in (ours, theirs)]
    times = [(seconds(ours), seconds(theirs)) for _ in range(REPEATS)]
    ratios = sorted(a / b for a, b in times)
    return {"keys": n, "queries": m, "dim": dim, "kernel": kernel, "bandwidth": h,
            "dtype": str(dtype).removeprefix("torch."), "threads": torch.get_num_threads(),
            "streaming_s": round(statistics.median(a for a, _ in times), 4),
            "fused_s": round(statistics.median(b for _, b in times), 4), "ratio": round(statistics.median(ratios), 3),
            "ratio_range": [round(ratios[0], 3), round(ratios[-1], 3)],
            "streaming_error": errors[0], "fused_error": errors[1]}


def own_peak() -> float:
    """Peak memory of this process in MB. Linux keeps it per program; getrusage would include the parent's."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.search(r"VmHWM:\s+(\d+)", status.read_text())[1]) / 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def peak_megabytes(call: str, n: int, m: int) -> float:
    """Growth of the peak memory of a fresh process during `call`, in MB; the inputs are made before."""
    script = f"""
from benchmarks.streaming_attention import *
query, key, value = problem({n}, {m}, 4)
nadaraya_watson(query[:2], key[:10], value[:10], bandwidth=0.5)
before = own_peak()
{call}
print(own_peak() - before)
"""
    root = Path(__file__).parents[1]
    result = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True)
    return float(result.stdout)


STREAMING = 'nadaraya_watson(query, key, value, kernel="gaussian", bandwidth=0.5)'
DENSE = "torch.softmax(query @ key.T, -1) @ value"

if __name__ == "__main__":
    for arguments in ROWS:
        print(json.dumps(row(*arguments)), flush=True)
    for n in (250_000, 1_000_000):
        print(json.dumps({"keys": n, "queries": 1000, "streaming_peak_MB": round(peak_megabytes(STREAMING, n, 1000)),
                          "dense_weights_MB": n * 1000 * 8 // 2**20}), flush=True)
