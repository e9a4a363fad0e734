"""Closed forms of Gaussian and spherical designs against quadrature; tied heads."""

import numpy as np
import pytest
from scipy import integrate

from mhalib.device import stream
from mhalib.ensembles import gaussian_design, tied_heads


@pytest.mark.parametrize("head_dim", [2, 3, 8, 64])
@pytest.mark.parametrize("scale", [0.1, 0.35])
def test_sphere_formula_equals_quadrature(head_dim, scale):
    def phi(r):
        def tilted(t, z=r * scale * head_dim):
            return np.exp(z * np.cos(t)) * np.sin(t) ** (head_dim - 2)
        return integrate.quad(tilted, 0, np.pi)[0] / integrate.quad(tilted, 0, np.pi, args=(0.0,))[0]
    found = gaussian_design.sphere_noise_variance(scale, head_dim)
    assert found == pytest.approx(phi(2) / phi(1) ** 2, rel=1e-9)
    assert found != pytest.approx(phi(2) / phi(1), rel=1e-3)


def test_sphere_formula_does_not_overflow():
    assert gaussian_design.sphere_noise_variance(1 / 64, 4096) == pytest.approx(np.e, rel=1e-3)
    with pytest.raises(ValueError, match="scale must keep"):
        gaussian_design.sphere_noise_variance(10.0, 64)


def test_gaussian_formula_equals_quadrature():
    for norm, beta in ((0.5, 0.8), (2.0, 0.5)):
        def moment(r, norm=norm, beta=beta):
            return integrate.quad(lambda t: np.exp(r * beta * norm * t - t**2 / 2) / np.sqrt(2 * np.pi), -40, 40)[0]
        found = gaussian_design.exponential_noise_variance_at(np.array(norm**2), beta)
        assert found == pytest.approx(moment(2) / moment(1) ** 2, rel=1e-9)


def test_random_bases_are_orthonormal_and_uniform():
    bases = tied_heads.random_bases(stream("test.bases"), 4000, dim=6, head_dim=2)
    np.testing.assert_allclose(bases.mT @ bases, np.broadcast_to(np.eye(2), (4000, 2, 2)), atol=1e-12)
    mean = (bases @ bases.mT).mean(0)
    np.testing.assert_allclose(mean, np.eye(6) * 2 / 6, atol=5 * 0.4 / 4000**0.5)


def test_projection_keeps_inner_products_of_its_range():
    basis = tied_heads.random_bases(stream("test.range"), 1, dim=5, head_dim=3)
    points = stream("test.points").standard_normal((4, 3)) @ basis[0].T
    inside = tied_heads.project(points, basis)[0]
    np.testing.assert_allclose(inside @ inside.T, points @ points.T)
    outside = stream("test.outside").standard_normal((4, 5))
    assert not np.allclose(tied_heads.project(outside, basis)[0] @ tied_heads.project(outside, basis)[0].T,
                           outside @ outside.T)
