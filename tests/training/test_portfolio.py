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
from esbas.training.portfolios.algorithms import ALGORITHMS
from esbas.training.portfolios.recipe import default_recipe, example, read_recipe, recipe_of
from esbas.training.tasks import make_task

CARTPOLE, PENDULUM, LAKE = (make_task(name) for name in ("CartPole-v1", "Pendulum-v1", "FrozenLake-v1"))


def build(members: list[str], env: Any = CARTPOLE, *, steps: int = 1000, seed: int = 0) -> list[Any]:
    return list(recipe_of(members).build(env, steps=steps, seed=seed))


def test_the_default_portfolio_for_discrete_actions_trains_as_one():
    recipe = default_recipe(CARTPOLE)
    members: list[Any] = list(recipe.build(CARTPOLE, steps=1000, seed=0))
    assert recipe.names == tuple(member.name for member in members)
    assert recipe.names[:2] == ("DQN rate 0.0003, corrected", "DQN rate 0.001, corrected")
    assert recipe.names[-1] == "DQN rate 0.0025, uncorrected"
    assert len(recipe.names) == 6
    assert all(isinstance(member, DQN) and member.replay is members[0].replay for member in members)
    assert len(members[0].replay.groups) == 1
    assert members[0].replay.capacity == 100_000


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
    message = r"but the action space is MultiDiscrete\(\[2 2\]\): add --wrappers DiscreteActions"
    with pytest.raises(SpaceError, match=message):
        default_recipe(SimpleNamespace(action_space=gym.spaces.MultiDiscrete([2, 2])))
    with pytest.raises(SpaceError, match=r"but the action space is Discrete\(3, start=1\)"):
        default_recipe(SimpleNamespace(action_space=gym.spaces.Discrete(3, start=1)))


def test_the_example_works_as_it_is_and_explains_everything():
    recipe = read_recipe(example(), source="the example")
    assert recipe.names[0] == "quick"
    members = recipe.build(CARTPOLE, steps=1000, seed=0)
    records = list(esbas.run(CARTPOLE, members, esbas.SSBAS(recipe.names), episodes=3, keep_data=False))
    assert not any(record.faults for record in records)
    for name in ("[replay]", "capacity", "stack", "name", "grid", "time_limit", "isolate", *ALGORITHMS):
        assert name in example() or name.startswith("d3rlpy.discrete_")  # alternative names of d3rlpy


def test_the_commented_lines_of_the_example_are_valid():
    lines = [line.removeprefix("# ") for line in example().splitlines()]
    tables = "\n".join(line for line in lines if line == "[[member]]" or line.split(" ")[1:2] == ["="]).split("[[member]]\n")[1:]
    assert {tomllib.loads(table)["algorithm"] for table in tables} > {name for name in ALGORITHMS if "d3rlpy" not in name}
    text = "".join(f"[[member]]\n{table}" for table in tables if "d3rlpy" not in table and "my_module" not in table)
    assert {member.algorithm for member in read_recipe(text, source="all").members} == {
        name for name in ALGORITHMS if "d3rlpy" not in name
    }


def test_names_build_the_right_members():
    kinds = [type(member) for member in build(["dqn", "random", "sb3.qrdqn", "fqi(regressor='Ridge')"])]
    assert kinds == [DQN, Constant, SB3Learner, FittedQ]
    table, deep = build(["tabular_q(rate=0.5, epsilon=0.2)", "dqn(hidden=[8])"], LAKE)
    assert isinstance(table, TabularQ)
    assert table.table.shape == (16, 4)
    assert isinstance(deep, DQN)


def test_options_are_passed_to_the_learner():
    quick, noisy = (
        build(["sb3.dqn(learning_rate=0.5, train_freq=[1, 'episode'], policy_kwargs={'net_arch': [7]})"]),
        build(["sb3.td3(action_noise=0.3, n_steps=2)"], PENDULUM, steps=123),
    )
    assert quick[0].model.learning_rate == 0.5
    assert quick[0].model.q_net.q_net[0].out_features == 7
    assert quick[0].model.train_freq.unit.value == "episode"
    np.testing.assert_array_equal(noisy[0].model.action_noise._sigma, [0.3])
    assert noisy[0].model._total_timesteps == 123
    (fitted,) = build(["fqi(regressor='ExtraTreesRegressor', options={'n_estimators': 3}, gamma=0.5)"])
    assert fitted.gamma == 0.5


