"""Environments that are tables of outcomes: Gymnasium's checks, tables, and optimal returns."""

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from esbas.errors import InvalidValueError
from esbas.experiments.envs import FourRooms, Inventory, RiverSwim

ENVS = [RiverSwim, FourRooms, Inventory]


@pytest.mark.parametrize("make", ENVS)
def test_gymnasium_accepts_it(make):
    check_env(make(), skip_render_check=True)


@pytest.mark.parametrize("make", ENVS)
def test_the_table_is_complete(make):
    env = make()
    for state in range(env.observation_space.n):
        for action in range(env.action_space.n):
            outcomes = env.outcomes[state][action]
            assert sum(each.probability for each in outcomes) == pytest.approx(1)
            assert all(
                each.probability >= 0 and each.state in env.observation_space for each in outcomes
            )


@pytest.mark.parametrize("make", ENVS)
def test_steps_have_the_frequencies_of_the_table(make):
    env = make()
    state, _ = env.reset(seed=0)
    action = env.action_space.n - 1
    seen = np.zeros(env.observation_space.n)
    for seed in range(2000):
        env.reset(seed=seed)
        env._state = state
        seen[env.step(action)[0]] += 1
    expected = np.zeros_like(seen)
    for each in env.outcomes[state][action]:
        expected[each.state] += each.probability
    assert seen / 2000 == pytest.approx(expected, abs=0.05)


def best_returns(env, gamma=1.0):
    """Return the best expected return and the best first actions, by dynamic programming."""
    values = np.zeros(env.observation_space.n)
    for _ in range(env.max_episode_steps):
        of_actions = np.array(
            [
                [
                    sum(p * (r + gamma * (0.0 if over else values[s])) for p, s, r, over in row)
                    for row in rows
                ]
                for rows in env.outcomes
            ]
        )
        values = of_actions.max(axis=1)
    return values[list(env.starts)].mean(), of_actions.argmax(axis=1)


def test_river_swim_pays_upstream():
    best, actions = best_returns(RiverSwim())
    assert actions.tolist() == [1] * 6
    assert best > 10 * 50 * 0.005
    short_sighted = best_returns(RiverSwim(), gamma=0.5)[1]
    assert short_sighted[0] == 0


def test_the_goal_of_the_four_rooms_can_be_reached_from_everywhere():
    env = FourRooms()
    assert len(env.cells) == 104
    assert 0.6 < best_returns(env)[0] < 0.9
    assert not env.outcomes[0][0][0].terminated


def test_a_shop_must_look_ahead():
    best, actions = best_returns(Inventory())
    assert best > 30
    assert actions[0] > 0
    assert best_returns(Inventory(), gamma=0.0)[1][0] == 0


@pytest.mark.parametrize(
    ("make", "bad"),
    [
        (RiverSwim, {"states": 2}),
        (FourRooms, {"slip": 1.0}),
        (Inventory, {"demand": 0.0}),
        (RiverSwim, {"max_episode_steps": 0}),
    ],
)
def test_invalid_options_are_refused(make, bad):
    with pytest.raises(InvalidValueError):
        make(**bad)
