import math
import pickle
import sys
import tomllib
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import esbas
from esbas.errors import EsbasError, InvalidValueError, MissingExtraError, SpaceError, UnknownNameError
from esbas.learners import Constant, TabularQ, sb3
from esbas.learners.dqn import DQN
from esbas.learners.fqi import FittedQ
from esbas.learners.isolated import Isolated
from esbas.training.portfolios.algorithms import ALGORITHMS, find_algorithm
from esbas.training.portfolios.recipe import default_recipe, example, read_recipe, recipe_of
from esbas.training.tasks import make_task

CARTPOLE, PENDULUM, LAKE = (make_task(name) for name in ("CartPole-v1", "Pendulum-v1", "FrozenLake-v1"))


def build(members: list[str], env: Any = CARTPOLE, *, steps: int = 1000, seed: int = 0) -> list[Any]:
    return list(recipe_of(members).build(env, steps=steps, seed=seed))


def test_the_default_portfolio_for_discrete_actions_trains_as_one():
    recipe = default_recipe(CARTPOLE)
    members: list[Any] = list(recipe.build(CARTPOLE, steps=1000, seed=0))
    assert recipe.names == tuple(member.name for member in members)
    assert recipe.names[:3] == ("DQN rate 0.0003, 3 steps", "DQN rate 0.0003, 6 steps", "DQN rate 0.001, 3 steps")
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
    message = r"but the action space is MultiDiscrete\(\[2 2\]\): wrap the task, or give a portfolio"
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
        assert name in example() or name.startswith("d3rlpy.discrete_")  # d3rlpy's second names for the same


def test_what_is_commented_out_in_the_example_is_right_too():
    lines = [line.removeprefix("# ") for line in example().splitlines()]
    tables = "\n".join(line for line in lines if line == "[[member]]" or line.split(" ")[1:2] == ["="]).split("[[member]]\n")[1:]
    assert {tomllib.loads(table)["algorithm"] for table in tables} > {name for name in ALGORITHMS if "d3rlpy" not in name}
    text = "".join(f"[[member]]\n{table}" for table in tables if "d3rlpy" not in table and "my_module" not in table)
    assert {member.algorithm for member in read_recipe(text, source="all").members} == {
        name for name in ALGORITHMS if "d3rlpy" not in name
    }


def test_each_member_is_what_it_says():
    kinds = [type(member) for member in build(["dqn", "random", "sb3.qrdqn", "fqi(regressor='Ridge')"])]
    assert kinds == [DQN, Constant, sb3.SB3Learner, FittedQ]
    table, deep = build(["tabular_q(rate=0.5, epsilon=0.2)", "dqn(hidden=[8])"], LAKE)
    assert isinstance(table, TabularQ)
    assert table.table.shape == (16, 4)
    assert isinstance(deep, DQN)


def test_options_arrive():
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


def test_there_is_one_memory_and_only_if_somebody_needs_it(monkeypatch):
    text = "[replay]\ncapacity = 77\n" + recipe_of(["dqn", "sb3.dqn", "sb3.qrdqn"]).text
    members: list[Any] = list(read_recipe(text, source="x").build(CARTPOLE, steps=10, seed=0))
    assert members[0].replay is members[1].replay is members[2].replay
    assert members[0].replay.capacity == 77
    monkeypatch.setattr("esbas.training.portfolios.build.SharedReplay", None)
    assert len(build(["random", "fqi(regressor='Ridge')"])) == 2


def test_the_random_member_draws_from_the_generator_it_is_given():
    for env, expected in ((CARTPOLE, 0.5), (PENDULUM, math.nan)):
        policy = build(["random"], env)[0].policy()
        one, again, other = ([policy.act(None, rng) for _ in range(20)] for rng in map(np.random.default_rng, (0, 0, 1)))
        assert all(env.action_space.contains(action) for action in one)
        assert one == again
        assert one != other
        assert policy.probability(None, one[0]) == pytest.approx(expected, nan_ok=True)


