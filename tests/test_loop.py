"""One episode, and the loop that reads like the paper's Pseudo-code 1."""

import math
import subprocess
import sys
from dataclasses import astuple
from itertools import islice
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import esbas
from doubles import Always, BatchRecorder, Endless, Faulty, StepRecorder
from esbas import (
    ESBAS,
    SSBAS,
    BanditSelector,
    Fixed,
    Portfolio,
    Uniform,
    episode_length,
    play,
    run,
    total_return,
)
from esbas.errors import InvalidValueError, NotEpisodicError, SpaceError
from esbas.learners import Constant, TabularQ
from esbas.testing import Corridor, OneStep


def rng():
    return np.random.default_rng(0)


def walkers(*names, length=5):
    return [
        TabularQ(name, states=length, actions=2, learning_rate=0.2 + 0.1 * k, epsilon=0.2)
        for k, name in enumerate(names)
    ]


def test_an_episode_as_a_trajectory():
    seen = []
    policy = Constant("right", lambda observation: 1).policy()
    trajectory = play(Corridor(4, slip=0.0), policy, rng=rng(), see=seen.append)
    assert trajectory.observations.tolist() == [0, 1, 2, 3]
    assert trajectory.actions.tolist() == [1, 1, 1]
    assert trajectory.rewards.tolist() == [0.0, 0.0, 1.0]
    assert trajectory.log_probs.tolist() == [0.0, 0.0, 0.0]
    assert (trajectory.terminated, trajectory.truncated) == (True, False)
    assert seen == list(trajectory.transitions())


def test_a_truncated_episode():
    trajectory = play(Corridor(4, slip=0.0, max_episode_steps=5), Always(0), rng=rng())
    assert (len(trajectory), trajectory.terminated, trajectory.truncated) == (5, False, True)
    assert np.isnan(trajectory.log_probs).all()  # the policy has no log-probabilities


def test_an_environment_whose_episodes_do_not_end_raises():
    with pytest.raises(
        NotEpisodicError,
        match=r"An episode did not end within 20 steps: raise `max_episode_steps`, or wrap",
    ):
        play(Endless(), Always(0), rng=rng(), max_episode_steps=20)


def test_an_environment_may_write_all_observations_into_one_array():
    class Reuser(Corridor):
        place = np.zeros(1)

        def reset(self, *, seed=None):
            self.place[:], info = super().reset(seed=seed)
            return self.place, info

        def step(self, action):
            self.place[:], *rest = super().step(action)
            return self.place, *rest

    seen = []
    trajectory = play(Reuser(3, slip=0.0), Always(1), rng=rng(), see=seen.append)
    assert trajectory.observations.tolist() == [[0], [1], [2]]
    assert [(step.observation[0], step.next_observation[0]) for step in seen] == [(0, 1), (1, 2)]


def test_a_record_describes_its_episode():
    env = Corridor(4, slip=0.0, max_episode_steps=5)
    learners = [Constant("left", lambda seen: 0), Constant("right", lambda seen: 1)]
    records = list(run(env, learners, ESBAS(["left", "right"]), episodes=3))
    assert [astuple(record) for record in records] == [
        (1, "left", 0.0, 5, 0, False, True, ()),
        (2, "left", 0.0, 5, 1, False, True, ()),
        (3, "right", 0.99**2, 3, 1, True, False, ()),
    ]


@pytest.mark.parametrize(("epochs", "sizes"), [(None, [1, 3, 7, 15, 31]), ([20, 20, 40], [20, 40])])
def test_growing_batch_learners_learn_from_all_data_when_an_epoch_starts(epochs, sizes):
    learners = [BatchRecorder("a"), BatchRecorder("b")]
    list(run(OneStep(), learners, ESBAS("ab", epochs=epochs), episodes=60))
    assert [learner.sizes for learner in learners] == [sizes, sizes]


def test_policies_are_frozen_within_an_epoch():
    episodes = run(
        OneStep((0.0, 0.0)),
        [BatchRecorder("a", plan=lambda trainings: trainings % 2)],
        ESBAS("a"),
        episodes=31,
    )
    list(episodes)
    assert [trajectory.actions[0] for trajectory in episodes.data.since(0)] == [0] + [1] * 2 + [
        0
    ] * 4 + [1] * 8 + [0] * 16


