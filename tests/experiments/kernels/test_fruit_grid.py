"""Compiled runs equal runs of the ordinary objects.

They are equal from the same random draws, and over many runs they agree within intervals.
"""

import numpy as np
import pytest

import esbas
from esbas.experiments.envs import FruitGrid, FruitMap
from esbas.experiments.gridworld.setup import Setup
from esbas.experiments.gridworld.sweep import compiled_run, ordinary_run
from esbas.experiments.kernels.fruit_grid.random import (
    CHANCE_BITS,
    below,
    chance,
    next_word,
    normal,
    random_action,
    stream,
    uniform,
)
from esbas.reporting import estimate

SMALL_MAP = "F..\n.#F\n..."
TINY_MAP = "F.\n.F"


def _words(state):
    """Convert the Python integers that compiled functions return, to pass them in again."""
    return tuple(map(np.uint64, state))


class SharedDraws:
    """One stream of words for environment and policies, split as in the compiled run."""

    def __init__(self, seed: int, run: int) -> None:
        self.stream = stream(seed, "gridworld", run)
        self.word = np.uint64(0)

    def next(self) -> np.uint64:
        after, word = next_word(self.stream)
        self.stream = _words(after)
        self.word = np.uint64(word)
        return self.word


class PolicyDraws:
    """The generator of an ε-greedy policy. Each step starts with a new word."""

    def __init__(self, shared: SharedDraws) -> None:
        self.shared = shared

    def random(self) -> float:
        return chance(self.shared.next()) / 2**CHANCE_BITS

    def integers(self, n: int) -> int:
        assert n == 4
        return random_action(self.shared.word)


class GridDraws:
    """The generator of the environment.

    A start uses its own word, and noise uses the word of the step.
    """

    def __init__(self, shared: SharedDraws) -> None:
        self.shared = shared

    def integers(self, n: int) -> int:
        return below(self.shared.next(), n)

    def normal(self) -> float:
        after, noise = normal(self.shared.stream, self.shared.word)
        self.shared.stream = _words(after)
        return float(noise)


class SharedGrid(FruitGrid):
    """The environment with its generator replaced: seeds are ignored."""

    def __init__(self, text: str, shared: SharedDraws) -> None:
        super().__init__(text)
        self._draws = GridDraws(shared)

    def reset(self, *, seed=None, options=None):
        del seed
        self.np_random = self._draws
        return super().reset(options=options)


class SelectorDraws:
    """The generator of Kalman Thompson sampling: every draw takes its own words."""

    def __init__(self, seed: int, run: int) -> None:
        self.stream = stream(seed, "gridworld", run, "selector")

    def next(self) -> np.uint64:
        after, word = next_word(self.stream)
        self.stream = _words(after)
        return np.uint64(word)

    def integers(self, n: int) -> int:
        return below(self.next(), n)

    def random(self) -> float:
        return uniform(self.next())

    def standard_normal(self, n: int) -> np.ndarray:
        drawn = np.zeros(n)
        for i in range(n):
            word = self.next()
            after, drawn[i] = normal(self.stream, word)
            self.stream = _words(after)
        return drawn


class EveryEpisode(Setup):
    """One bin per episode, so that every episode is compared."""

    def edges(self):
        return np.arange(1, self.episodes + 1)


class SharedPolicy:
    """A policy with its generator replaced."""

    def __init__(self, policy, shared: SharedDraws) -> None:
        self._policy = policy
        self._draws = PolicyDraws(shared)

    def act(self, observation, rng):
        del rng
        return self._policy.act(observation, self._draws)


def ordinary_run_from_shared_draws(setup: Setup, name: str, *, seed: int, run: int):
    """Call `esbas.run` on the ordinary objects, with only the generators replaced.

    Returns the length, value and arm of each episode.
    """
    shared = SharedDraws(seed, run)
    env = SharedGrid(setup.grid.text, shared)
    portfolio = setup.portfolio(name)
    selector = setup.selector(name, seed=0)
    if name == "kalman-thompson":
        selector.bandit.rng = SelectorDraws(seed, run)
    for learner in portfolio:
        learner.policy = lambda own=learner.policy: SharedPolicy(own(), shared)
    records = list(
        esbas.run(env, portfolio, selector, episodes=setup.episodes, objective=setup.objective())
    )
    assert not any(record.faults for record in records)
    return [
        (record.length, record.value, selector.arms.index(record.learner)) for record in records
    ]