def test_one_memory_is_built_and_only_if_it_is_needed(monkeypatch):
    text = "[replay]\ncapacity = 77\n" + recipe_of(["dqn", "sb3.dqn", "sb3.qrdqn"]).text
    members: list[Any] = list(read_recipe(text, source="x").build(CARTPOLE, steps=10, seed=0))
    assert members[0].replay is members[1].replay is members[2].replay
    assert members[0].replay.capacity == 77
    monkeypatch.setattr("esbas.training.portfolios.build.SharedReplay", None)
    assert len(build(["random", "fqi(regressor='Ridge')"])) == 2


def test_the_random_member_draws_from_the_generator_it_is_given():
    for env, expected in ((CARTPOLE, -math.log(2)), (PENDULUM, -math.log(4))):  # torques lie between -2 and 2
        policy = build(["random"], env)[0].policy()
        one, again, other = ([policy.act(None, rng) for _ in range(20)] for rng in map(np.random.default_rng, (0, 0, 1)))
        assert all(env.action_space.contains(action) for action in one)
        assert one == again
        assert one != other
        assert policy.log_probs(np.zeros((1, 1)), np.array(one[:1])) == pytest.approx(expected)


def test_results_depend_on_the_seed():
    observation = np.ones(4, np.float32)
    one, again, other = (build(["dqn(hidden=[8])"], seed=seed)[0].values(observation) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert (one != other).all()


@pytest.mark.parametrize(
    ("members", "names"),
    [
        (["dqn"], ["DQN"]),
        (["dqn(rate=0.5)", "random"], ["DQN", "random"]),
        (["dqn", "dqn(rate=0.5)"], ["DQN", "DQN rate 0.5"]),
        (["dqn(rate=1e-4, batch=8)", "dqn(rate=0.1234567, batch=8)"], ["DQN rate 0.0001", "DQN rate 0.1234567"]),
        (["dqn", "sb3.dqn", "sb3.qrdqn"], ["DQN", "SB3 DQN", "QR-DQN"]),
        (["dqn(grid={'double': [True, False]}, name='a')"], ["a double true", "a double false"]),
        (["dqn(grid={'hidden': [[8], [8, 8]]})"], ["DQN hidden (8)", "DQN hidden (8, 8)"]),
        (
            ["dqn(name='n={n_step}', grid={'n_step': [1, 2], 'rate': [1, 2]})"],
            ["n=1 rate 1", "n=1 rate 2", "n=2 rate 1", "n=2 rate 2"],
        ),
    ],
)
def test_names_show_what_differs(members, names):
    assert list(recipe_of(members).names) == names


def test_members_on_the_command_line_become_a_portfolio_text():
    members = ["dqn(name='a \"b\" é', rate=1e-05, double=False, hidden=(3, 4))", "sb3.qrdqn(policy_kwargs={'net_arch': [8]})"]
    recipe = recipe_of([*members, "dqn(grid={'rate': [1, 2]}, time_limit=3)"])
    tables = tomllib.loads(recipe.text)["member"]
    assert tables[0] == {"algorithm": "dqn", "name": 'a "b" é', "rate": 1e-5, "double": False, "hidden": [3, 4]}
    assert tables[1] == {"algorithm": "sb3.qrdqn", "policy_kwargs": {"net_arch": [8]}}
    assert tables[2] == {"algorithm": "dqn", "grid": {"rate": [1, 2]}, "time_limit": 3}
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
    limited, free = build(["dqn(time_limit=2.5)", "random"])
    assert limited.time_limit == 2.5
    assert not hasattr(free, "time_limit")


def test_an_isolated_member_has_its_own_process_and_memory():
    members = build(["tabular_q(isolate=True, time_limit=600)", "random"], LAKE)
    try:
        assert isinstance(members[0], Isolated)
        assert members[0].name == "tabular Q"
        assert members[0].time_limit == 600
        names = [member.name for member in members]
        records = list(esbas.run(LAKE, members, esbas.SSBAS(names), episodes=4, keep_data=False))
        assert not any(record.faults for record in records)
    finally:
        members[0].close()


def test_the_length_of_a_run_is_at_least_a_step():
    with pytest.raises(EsbasError, match="`steps >= 1` must hold, but got steps=0"):
        build(["random"], steps=0)


def test_what_the_learner_sets_itself_is_not_an_option():
    assert RESERVED_OPTIONS
    for option in RESERVED_OPTIONS:
        with pytest.raises(
            InvalidValueError, match=f"must not be given '{option}'(, which esbas sets itself|: the replay memory)"
        ):
            recipe_of([f"sb3.sac({option}=1)"])