def test_online_every_learner_sees_every_transition():
    learners = [StepRecorder("a", action=1), StepRecorder("b", action=0)]
    episodes = run(Corridor(3), learners, Uniform("ab"), episodes=20)
    assert {record.learner for record in episodes} == {"a", "b"}
    steps = [step for trajectory in episodes.data.since(0) for step in trajectory.transitions()]
    for learner in learners:
        assert [step[:6] for step in learner.seen] == [step[:6] for step in steps]


def test_a_learner_serves_both_settings():
    stepwise = StepRecorder("a")
    whole = BatchRecorder("b")
    episodes = run(Corridor(3), [stepwise, whole], ESBAS("ab"), episodes=20)
    list(episodes)
    assert len(stepwise.seen) == sum(
        len(trajectory) for trajectory in episodes.data.since(0)[:15]
    )  # the trajectories before epoch 4
    stepwise = StepRecorder("a")
    whole = BatchRecorder("b")
    list(run(Corridor(3), [stepwise, whole], SSBAS("ab"), episodes=20))
    assert whole.sizes == list(range(1, 20))


@pytest.mark.parametrize("selector", [ESBAS, SSBAS])
def test_the_best_learner_is_found(selector):
    learners = [
        Constant("left", lambda seen: 0),
        Constant("right", lambda seen: 1),
        Constant("odd", lambda seen: seen % 2),
    ]
    records = list(run(Corridor(5), learners, selector(["left", "right", "odd"]), episodes=300))
    assert [record.learner for record in records[100:]].count("right") > 150


def test_an_objective_can_be_minimized():
    env, learners = (
        Corridor(5, slip=0.0),
        [Constant("left", lambda seen: 0), Constant("right", lambda seen: 1)],
    )
    records = list(
        run(env, learners, SSBAS(["left", "right"]), objective=episode_length(), episodes=50)
    )
    assert {record.value for record in records} == {4.0, 50.0}
    assert [record.learner for record in records[2:]].count("right") > 40
    longest = list(
        run(
            env,
            learners,
            SSBAS(["left", "right"]),
            objective=episode_length(maximize=True),
            episodes=50,
        )
    )
    assert [record.learner for record in longest[2:]].count("left") > 40


def test_any_function_of_a_trajectory_is_an_objective():
    records = list(
        run(
            Corridor(3, slip=0.0),
            [Faulty("a", action=1)],
            Fixed("a"),
            objective=lambda episode: -len(episode),
            episodes=2,
        )
    )
    assert [record.value for record in records] == [-2.0, -2.0]


@pytest.mark.parametrize("selector", [ESBAS, SSBAS])
def test_learners_improve(selector):
    explore = {"states": 5, "actions": 2, "epsilon": lambda episode: max(0.05, 1 - episode / 50)}
    env, learners = (
        Corridor(5, slip=0.0),
        [TabularQ("a", learning_rate=0.2, **explore), TabularQ("b", learning_rate=0.5, **explore)],
    )
    lengths = [
        record.length
        for record in run(env, learners, selector("ab"), objective=total_return(), episodes=200)
    ]
    assert np.mean(lengths[-20:]) < 8 < np.mean(lengths[:3])


def records_of(seed, selector=SSBAS, selector_seed=0):
    env = Corridor(5)
    learners = walkers("a", "b")
    return [
        astuple(record)
        for record in run(env, learners, selector("ab", seed=selector_seed), episodes=40, seed=seed)
    ]


@pytest.mark.parametrize("selector", [ESBAS, SSBAS, Uniform])
def test_same_seed_same_run_other_seed_other_run(selector):
    assert records_of(1, selector) == records_of(1, selector)
    assert records_of(1, selector) != records_of(2, selector)


def test_the_run_is_the_same_in_another_process():
    code = "from tests.test_loop import records_of; print(records_of(5))"
    root = Path(__file__).parent.parent
    environment = {"PYTHONHASHSEED": "123", "PYTHONPATH": f"{root}:{root / 'tests'}"}
    printed = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=root,
        env=environment,
    ).stdout
    assert printed.strip() == repr(records_of(5))


def test_the_randomness_of_an_episode_does_not_depend_on_earlier_episodes():
    """The environment's random numbers depend on the seed and the number of the episode alone."""
    env = OneStep((0.0, 0.0), noise=1.0)
    values = [
        [record.value for record in run(env, learners, Fixed(["x"]), episodes=3)]
        for learners in ([Constant("x", lambda seen: 0)], walkers("x", length=1))
    ]
    assert values[0] == values[1]


