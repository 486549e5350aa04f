"""Compiled Kalman filters equal the objects, and their covariances stay positive definite."""

import numpy as np
import pytest

from esbas._internal.compiling import compiled
from esbas.bandits.kalman_filters import FILTERS, KalmanFilters, factor
from esbas.experiments.kernels.counter import normal
from esbas.experiments.kernels.kalman import Bank, draw, new_bank, observe, sample


@pytest.mark.parametrize("arms", [1, 2, 6])
def test_the_same_draws_give_the_same_samples_and_choices(arms):
    rng = np.random.default_rng(arms)
    bank = Bank(*new_bank(arms))
    filters = KalmanFilters(arms)
    chosen = 0
    for t in range(1500):
        reward = float(rng.normal()) + chosen * t / 500
        observe(bank, chosen, reward)
        filters.observe(chosen, reward)
        point = rng.random()
        normals = rng.standard_normal(arms)
        samples = sample(bank, draw(bank, point), normals)
        expected = filters.sample(filters.draw(point), normals)
        assert samples.tolist() == pytest.approx(expected, rel=1e-9, abs=1e-9)
        chosen = int(samples.argmax())
        assert chosen == expected.index(max(expected))
    assert bank.seen.tolist() == filters.seen
    assert bank.log_weights == pytest.approx(filters.log_weights, abs=1e-9)


@compiled
def _play(bank, key, first, rounds, n_arms):
    """Mostly two arms, the others now and then, with values that drift."""
    for t in range(first, first + rounds):
        rare = normal(key, 4 * t)
        arm = t % 2 if abs(rare) < 2.5 else t % n_arms
        observe(bank, arm, 3.0 * arm + 1e-4 * t + normal(key, 4 * t + 2))


def test_covariances_stay_positive_definite():
    arms = 6
    block = 5_000
    bank = Bank(*new_bank(arms))
    for first in range(0, 100_000, block):
        _play(bank, np.uint64(7), first, block, arms)
        for f in range(FILTERS):
            lower = np.tril(bank.covariances[:, :, f])
            covariance = lower + np.tril(lower, -1).T
            deviations = np.sqrt(covariance.diagonal())
            assert np.linalg.eigvalsh(covariance / np.outer(deviations, deviations)).min() > 1e-6
    assert bank.rounds[0] == 100_000


def test_a_factor_is_that_of_cholesky_or_safe():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 5))
    covariance = root @ root.T + np.eye(5)
    assert factor(covariance) == pytest.approx(np.linalg.cholesky(covariance))
    for singular in (np.ones((3, 3)), np.array([[1.0, 1.0], [1.0, 1.0 - 1e-9]]), np.zeros((2, 2))):
        lower = factor(singular)
        assert lower @ lower.T == pytest.approx(singular, abs=1e-8)
