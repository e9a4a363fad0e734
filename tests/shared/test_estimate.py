"""Estimates have the right standard errors, and tests the stated error rates."""

import numpy as np
import pytest
from scipy import stats

from mhalib.device import stream
from mhalib.estimate import Estimate, from_samples, monte_carlo, slope, z_test


def test_samples_give_mean_and_standard_error():
    values = stream("test.samples").standard_normal((50, 3))
    estimate = from_samples(values)
    np.testing.assert_allclose(estimate.mean, values.mean(0))
    np.testing.assert_allclose(estimate.stderr, stats.sem(values))


def test_arithmetic_of_estimates():
    first, second = Estimate(3.0, 0.3, 100), Estimate(1.0, 0.4, 50)
    assert first - second == Estimate(2.0, 0.5, 50)
    assert 2 * first == first * 2 == Estimate(6.0, 0.6, 100)
    assert (first * -1).stderr == 0.3
    pair = Estimate(np.array([1.0, 2.0]), np.array([0.1, 0.2]), 10)
    assert pair[1] == Estimate(2.0, 0.2, 10)


@pytest.mark.parametrize("batch", [1, 7, 1000, 5000])
def test_batches_merge_to_the_whole(batch):
    """Moments merged over batches equal those of all samples at once, whatever the batch."""
    kept = []

    def draw(generator, size):
        kept.append(1e6 + generator.standard_normal((size, 2)))
        return kept[-1]

    merged, whole = monte_carlo(draw, name="test.batches", samples=1000, batch=batch), from_samples(
        np.concatenate(kept))
    np.testing.assert_allclose(merged.mean, whole.mean, rtol=1e-13)
    np.testing.assert_allclose(merged.stderr, whole.stderr, rtol=1e-9)
    assert merged.n == 1000


def test_draws_must_be_as_many_as_asked():
    with pytest.raises(ValueError, match="must return 5 samples"):
        monte_carlo(lambda g, size: g.standard_normal(size + 1), name="test.count", samples=5, batch=5)


def test_false_alarm_rate_is_the_stated_one():
    """At a stated rate of 1 %, 20,000 true predictions raise 200 ± 14 alarms; with 2 % for a rate they would not."""
    samples = stream("test.alarm").standard_normal((20_000, 30))
    alarms = sum(not z_test(from_samples(row), 0.0, false_alarm=0.01).passed for row in samples)
    assert abs(alarms - 200) < 5 * 14.1
    assert abs(alarms - 400) > 5 * 14.1


def test_detectable_effect_is_detected():
    """A deviation of the stated size fails; one hundredth of it passes."""
    estimate = Estimate(1.0, 0.01, 10_000)
    effect = z_test(estimate, 1.0).detectable
    assert not z_test(estimate, 1.0 + effect).passed
    assert z_test(estimate, 1.0 + effect / 100).passed


def test_many_entries_share_the_false_alarm():
    """The threshold grows with the number of entries, and one bad entry is enough to fail."""
    one, many = Estimate(0.0, 1.0, 1000), Estimate(np.zeros(100), np.ones(100), 1000)
    assert z_test(many, 0.0).threshold > z_test(one, 0.0).threshold
    bad = np.zeros(100)
    bad[17] = 9
    assert z_test(Estimate(bad, np.ones(100), 1000), 0.0).z == 9
    assert not z_test(Estimate(bad, np.ones(100), 1000), 0.0).passed


def test_few_samples_need_a_larger_deviation():
    assert z_test(Estimate(0.0, 1.0, 10), 0.0).threshold > 2 * z_test(Estimate(0.0, 1.0, 10_000), 0.0).threshold


def test_slope_agrees_with_scipy():
    g = stream("test.slope")
    x = g.standard_normal(40)
    y = 2 * x + 1 + g.standard_normal(40)
    ours, theirs = slope(x, y), stats.linregress(x, y)
    np.testing.assert_allclose([ours.value, ours.intercept, ours.stderr],
                               [theirs.slope, theirs.intercept, theirs.stderr])


def test_slope_interval_covers_as_stated():
    """Of 2000 intervals at 90 %, 1800 ± 13 cover the truth, with unknown and with known errors."""
    g = stream("test.coverage")
    x, known = np.arange(6.0), np.linspace(0.5, 2, 6)
    for stderr in (None, known):
        noise = g.standard_normal((2000, 6)) * (1 if stderr is None else known)
        covered = 0
        for row in 0.7 * x + noise:
            fit = slope(x, row, stderr=stderr, confidence=0.9)
            covered += fit.low <= 0.7 <= fit.high
        assert abs(covered - 1800) < 5 * 13.4


def test_weights_matter():
    """A point with a huge error does not move a weighted slope, but an unweighted one."""
    x, y = np.arange(5.0), np.array([0.0, 1, 2, 3, 100])
    assert slope(x, y, stderr=np.array([1, 1, 1, 1, 1e6])).value == pytest.approx(1, abs=1e-6)
    assert slope(x, y).value > 10
