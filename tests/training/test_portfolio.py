import math
import pickle
import tomllib
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import esbas
from esbas.errors import EsbasError, InvalidValueError, SpaceError
from esbas.learners import DQN, Constant, FittedQ, Isolated, SB3Learner, TabularQ
from esbas.learners.sb3.learner import RESERVED_OPTIONS
from esbas.specs.envs import make_env
from esbas.specs.portfolios.algorithms import ALGORITHMS
from esbas.specs.portfolios.recipe import default_recipe, example, read_recipe, recipe_of

CARTPOLE, PENDULUM, LAKE = (
    make_env(name) for name in ("CartPole-v1", "Pendulum-v1", "FrozenLake-v1")
)


def build(
    members: list[str], env: Any = CARTPOLE, *, steps: int = 1000, seed: int = 0
) -> list[Any]:
    return list(recipe_of(members).build(env, steps=steps, seed=seed))


def test_the_default_portfolio_for_discrete_actions_trains_as_one():
    recipe = default_recipe(CARTPOLE)
    members: list[Any] = list(recipe.build(CARTPOLE, steps=1000, seed=0))
    assert recipe.names == tuple(member.name for member in members)
    assert recipe.names == (
        "DQN rate 0.0025",
        "DQN rate 0.001",
        "DQN rate 0.0005, corrected",
        "DQN rate 0.001, ez-greedy",
    )
    assert all(isinstance(member, DQN) and member.replay is members[0].replay for member in members)
    assert len(members[0].replay.groups) == 1
    assert members[0].replay.buffer_size == 100_000


def test_the_default_portfolio_for_continuous_actions_plays():
    recipe = default_recipe(PENDULUM)
    members: list[Any] = list(recipe.build(PENDULUM, steps=200, seed=0))
    assert len(members) == 5
    assert {type(member.model).__name__ for member in members} == {"SAC", "TD3", "TQC"}
    selector = esbas.SSBAS(recipe.names)
    (record,) = esbas.run(PENDULUM, members, selector, episodes=1, keep_data=False)
    assert not record.faults
    assert all(len(member.replay) == 200 for member in members)


def test_other_actions_have_no_default_portfolio():
    message = r"the action space MultiDiscrete\(\[200 200\]\) has 40,000 combinations, of which at"
    with pytest.raises(SpaceError, match=message):
        default_recipe(SimpleNamespace(action_space=gym.spaces.MultiDiscrete([200, 200])))
    with pytest.raises(SpaceError, match=r"but the action space is Text\(.*: wrap the environment"):
        default_recipe(SimpleNamespace(action_space=gym.spaces.Text(3)))


def test_the_example_works_as_it_is_and_explains_everything():
    recipe = read_recipe(example(), source="the example")
    assert recipe.names[0] == "quick"
    members = recipe.build(CARTPOLE, steps=1000, seed=0)
    records = list(
        esbas.run(CARTPOLE, members, esbas.SSBAS(recipe.names), episodes=3, keep_data=False)
    )
    assert not any(record.faults for record in records)
    for name in (
        "[replay]",
        "buffer_size",
        "stack",
        "name",
        "grid",
        "learn_timeout",
        "isolate",
        *ALGORITHMS,
    ):
        # alternative names of d3rlpy
        assert name in example() or name.startswith("d3rlpy.discrete_")


def test_the_commented_lines_of_the_example_are_valid():
    lines = [line.removeprefix("# ") for line in example().splitlines()]
    tables = "\n".join(
        line for line in lines if line == "[[learner]]" or line.split(" ")[1:2] == ["="]
    ).split("[[learner]]\n")[1:]
    assert {tomllib.loads(table)["algorithm"] for table in tables} > {
        name for name in ALGORITHMS if "d3rlpy" not in name
    }
    text = "".join(
        f"[[learner]]\n{table}"
        for table in tables
        if "d3rlpy" not in table and "my_module" not in table
    )
    assert {member.algorithm for member in read_recipe(text, source="all").learners} == {
        name for name in ALGORITHMS if "d3rlpy" not in name
    }


def test_names_build_the_right_members():
    kinds = [
        type(member) for member in build(["dqn", "random", "sb3.qrdqn", "fqi(regressor='Ridge')"])
    ]
    assert kinds == [DQN, Constant, SB3Learner, FittedQ]
    table, deep = build(["tabular_q(learning_rate=0.5, epsilon=0.2)", "dqn(hidden=[8])"], LAKE)
    assert isinstance(table, TabularQ)
    assert table.table.shape == (16, 4)
    assert isinstance(deep, DQN)


def test_options_are_passed_to_the_learner():
    quick = build(
        ["sb3.dqn(learning_rate=0.5, train_freq=[1, 'episode'], policy_kwargs={'net_arch': [7]})"]
    )
    noisy = build(["sb3.td3(action_noise=0.3, n_steps=2)"], PENDULUM, steps=123)
    assert quick[0].model.learning_rate == 0.5
    assert quick[0].model.q_net.q_net[0].out_features == 7
    assert quick[0].model.train_freq.unit.value == "episode"
    np.testing.assert_array_equal(noisy[0].model.action_noise._sigma, [0.3])
    assert noisy[0].model._total_timesteps == 123
    (fitted,) = build(
        ["fqi(regressor='ExtraTreesRegressor', options={'n_estimators': 3}, gamma=0.5)"]
    )
    assert fitted.gamma == 0.5


