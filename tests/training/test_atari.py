"""Atari games in trainings: preprocessing by default, in every place that makes the task again."""

import contextlib
import io
import itertools
import json
import sys
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from PIL import Image

import esbas
from esbas import cli
from esbas.envs import atari
from esbas.errors import EsbasError, InvalidValueError, MissingExtraError
from esbas.specs.envs import make_with_wrappers
from esbas.specs.portfolios.recipe import default_recipe, read_recipe
from esbas.training import TrainingConfig, make_env, open_folder
from esbas.training.runs.one_run import SaveOptions, train_seed
from training.programs import assert_same, numbers, plan_of_config
from training.programs import train_without_report as train

SMALL = "dqn(hidden=[8], convolutions=[[4, 8, 8]], batch_size=8, learning_starts=20, train_freq=8)"
LAZY = "dqn(hidden=[8], convolutions=[[4, 8, 8]], learning_starts=1000)"
STACK = "FrameStackObservation(stack_size=4)"
SAID = "said.txt"
SAVING = SaveOptions(checkpoint_every=0.0, tensorboard=False)


def preprocessing(**changed):
    options = {
        "noop_max": 30,
        "frame_skip": 4,
        "screen_size": 84,
        "terminal_on_life_loss": False,
    } | changed
    return f"AtariPreprocessing({', '.join(f'{key}={value}' for key, value in options.items())})"


GAME = "ALE/Qbert-v5(max_episode_steps=30)"


def short(out):
    """The options of a training of two episodes."""
    return {"learners": (SMALL,), "steps": 60, "eval_episodes": 1, "tensorboard": False, "out": out}


@pytest.mark.parametrize(
    ("name", "expected", "repeats"),
    [
        ("ALE/Qbert-v5", [preprocessing(), STACK], 4),
        ("ale_py:ALE/Qbert-v5(repeat_action_probability=0.0)", [preprocessing(), STACK], 4),
        ("QbertNoFrameskip-v4", [preprocessing(), STACK], 4),
        # repeats actions at random, as its name says
        ("Qbert-v4", [preprocessing(frame_skip=1), STACK], None),
        ("ALE/Qbert-v5(frameskip=3)", [preprocessing(frame_skip=1), STACK], 3),
        ("ALE/Qbert-v5(continuous=True)", [preprocessing(noop_max=0), STACK], 4),
        (
            "ALE/Qbert-v5(max_episode_steps=7)",
            [preprocessing(), STACK, "TimeLimit(max_episode_steps=7)"],
            4,
        ),
        ("ALE/Qbert-v5(obs_type='ram')", [], 4),
        ("ALE/Qbert-v5(obs_type='grayscale')", [], 4),
        ("ALE/Qbert-v5(sound_obs=True)", [], 4),
    ],
)
def test_games_with_color_images_are_preprocessed(name, expected, repeats):
    task, wrappers = make_with_wrappers(name)
    assert (list(wrappers), atari.repeats_of(task)) == (expected, repeats)
    assert not expected or task.observation_space.shape == (4, 84, 84)


def test_wrappers_replace_the_preprocessing():
    assert make_env("ALE/Qbert-v5", wrappers=["none"]).observation_space.shape == (210, 160, 3)
    assert make_env("ALE/Qbert-v5", wrappers=["GrayscaleObservation"]).observation_space.shape == (
        210,
        160,
    )
    life = preprocessing(terminal_on_life_loss=True)
    assert make_with_wrappers("ALE/Qbert-v5(frameskip=1)", wrappers=[life, STACK])[1] == (
        life,
        STACK,
    )
    with pytest.raises(InvalidValueError, match="'none' must be the only one"):
        make_env("ALE/Qbert-v5", wrappers=["none", STACK])
    with pytest.raises(
        EsbasError, match=r"frame_skip=4: give the game frameskip=1 \(--env-kwargs frameskip=1\)\.$"
    ):
        make_env("ALE/Qbert-v5", wrappers=["AtariPreprocessing"])


