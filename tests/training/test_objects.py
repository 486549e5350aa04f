"""Environments, learners, selectors, objectives, callbacks, wrappers and engines as objects,
classes and functions.
"""

import functools
import json
import shutil
from collections import Counter
from typing import ClassVar

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit

import esbas
from engine.plain import Plain
from esbas import cli
from esbas.errors import EsbasError, InvalidValueError, SaveFileError
from esbas.learners import Constant, TabularQ
from training.programs import assert_same, numbers, train_without_report

OPTIONS = {"episodes": 12, "tensorboard": False, "progress": False}
LAKE = "FrozenLake-v1"


def make_lake():
    return gymnasium.make(LAKE)


def tables(env, seed):
    """Learners for an environment with discrete observations."""
    return [TabularQ.for_env(env, learning_rate=rate) for rate in (0.1, 0.5)]


class Mine(Constant):
    """A learner class of one's own."""

    def __init__(self, name, *, action_space, action=0):
        super().__init__(name, lambda _: action)
        self.action_space = action_space


class FirstReward:
    def __call__(self, trajectory):
        return float(trajectory.rewards[0])


@pytest.mark.parametrize(
    "env",
    [
        LAKE,
        make_lake,
        functools.partial(gymnasium.make, LAKE),
        lambda: gymnasium.make(LAKE),
        gymnasium.make(LAKE),
    ],
    ids=["text", "function", "partial", "lambda", "object"],
)
@pytest.mark.parametrize(
    "learners",
    [
        ["tabular_q(learning_rate=0.1)", "tabular_q(learning_rate=0.5)"],
        tables,
        lambda env, seed: tables(env, seed),
    ],
    ids=["text", "function", "lambda"],
)
def test_text_objects_and_functions_give_the_same_results(env, learners, tmp_path):
    usual = train_without_report(
        LAKE,
        learners=["tabular_q(learning_rate=0.1)", "tabular_q(learning_rate=0.5)"],
        out=tmp_path / "usual",
        **OPTIONS,
    )
    training = train_without_report(env, learners=learners, out=tmp_path / "it", **OPTIONS)
    path = "runs/seed-0/episodes.csv"
    assert (usual.folder / path).read_text() == (training.folder / path).read_text()
    assert training.policy().predict(3)[0] in range(4)
    assert training.evaluate(episodes=2, progress=False).runs == 2


def make_ssbas(arms, seed):
    return esbas.SSBAS(arms, seed=seed)


@pytest.mark.parametrize(
    "selector",
    [
        "ssbas",
        make_ssbas,
        f"{make_ssbas.__module__}:make_ssbas",
        esbas.SSBAS,
        lambda arms: esbas.SSBAS(arms),
        functools.partial(esbas.SSBAS, xi=0.25),
    ],
    ids=["text", "function", "name of a function", "class", "lambda", "partial"],
)
def test_selectors(selector, tmp_path):
    learners = ["tabular_q", "random"]
    usual = train_without_report(
        LAKE, learners=learners, selector="ssbas", out=tmp_path / "usual", **OPTIONS
    )
    training = train_without_report(
        LAKE, learners=learners, selector=selector, out=tmp_path / "it", **OPTIONS
    )
    assert training.episodes().learner.tolist() == usual.episodes().learner.tolist()


def test_a_selector_object(tmp_path):
    selector = esbas.SSBAS(["tabular Q", "random"])
    options = OPTIONS | {"learners": ["tabular_q", "random"]}
    training = train_without_report(LAKE, selector=selector, out=tmp_path / "it", **options)
    assert training.finished
    with pytest.raises(
        InvalidValueError, match="A selector object can be used for one seed only: give its class"
    ):
        esbas.train(LAKE, selector=esbas.SSBAS(["tabular Q", "random"]), seeds=[0, 1], **options)
    with pytest.raises(
        InvalidValueError, match="`xi` must not be given with a selector that is an object"
    ):
        esbas.train(LAKE, selector=esbas.SSBAS(["tabular Q", "random"]), xi=1, **options)


