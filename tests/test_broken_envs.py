"""What an environment returns is checked, and an episode without an end is cut."""

import warnings

import gymnasium as gym
import numpy as np
import pytest

import broken_envs
import esbas
from broken_envs import Endless, Sound
from doubles import Faulty
from esbas.errors import BrokenEnvError, NotEpisodicError
from esbas.learners import Constant
from esbas.loop import LONG_EPISODE, length_of_cut, time_limit


def start(env, learner=None, **options):
    """Start a run of one learner."""
    learner = learner or Constant("a", lambda observation: 0)
    return esbas.run(env, [learner], esbas.Uniform, **({"episodes": 500} | options))


@pytest.mark.parametrize(
    ("name", "returned", "remedy"),
    [
        ("OtherShape", "(2,) of its space, but returned one of the shape (3,)", "fix `reset`"),
        ("OtherShapeInStep", "(2,) of its space, but returned one of the shape (3,)", "fix `step`"),
        ("OtherShapeLate", "of one shape, but returned one of the shape (1,)", "fix `step`"),
        ("OtherType", "the type uint8 of its space, but returned float64", "fix `reset`"),
        ("Outside", "in Discrete(5), but returned 7", "fix `reset`"),
        ("WithoutPart", "with the keys ['a', 'b'], but returned the keys ['a']", "fix `reset`"),
        ("NotFinite", "that are finite, but returned nan", "fix `reset`"),
        ("NotFiniteLate", "that are finite, but returned inf", "fix `step`"),
        ("RewardNotFinite", "finite rewards, but returned nan", "fix `step`"),
        ("RewardOfText", "rewards that are numbers, but returned 'high'", "fix `step`"),
        ("OldStep", "5 values", "but returned 4, as in the old Gym API: return `terminated`"),
        ("OldStepLate", "5 values", "but returned 4, as in the old Gym API: return `terminated`"),
        ("RewardOfNoneLate", "rewards that are numbers, but returned None", "fix `step`"),
        ("OldReset", "a dictionary in `reset`, but returned array(", "return `observation, {}`"),
        ("OldSeed", "must take the argument `seed`", "define it as reset(self, *, seed=None"),
        ("OddFlag", "True or False as `terminated`, but returned None", "fix `step`"),
    ],
)
def test_a_broken_environment_is_named_with_what_it_returned(name, returned, remedy):
    # The learner fails, too: this must not hide the cause.
    learner = Faulty("a", "step", fails=lambda call: call > 1000)
    with pytest.raises(BrokenEnvError) as caught:
        list(start(getattr(broken_envs, name)(), learner))
    message = str(caught.value)
    assert message.startswith(f"The environment {name!r} must ")
    assert returned in message
    assert remedy in message


def test_a_wrapped_environment_is_named_by_its_id():
    with (
        pytest.warns(DeprecationWarning, match="old step API"),
        pytest.raises(BrokenEnvError, match=r"^The environment 'tests/OldStep-v0' must return 5"),
    ):
        list(start(gym.make("tests/OldStep-v0")))


def test_an_environment_needs_actions():
    with pytest.raises(BrokenEnvError, match="'WithoutActions' has no `action_space`: define it"):
        start(broken_envs.WithoutActions())


def test_observations_may_differ_from_their_space_where_learners_do_not_need_it():
    class Large(Sound):
        """Another precision, beyond the bounds, and so large that squares are infinite."""

        def observation(self):
            return np.array([1e300, -2.0])

    class Whole(Sound):
        def observation(self):
            return [0, 1]

    with warnings.catch_warnings(action="error"):
        assert len(list(start(Large(), episodes=300))) == 300
        assert len(list(start(Whole(), episodes=300))) == 300


def test_nothing_of_a_broken_episode_is_kept():
    run = start(broken_envs.NotFiniteLate())
    with pytest.raises(BrokenEnvError):
        list(run)
    assert len(run.data) == run.number
    assert run.selector.open_choices == ()
    for trajectory in run.data:
        assert np.isfinite(trajectory.observations).all()


@pytest.mark.parametrize(
    ("ends", "steps", "lengths"),
    [
        (0, 2000, [2000]),  # at the budget
        (0, 500, [500]),
        (100, 600, [5] * 100 + [1000]),  # at 1,000 steps: it started late in the budget
        (1000, 6000, [5] * 1000 + [3000]),  # at half of the budget
        (100, 100_000, [5] * 100 + [99_500]),
        (500, 1000, [5] * 200),  # all of them end
    ],
)
def test_an_episode_without_an_end_is_cut_when_the_budget_is_used_up(ends, steps, lengths):
    run = start(Endless(ends), episodes=None, steps=steps)
    with warnings.catch_warnings(action="ignore"):
        records = list(run)
    assert [record.length for record in records] == lengths
    is_cut = lengths[-1] > 5
    assert (records[-1].terminated, records[-1].truncated) == (not is_cut, is_cut)
    assert run.data[-1].truncated is is_cut


def test_a_warning_comes_early_and_names_the_remedy():
    run = start(Endless(), episodes=None, steps=4000)
    notes = []
    run.note = notes.append
    next(run)
    early, late = notes
    assert early.startswith("Episode 1 has not ended after 2,000 steps: if the environment never")
    assert "gymnasium.wrappers.TimeLimit" in early
    assert late.startswith("Episode 1 was cut after 4,000 steps, because the budget of 4,000")
    with warnings.catch_warnings(record=True, action="always") as caught:
        next(start(Endless(), episodes=None, steps=30_000))
    assert "has not ended after 10,000 steps" in str(caught[0].message)


def test_a_cut_does_not_change_what_was_played_before():
    def played(env, **budget):
        with warnings.catch_warnings(action="ignore"):
            list(run := start(env, **budget))
        return run.data

    cut = played(Endless(3), episodes=None, steps=2000)
    limited = gym.wrappers.TimeLimit(Endless(3), 1985)
    reference = played(limited, episodes=4)
    assert len(cut) == len(reference) == 4
    for one, other in zip(cut, reference, strict=True):
        np.testing.assert_array_equal(one.observations, other.observations)
        assert one.truncated == other.truncated


def test_episodes_with_a_time_limit_are_completed():
    run = start(gym.wrappers.TimeLimit(Endless(), 800), episodes=None, steps=500)
    with warnings.catch_warnings(action="error"):
        assert [record.length for record in run] == [800]


def test_without_a_budget_in_steps_a_long_episode_is_an_error():
    run = start(Endless(), max_episode_steps=20_000)
    with (
        pytest.warns(UserWarning, match="has not ended after 10,000 steps"),
        pytest.raises(NotEpisodicError, match="did not end within 20000 steps"),
    ):
        list(run)


def test_the_time_limit_of_wrappers_is_found():
    assert time_limit(gym.make("CartPole-v1")) == 500
    assert time_limit(gym.wrappers.TimeLimit(Endless(), 7)) == 7
    assert time_limit(gym.wrappers.TimeLimit(gym.make("CartPole-v1"), 700)) == 500
    assert time_limit(Endless()) is None


def test_the_length_of_a_cut_by_hand():
    assert length_of_cut(2000, 1000) == 1000  # what is left
    assert length_of_cut(2000, 1001) == 1000  # half of the budget
    assert length_of_cut(100, 60) == 1000  # never shorter, if the episode started late
    assert length_of_cut(10**6, 999_999) == LONG_EPISODE