def test_the_seed_makes_the_difference():
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
def test_names_tell_what_differs(members, names):
    assert list(recipe_of(members).names) == names


def test_members_on_the_command_line_amount_to_a_text():
    members = ["dqn(name='a \"b\" é', rate=1e-05, double=False, hidden=(3, 4))", "sb3.qrdqn(policy_kwargs={'net_arch': [8]})"]
    recipe = recipe_of([*members, "dqn(grid={'rate': [1, 2]}, time_limit=3)"])
    tables = tomllib.loads(recipe.text)["member"]
    assert tables[0] == {"algorithm": "dqn", "name": 'a "b" é', "rate": 1e-5, "double": False, "hidden": [3, 4]}
    assert tables[1] == {"algorithm": "sb3.qrdqn", "policy_kwargs": {"net_arch": [8]}}
    assert tables[2] == {"algorithm": "dqn", "grid": {"rate": [1, 2]}, "time_limit": 3}
    assert read_recipe(recipe.text, source="again") == recipe
    assert read_recipe(recipe.text, source="again").names == recipe.names


def test_recipes_travel_between_processes():
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


def test_an_isolated_member_lives_in_a_process_of_its_own_with_a_memory_of_its_own():
    members = build(["tabular_q(isolate=True, time_limit=60)", "random"], LAKE)
    try:
        assert isinstance(members[0], Isolated)
        assert members[0].name == "tabular Q"
        assert members[0].time_limit == 60
        names = [member.name for member in members]
        records = list(esbas.run(LAKE, members, esbas.SSBAS(names), episodes=4, keep_data=False))
        assert not any(record.faults for record in records)
    finally:
        members[0].close()


READ = [
    ("a =", InvalidValueError, "p.toml must be valid TOML, but: Invalid value (at end of document): fix that line"),
    ("", InvalidValueError, "p.toml: `a portfolio has members, each under [[member]]` must hold, but got member=None: add one"),
    ("[member]\nalgorithm = 'dqn'", InvalidValueError, "each under [[member]]` must hold, but got member={'algorithm': 'dqn'}"),
    ("member = [3]", InvalidValueError, "each under [[member]]` must hold, but got member=[3]"),
    ("[[members]]", UnknownNameError, "p.toml: there is no table named 'members': did you mean 'member'?"),
    ("[replay]\ncap = 3", UnknownNameError, "p.toml: there is no option of [replay] named 'cap': did you mean 'capacity'?"),
    ("[replay]\ncapacity = 'x'", InvalidValueError, "the option 'capacity' of [replay] must be a whole number, but is 'x'"),
    (
        "replay = 3",
        InvalidValueError,
        "p.toml: `the options of the replay memory are under [replay]` must hold, but got replay=3",
    ),
    ("[[member]]\nname = 'x'", InvalidValueError, "number 2, \"x\": a member must be given 'algorithm', but was not"),
    ("[[member]]\nalgorithm = 3", InvalidValueError, "number 2: the option 'algorithm' of a member must be text, but is 3"),
    ("[[member]]\nalgorithm = 'dqm'", UnknownNameError, "number 2: there is no algorithm named 'dqm': did you mean 'dqn'?"),
]


@pytest.mark.parametrize(("text", "kind", "message"), READ)
def test_a_text_that_is_no_portfolio_gets_one_sentence(text, kind, message):
    member = "[[member]]\nalgorithm = 'random'\n"
    whole = text + "\n" + member if "replay" in text else member + text if text.startswith("[[") else text
    with pytest.raises(kind) as caught:
        read_recipe(whole, source="p.toml")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