@pytest.mark.parametrize(
    ("objective", "name"),
    [
        (esbas.total_return, "return"),
        (esbas.discounted_return(0.5), "discounted return, gamma=0.5"),
        (lambda trajectory: -1.0, "lambda"),
        (FirstReward(), "custom"),
    ],
    ids=["function of the library", "object", "lambda", "callable"],
)
def test_objectives(objective, name, tmp_path):
    training = train_without_report(
        LAKE, learners="random", objective=objective, out=tmp_path / "it", **OPTIONS
    )
    assert training.summary()["objective"].strip("<>") == name
    loaded = esbas.load_training(training.folder)
    assert loaded.score.mean == training.score.mean


def test_an_objective_object_to_minimize_is_loaded_as_one(tmp_path):
    cost = esbas.Objective(name="cost", function=len, maximize=False)
    training = train_without_report(
        LAKE, learners="random", objective=cost, out=tmp_path / "it", **OPTIONS
    )
    loaded = esbas.load_training(training.folder)
    assert loaded.summary()["objective"] == "cost"
    assert loaded._training.plan.objective.maximize is False


def test_wrappers_as_classes_and_functions(tmp_path):
    wrappers = [lambda env: TimeLimit(env, 3), gymnasium.wrappers.RecordEpisodeStatistics]
    training = train_without_report(
        "CartPole-v1", learners="dqn(hidden=[4])", wrappers=wrappers, out=tmp_path / "it", **OPTIONS
    )
    assert max(training.episodes().length) == 3
    assert training.policy().predict(np.zeros(4, np.float32))[0] in (0, 1)
    stored = json.loads((training.folder / "config.json").read_text())["config"]["wrappers"]
    assert stored == [{"object": "lambda"}, "RecordEpisodeStatistics"]


class Recorder(esbas.Callback):
    def __init__(self):
        self.episodes = 0

    def on_episode(self, record, *, steps):
        self.episodes += 1


def test_callbacks_as_objects_classes_and_functions(tmp_path):
    mine = Recorder()
    made = []

    def make():
        made.append(Recorder())
        return made[-1]

    train_without_report(
        LAKE,
        learners="random",
        callbacks=[mine, make, Recorder],
        seeds=[0, 1],
        out=tmp_path / "it",
        **OPTIONS,
    )
    assert mine.episodes == 24  # of both runs
    assert [each.episodes for each in made] == [12, 12]


def test_an_engine_object(tmp_path):
    engine = Plain()
    training = train_without_report(
        LAKE, learners="random", engine=engine, seeds=[0, 1], jobs=2, out=tmp_path / "it", **OPTIONS
    )
    assert training.finished


def test_learners_as_a_mixed_list(tmp_path):
    env = gymnasium.make(LAKE)
    mine = Mine("mine", action_space=env.action_space, action=2)
    learners = [
        "tabular_q(learning_rate=0.1)",
        mine,
        Mine,
        lambda env, seed: Constant("made", lambda _: seed),
    ]
    training = train_without_report(env, learners=learners, out=tmp_path / "it", **OPTIONS)
    assert training.learners == ("tabular Q", "mine", "Mine", "made")
    assert training.policy("mine").predict(0)[0] == 2
    assert training.policy("made").predict(0)[0] == 0


def test_learner_objects_learn_in_place_for_one_seed(tmp_path):
    env = gymnasium.make(LAKE)
    mine = TabularQ.for_env(env, name="mine", initial=0.5)
    training = train_without_report(env, learners=[mine, "random"], out=tmp_path / "it", **OPTIONS)
    assert (mine.table != 0.5).any()
    policy = training.policy("mine")
    assert policy._learner is not mine  # a copy: the object stays as the training left it
    with pytest.raises(
        InvalidValueError,
        match="Learners that are objects can be used for one seed only: give a function",
    ):
        esbas.train(make_lake, learners=[mine], seeds=[0, 1], **OPTIONS)