@pytest.mark.parametrize(
    ("name", "learners"),
    [
        (
            "FrozenLake-v1",
            [
                TabularQ("a", states=16, actions=4),
                TabularQ("b", states=16, actions=4, learning_rate=0.5),
            ],
        ),
        (
            "CartPole-v1",
            [Constant("a", lambda seen: int(seen[2] > 0)), Constant("b", lambda seen: 0)],
        ),
        (
            "Pendulum-v1",
            [
                Constant("a", lambda seen: np.array([1.0], np.float32)),
                Constant("b", lambda seen: np.zeros(1, np.float32)),
            ],
        ),
    ],
)
@pytest.mark.parametrize("selector", [ESBAS, SSBAS])
def test_gymnasium_environments_run(name, learners, selector):
    episodes = run(
        gymnasium.make(name, max_episode_steps=100), learners, selector("ab"), episodes=12
    )
    records = list(episodes)
    assert len(records) == len(episodes.data) == 12
    assert not any(record.faults for record in records)
    assert all(1 <= record.length <= 100 and math.isfinite(record.value) for record in records)


def test_the_documented_loop_runs():
    env = Corridor()
    portfolio = Portfolio(walkers("a", "b"))
    selector = esbas.SSBAS(arms=["a", "b"], xi=0.25, scale=None, seed=0)
    records = list(esbas.run(env, portfolio, selector, episodes=3, seed=0))
    assert [record.learner for record in records[:2]] == ["a", "b"]
    assert [(record.number, record.faults) for record in records] == [(1, ()), (2, ()), (3, ())]


def test_a_run_without_a_budget_continues():
    assert len(list(islice(run(OneStep(), [Faulty("a")], Fixed("a")), 70))) == 70


def bad(**changes):
    given = {
        "env": Corridor(),
        "learners": walkers("a", "b"),
        "selector": SSBAS("ab"),
        "episodes": 3,
    } | changes
    return run(given.pop("env"), given.pop("learners"), given.pop("selector"), **given)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"learners": []}, InvalidValueError, "`learners` must not be empty"),
        (
            {"learners": walkers("a", "a")},
            InvalidValueError,
            "Learners must have different names, but two are named 'a'",
        ),
        (
            {"learners": walkers("b", "a")},
            InvalidValueError,
            "The selector must have the names of the learners as its arms, in the same order",
        ),
        (
            {"selector": SSBAS("abc")},
            InvalidValueError,
            "The selector must have the names of the learners as its arms, in the same order",
        ),
        (
            {"env": Corridor(7)},
            SpaceError,
            "The observation_space of learner 'a' must be the environment's",
        ),
        (
            {"episodes": -1},
            InvalidValueError,
            "`episodes` must be at least 0, but got -1",
        ),
        (
            {"steps": -1},
            InvalidValueError,
            "`steps` must be at least 0, but got -1",
        ),
        (
            {"max_episode_steps": 0},
            InvalidValueError,
            "`max_episode_steps` must be at least 1, but got 0",
        ),
        ({"episodes": "a"}, InvalidValueError, "`episodes` must be a whole number"),
        ({"steps": 1.5}, InvalidValueError, "`steps` must be a whole number, but got 1.5"),
        ({"steps": []}, InvalidValueError, "`steps` must be a whole number"),
        (
            {"max_episode_steps": None},
            InvalidValueError,
            "`max_episode_steps` must be a whole number, but got None",
        ),
        ({"learn_timeout": "long"}, InvalidValueError, "`learn_timeout` must be greater than 0"),
        ({"keep_data": 1}, InvalidValueError, "`keep_data` must be True or False"),
        ({"objective": 3}, InvalidValueError, "`objective` must be an objective"),
        ({"objective": esbas.Objective}, InvalidValueError, "`name` of objective .* is missing"),
        ({"seed": -1}, InvalidValueError, "`seed` must be an integer of at least 0, but got -1"),
        (
            {"keep_data": False, "selector": ESBAS("ab")},
            InvalidValueError,
            "`keep_data` must not be False, because learners learn",
        ),
    ],
)
def test_bad_input_raises_before_the_first_episode(changes, error, message):
    with pytest.raises(error, match=message):
        bad(**changes)


@pytest.mark.parametrize(
    "kind",
    [
        SSBAS,
        ESBAS,
        lambda arms, xi: BanditSelector(arms, bandit=lambda n, rng: esbas.UCB1(n, xi=xi)),
    ],
)
def test_a_negative_xi_raises(kind):
    with pytest.raises(
        InvalidValueError, match=r"^`xi` must be finite and at least 0, but got -0.5\.$"
    ):
        kind("ab", xi=-0.5)
