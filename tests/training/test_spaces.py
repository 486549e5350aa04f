"""Which portfolio an environment gets, how observations are converted, and advice otherwise."""

import shlex
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Sequence, Text, Tuple

import esbas
from esbas import cli
from esbas.envs import DiscreteObservations
from esbas.errors import InvalidValueError, SpaceError
from esbas.specs.portfolios.spaces import image_note
from esbas.testing import Corridor
from esbas.training import TrainingConfig, default_recipe, make_env, open_folder, recipe_of
from training.programs import plan_of_config

CARDS = Tuple([Discrete(32), Discrete(11), Discrete(2)])
MIXED = Dict(place=Box(-1, 1, (3,)), mode=Discrete(4))
FILTER = "FilterObservation(filter_keys=['direction', 'image'])"
FILTER_FIRST = "FilterObservation(filter_keys=[0])"
TALKING = Dict(direction=Discrete(4), image=Box(0, 255, (7, 7, 3), np.uint8), mission=Text(9))


class OneStep(gymnasium.Env):
    """Any spaces; each episode has one step."""

    def __init__(self, observations=MIXED, actions=None):
        self.observation_space = observations
        self.action_space = actions or Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 1.0, True, False, {}


@pytest.mark.parametrize(
    ("observations", "actions", "tables"),
    [
        (Discrete(500), 6, True),
        (Discrete(100_000), 1, True),
        (Discrete(100_000), 2, False),
        (CARDS, 2, True),
        (MultiDiscrete([100, 101]), 2, False),
        (MultiBinary(5), 2, True),
        (Discrete(4, start=1), 2, True),
        (Box(0, 1, (4,)), 2, False),
        (MIXED, 2, False),
    ],
)
def test_the_default_portfolio_has_tables_for_discrete_tasks(observations, actions, tables):
    recipe = default_recipe(OneStep(observations, Discrete(actions)))
    assert {member.algorithm != "dqn" for member in recipe.learners} == {tables}


def test_spaces_of_esbas_itself_count_as_discrete():
    env = Corridor()
    assert len(default_recipe(env).build(env, steps=10, seed=0)) >= 2
    assert "dqn" not in {member.algorithm for member in default_recipe(env).learners}


@pytest.mark.parametrize(
    ("members", "space", "wrappers"),
    [
        (["tabular_q"], CARDS, ["DiscreteObservations"]),
        (["tabular_q", "random"], Discrete(4, start=1), ["DiscreteObservations"]),
        (["tabular_q"], MultiDiscrete([200, 200]), []),
        (["tabular_q"], Discrete(4), []),
        (["tabular_q"], Tuple([CARDS, Text(5)]), [FILTER_FIRST, "DiscreteObservations"]),
        (["random"], CARDS, ["FlattenObservation"]),
        (["dqn"], CARDS, ["FlattenObservation"]),
        (["dqn"], MIXED, ["FlattenObservation"]),
        (["dqn"], MultiDiscrete([2, 2]), []),
        (["dqn"], TALKING, [FILTER, "FlattenObservation"]),
        (["dqn"], Dict(only=Text(9)), []),
        (["dqn"], Dict(huge=Discrete(10**9)), []),
        (["dqn"], Dict(list=Sequence(Discrete(2)), place=Discrete(4)), []),
        (["dqn", "training.plugins:Plainest"], MIXED, []),
        (["dqn", "training.plugins:Plainest"], TALKING, []),
    ],
)
def test_observations_are_converted_for_the_algorithms_of_the_library(members, space, wrappers):
    assert list(recipe_of(members).conversions(space, Discrete(2))) == wrappers


