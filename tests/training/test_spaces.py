"""Which portfolio a task gets, how its observations are converted, and what is advised if they cannot be."""

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
from esbas.testing import Corridor
from esbas.training import Train, default_recipe, make_task, open_folder, recipe_of
from esbas.training.portfolios.spaces import image_note

CARDS = Tuple([Discrete(32), Discrete(11), Discrete(2)])
MIXED = Dict(place=Box(-1, 1, (3,)), mode=Discrete(4))
TALKING = Dict(direction=Discrete(4), image=Box(0, 255, (7, 7, 3), np.uint8), mission=Text(9))


class OneStep(gymnasium.Env):
    """Any spaces; each episode has one step."""

    def __init__(self, observations=MIXED, actions=None):
        self.observation_space, self.action_space = observations, actions or Discrete(2)

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
    assert {member.algorithm != "dqn" for member in recipe.members} == {tables}


def test_spaces_of_esbas_itself_count_as_discrete():
    env = Corridor()
    assert len(default_recipe(env).build(env, steps=10, seed=0)) >= 2
    assert "dqn" not in {member.algorithm for member in default_recipe(env).members}


@pytest.mark.parametrize(
    ("members", "space", "wrapper"),
    [
        (["tabular_q"], CARDS, "DiscreteObservations"),
        (["tabular_q", "random"], Discrete(4, start=1), "DiscreteObservations"),
        (["tabular_q"], MultiDiscrete([200, 200]), None),
        (["tabular_q"], Discrete(4), None),
        (["random"], CARDS, "FlattenObservation"),
        (["dqn"], CARDS, "FlattenObservation"),
        (["dqn"], MIXED, "FlattenObservation"),
        (["dqn"], MultiDiscrete([2, 2]), None),
        (["dqn"], TALKING, None),
        (["dqn"], Dict(huge=Discrete(10**9)), None),
        (["dqn", "training.plugins:Plainest"], MIXED, None),
    ],
)
def test_observations_are_converted_for_the_algorithms_of_the_library(members, space, wrapper):
    assert recipe_of(members).conversion(space) == wrapper


@pytest.fixture
def _no_report(monkeypatch):
    monkeypatch.setattr("esbas.training.commands.train.publish", lambda *_: None)  # figures take time


@pytest.mark.usefixtures("_no_report")
def test_a_conversion_belongs_to_the_task_and_not_to_the_options(tmp_path, capsys):
    out = tmp_path / "it"
    words = ["train", "Blackjack-v1", "--members", "tabular_q", "--episodes", "3", "--no-tensorboard", "--out", str(out)]
    assert cli.main(words) == 0
    assert "Observations are converted by DiscreteObservations" in capsys.readouterr().out
    training = open_folder(out)
    assert training.plan.wrappers == training.config.wrappers == ()
    task, wrappers = training.plan.wrapped_task()
    assert isinstance(task, DiscreteObservations)
    assert wrappers == ("DiscreteObservations",)
    assert cli.main(["evaluate", str(out), "--episodes", "2"]) == 0


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (TALKING, r"'mission' (Text(1, 9"),
        (TALKING, """keep the others with --wrappers "FilterObservation(filter_keys=['direction', 'image'])\""""),
        (Tuple([Discrete(2), Sequence(Discrete(2))]), 'keep the others with --wrappers "FilterObservation(filter_keys=[0])"'),
        (Dict(only=Text(5)), "'only' (Text(1, 5"),
        (Text(5), "add a wrapper of your own, as --wrappers module:Class"),
        (MIXED, "add --wrappers FlattenObservation"),
    ],
)
def test_observations_that_are_no_arrays_are_explained(space, message):
    with pytest.raises(SpaceError, match="dqn needs observations that are numbers or arrays, but") as caught:
        recipe_of(["dqn"]).build(OneStep(space), steps=10, seed=0)
    assert message in str(caught.value)


