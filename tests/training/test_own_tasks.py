"""Tasks and plug-ins of one's own: in modules and files of the current folder, with options, and as objects in Python."""

import dataclasses
import doctest
import json
import sys
from pathlib import Path

import ale_py  # noqa: F401  # here, so that its ids stay registered
import gymnasium
import pytest

from esbas import cli, registry
from esbas.errors import EsbasError, InvalidValueError, SaveFileError
from esbas.registry import import_object
from esbas.training import Train, config, main, make_task, open_folder, task_names
from esbas.training.options import join_options, split_options
from esbas.training.runs.episode_log import read_episodes
from esbas.training.task_names import complete_name
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
SHORT = ["--members", "random", "--episodes", "4", "--no-tensorboard", "--out", "here"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The current folder. Its modules are forgotten after the test, and so are the ids that they register."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr("esbas.training.commands.train.publish", lambda *_: None)  # figures take time
    known, ids = set(sys.modules), set(gymnasium.registry)
    yield tmp_path
    for name in set(sys.modules) - known:
        if Path(getattr(sys.modules[name], "__file__", None) or "/").is_relative_to(tmp_path):
            del sys.modules[name]
    for name in set(gymnasium.registry) - ids:
        del gymnasium.registry[name]


def write(name, text):
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text(text)


@pytest.mark.parametrize("name", ["walks.py", "walks.py:Walk", "walks:Walk", "walks.py:make", "./walks.py:Walk"])
def test_a_task_is_found_in_a_file(name, folder):
    write("walks.py", TASK + "\n\ndef make():\n    return Walk()\n")
    sys.path.append(str(folder))  # as the `esbas` script does
    task = make_task(name)
    assert (type(task).__name__, task.length) == ("Walk", 3)


@pytest.mark.parametrize("name", ["walks.py", "walks.py:EsbasWalk-v0", "sub/walks.py", "walks:EsbasWalk-v0"])
def test_a_registered_task_keeps_its_time_limit(name, folder):
    write("sub/walks.py" if name.startswith("sub") else "walks.py", REGISTERED)
    sys.path.append(str(folder))
    assert make_task(name).spec.max_episode_steps == 2
    assert make_task("walks:Walk").spec is None


def test_a_task_takes_options():
    write("walks.py", TASK)
    assert make_task("walks.py:Walk(length=7)").length == 7
    limited = make_task("walks.py(length=7, max_episode_steps=1)")
    limited.reset(seed=0)
    assert limited.step(0)[2:4] == (False, True)
    lake = make_task("FrozenLake-v1(is_slippery=False, map_name='8x8', max_episode_steps=5)")
    assert (lake.observation_space.n, lake.spec.max_episode_steps) == (64, 5)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("walks.py:Wlak", "there is no environment named 'walks.py:Wlak': did you mean 'walks.py:Walk'?"),
        ("walks.py(lenght=1)", "there is no option of this task named 'lenght': did you mean 'length'?"),
        ("walks.py:TASK", "must be a class or function that creates an environment, but 'walks.py:TASK' is 'text'"),
        ("walks.py:number", "must be a gymnasium.Env, but 'walks.py:number' is 'int': name a subclass"),
        ("walks.py(render_mode='human')", "must not be given 'render_mode', which esbas sets itself: remove it"),
        ("FrozenLake-v1(slippery=False)", "there is no option of this task named 'slippery': did you mean 'is_slippery'?"),
        ("FrozenLake-v1(False)", "must be a name with options and plain values such as name(key=1.5, other='text')"),
        ("gymnasium:os:CartPole-v1", "an environment must be named with one colon at most"),
        ("none.py", "there is no file named 'none.py': check the path; it is relative to the current folder"),
        ("two.py", "must have exactly one task to be named like this, but has 2: name one of two.py:One, two.py:Two"),
        ("empty.py", "but has none: define a subclass of gymnasium.Env in it"),
        ("json.py", "a module must have a name of its own, but 'json' is also "),
        ("a.b.py", "a module must not have a dot in its name, but got 'a.b.py': rename the file"),
        ("syntax.py", "module 'syntax.py' must be importable, but SyntaxError: invalid syntax: fix it (/"),
        ("syntax.py", "syntax.py, line 2)"),
        ("broken.py", "but ZeroDivisionError: division by zero: fix it (/"),
        ("broken.py", "broken.py, line 2)"),
        ("needy.py", "module 'needy.py' needs 'no_such_library', which is not installed: install it (/"),
        ("late.py", "must start, but NameError: name 'undefined' is not defined: fix the environment, or choose another (/"),
        ("late.py", "late.py, line 4)"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_one_sentence(name, message):
    write("walks.py", TASK + "\n\nTASK = 'text'\n\n\ndef number():\n    return 3\n")
    write("two.py", "import gymnasium\nclass One(gymnasium.Env): pass\nclass Two(gymnasium.Env): pass\n")
    write("late.py", "import gymnasium\nclass Late(gymnasium.Env):\n    def __init__(self):\n        undefined\n")
    sources = {"empty": "", "json": TASK, "a.b": TASK, "syntax": "x = 1\ndef f(:\n", "broken": "x = 0\n1 / x\n"}
    for file, text in (sources | {"needy": "import no_such_library\n"}).items():
        write(f"{file}.py", text)
    with pytest.raises(EsbasError) as caught:
        make_task(name)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_plug_ins_are_found_in_files_also_by_other_processes_and_by_resume(capsys):
    write("walks.py", TASK)
    write("parts.py", LEARNER)
    members = ["parts.py:Mine(name='zero')", "parts.py:Mine(name='one', action=1)"]
    parts = ["--members", *members, "--selector", "parts.py:InTurn(start=1)", "--objective", "parts.py:first_reward"]
    more = ["--episodes", "4", "--seeds", "0", "1", "--jobs", "2", "--no-tensorboard", "--out", "here"]
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
        "(task 'walks.py')",
        "(selector 'parts.py:InTurn')",
        "(objective 'parts.py:first_reward')",
        "(member 'parts.py:M",
    ):
        assert part in error
    assert cli.main(["resume", "here", "--trust", "--no-tensorboard"]) == 0
    assert_same(before, numbers(Path("here")))
    assert cli.main(["evaluate", "here", "--trust", "--episodes", "1"]) == 0


def test_options_of_a_task_are_part_of_its_name():
    assert cli.main(["train", "FrozenLake-v1(is_slippery=False)", "--env-kwargs", "map_name=8x8", *SHORT]) == 0
    about = json.loads(Path("here", "config.json").read_text())
    assert about["again"].startswith("""esbas train "FrozenLake-v1(is_slippery=False, map_name='8x8')" --members random""")
    plan = open_folder(Path("here")).plan
    assert plan.env_id == "FrozenLake-v1(is_slippery=False, map_name='8x8')"
    assert plan.task().observation_space.n == 64
    assert cli.main(["train", "FrozenLake-v1", "--env-kwargs", "is_slippery=False", "map_name=8x8", *SHORT]) == 0
    assert cli.main(["train", "FrozenLake-v1", *SHORT]) == 2  # another task
    assert cli.main(["resume", "here", "--no-tensorboard"]) == 0


@pytest.mark.parametrize("text", ["is_slippery", "=3", "a b=3", "is_slippery=True"])
def test_options_of_a_task_that_are_no_options_are_refused(text):
    with pytest.raises(InvalidValueError, match=r"form name=value|must be given once"):
        complete_name("FrozenLake-v1(is_slippery=False)", [text])


def test_values_are_literals_or_text():
    settings = ["a=1e3", "b=[1, 'x']", "c=8x8", "d=", "e=None", "f=x=y", "g='q'"]
    name, options = split_options(complete_name("X-v0", settings))
    assert name == "X-v0"
    assert options == {"a": 1000.0, "b": [1, "x"], "c": "8x8", "d": "", "e": None, "f": "x=y", "g": "q"}
    with pytest.raises(InvalidValueError, match="plain values"):
        complete_name("X-v0", ["a=1e999"])


@pytest.mark.parametrize("name", ["X-v0", "ns/X-v0", "a:B", "a (1).py:B", "my tasks/b.py", "kl-ucb", "SW-UCB#"])
def test_names_with_options_are_read_as_they_are_written(name):
    options = {"a": "it's (1)", "b": [1, {"c": ("d.py", None)}], "e": -1e-3}
    assert split_options(join_options(name, options)) == (name, options)
    assert split_options(name) == (name, {})


def test_folders_have_readable_names():
    assert Train("CartPole-v1").folder == Path("esbas-CartPole-v1")
    assert Train("package:ALE/Pong-v5").folder == Path("esbas-package-ALE-Pong-v5")
    assert Train("sub/walks.py:Walk(length=3)").folder == Path("esbas-sub-walks-Walk-length-3")
    long = Train("X-v0", env_kwargs=(f"a={'x' * 300}",)).folder.name
    assert len(long) < 120
    assert long != Train("X-v0", env_kwargs=(f"a={'x' * 301}",)).folder.name


class Closing(gymnasium.Wrapper):
    closed = 0

    def close(self):
        self.closed += 1
        super().close()


QUICK = {"members": ("random",), "episodes": 3, "tensorboard": False}


def test_an_environment_is_trained_on_in_place():
    env = Closing(gymnasium.make("FrozenLake-v1"))
    assert Train(env=env).folder == Path("esbas-FrozenLake-v1")
    main(Train(env=env, out=Path("here"), **QUICK))
    assert env.closed == 0
    main(Train(env=env, out=Path("here"), **QUICK))  # continues
    with pytest.raises(SaveFileError, match=r"must be opened in Python, .* esbas.training.main\(Train\(env=..., out=...\)\)"):
        open_folder(Path("here"))
    assert open_folder(Path("here"), env=env).plan.task().unwrapped is env.unwrapped
    with pytest.raises(InvalidValueError, match="an environment is used for one seed"):
        main(Train(env=env, seeds=(0, 1), out=Path("there"), **QUICK))
    with pytest.raises(InvalidValueError, match="env_kwargs belong to a task that is given by its name"):
        main(Train(env=env, env_kwargs=("is_slippery=False",), out=Path("there"), **QUICK))
    with pytest.raises(InvalidValueError, match="a task is given by its name or as env"):
        main(Train("CartPole-v1", env=env, out=Path("there"), **QUICK))


def make_lake():
    return gymnasium.make("FrozenLake-v1")


def test_a_function_is_stored_by_its_name_if_it_can_be_imported():
    config = Train(env=make_lake, seeds=(0, 1), jobs=2, out=Path("here"), **QUICK)
    config.check()  # several jobs are allowed
    main(dataclasses.replace(config, jobs=1))
    assert json.loads(Path("here", "config.json").read_text())["command"] == f"esbas train {make_lake.__module__}:make_lake"
    assert cli.main(["resume", "here", "--trust", "--no-tensorboard"]) == 0


def test_a_function_without_a_name_trains_in_this_process():
    main(Train(env=lambda: make_lake(), seeds=(0, 1), out=Path("here"), **QUICK))
    with pytest.raises(InvalidValueError, match="`env is a function that other processes can import` must hold"):
        main(Train(env=lambda: make_lake(), seeds=(0, 1), jobs=2, out=Path("there"), **QUICK))
    assert not Path("there").exists()


def test_a_file_is_imported_once():
    write("parts.py", LEARNER)
    assert import_object("parts.py:Mine") is import_object("parts:Mine")


@pytest.mark.parametrize("module", [registry, config, task_names])
def test_examples_in_docstrings_hold(module):
    assert doctest.testmod(module).failed == 0