def test_environments_of_python_are_preprocessed():
    given = gymnasium.make("ALE/Qbert-v5", full_action_space=True)
    task, wrappers = make_with_wrappers(given)
    assert wrappers == (preprocessing(frame_skip=1), STACK)  # it repeats actions itself
    assert task.action_space.n == 18
    ready = atari.preprocess(gymnasium.make("ALE/Qbert-v5", frameskip=1))
    assert make_with_wrappers(ready)[1] == ()
    assert make_with_wrappers(lambda: gymnasium.make("ALE/Qbert-v5", frameskip=1))[1] == (
        preprocessing(),
        STACK,
    )


def test_missing_packages_are_named(monkeypatch):
    with monkeypatch.context() as patch:
        for name in [each for each in gymnasium.registry if each.startswith("ALE/")]:
            patch.delitem(gymnasium.registry, name)
        patch.setitem(sys.modules, "ale_py", None)
        for name in ("ALE/Pong-v5", "ale_py:ALE/Pong-v5"):
            with pytest.raises(
                MissingExtraError,
                match=r"^The environment 'ALE/Pong-v5' needs ale-py, but it is not installed: pip",
            ):
                make_env(name)
            with pytest.raises(MissingExtraError, match=r"pip install 'esbas\[atari\]'\.$"):
                make_env(name, wrappers=["none"])
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(
        MissingExtraError,
        match=r"needs OpenCV, but it is not installed: pip install 'esbas\[atari\]'\.$",
    ):
        make_env("ALE/Pong-v5")


def test_learners_get_clipped_rewards_and_scores_are_those_of_the_game():
    config = TrainingConfig("ALE/Assault-v5(max_episode_steps=30)", learners=(LAZY,), episodes=3)
    run = plan_of_config(config).start(0)
    score = sum(record.value for record in run)
    rewards = run.learners[0].replay.arrays().rewards
    run.close()
    assert set(rewards.tolist()) == {0.0, 1.0}
    assert score == 21 * rewards.sum()  # 21 points per hit


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("atari") / "whole"
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        train(GAME, **short(path))
    (path / SAID).write_text(" ".join(said.getvalue().split()))
    return path


def test_the_training_says_what_it_does(folder):
    said = (folder / SAID).read_text()
    line = "Atari preprocessing: gray images of 84 x 84, the last 4 as an observation, "
    line += "each action repeated 4 times, up to 30 no-ops"
    assert line in said
    assert "rewards clipped to [-1, 1] for learning, not in scores." in said
    advice = f'--env-kwargs frameskip=1 --wrappers AtariPreprocessing "{STACK}" with your options; '
    advice += "--wrappers none removes it."
    assert advice in said
    assert "Observations are" not in said
    memory = read_recipe((folder / "portfolio.toml").read_text(), source="it").memory
    assert memory == {"stack": 4, "clip_rewards": True}


def test_a_training_that_stops_continues_with_the_same_results(folder, tmp_path):
    config, count = TrainingConfig(GAME, **short(tmp_path)), itertools.count(1)
    plan = plan_of_config(config)
    train_seed(
        plan, 0, tmp_path, saving=SAVING, report=lambda _: None, stop=lambda: next(count) == 1
    )
    train_seed(plan, 0, tmp_path, saving=SAVING, report=lambda _: None)
    (episodes, state), (others, whole) = numbers(tmp_path), numbers(folder)
    memories = [
        plan.resume(each / "runs" / "seed-0" / "checkpoint.npz", 0).learners[0].replay
        for each in (tmp_path, folder)
    ]
    one, other = (memory.arrays() for memory in memories)
    assert one.added == other.added == 60
    for name in ("frames", "actions", "rewards", "terminated", "ages", "log_probs"):
        np.testing.assert_array_equal(
            getattr(one, name)[: one.added], getattr(other, name)[: one.added]
        )
    # files with the rows that are compared above; there is one per checkpoint
    for each in (state, whole):
        for name in ("files", "digests"):
            del each["roster"]["DQN"]["learner"]["replay"][name]
    assert_same((episodes, state), (others, whole))


