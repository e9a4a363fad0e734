"""The streaming estimator needs memory for the points, not for the matrix of weights."""

from benchmarks.streaming_attention import DENSE, STREAMING, peak_megabytes


def test_a_million_keys_and_a_thousand_queries_fit():
    """Below 200 MB, where the matrix of weights alone has 7.6 GB; a fiftieth of the dense problem needs more."""
    assert peak_megabytes(STREAMING, 1_000_000, 1000) < 200
    assert peak_megabytes(DENSE, 20_000, 1000) > 200


def test_memory_does_not_grow_with_the_queries():
    """Ten times the queries at equal keys: less than 60 MB more, where their weights would be 760 MB more."""
    few, many = (peak_megabytes(STREAMING, 100_000, m) for m in (100, 1000))
    assert many - few < 60
