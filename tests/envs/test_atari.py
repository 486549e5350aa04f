import cv2
import gymnasium
import numpy as np
import pytest

from esbas.envs import atari
from esbas.errors import InvalidValueError

STEPS = 30


@pytest.fixture(scope="module", autouse=True)
def _games():
    atari.register()


def game(name="ALE/Breakout-v5", **options):
    return atari.preprocess(gymnasium.make(name, frameskip=1), **options)


def play(env, seed, steps=STEPS):
    """The observations of the first steps of an episode, and what else they return."""
    observation, _ = env.reset(seed=seed)
    rng = np.random.default_rng(seed)
    seen = [np.asarray(observation)]
    others = []
    for _ in range(steps):
        observation, *rest = env.step(int(rng.integers(env.action_space.n)))
        seen.append(np.asarray(observation))
        others.append(rest[:3])
    return np.stack(seen), others


def test_observations_are_stacks_of_gray_images():
    env = game(screen_size=42, stack_size=3)
    assert env.observation_space == gymnasium.spaces.Box(0, 255, (3, 42, 42), np.uint8)
    seen, _ = play(env, 1)
    assert seen.dtype == np.uint8
    assert (seen[1:, :-1] == seen[:-1, 1:]).all()  # the newest one is the last
    assert len(np.unique(seen)) > 2
    assert cv2.getNumThreads() == 1


# actions are repeated at random
@pytest.mark.parametrize("name", ["ALE/Breakout-v5", "ALE/Qbert-v5"])
def test_an_episode_depends_on_its_seed_and_the_actions_alone(name):
    one = game(name)
    other = game(name)
    first = play(one, 5)
    play(other, 9, 11)
    second = play(other, 5)
    different = play(one, 6)
    np.testing.assert_array_equal(first[0], second[0])
    assert first[1] == second[1]
    assert not np.array_equal(first[0], different[0])


def test_the_number_of_no_ops_depends_on_the_seed():
    env = game(noop_max=30)
    starts = {}
    for seed in (0, 1, 2, 0):
        _, info = env.reset(seed=seed)
        assert starts.setdefault(seed, info["episode_frame_number"]) == info["episode_frame_number"]
    assert len(set(starts.values())) > 1
    assert max(starts.values()) <= 30
    assert game(noop_max=0).reset(seed=0)[1]["episode_frame_number"] == 0


def test_an_episode_is_a_game_or_a_life():
    lives = {}
    for one_life in (False, True):
        env = game(terminal_on_life_loss=one_life)
        env.reset(seed=0)
        over = False
        while not over:
            _, _, over, _, info = env.step(1)  # fires, and does not move
        lives[one_life] = info["lives"]
    assert lives == {False: 0, True: 4}
    assert env.reset(seed=0)[1]["lives"] == 5  # a new game


def test_actions_are_repeated_as_often_as_the_wrappers_say():
    assert atari.repeats_of(game()) == 4
    assert atari.repeats_of(game(frame_skip=2)) == 2
    assert atari.repeats_of(gymnasium.make("ALE/Breakout-v5")) == 4
    assert atari.repeats_of(gymnasium.make("Breakout-v4")) is None  # at random
    assert atari.repeats_of(gymnasium.make("CartPole-v1")) is None


def test_other_environments_are_refused():
    with pytest.raises(
        InvalidValueError,
        match="the game has frameskip=4 and AtariPreprocessing has frame_skip=4: give the game",
    ):
        atari.preprocess(gymnasium.make("ALE/Breakout-v5"))
    with pytest.raises(
        InvalidValueError,
        match="AtariPreprocessing needs a game of ale-py, but the environment is <CartPole",
    ):
        atari.preprocess(gymnasium.make("CartPole-v1"))
