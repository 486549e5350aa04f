"""Environments and plug-ins of users: in modules and files of the current folder, and objects."""

import doctest
import json
import sys
from pathlib import Path

import ale_py  # noqa: F401  # here, so that its ids stay registered
import gymnasium
import pytest

import esbas
from esbas import cli
from esbas._internal import registry
from esbas._internal.registry import import_object
from esbas.errors import EsbasError, InvalidValueError, SaveFileError
from esbas.specs import env_names
from esbas.specs.env_names import given_env
from esbas.specs.options import join_options, split_options
from esbas.training import TrainingConfig, config, make_env, open_folder
from esbas.training.runs.episode_log import read_episodes
from training.programs import assert_same, numbers

TASK = """
import gymnasium
from gymnasium.spaces import Discrete


class Walk(gymnasium.Env):
    observation_space, action_space = Discrete(10), Discrete(2)

    def __init__(self, length=3):
        self.length = length

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return 0, {}

    def step(self, action):
        self.at += 1
        return self.at, float(action), self.at >= self.length, False, {}
"""
REGISTERED = TASK + "\n\ngymnasium.register('EsbasWalk-v0', 'walks:Walk', max_episode_steps=2)\n"
LEARNER = """
from esbas import Pick, Selector
from esbas.learners import Constant


class Mine(Constant):
    def __init__(self, name, *, action: int = 0):
        super().__init__(name, lambda _: action)


class InTurn(Selector):
    def __init__(self, arms, *, start: int = 0, seed=0):
        super().__init__(arms, seed=seed)
        self.start = start

    def pick(self, among, context):
        return Pick(among[(self.number + self.start) % len(among)])


def first_reward(trajectory):
    return trajectory.rewards[0]
"""
SHORT = ["--learners", "random", "--episodes", "4", "--no-tensorboard", "--out", "here"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The current folder. Its modules, and the ids that they register, are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr("esbas.training.train.write_report", lambda *_: None)  # figures take time
    known = set(sys.modules)
    ids = set(gymnasium.registry)
    yield tmp_path
    for name in set(sys.modules) - known:
        if Path(getattr(sys.modules[name], "__file__", None) or "/").is_relative_to(tmp_path):
            del sys.modules[name]
    for name in set(gymnasium.registry) - ids:
        del gymnasium.registry[name]


def write(name, text):
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text(text)


@pytest.mark.parametrize(
    "name", ["walks.py", "walks.py:Walk", "walks:Walk", "walks.py:make", "./walks.py:Walk"]
)
def test_a_task_is_found_in_a_file(name, folder):
    write("walks.py", TASK + "\n\ndef make():\n    return Walk()\n")
    sys.path.append(str(folder))  # as the `esbas` script does
    task = make_env(name)
    assert (type(task).__name__, task.length) == ("Walk", 3)


@pytest.mark.parametrize(
    "name", ["walks.py", "walks.py:EsbasWalk-v0", "sub/walks.py", "walks:EsbasWalk-v0"]
)
def test_a_registered_task_keeps_its_time_limit(name, folder):
    write("sub/walks.py" if name.startswith("sub") else "walks.py", REGISTERED)
    sys.path.append(str(folder))
    assert make_env(name).spec.max_episode_steps == 2
    assert make_env("walks:Walk").spec is None


def test_a_task_takes_options():
    write("walks.py", TASK)
    assert make_env("walks.py:Walk(length=7)").length == 7
    limited = make_env("walks.py(length=7, max_episode_steps=1)")
    limited.reset(seed=0)
    assert limited.step(0)[2:4] == (False, True)
    lake = make_env("FrozenLake-v1(is_slippery=False, map_name='8x8', max_episode_steps=5)")
    assert (lake.observation_space.n, lake.spec.max_episode_steps) == (64, 5)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "walks.py:Wlak",
            "There is no environment named 'walks.py:Wlak': did you mean 'walks.py:Walk'?",
        ),
        (
            "walks.py(lenght=1)",
            "There is no option of this environment named 'lenght': did you mean 'length'?",
        ),
        (
            "walks.py:TASK",
            (
                "'walks.py:TASK' must be a class or function that creates an environment, but is "
                "'text'"
            ),
        ),
        (
            "walks.py:number",
            "'walks.py:number' must be a gymnasium.Env, but is 'int': name a subclass",
        ),
        (
            "walks.py(render_mode='human')",
            "must not be given, because esbas sets it: remove it",
        ),
        (
            "FrozenLake-v1(slippery=False)",
            "There is no option of this environment named 'slippery': did you mean 'is_slippery'?",
        ),
        (
            "FrozenLake-v1(False)",
            "must be a name with options and plain values such as name(key=1.5, other='text')",
        ),
        (
            "gymnasium:os:CartPole-v1",
            "The environment 'gymnasium:os:CartPole-v1' has several colons: use one at most.",
        ),
        (
            "none.py",
            (
                "There is no file named 'none.py': check the path; it is relative to the current "
                "folder"
            ),
        ),
        (
            "two.py",
            "There are 2 environments in 'two.py': name one of two.py:One, two.py:Two.",
        ),
        (
            "empty.py",
            "There is no environment in 'empty.py': define a subclass of gymnasium.Env in it.",
        ),
        ("json.py", "The name of a module must be unique, but 'json' is also "),
        ("a.b.py", "A module must not have a dot in its name, but got 'a.b.py': rename the file"),
        (
            "syntax.py",
            "Module 'syntax.py' must be importable, but SyntaxError: invalid syntax: fix it (/",
        ),
        ("syntax.py", "syntax.py, line 2)"),
        ("broken.py", "but ZeroDivisionError: division by zero: fix it (/"),
        ("broken.py", "broken.py, line 2)"),
        (
            "needy.py",
            "Module 'needy.py' needs 'no_such_library', which is not installed: install it (/",
        ),
        (
            "late.py",
            (
                "must start, but NameError: name 'undefined' is not defined: fix the environment, "
                "or choose another (/"
            ),
        ),
        ("late.py", "late.py, line 4)"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_one_sentence(name, message):
    write("walks.py", TASK + "\n\nTASK = 'text'\n\n\ndef number():\n    return 3\n")
    write(
        "two.py",
        "import gymnasium\nclass One(gymnasium.Env): pass\nclass Two(gymnasium.Env): pass\n",
    )
    write(
        "late.py",
        "import gymnasium\nclass Late(gymnasium.Env):\n    def __init__(self):\n        "
        "undefined\n",
    )
    sources = {
        "empty": "",
        "json": TASK,
        "a.b": TASK,
        "syntax": "x = 1\ndef f(:\n",
        "broken": "x = 0\n1 / x\n",
    }
    for file, text in (sources | {"needy": "import no_such_library\n"}).items():
        write(f"{file}.py", text)
    with pytest.raises(EsbasError) as caught:
        make_env(name)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_plug_ins_are_found_in_files_also_by_other_processes_and_by_resume(capsys):
    write("walks.py", TASK)
    write("parts.py", LEARNER)
    members = ["parts.py:Mine(name='zero')", "parts.py:Mine(name='one', action=1)"]
    parts = [
        "--learners",
        *members,
        "--selector",
        "parts.py:InTurn(start=1)",
        "--objective",
        "parts.py:first_reward",
    ]
    more = [
        "--episodes",
        "4",
        "--seeds",
        "0",
        "1",
        "--jobs",
        "2",
        "--no-tensorboard",
        "--out",
        "here",
    ]
    assert cli.main(["train", "walks.py", "--env-kwargs", "length=2", *parts, *more]) == 0
    episodes = read_episodes(Path("here", "runs", "seed-1"))
    assert episodes.learners.tolist() == ["one", "zero", "one", "zero"]
    assert episodes.values.tolist() == [1, 0, 1, 0]
    assert episodes.lengths.tolist() == [2] * 4
    before = numbers(Path("here"))
    (Path("here", "runs", "seed-0", "clock.json")).unlink()
    assert cli.main(["resume", "here"]) == 2
    error = capsys.readouterr().err
    for part in (
        "(env 'walks.py')",
        "(selector 'parts.py:InTurn')",
        "(objective 'parts.py:first_reward')",
        "(learner 'parts.py:M",
    ):
        assert part in error
    assert cli.main(["resume", "here", "--trust", "--no-tensorboard"]) == 0
    assert_same(before, numbers(Path("here")))
    assert cli.main(["evaluate", "here", "--trust", "--episodes", "1"]) == 0


def test_options_of_a_task_are_part_of_its_name():
    assert (
        cli.main(
            ["train", "FrozenLake-v1(is_slippery=False)", "--env-kwargs", "map_name=8x8", *SHORT]
        )
        == 0
    )
    about = json.loads(Path("here", "config.json").read_text())
    assert about["again"].startswith(
        """esbas train "FrozenLake-v1(is_slippery=False, map_name='8x8')" --learners random"""
    )
    plan = open_folder(Path("here")).plan
    assert plan.config.env == "FrozenLake-v1(is_slippery=False, map_name='8x8')"
    assert plan.env().observation_space.n == 64
    same = esbas.train(
        "FrozenLake-v1",
        env_kwargs={"is_slippery": False, "map_name": "8x8"},
        learners="random",
        episodes=1,
    )
    assert same.config.env == plan.config.env
    assert cli.main(["resume", "here", "--no-tensorboard"]) == 0


@pytest.mark.parametrize("text", ["is_slippery", "=3", "a b=3", "is_slippery=True"])
def test_options_of_a_task_that_are_no_options_are_refused(text):
    with pytest.raises(InvalidValueError, match=r"form name=value|is given twice"):
        given_env("FrozenLake-v1(is_slippery=False)", [text])


def test_values_are_literals_or_text():
    settings = ["a=1e3", "b=[1, 'x']", "c=8x8", "d=", "e=None", "f=x=y", "g='q'"]
    name, options = split_options(given_env("X-v0", settings))
    assert name == "X-v0"
    assert options == {
        "a": 1000.0,
        "b": [1, "x"],
        "c": "8x8",
        "d": "",
        "e": None,
        "f": "x=y",
        "g": "q",
    }
    with pytest.raises(InvalidValueError, match="plain values"):
        given_env("X-v0", ["a=1e999"])


@pytest.mark.parametrize(
    "name", ["X-v0", "ns/X-v0", "a:B", "a (1).py:B", "my tasks/b.py", "kl-ucb", "SW-UCB#"]
)
def test_names_with_options_are_read_as_they_are_written(name):
    options = {"a": "it's (1)", "b": [1, {"c": ("d.py", None)}], "e": -1e-3}
    assert split_options(join_options(name, options)) == (name, options)
    assert split_options(name) == (name, {})


def test_folders_have_readable_names():
    assert TrainingConfig("CartPole-v1").folder == Path("esbas-CartPole-v1")
    assert TrainingConfig("package:ALE/Pong-v5").folder == Path("esbas-package-ALE-Pong-v5")
    assert TrainingConfig("sub/walks.py:Walk(length=3)").folder == Path(
        "esbas-sub-walks-Walk-length-3"
    )
    long = TrainingConfig("X-v0", env_kwargs=(f"a={'x' * 300}",)).folder.name
    assert len(long) < 120
    assert long != TrainingConfig("X-v0", env_kwargs=(f"a={'x' * 301}",)).folder.name


class Closing(gymnasium.Wrapper):
    closed = 0

    def close(self):
        self.closed += 1
        super().close()


QUICK = {"learners": ("random",), "episodes": 3, "tensorboard": False}


def test_an_environment_is_trained_on_in_place():
    env = Closing(gymnasium.make("FrozenLake-v1"))
    assert TrainingConfig(env).folder == Path("esbas-FrozenLake-v1")
    esbas.train(env, out=Path("here"), **QUICK)
    assert env.closed == 0
    training = esbas.load_training("here")
    assert training.score.runs == 3
    with pytest.raises(
        SaveFileError,
        match=r"described by an object \(FrozenLake-v1\).*call esbas.train with the arguments",
    ):
        training.evaluate()
    with pytest.raises(
        InvalidValueError,
        match="An environment object can be used for one seed only: give a function",
    ):
        esbas.train(env, seeds=(0, 1), out=Path("there"), **QUICK)
    with pytest.raises(
        InvalidValueError, match="`env_kwargs` must not be given with an environment object"
    ):
        esbas.train(env, env_kwargs=("is_slippery=False",), out=Path("there"), **QUICK)
    assert not Path("there").exists()


def make_lake():
    return gymnasium.make("FrozenLake-v1")


def test_a_function_is_stored_by_its_name_if_it_can_be_imported():
    config = TrainingConfig(make_lake, seeds=(0, 1), jobs=2, out=Path("here"), **QUICK)
    assert not config.unnamed  # several jobs are allowed
    esbas.train(make_lake, seeds=(0, 1), out=Path("here"), **QUICK)
    about = json.loads(Path("here", "config.json").read_text())
    assert about["config"]["env"] == f"{make_lake.__module__}:make_lake"
    assert about["again"].startswith(f"esbas train {make_lake.__module__}:make_lake ")
    assert cli.main(["resume", "here", "--trust", "--no-tensorboard"]) == 0


def test_a_function_without_a_name_trains_in_this_process(capsys):
    training = esbas.train(lambda: make_lake(), seeds=(0, 1), jobs=2, out=Path("here"), **QUICK)
    assert training.finished
    printed = capsys.readouterr().err
    assert (
        "Only this process can run env (FrozenLake-v1): the same call continues the training "
        "if it is interrupted." in printed
    )
    assert "So the runs go one after the other" in printed


def test_a_file_is_imported_once():
    write("parts.py", LEARNER)
    assert import_object("parts.py:Mine") is import_object("parts:Mine")


@pytest.mark.parametrize("module", [registry, config, env_names])
def test_examples_in_docstrings_hold(module):
    assert doctest.testmod(module).failed == 0