def test_models_of_stable_baselines3(tmp_path):
    from stable_baselines3 import PPO, SAC, TD3

    def learners(env, seed):
        small = {"learning_starts": 30, "batch_size": 8, "buffer_size": 200, "seed": seed}
        return [
            kind("MlpPolicy", env, **small, policy_kwargs={"net_arch": [8]})
            for kind in (SAC, TD3, TD3)
        ]

    options = {"selector": esbas.SSBAS, "episodes": 4, "tensorboard": False, "progress": False}
    limited = [lambda env: TimeLimit(env, 30)]
    training = train_without_report(
        lambda: gymnasium.make("Pendulum-v1"),
        learners=learners,
        wrappers=limited,
        out=tmp_path / "it",
        **options,
    )
    assert training.learners == ("SAC", "TD3", "TD3 2")
    assert training.policy().predict(np.zeros(3, np.float32))[0].shape == (1,)
    exported = training.export(tmp_path / "best")
    assert exported.suffix == ".zip"
    env = gymnasium.make("Pendulum-v1")
    model = SAC(
        "MlpPolicy", env, learning_starts=10, buffer_size=100, policy_kwargs={"net_arch": [8]}
    )
    given = train_without_report(
        env, learners=[model, "random"], wrappers=limited, out=tmp_path / "given", **options
    )
    assert given.policy("SAC").predict(np.zeros(3, np.float32))[0].shape == (1,)
    for wrong in (PPO("MlpPolicy", env), PPO):
        with pytest.raises(
            InvalidValueError,
            match="PPO cannot be a learner, because it learns from its own episodes only",
        ):
            esbas.train(env, learners=[wrong], **options)


@pytest.mark.parametrize(
    "env", [LAKE, make_lake, gymnasium.make(LAKE)], ids=["text", "function", "object"]
)
@pytest.mark.parametrize(
    "learners",
    [tables, ["tabular_q(learning_rate=0.1)", "tabular_q(learning_rate=0.5)"]],
    ids=["function", "text"],
)
@pytest.mark.parametrize("selector", [esbas.SSBAS, "ssbas"], ids=["class", "text"])
def test_a_loop_of_ones_own_takes_the_same(env, learners, selector, tmp_path):
    run = esbas.run(env, learners, selector, episodes=12, objective="return", seed=0)
    records = list(run)
    usual = train_without_report(
        LAKE, learners=tables, selector="ssbas", out=tmp_path / "usual", **OPTIONS
    )
    assert [record.learner for record in records] == usual.episodes().learner.tolist()
    run.save(tmp_path / "run.npz")
    again = esbas.resume(tmp_path / "run.npz", env, learners, selector, objective="return")
    assert again.number == 12


@pytest.mark.parametrize(
    ("env", "learners", "sentence"),
    [
        (3, ["tabular_q"], "`env` must be an environment, the name of one"),
        (lambda: 3, ["tabular_q"], "`env` must be an environment"),
        ("FrozenLak-v1", ["tabular_q"], "did you mean 'FrozenLake"),
        (LAKE, 3, "`learners` must be a list of learners, but got 3"),
        (LAKE, ["tabular_r"], "did you mean 'tabular_q'"),
        (LAKE, [3], "but got 3"),
        (LAKE, lambda env: 3, "It must return a list of learners"),
        (
            gymnasium.make_vec("CartPole-v1", num_envs=2),
            ["dqn"],
            "Vector environments are not supported",
        ),
    ],
)
def test_what_a_loop_can_not_use_gets_one_sentence(env, learners, sentence):
    with pytest.raises(EsbasError) as caught:
        esbas.run(env, learners, episodes=2)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def interrupted(training):
    path = training.folder / "runs" / "seed-0" / "clock.json"
    path.write_text(path.read_text().replace('"finished": true', '"finished": false'))


@pytest.mark.parametrize(
    "learners", [tables, lambda env, seed: tables(env, seed)], ids=["function", "lambda"]
)
def test_what_objects_describe_is_resumed_by_the_same_call(learners, tmp_path):
    """The training is stopped in the middle, by a callback that raises Ctrl-C's error."""

    class Interrupt(esbas.Callback):
        def on_episode(self, record, *, steps):
            if record.number == 5:
                raise KeyboardInterrupt

    options = OPTIONS | {"learners": learners, "checkpoint_every": 0}
    whole = train_without_report(make_lake, out=tmp_path / "whole", **options)
    with pytest.raises(KeyboardInterrupt):
        train_without_report(make_lake, out=tmp_path / "it", callbacks=Interrupt, **options)
    assert not esbas.load_training(tmp_path / "it", trust=True).finished
    again = train_without_report(make_lake, out=tmp_path / "it", **options)
    assert again.folder == tmp_path / "it"
    assert_same(numbers(whole.folder), numbers(again.folder))