MEMBERS = [
    ("dqn(rat=1)", UnknownNameError, "there is no option of dqn named 'rat': did you mean 'rate'?"),
    ("dqn(isolat=True)", UnknownNameError, "there is no option of dqn named 'isolat': did you mean 'isolate'?"),
    ("dqn(rate='fast')", InvalidValueError, "the option 'rate' of dqn must be a number, but is 'fast': give another value, or"),
    ("dqn(n_step=2.5)", InvalidValueError, "the option 'n_step' of dqn must be a whole number, but is 2.5"),
    ("dqn(double=1)", InvalidValueError, "the option 'double' of dqn must be true or false, but is 1"),
    ("dqn(hidden=['a'])", InvalidValueError, "the option 'hidden' of dqn must be a list, each a whole number, but is ['a']"),
    ("dqn(epsilon=[1, 0])", InvalidValueError, "must be a list of 3 (a number, a number, a whole number), but is [1, 0]"),
    ("dqn(replay=3)", InvalidValueError, "dqn must not be given 'replay', which esbas sets itself: remove it"),
    ("sb3.dqn(buffer_size=3)", InvalidValueError, "sb3.dqn must not be given 'buffer_size', which esbas sets itself"),
    ("sb3.dqn(verbose=1)", InvalidValueError, "sb3.dqn must not be given 'verbose', which esbas sets itself: remove it"),
    ("sb3.sac(learnin_rate=1)", UnknownNameError, "no option of sb3.sac named 'learnin_rate': did you mean 'learning_rate'?"),
    ("sb3.sac(policy_kwargs=3)", InvalidValueError, "the option 'policy_kwargs' of sb3.sac must be a table, but is 3"),
    ("random(a=1)", UnknownNameError, "there is no option of random named 'a': it has no options"),
    ("fqi", InvalidValueError, "fqi must be given 'regressor', but was not: add regressor=..."),
    ("fqi(regressor=3)", InvalidValueError, "the option 'regressor' of fqi must be text, but is 3"),
    ("dqn(grid={'rate': 3})", InvalidValueError, "`a grid has a list of values for each option` must hold, but got rate=3"),
    ("dqn(grid={'rate': []})", InvalidValueError, "`a grid has a list of values for each option` must hold, but got rate=[]"),
    ("dqn(grid={'rat': [1]})", UnknownNameError, "there is no option of dqn named 'rat': did you mean 'rate'?"),
    ("dqn(grid=3)", InvalidValueError, "the option 'grid' of a member must be a table, but is 3"),
    (
        "dqn(rate=1, grid={'rate': [1]})",
        InvalidValueError,
        "`an option is given once, in the grid or outside of it` must hold, but got",
    ),
    ("dqn(time_limit=0)", InvalidValueError, "`time_limit > 0 seconds, or None for no limit` must hold, but got time_limit=0.0"),
    ("dqn(isolate=1)", InvalidValueError, "the option 'isolate' of a member must be true or false, but is 1"),
    ("dqn(name=3)", InvalidValueError, "number 2, \"3\": the option 'name' of a member must be text, but is 3"),
    ("dqn(name='a\\nb')", InvalidValueError, '"a\\nb": `a name is one line of text without spaces at its ends` must hold'),
    ("dqn(name='{rte}', rate=1)", UnknownNameError, "there is no option for the name named 'rte': did you mean 'rate'?"),
    ("dqn(rate=None)", InvalidValueError, "a value must be a number, text, true or false, a list or a table, but is None"),
    ("dqn(algorithm='x')", InvalidValueError, "the algorithm must be given before the parentheses: remove it from the options"),
    ("random", InvalidValueError, "the portfolio: members must have different names, but two are named 'random': rename one"),
    ("dqn(1)", InvalidValueError, "'dqn(1)' must be a name, or a name with options and plain values"),
]


@pytest.mark.parametrize(("member", "kind", "message"), MEMBERS)
def test_a_member_that_is_wrong_gets_one_sentence(member, kind, message):
    with pytest.raises(kind) as caught:
        recipe_of(["random", member])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