def test_the_advice_for_parts_that_cannot_be_flattened_works():
    words = ["FilterObservation(filter_keys=['direction', 'image'])"]
    config = Train(env=lambda: OneStep(TALKING), members=("dqn",), wrappers=tuple(words))
    plan = config.plan(config.recipe())
    task, wrappers = plan.wrapped_task()
    assert wrappers == (*words, "FlattenObservation")
    assert task.observation_space.shape == (151,)


@pytest.mark.parametrize("actions", [MultiDiscrete([2, 2]), MultiBinary(2), Discrete(2, start=1)])
def test_the_advice_for_actions_works(actions):
    env = OneStep(Box(0, 1, (3,)), actions)
    with pytest.raises(SpaceError, match="remove it, or add --wrappers DiscreteActions"):
        recipe_of(["dqn"]).build(env, steps=10, seed=0)
    with pytest.raises(SpaceError, match="use one for discrete actions such as dqn and add --wrappers DiscreteActions"):
        recipe_of(["sb3.sac"]).build(env, steps=10, seed=0)
    with pytest.raises(SpaceError, match="add --wrappers DiscreteActions"):
        default_recipe(env)
    assert len(default_recipe(make_task(env, wrappers=["DiscreteActions"])).members) == 6


def test_the_advice_for_discrete_observations_works():
    with pytest.raises(SpaceError, match=r'or add --wrappers "DiscretizeObservation\(bins=10\)"'):
        recipe_of(["tabular_q"]).build(make_task("MountainCar-v0"), steps=10, seed=0)
    task = make_task("MountainCar-v0", wrappers=["DiscretizeObservation(bins=10)"])
    assert recipe_of(["tabular_q"]).build(task, steps=10, seed=0)
    with pytest.raises(SpaceError, match="choose an algorithm for vectors, such as dqn"):
        recipe_of(["tabular_q"]).build(make_task("CartPole-v1"), steps=10, seed=0)


def test_vector_environments_are_recognised():
    vector = gymnasium.make_vec("CartPole-v1", num_envs=3)
    with pytest.raises(InvalidValueError, match="must be one environment, but 'CartPoleVectorEnv' is a vector of 3: give one"):
        make_task(vector)
    with pytest.raises(InvalidValueError, match="is a vector of 3"):
        make_task(lambda: vector)
    with pytest.raises(InvalidValueError, match="the environment is a single one"):
        esbas.run(vector, [], esbas.SSBAS(["a"]), episodes=1)


def images(*shape):
    return OneStep(Box(0, 255, shape, np.uint8))


@pytest.mark.parametrize("shape", [(120, 160, 3), (120, 160), (84, 84, 3), (84, 84), (40, 40, 1)])
def test_the_advice_for_images_works(shape):
    note = image_note(images(*shape))
    assert ("pip install opencv" in note) == (max(shape) > 100)
    task = make_task(images(*shape), wrappers=advised(note))
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
        self._frameskip, self.ale = frameskip, screen

    def get_action_meanings(self):
        return ["NOOP", "FIRE"]

    def step(self, action):
        return *super().step(action)[:2], False, False, {}


@pytest.mark.parametrize(("frameskip", "wrapper"), [(4, "AtariPreprocessing(frame_skip=1)"), (1, "AtariPreprocessing")])
def test_the_advice_for_atari_games_works(frameskip, wrapper):
    words = advised(image_note(Console(frameskip)))
    assert words == [wrapper, "FrameStackObservation(stack_size=4)"]
    task = make_task(Console(frameskip), wrappers=words)
    assert task.reset(seed=0)[0].shape == (4, 84, 84)


@pytest.mark.usefixtures("_no_report")
def test_a_training_on_images_prints_the_advice(tmp_path, capsys):
    words = ["train", "training.test_spaces:Frames", "--members", "random", "--episodes", "2", "--no-tensorboard"]
    assert cli.main([*words, "--out", str(tmp_path / "it")]) == 0
    assert 'add --wrappers "FrameStackObservation(stack_size=4)"' in capsys.readouterr().out


class Frames(OneStep):
    def __init__(self):
        super().__init__(Box(0, 255, (40, 40), np.uint8))
