import numpy as np
import pytest

from esbas import play
from esbas.errors import InvalidValueError
from esbas.learners import Constant
from esbas.testing import Corridor, OneStep

RIGHT = Constant("right", lambda seen: 1).policy()


def rng():
    return np.random.default_rng(0)


def test_a_corridor_by_hand():
    env = Corridor(3, slip=0.0, max_episode_steps=4)
    assert env.reset(seed=0) == (0, {})
    assert env.step(0) == (0, 0.0, False, False, {"is_success": False})  # a wall
    assert env.step(1) == (1, 0.0, False, False, {"is_success": False})
    assert env.step(0) == (0, 0.0, False, False, {"is_success": False})
    assert env.step(0) == (0, 0.0, False, True, {"is_success": False})
    env.reset()
    env.step(1)
    assert env.step(1) == (2, 1.0, True, False, {"is_success": True})


def test_steps_slip_at_the_given_rate():
    env = Corridor(3, slip=0.3)
    slips = 0
    env.reset(seed=0)
    for _ in range(3000):
        place, *_ = env.step(1)
        slips += place == 0
        env.reset()
    assert 0.27 < slips / 3000 < 0.33


def test_rewards_of_a_one_step_task():
    env = OneStep((1.0, 5.0), noise=0.5)
    rewards = [play(env, RIGHT, rng=rng(), seed=seed).rewards for seed in range(500)]
    assert {len(reward) for reward in rewards} == {1}
    assert np.mean(rewards) == pytest.approx(5.0, abs=0.1)
    assert np.std(rewards) == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("env", [Corridor(6, slip=0.4), OneStep()])
def test_everything_follows_from_the_seed(env):
    def outcome(seed):
        trajectory = play(env, RIGHT, rng=rng(), seed=seed)
        return trajectory.observations.tolist(), trajectory.rewards.tolist()

    assert outcome(1) == outcome(1)
    assert len({str(outcome(seed)) for seed in range(20)}) > 5


@pytest.mark.parametrize("env", [Corridor(), OneStep((1.0, 2.0))])
@pytest.mark.parametrize("action", [2, -1, 0.5, None])
def test_actions_that_do_not_exist_are_refused(env, action):
    env.reset(seed=0)
    with pytest.raises(InvalidValueError, match=r"Actions must be (0 or 1|0, ..., 1), but got"):
        env.step(action)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Corridor(1),
        lambda: Corridor(slip=1.5),
        lambda: Corridor(max_episode_steps=0),
        lambda: OneStep(()),
        lambda: OneStep(noise=-1),
    ],
)
def test_bad_parameters_are_refused(build):
    with pytest.raises(InvalidValueError, match=r"must (be|not be) "):
        build()