def test_one_memory_is_built_and_only_if_it_is_needed(monkeypatch):
    text = "[replay]\nbuffer_size = 77\n" + recipe_of(["dqn", "sb3.dqn", "sb3.qrdqn"]).text
    members: list[Any] = list(read_recipe(text, source="x").build(CARTPOLE, steps=10, seed=0))
    assert members[0].replay is members[1].replay is members[2].replay
    assert members[0].replay.buffer_size == 77
    monkeypatch.setattr("esbas.specs.portfolios.build.SharedReplay", None)
    assert len(build(["random", "fqi(regressor='Ridge')"])) == 2


def test_the_random_member_draws_from_the_generator_it_is_given():
    # torques lie between -2 and 2
    for env, expected in ((CARTPOLE, -math.log(2)), (PENDULUM, -math.log(4))):
        policy = build(["random"], env)[0].policy()
        one, again, other = (
            [policy.act(None, rng) for _ in range(20)]
            for rng in map(np.random.default_rng, (0, 0, 1))
        )
        assert all(env.action_space.contains(action) for action in one)
        assert one == again
        assert one != other
        assert policy.log_probs(np.zeros((1, 1)), np.array(one[:1])) == pytest.approx(expected)


def test_results_depend_on_the_seed():
    observation = np.ones(4, np.float32)
    one, again, other = (
        build(["dqn(hidden=[8])"], seed=seed)[0].values(observation) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, again)
    assert (one != other).all()


@pytest.mark.parametrize(
    ("members", "names"),
    [
        (["dqn"], ["DQN"]),
        (["dqn(learning_rate=0.5)", "random"], ["DQN", "random"]),
        (["dqn", "dqn(learning_rate=0.5)"], ["DQN", "DQN learning_rate 0.5"]),
        (
            ["dqn(learning_rate=1e-4, batch_size=8)", "dqn(learning_rate=0.1234567, batch_size=8)"],
            ["DQN learning_rate 0.0001", "DQN learning_rate 0.1234567"],
        ),
        (["dqn", "sb3.dqn", "sb3.qrdqn"], ["DQN", "SB3 DQN", "QR-DQN"]),
        (["dqn(grid={'double': [True, False]}, name='a')"], ["a double true", "a double false"]),
        (["dqn(grid={'hidden': [[8], [8, 8]]})"], ["DQN hidden (8)", "DQN hidden (8, 8)"]),
        (
            ["dqn(name='n={n_steps}', grid={'n_steps': [1, 2], 'learning_rate': [1, 2]})"],
            [
                "n=1 learning_rate 1",
                "n=1 learning_rate 2",
                "n=2 learning_rate 1",
                "n=2 learning_rate 2",
            ],
        ),
    ],
)
def test_names_show_what_differs(members, names):
    assert list(recipe_of(members).names) == names


def test_members_on_the_command_line_become_a_portfolio_text():
    members = [
        "dqn(name='a \"b\" é', learning_rate=1e-05, double=False, hidden=(3, 4))",
        "sb3.qrdqn(policy_kwargs={'net_arch': [8]})",
    ]
    recipe = recipe_of([*members, "dqn(grid={'learning_rate': [1, 2]}, learn_timeout=3)"])
    tables = tomllib.loads(recipe.text)["learner"]
    assert tables[0] == {
        "algorithm": "dqn",
        "name": 'a "b" é',
        "learning_rate": 1e-5,
        "double": False,
        "hidden": [3, 4],
    }
    assert tables[1] == {"algorithm": "sb3.qrdqn", "policy_kwargs": {"net_arch": [8]}}
    assert tables[2] == {"algorithm": "dqn", "grid": {"learning_rate": [1, 2]}, "learn_timeout": 3}
    assert read_recipe(recipe.text, source="again") == recipe
    assert read_recipe(recipe.text, source="again").names == recipe.names


def test_recipes_can_be_sent_to_other_processes():
    recipe = default_recipe(CARTPOLE)
    other = pickle.loads(pickle.dumps(recipe))
    assert other == recipe
    assert other.names == recipe.names
    assert hash(other) == hash(recipe)
    assert other != recipe_of(["dqn"])


def test_a_time_limit_is_set_on_the_learner():
    limited, free = build(["dqn(learn_timeout=2.5)", "random"])
    assert limited.learn_timeout == 2.5
    assert not hasattr(free, "learn_timeout")


def test_an_isolated_member_has_its_own_process_and_memory():
    members = build(["tabular_q(isolate=True, learn_timeout=600)", "random"], LAKE)
    try:
        assert isinstance(members[0], Isolated)
        assert members[0].name == "tabular Q"
        assert members[0].learn_timeout == 600
        names = [member.name for member in members]
        records = list(esbas.run(LAKE, members, esbas.SSBAS(names), episodes=4, keep_data=False))
        assert not any(record.faults for record in records)
    finally:
        members[0].close()


def test_the_length_of_a_run_is_at_least_a_step():
    with pytest.raises(EsbasError, match="`steps` must be at least 1, but got 0"):
        build(["random"], steps=0)


def test_what_the_learner_sets_itself_is_not_an_option():
    assert RESERVED_OPTIONS
    for option in RESERVED_OPTIONS:
        with pytest.raises(
            InvalidValueError,
            match=f"`{option}` of sb3.sac must not be given, because (esbas sets it|all "
            f"learners share)",
        ):
            recipe_of([f"sb3.sac({option}=1)"])