@pytest.mark.parametrize(
    ("members", "space", "wrappers"),
    [
        (["dqn"], MultiDiscrete([2, 3]), ["DiscreteActions"]),
        (["dqn", "random"], MultiBinary(3), ["DiscreteActions"]),
        (["tabular_q"], Discrete(2, start=1), ["DiscreteActions"]),
        (["dqn"], Discrete(2), []),
        (["random"], MultiDiscrete([2, 3]), []),  # it draws from any space
        (["sb3.sac"], MultiDiscrete([2, 3]), []),
        (["dqn"], MultiDiscrete([200, 200]), []),
        (["dqn"], Box(-1, 1, (2,)), []),
        (["dqn", "training.plugins:Plainest"], MultiDiscrete([2, 3]), []),
    ],
)
def test_actions_are_numbered_for_the_algorithms_of_the_library(members, space, wrappers):
    assert list(recipe_of(members).conversions(Discrete(3), space)) == wrappers


@pytest.fixture
def _no_report(monkeypatch):
    monkeypatch.setattr("esbas.training.train.write_report", lambda *_: None)  # figures take time


@pytest.mark.usefixtures("_no_report")
def test_a_conversion_belongs_to_the_task_and_not_to_the_options(tmp_path, capsys):
    out = tmp_path / "it"
    words = [
        "train",
        "Blackjack-v1",
        "--learners",
        "tabular_q",
        "--episodes",
        "3",
        "--no-tensorboard",
        "--out",
        str(out),
    ]
    assert cli.main(words) == 0
    assert "Observations are converted by DiscreteObservations" in capsys.readouterr().err
    training = open_folder(out)
    assert training.plan.config.wrappers == training.config.wrappers == ()
    task, wrappers = training.plan.wrapped_env()
    assert isinstance(task, DiscreteObservations)
    assert wrappers == ("DiscreteObservations",)
    assert cli.main(["evaluate", str(out), "--episodes", "2"]) == 0


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (TALKING, r"'mission' (Text(1, 9"),
        (
            TALKING,
            (
                "keep the others with --wrappers "
                "\"FilterObservation(filter_keys=['direction', 'image'])\""
            ),
        ),
        (
            Tuple([Discrete(2), Sequence(Discrete(2))]),
            'keep the others with --wrappers "FilterObservation(filter_keys=[0])"',
        ),
        (Dict(only=Text(5)), "'only' (Text(1, 5"),
        (Text(5), "add a wrapper of your own, as --wrappers module:Class"),
        (MIXED, "add --wrappers FlattenObservation"),
    ],
)
def test_observations_that_are_no_arrays_are_explained(space, message):
    with pytest.raises(
        SpaceError, match="dqn needs observations that are numbers or arrays, but"
    ) as caught:
        recipe_of(["dqn"]).build(OneStep(space), steps=10, seed=0)
    assert message in str(caught.value)


@pytest.mark.parametrize("given", [(), (FILTER,)])
def test_texts_are_left_out_with_and_without_the_wrapper(given):
    config = TrainingConfig(lambda: OneStep(TALKING), learners=("dqn",), wrappers=given)
    plan = plan_of_config(config)
    task, wrappers = plan.wrapped_env()
    assert wrappers == (FILTER, "FlattenObservation")
    assert task.observation_space.shape == (151,)


@pytest.mark.parametrize("actions", [MultiDiscrete([2, 2]), MultiBinary(2), Discrete(2, start=1)])
def test_the_advice_for_actions_works(actions):
    env = OneStep(Box(0, 1, (3,)), actions)
    with pytest.raises(SpaceError, match="remove it, or add --wrappers DiscreteActions"):
        recipe_of(["dqn"]).build(env, steps=10, seed=0)
    with pytest.raises(SpaceError, match="use one for discrete actions, such as dqn"):
        recipe_of(["sb3.sac"]).build(env, steps=10, seed=0)
    assert len(default_recipe(env).learners) == 4
    assert len(default_recipe(make_env(env, wrappers=["DiscreteActions"])).learners) == 4


def test_too_many_actions_are_refused_in_one_sentence():
    for actions, count in ((MultiDiscrete([200, 200]), "40,000"), (MultiBinary(5000), "too many")):
        env = OneStep(Box(0, 1, (3,)), actions)
        for learners in (None, ["dqn"]):
            with pytest.raises(
                SpaceError, match=f"has {count} combinations, of which at most 10,0"
            ):
                plan_of_config(TrainingConfig(lambda env=env: env, learners=learners)).start(0)