BUILT = [
    ("dqn(name='deep')", PENDULUM, SpaceError, 'number 2, "deep": dqn needs discrete actions, but the action space is Box('),
    ("dqn", PENDULUM, SpaceError, "remove it, or choose one of random, sb3.sac, sb3.td3, sb3.ddpg, sb3.tqc"),
    ("sb3.sac", CARTPOLE, SpaceError, "sb3.sac needs continuous actions, but the action space is Discrete(2): remove it"),
    ("tabular_q", CARTPOLE, SpaceError, "tabular_q needs discrete observations, but the observation space is Box("),
    (
        "dqn",
        make_task("Blackjack-v1"),
        SpaceError,
        'number 2, "DQN": the observation space of a replay memory must be Discrete, Box',
    ),
    (
        "dqn(rate=-1)",
        CARTPOLE,
        InvalidValueError,
        'the portfolio, [[member]] number 2, "DQN": `rate > 0` must hold, but got rate=-1.0',
    ),
    (
        "fqi(regressor='Rigde')",
        CARTPOLE,
        UnknownNameError,
        "number 2, \"FQI\": there is no regressor of scikit-learn named 'Rigde'",
    ),
    (
        "sb3.dqn(policy='Foo')",
        CARTPOLE,
        InvalidValueError,
        'number 2, "SB3 DQN" must fit the task, but ValueError: Policy Foo unknown: change',
    ),
    (
        "sb3.td3(action_noise=-1)",
        PENDULUM,
        InvalidValueError,
        'number 2, "TD3": `action_noise > 0, a standard deviation` must hold',
    ),
]


@pytest.mark.parametrize(("member", "env", "kind", "message"), BUILT)
def test_a_member_that_does_not_fit_the_task_gets_one_sentence(member, env, kind, message):
    with pytest.raises(kind) as caught:
        build(["random", member], env)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_members_that_do_not_fit_are_refused_before_anything_is_built(monkeypatch):
    monkeypatch.setattr("esbas.training.portfolios.build.SharedReplay", None)  # would fail otherwise
    with pytest.raises(SpaceError, match=r"number 2, \"SAC\": sb3\.sac needs continuous actions"):
        build(["dqn", "sb3.sac"])


def test_a_memory_that_does_not_fit_gets_one_sentence():
    text = "[replay]\ncapacity = 1_000_000_000_000\n[[member]]\nalgorithm = 'dqn'\n"
    message = (
        r"^p, \[\[member\]\] number 1, \"DQN\": a replay memory must fit into free memory, but 1,000,000,000,000 transitions need"
    )
    with pytest.raises(InvalidValueError, match=message):
        read_recipe(text, source="p").build(CARTPOLE, steps=10, seed=0)


@pytest.mark.parametrize(
    ("member", "missing", "extra"),
    [
        ("dqn", "torch", "deep"),
        ("sb3.sac", "sb3_contrib", "sb3"),
        ("fqi(regressor='Ridge')", "sklearn.base", "sklearn"),
        ("d3rlpy.cql", "d3rlpy", "d3rlpy"),
    ],
)
def test_a_missing_extra_is_named(member, missing, extra, monkeypatch):
    for module in ("dqn", "dqn_batched", "networks", "_sb3_hooks", "sb3", "fqi", "_own_generators", "_torch", "d3", "_d3_hooks"):
        monkeypatch.delitem(sys.modules, f"esbas.learners.{module}", raising=False)
        monkeypatch.delattr(f"esbas.learners.{module}", raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtraError, match=rf"^the portfolio, \[\[member\]\] number 1: .*: pip install 'esbas\[{extra}\]'$"):
        recipe_of([member])


def test_the_length_of_a_run_is_at_least_a_step():
    with pytest.raises(EsbasError, match="`steps >= 1` must hold, but got steps=0"):
        build(["random"], steps=0)


def test_what_the_learner_sets_itself_is_never_an_option():
    assert set(sb3._OURS) <= set(find_algorithm("sb3.sac").reserved)