def test_policies_act_on_stacks_of_images(folder, tmp_path):
    policy = esbas.load_policy(folder)
    assert policy.observation_space == gymnasium.spaces.Box(0, 255, (4, 84, 84), np.uint8)
    task = open_folder(folder).plan.env()
    observation, _ = task.reset(seed=0)
    assert policy.act(observation) in task.action_space
    assert cli.main(["export", str(folder), "--out", str(tmp_path / "policy.npz")]) == 0
    with np.load(tmp_path / "policy.npz") as exported:
        about = json.loads(str(exported["description"]))
    assert about["wrappers"] == [preprocessing(), STACK, "TimeLimit(max_episode_steps=30)"]


def test_only_the_default_wrappers_may_be_added_to_saved_spaces(folder, tmp_path):
    text = (folder / "spaces.json").read_text()
    for name in ("config.json", "portfolio.toml"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    (tmp_path / "runs" / "seed-0").mkdir(parents=True)
    for path in (folder / "runs" / "seed-0").glob("*.*"):
        (tmp_path / "runs" / "seed-0" / path.name).write_bytes(path.read_bytes())
    (tmp_path / "spaces.json").write_text(text.replace(STACK, "trapped:Thing"))
    with pytest.raises(InvalidValueError, match=r"The wrappers in .* instead of the last ones of"):
        esbas.load_policy(tmp_path)


def test_a_game_is_recorded_in_color_at_its_speed(folder):
    assert cli.main(["evaluate", str(folder), "--episodes", "1"]) == 0
    with Image.open(folder / "evaluation.gif") as recorded:
        assert recorded.size == (320, 420)  # twice the screen
        # four of sixty frames per second; equal images are joined
        assert recorded.info["duration"] in range(60, 141, 10)
        assert np.ptp(np.asarray(recorded.convert("RGB"), int), axis=2).max() > 50
    screens = {"DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"}
    with pytest.MonkeyPatch.context() as patch:
        for name in screens:
            patch.delenv(name, raising=False)
        patch.setattr(sys, "platform", "linux")
        assert cli.main(["evaluate", str(folder), "--render"]) == 2


def test_the_default_portfolio_for_games_has_the_networks_of_the_paper():
    task = make_env("ALE/Qbert-v5")
    recipe = default_recipe(task)
    assert [name.partition(",")[0] for name in recipe.names] == [
        *["small"] * 2,
        *["large"] * 2,
        *["huge"] * 2,
    ]
    assert {name: recipe.memory[name] for name in ("stack", "clip_rewards")} == {
        "stack": 4,
        "clip_rewards": True,
    }
    assert len(recipe.build(task, steps=10, seed=0)) == 6


@pytest.mark.parametrize(
    ("shape", "images"),
    [((64, 48, 3), True), ((4, 40, 40), True), ((10, 10, 4), False), ((84, 84), False)],
)
def test_other_images_get_the_same_networks_without_stacks_or_clipped_rewards(shape, images):
    space = gymnasium.spaces.Box(0, 255, shape, np.uint8)
    recipe = default_recipe(
        SimpleNamespace(
            observation_space=space, action_space=gymnasium.spaces.Discrete(3), unwrapped=None
        )
    )
    assert recipe.names[0].startswith("small") == images
    assert recipe.memory.get("stack", 1) == 1
    assert not recipe.memory.get("clip_rewards")


def test_a_stack_that_does_not_fit_the_images_is_refused(tmp_path, capsys):
    portfolio = tmp_path / "portfolio.toml"
    portfolio.write_text('[replay]\nstack = 3\n[[learner]]\nalgorithm = "dqn"\n')
    assert (
        cli.main(
            ["train", "ALE/Qbert-v5", "--portfolio", str(portfolio), "--out", str(tmp_path / "out")]
        )
        == 2
    )
    said = " ".join(capsys.readouterr().err.split())
    assert (
        "shape is (4, 84, 84), but got 3: use 1, or stack frames by FrameStackObservation." in said
    )