def test_the_advice_for_discrete_observations_works():
    with pytest.raises(SpaceError, match=r'or add --wrappers "DiscretizeObservation\(bins=10\)"'):
        recipe_of(["tabular_q"]).build(make_env("MountainCar-v0"), steps=10, seed=0)
    task = make_env("MountainCar-v0", wrappers=["DiscretizeObservation(bins=10)"])
    assert recipe_of(["tabular_q"]).build(task, steps=10, seed=0)
    with pytest.raises(SpaceError, match="choose an algorithm for vectors, such as dqn"):
        recipe_of(["tabular_q"]).build(make_env("CartPole-v1"), steps=10, seed=0)


def test_vector_environments_are_recognized():
    vector = gymnasium.make_vec("CartPole-v1", num_envs=3)
    with pytest.raises(
        InvalidValueError,
        match=r"^Vector environments are not supported, but got 'CartPoleVectorEnv' with 3 "
        "environments: give",
    ):
        make_env(vector)
    with pytest.raises(InvalidValueError, match="with 3 environments"):
        make_env(lambda: vector)
    with pytest.raises(InvalidValueError, match="Vector environments are not supported"):
        esbas.run(vector, [], esbas.SSBAS(["a"]), episodes=1)


def images(*shape):
    return OneStep(Box(0, 255, shape, np.uint8))


@pytest.mark.parametrize("shape", [(120, 160, 3), (120, 160), (84, 84, 3), (84, 84), (40, 40, 1)])
def test_the_advice_for_images_works(shape):
    note = image_note(images(*shape))
    assert ("pip install opencv" in note) == (max(shape) > 100)
    task = make_env(images(*shape), wrappers=advised(note))
    small = (84, 84) if max(shape) > 100 else shape[:2]
    assert task.observation_space.shape == (4, *small)
    assert task.reset(seed=0)[0].shape == (4, *small)
    assert image_note(task) is None


def advised(note):
    return shlex.split(note.partition("--wrappers ")[2].partition(" (they")[0].removesuffix("."))


@pytest.mark.parametrize("shape", [(7, 7, 3), (10, 10, 6), (4, 84, 84), (64, 64, 4), (200,)])
def test_small_and_stacked_images_need_no_advice(shape):
    assert image_note(images(*shape)) is None
    assert image_note(OneStep(Box(0, 1, (84, 84)))) is None


class Console(OneStep):
    """As much of an Atari game as the wrapper needs."""

    def __init__(self, frameskip):
        super().__init__(Box(0, 255, (210, 160, 3), np.uint8))
        screen = SimpleNamespace(lives=lambda: 1, getScreenGrayscale=lambda buffer: buffer.fill(7))
        self._frameskip = frameskip
        self.ale = screen

    def get_action_meanings(self):
        return ["NOOP", "FIRE"]

    def step(self, action):
        return *super().step(action)[:2], False, False, {}


@pytest.mark.parametrize(
    ("frameskip", "wrapper"), [(4, "AtariPreprocessing(frame_skip=1)"), (1, "AtariPreprocessing")]
)
def test_the_advice_for_atari_games_works(frameskip, wrapper):
    words = advised(image_note(Console(frameskip)))
    assert words == [wrapper, "FrameStackObservation(stack_size=4)"]
    task = make_env(Console(frameskip), wrappers=words)
    assert task.reset(seed=0)[0].shape == (4, 84, 84)


@pytest.mark.usefixtures("_no_report")
def test_a_training_on_images_prints_the_advice(tmp_path, capsys):
    words = [
        "train",
        "training.test_spaces:Frames",
        "--learners",
        "random",
        "--episodes",
        "2",
        "--no-tensorboard",
    ]
    assert cli.main([*words, "--out", str(tmp_path / "it")]) == 0
    assert 'add --wrappers "FrameStackObservation(stack_size=4)"' in capsys.readouterr().err


class Frames(OneStep):
    def __init__(self):
        super().__init__(Box(0, 255, (40, 40), np.uint8))
