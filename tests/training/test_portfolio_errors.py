"""Errors in portfolios."""

import sys
from typing import Any

import pytest

from esbas.errors import InvalidValueError, MissingExtraError, SpaceError, UnknownNameError
from esbas.training.portfolios.recipe import read_recipe, recipe_of
from esbas.training.tasks import make_task

CARTPOLE, PENDULUM, LAKE = (make_task(name) for name in ("CartPole-v1", "Pendulum-v1", "FrozenLake-v1"))


def build(members: list[str], env: Any = CARTPOLE, *, steps: int = 1000, seed: int = 0) -> list[Any]:
    return list(recipe_of(members).build(env, steps=steps, seed=seed))


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
def test_a_text_that_is_no_portfolio_raises_a_clear_error(text, kind, message):
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
    ("sb3.dqn(buffer_size=3)", InvalidValueError, "sb3.dqn must not be given 'buffer_size': the replay memory is shared by all"),
    ("dqn(buffer_size=3)", InvalidValueError, "set capacity under [replay] in a portfolio file, as esbas train --example does"),
    ("dqn(learning_rate=1)", UnknownNameError, "there is no option of dqn named 'learning_rate': did you mean 'rate'?"),
    ("dqn(net_arch=[9])", UnknownNameError, "there is no option of dqn named 'net_arch': did you mean 'hidden'?"),
    ("dqn(batch_size=9)", UnknownNameError, "there is no option of dqn named 'batch_size': did you mean 'batch'?"),
    ("sb3.sac(lr=1)", UnknownNameError, "there is no option of sb3.sac named 'lr': did you mean 'learning_rate'?"),
    ("sac", UnknownNameError, "there is no algorithm named 'sac': did you mean 'sb3.sac'?"),
    ("sb3.ppo", UnknownNameError, "sb3.ppo is on-policy and can learn from its own only: for discrete actions use dqn"),
    ("A2C", UnknownNameError, "A2C is on-policy and can learn from its own only"),
    ("sb3.recurrent_ppo", UnknownNameError, "sb3.recurrent_ppo is on-policy"),
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
def test_a_member_that_is_wrong_raises_a_clear_error(member, kind, message):
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
        'number 2, "DQN": dqn needs observations that are numbers or arrays, but the observation space is Tuple(Discrete(32), ',
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
def test_a_member_that_does_not_fit_the_task_raises_a_clear_error(member, env, kind, message):
    with pytest.raises(kind) as caught:
        build(["random", member], env)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_members_that_do_not_fit_are_refused_before_anything_is_built(monkeypatch):
    monkeypatch.setattr("esbas.training.portfolios.build.SharedReplay", None)  # would fail otherwise
    with pytest.raises(SpaceError, match=r"number 2, \"SAC\": sb3\.sac needs continuous actions"):
        build(["dqn", "sb3.sac"])


def test_a_memory_that_does_not_fit_raises_a_clear_error():
    text = "[replay]\ncapacity = 1_000_000_000_000\n[[member]]\nalgorithm = 'dqn'\n"
    message = (
        r"^p, \[\[member\]\] number 1, \"DQN\": a replay memory must fit into free memory, but 1,000,000,000,000 transitions need"
    )
    with pytest.raises(InvalidValueError, match=message):
        read_recipe(text, source="p").build(CARTPOLE, steps=10, seed=0)


@pytest.mark.parametrize(
    ("member", "missing", "extra"),
    [
        ("sb3.sac", "sb3_contrib", "sb3"),
        ("fqi(regressor='Ridge')", "sklearn.base", "sklearn"),
        ("d3rlpy.cql", "d3rlpy", "d3rlpy"),
    ],
)
def test_a_missing_extra_is_named(member, missing, extra, monkeypatch):
    deep = (f"deep.{name}" for name in ("batched", "dqn", "generators", "networks", "pytorch", "tensors"))
    for module in (*deep, "fqi", "sb3.hooks", "sb3.learner", "sb3.log_probs", "sb3", "d3.hooks", "d3.learner"):
        monkeypatch.delitem(sys.modules, f"esbas.learners.{module}", raising=False)
        monkeypatch.delattr(f"esbas.learners.{module}", raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtraError, match=rf"^the portfolio, \[\[member\]\] number 1: .*: pip install 'esbas\[{extra}\]'$"):
        recipe_of([member])


def test_pytorch_is_named_where_a_dqn_needs_it(monkeypatch):
    for module in ("batched", "networks", "pytorch"):
        monkeypatch.delitem(sys.modules, f"esbas.learners.deep.{module}", raising=False)
        monkeypatch.delattr(f"esbas.learners.deep.{module}", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    message = (
        r"^the portfolio, \[\[member\]\] number 1, \"DQN\": .* other than the CPU need PyTorch, .*: pip install 'esbas\[deep\]'$"
    )
    with pytest.raises(MissingExtraError, match=message):
        recipe_of(["dqn(device='cuda')"]).build(CARTPOLE, steps=10, seed=0)
    assert len(recipe_of(["dqn", "dqn(name='auto', device='auto')"]).build(CARTPOLE, steps=10, seed=0)) == 2