def both_runs(setup: Setup, name: str, run: int = 2):
    transitions, objective, selections = compiled_run(setup, name, seed=1, run=run)
    assert (selections.sum(axis=1) == 1).all()
    compiled = list(
        zip(
            transitions.tolist(),
            objective.tolist(),
            selections.argmax(axis=1).tolist(),
            strict=True,
        )
    )
    return compiled, ordinary_run_from_shared_draws(setup, name, seed=1, run=run)


@pytest.mark.parametrize("name", ["ssbas", "esbas", "kalman-thompson", "0.01", "annealed"])
def test_the_same_draws_give_the_same_run(name):
    setup = EveryEpisode(grid=FruitMap(SMALL_MAP), gamma=0.9, epsilon=0.3, episodes=500)
    compiled, ordinary = both_runs(setup, name)
    assert compiled == ordinary
    lengths, values, arms = (set(column) for column in zip(*compiled, strict=True))
    assert len(lengths) > 30  # many different episodes
    assert 200 in values  # some episodes were truncated
    assert name in ("0.01", "annealed") or arms == {0, 1, 2, 3}


def test_many_runs_of_kalman_thompson_sampling_are_the_same():
    setup = EveryEpisode(grid=FruitMap(TINY_MAP), gamma=0.9, epsilon=0.5, episodes=60)
    first_arms = set()
    for run in range(15):
        compiled, ordinary = both_runs(setup, "kalman-thompson", run)
        assert compiled == ordinary
        first_arms.add(compiled[0][2])
    assert first_arms == {0, 1, 2, 3}


def test_the_same_draws_give_the_same_run_of_one_learner_that_learns_by_epochs():
    setup = EveryEpisode(
        grid=FruitMap(SMALL_MAP), gamma=0.9, epsilon=0.5, episodes=300, horizon=250, epochal=True
    )
    compiled, ordinary = both_runs(setup, "0.1")
    assert compiled == ordinary
    assert len({value for _, value, _ in compiled}) > 20


def test_the_same_draws_give_the_same_run_on_the_map_of_the_experiment():
    setup = EveryEpisode(grid=FruitMap(), gamma=0.9, epsilon=0.2, episodes=400)
    compiled, ordinary = both_runs(setup, "0.1")
    assert compiled == ordinary
    assert len({value for _, value, _ in compiled}) > 20


@pytest.mark.parametrize("name", ["ssbas", "esbas"])
def test_over_many_runs_both_agree_within_intervals(name):
    setup = Setup(grid=FruitMap(TINY_MAP), gamma=0.9, epsilon=0.5, episodes=60)
    means = []
    for one_run, runs in ((compiled_run, 2000), (ordinary_run, 60)):
        counted = [one_run(setup, name, seed=11, run=run) for run in range(runs)]
        objective = estimate([each.objective.sum() / setup.episodes for each in counted])
        shares = [
            estimate([each.selections.sum(axis=0)[k] / setup.episodes for each in counted])
            for k in range(4)
        ]
        means.append([objective, *shares])
    for compiled, ordinary in zip(*means, strict=True):
        assert abs(compiled.mean - ordinary.mean) <= compiled.ci95 + ordinary.ci95
    # the intervals are narrow enough for the comparison
    assert means[1][0].ci95 < 0.1 * means[1][0].mean


def test_other_runs_and_seeds_give_other_results():
    setup = Setup(grid=FruitMap(SMALL_MAP), gamma=0.9, epsilon=0.3, episodes=200)
    totals = {
        int(compiled_run(setup, "ssbas", seed=seed, run=run).transitions.sum())
        for seed in (0, 1)
        for run in (0, 1)
    }
    again = compiled_run(setup, "ssbas", seed=0, run=0).transitions.sum()
    assert len(totals) == 4
    assert again in totals


def test_bins_partition_the_run():
    setup = Setup(grid=FruitMap(), gamma=0.9, epsilon=0.3, episodes=2000)
    binned = compiled_run(setup, "ssbas", seed=0, run=0)
    single = compiled_run(
        EveryEpisode(grid=setup.grid, gamma=0.9, epsilon=0.3, episodes=2000), "ssbas", seed=0, run=0
    )
    starts = np.append(0, setup.edges()[:-1])
    for coarse, fine in zip(binned, single, strict=True):
        assert (coarse == np.add.reduceat(fine, starts, axis=0)).all()
