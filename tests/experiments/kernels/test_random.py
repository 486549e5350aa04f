"""Random numbers of compiled runs: NumPy's words, and distributions drawn from disjoint bits."""

import numpy as np
import pytest
from scipy import stats

from esbas import seeding
from esbas._internal.compiling import compiled
from esbas.experiments.kernels.fruit_grid.random import (
    below,
    chance,
    next_word,
    normal,
    random_action,
    stream,
)


@compiled
def words(stream, n):
    out = np.empty(n, np.uint64)
    for i in range(n):
        stream, out[i] = next_word(stream)
    return out


@compiled
def steps(stream, n):
    """The draws of `n` steps of a run."""
    chances = np.empty(n)
    actions = np.empty(n, np.int64)
    starts = np.empty(n, np.int64)
    noise = np.empty(n)
    for i in range(n):
        stream, word = next_word(stream)
        chances[i], actions[i], starts[i] = chance(word), random_action(word), below(word, 14)
        stream, noise[i] = normal(stream, word)
    return chances, actions, starts, noise


@pytest.fixture(scope="module")
def drawn():
    return steps(stream(0, "test"), 2_000_000)


def test_words_are_those_of_numpys_generator():
    expected = np.random.SFC64(seeding.sequence(5, "gridworld", 7)).random_raw(1000)
    assert (words(stream(5, "gridworld", 7), 1000) == expected).all()


def test_streams_with_other_names_or_seeds_differ():
    first = {words(stream(seed, "gridworld", run), 1)[0] for seed in range(3) for run in range(3)}
    assert len(first) == 9


def test_normal_draws_are_normal(drawn):
    noise = drawn[3]
    assert stats.kstest(noise, "norm").pvalue > 0.01
    assert noise.mean() == pytest.approx(0, abs=0.003)
    assert noise.var() == pytest.approx(1, abs=0.005)
    assert stats.kurtosis(noise) == pytest.approx(0, abs=0.02)


def test_tails_beyond_the_last_layer_have_the_right_weight_and_shape(drawn):
    noise = drawn[3]
    edge = 3.6541528853610088
    for tail in (noise[noise > edge], -noise[noise < -edge]):
        expected = len(noise) * stats.norm.sf(edge)
        assert abs(len(tail) - expected) < 4 * np.sqrt(expected)
        assert (
            stats.kstest(tail, lambda x: 1 - stats.norm.sf(x) / stats.norm.sf(edge)).pvalue > 0.01
        )


def test_chances_starts_and_actions_are_uniform(drawn):
    chances, actions, starts, _ = drawn
    assert stats.kstest(chances / 2**29, "uniform").pvalue > 0.01
    assert chances.min() >= 0
    assert chances.max() < 2**29
    for whole, n in ((actions, 4), (starts, 14)):
        assert stats.chisquare(np.bincount(whole, minlength=n)).pvalue > 0.01
        assert whole.max() == n - 1


def test_the_parts_of_a_word_are_independent(drawn):
    chances, actions, _, noise = drawn
    assert abs(np.corrcoef(chances, noise)[0, 1]) < 0.003
    for action in range(4):
        assert noise[actions == action].mean() == pytest.approx(0, abs=0.006)
        assert chances[actions == action].mean() / 2**29 == pytest.approx(0.5, abs=0.002)