def test_a_folder_of_objects_can_be_read_but_not_played(tmp_path, capsys):
    training = train_without_report(
        LAKE, learners=lambda env, seed: tables(env, seed), out=tmp_path / "it", **OPTIONS
    )
    said = capsys.readouterr().err
    assert (
        "Only this process can run learners (lambda): the same call continues the training" in said
    )
    loaded = esbas.load_training(training.folder)
    assert loaded.score.mean == training.score.mean
    assert loaded.table() == training.table()
    for ask in (loaded.policy, loaded.evaluate):
        with pytest.raises(
            SaveFileError,
            match=r"described by an object \(lambda\).*call esbas.train with the arguments",
        ):
            ask()
    interrupted(training)
    assert cli.main(["resume", str(training.folder), "--no-tensorboard"]) == 2
    assert "call esbas.train with the arguments" in capsys.readouterr().err


def test_a_function_with_a_name_can_be_sent_and_resumed_by_anybody(tmp_path):
    here = f"{tables.__module__}:tables"
    training = train_without_report(
        make_lake, learners=tables, seeds=[0, 1], jobs=2, out=tmp_path / "it", **OPTIONS
    )
    assert training.config.learners == (here,)
    assert not training.config.unnamed
    interrupted(training)
    assert cli.main(["resume", str(training.folder), "--trust", "--no-tensorboard"]) == 0
    other = tmp_path / "other"
    assert (
        cli.main(
            [
                "train",
                LAKE,
                "--learners",
                here,
                "--episodes",
                "12",
                "--no-tensorboard",
                "--out",
                str(other),
            ]
        )
        == 0
    )
    path = "runs/seed-0/episodes.csv"
    assert (other / path).read_text() == (training.folder / path).read_text()
    assert esbas.load_policy(other, trust=True).predict(0)[0] in range(4)


class Counted(gymnasium.Wrapper):
    made: ClassVar[Counter[str]] = Counter()

    def __init__(self, env):
        super().__init__(env)
        Counted.made["env"] += 1


@pytest.mark.parametrize("seeds", [1, 2])
def test_everything_is_built_once_per_run_and_once_for_the_check(seeds, tmp_path, monkeypatch):
    from esbas.learners import DQN

    Counted.made.clear()
    build = DQN.__init__

    @functools.wraps(build)
    def counted(self, *arguments, **options):
        Counted.made["learner"] += 1
        build(self, *arguments, **options)

    monkeypatch.setattr(DQN, "__init__", counted)
    make = gymnasium.make
    monkeypatch.setattr(
        gymnasium, "make", lambda *arguments, **options: Counted(make(*arguments, **options))
    )
    training = esbas.train(
        "CartPole-v1",
        steps=300,
        seeds=range(seeds),
        eval_every=100,
        eval_episodes=1,
        out=tmp_path / "it",
        tensorboard=False,
        progress=False,
    )
    assert len(training.learners) == 4
    assert Counted.made == {"env": seeds + 1, "learner": 4 * (seeds + 1)}


@pytest.mark.parametrize("seeds", [1, 2])
def test_functions_are_called_once_per_run_and_once_for_the_check(seeds, tmp_path):
    made = Counter()

    def make():
        made["env"] += 1
        return gymnasium.make(LAKE)

    def learners(env, seed):
        made["learners"] += 1
        return tables(env, seed)

    training = train_without_report(
        make, learners=learners, seeds=range(seeds), out=tmp_path / "it", **OPTIONS
    )
    assert training.finished
    assert made == {"env": seeds + 1, "learners": seeds + 1}


def test_a_function_is_named_after_the_environment_that_it_creates(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    training = train_without_report(lambda: gymnasium.make(LAKE), learners="random", **OPTIONS)
    assert str(training.folder) == "esbas-FrozenLake-v1"
    assert training.config.env_name == LAKE
    interrupted(training)
    again = train_without_report(lambda: gymnasium.make(LAKE), learners="random", **OPTIONS)
    assert again.folder == training.folder


def test_the_examples_of_the_library_leave_no_file_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train_without_report(LAKE, learners="random", **OPTIONS)
    assert [path.name for path in tmp_path.iterdir()] == ["esbas-FrozenLake-v1"]
    shutil.rmtree("esbas-FrozenLake-v1")
