"""Errors in portfolios."""

import sys
from typing import Any

import pytest

from esbas.errors import InvalidValueError, MissingExtraError, SpaceError, UnknownNameError
from esbas.specs.envs import make_env
from esbas.specs.portfolios.recipe import read_recipe, recipe_of

CARTPOLE, PENDULUM, LAKE = (
    make_env(name) for name in ("CartPole-v1", "Pendulum-v1", "FrozenLake-v1")
)


def build(
    members: list[str], env: Any = CARTPOLE, *, steps: int = 1000, seed: int = 0
) -> list[Any]:
    return list(recipe_of(members).build(env, steps=steps, seed=seed))


READ = [
    (
        "a =",
        InvalidValueError,
        "p.toml must be valid TOML, but: Invalid value (at end of document): fix that line.",
    ),
    (
        "",
        InvalidValueError,
        "p.toml: A portfolio must have learners, each under [[learner]], but got none: add one",
    ),
    (
        "[learner]\nalgorithm = 'dqn'",
        InvalidValueError,
        "each under [[learner]], but got {'algorithm': 'dqn'}",
    ),
    ("learner = [3]", InvalidValueError, "each under [[learner]], but got [3]"),
    (
        "[[learners]]",
        UnknownNameError,
        "p.toml: There is no table named 'learners': did you mean 'learner'?",
    ),
    (
        "[replay]\nbuffer = 3",
        UnknownNameError,
        "p.toml: There is no option of [replay] named 'buffer': did you mean 'buffer_size'?",
    ),
    (
        "[replay]\nbuffer_size = 'x'",
        InvalidValueError,
        "`buffer_size` of [replay] must be a whole number, but got 'x'",
    ),
    (
        "replay = 3",
        InvalidValueError,
        "p.toml: The options of the replay memory must be under [replay], but got replay = 3.",
    ),
    (
        "[[learner]]\nname = 'x'",
        InvalidValueError,
        'number 2, "x": `algorithm` of a learner is missing',
    ),
    (
        "[[learner]]\nalgorithm = 3",
        InvalidValueError,
        "number 2: `algorithm` of a learner must be text, but got 3",
    ),
    (
        "[[learner]]\nalgorithm = 'dqm'",
        UnknownNameError,
        "number 2: There is no algorithm named 'dqm': did you mean 'dqn'?",
    ),
]


@pytest.mark.parametrize(("text", "kind", "message"), READ)
def test_a_text_that_is_no_portfolio_raises_a_clear_error(text, kind, message):
    member = "[[learner]]\nalgorithm = 'random'\n"
    whole = (
        text + "\n" + member
        if "replay" in text
        else member + text
        if text.startswith("[[")
        else text
    )
    with pytest.raises(kind) as caught:
        read_recipe(whole, source="p.toml")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


MEMBERS = [
    (
        "dqn(learning_rat=1)",
        UnknownNameError,
        "There is no option of dqn named 'learning_rat': did you mean 'learning_rate'?",
    ),
    (
        "dqn(isolat=True)",
        UnknownNameError,
        "There is no option of dqn named 'isolat': did you mean 'isolate'?",
    ),
    (
        "dqn(learning_rate='fast')",
        InvalidValueError,
        "`learning_rate` of dqn must be a number, but got 'fast': give another value, or",
    ),
    (
        "dqn(n_steps=2.5)",
        InvalidValueError,
        "`n_steps` of dqn must be a whole number, but got 2.5",
    ),
    (
        "dqn(double=1)",
        InvalidValueError,
        "`double` of dqn must be true or false, but got 1",
    ),
    (
        "dqn(hidden=['a'])",
        InvalidValueError,
        "`hidden` of dqn must be a list, each a whole number, but got ['a']",
    ),
    (
        "dqn(epsilon=[1, 0])",
        InvalidValueError,
        "must be a list of 3 (a number, a number, a whole number), but got [1, 0]",
    ),
    (
        "dqn(replay=3)",
        InvalidValueError,
        "`replay` of dqn must not be given, because esbas sets it: remove it",
    ),
    (
        "sb3.dqn(buffer_size=3)",
        InvalidValueError,
        "`buffer_size` of sb3.dqn must not be given, because all learners share the replay memory",
    ),
    (
        "dqn(buffer_size=3)",
        InvalidValueError,
        "set `buffer_size` under [replay] in a portfolio file, as `esbas example` does.",
    ),
    (
        "dqn(rate=1)",
        UnknownNameError,
        "There is no option of dqn named 'rate': did you mean 'learning_rate'?",
    ),
    (
        "dqn(net_arch=[9])",
        UnknownNameError,
        "There is no option of dqn named 'net_arch': did you mean 'hidden'?",
    ),
    (
        "dqn(batch=9)",
        UnknownNameError,
        "There is no option of dqn named 'batch': did you mean 'batch_size'?",
    ),
    (
        "sb3.sac(lr=1)",
        UnknownNameError,
        "There is no option of sb3.sac named 'lr': did you mean 'learning_rate'?",
    ),
    ("sac", UnknownNameError, "There is no algorithm named 'sac': did you mean 'sb3.sac'?"),
    (
        "sb3.ppo",
        UnknownNameError,
        (
            "sb3.ppo is on-policy and can learn from its own episodes only: for discrete actions "
            "use dqn"
        ),
    ),
    ("A2C", UnknownNameError, "A2C is on-policy and can learn from its own episodes only"),
    ("sb3.recurrent_ppo", UnknownNameError, "sb3.recurrent_ppo is on-policy"),
    (
        "sb3.dqn(verbose=1)",
        InvalidValueError,
        "`verbose` of sb3.dqn must not be given, because esbas sets it: remove it",
    ),
    (
        "sb3.sac(learnin_rate=1)",
        UnknownNameError,
        "no option of sb3.sac named 'learnin_rate': did you mean 'learning_rate'?",
    ),
    (
        "sb3.sac(policy_kwargs=3)",
        InvalidValueError,
        "`policy_kwargs` of sb3.sac must be a table, but got 3",
    ),
    ("random(a=1)", UnknownNameError, "There is no option of random named 'a': it has no options"),
    ("fqi", InvalidValueError, "`regressor` of fqi is missing: add it"),
    ("fqi(regressor=3)", InvalidValueError, "`regressor` of fqi must be text, but got 3"),
    (
        "dqn(grid={'learning_rate': 3})",
        InvalidValueError,
        "`learning_rate` in a grid must be a list of values, but got 3.",
    ),
    (
        "dqn(grid={'learning_rate': []})",
        InvalidValueError,
        "`learning_rate` in a grid must be a list of values, but got [].",
    ),
    (
        "dqn(grid={'learning_rat': [1]})",
        UnknownNameError,
        "There is no option of dqn named 'learning_rat': did you mean 'learning_rate'?",
    ),
    ("dqn(grid=3)", InvalidValueError, "`grid` of a learner must be a table, but got 3"),
    (
        "dqn(learning_rate=1, grid={'learning_rate': [1]})",
        InvalidValueError,
        "`learning_rate` is given in the grid and outside of it: remove one.",
    ),
    (
        "dqn(learn_timeout=0)",
        InvalidValueError,
        "`learn_timeout` must be greater than 0 seconds, or None for no limit, but got 0.0.",
    ),
    (
        "dqn(isolate=1)",
        InvalidValueError,
        "`isolate` of a learner must be true or false, but got 1",
    ),
    (
        "dqn(name=3)",
        InvalidValueError,
        'number 2, "3": `name` of a learner must be text, but got 3',
    ),
    (
        "dqn(name='a\\nb')",
        InvalidValueError,
        '"a\\nb": `name` must be one line of text without spaces at its ends, but got',
    ),
    (
        "dqn(name='{learning_rte}', learning_rate=1)",
        UnknownNameError,
        "There is no option for the name named 'learning_rte': did you mean 'learning_rate'?",
    ),
    (
        "dqn(learning_rate=None)",
        InvalidValueError,
        "A value must be a number, text, true or false, a list or a table, but got None",
    ),
    (
        "dqn(algorithm='x')",
        InvalidValueError,
        "The algorithm must be given before the parentheses: remove it from the options.",
    ),
    (
        "random",
        InvalidValueError,
        (
            "The portfolio: Learners must have different names, but two are named 'random': rename "
            "one."
        ),
    ),
    (
        "dqn(1)",
        InvalidValueError,
        "'dqn(1)' must be a name, or a name with options and plain values",
    ),
]


@pytest.mark.parametrize(("member", "kind", "message"), MEMBERS)
def test_a_member_that_is_wrong_raises_a_clear_error(member, kind, message):
    with pytest.raises(kind) as caught:
        recipe_of(["random", member])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


BUILT = [
    (
        "dqn(name='deep')",
        PENDULUM,
        SpaceError,
        'number 2, "deep": dqn needs discrete actions, but the action space is Box(',
    ),
    (
        "dqn",
        PENDULUM,
        SpaceError,
        "remove it, or choose one of random, persistent_random, sb3.sac, sb3.td3, sb3.ddpg",
    ),
    (
        "sb3.sac",
        CARTPOLE,
        SpaceError,
        "sb3.sac needs continuous actions, but the action space is Discrete(2): remove it",
    ),
    (
        "tabular_q",
        CARTPOLE,
        SpaceError,
        "tabular_q needs discrete observations, but the observation space is Box(",
    ),
    (
        "dqn",
        make_env("Blackjack-v1"),
        SpaceError,
        (
            'number 2, "DQN": dqn needs observations that are numbers or arrays, but the '
            "observation space is Tuple(Discrete(32), "
        ),
    ),
    (
        "dqn(learning_rate=-1)",
        CARTPOLE,
        InvalidValueError,
        (
            'The portfolio, [[learner]] number 2, "DQN": `learning_rate` must be greater than 0, '
            "but got -1.0."
        ),
    ),
    (
        "fqi(regressor='Rigde')",
        CARTPOLE,
        UnknownNameError,
        "number 2, \"FQI\": There is no regressor of scikit-learn named 'Rigde'",
    ),
    (
        "sb3.dqn(policy='Foo')",
        CARTPOLE,
        InvalidValueError,
        'number 2, "SB3 DQN" must fit the environment, but ValueError: Policy Foo unknown: change',
    ),
    (
        "sb3.td3(action_noise=-1)",
        PENDULUM,
        InvalidValueError,
        (
            'number 2, "TD3": `action_noise` is a standard deviation, and must be finite and '
            "greater than 0"
        ),
    ),
]


@pytest.mark.parametrize(("member", "env", "kind", "message"), BUILT)
def test_a_member_that_does_not_fit_the_task_raises_a_clear_error(member, env, kind, message):
    with pytest.raises(kind) as caught:
        build(["random", member], env)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_members_that_do_not_fit_are_refused_before_anything_is_built(monkeypatch):
    monkeypatch.setattr("esbas.specs.portfolios.build.SharedReplay", None)  # would fail otherwise
    with pytest.raises(SpaceError, match=r"number 2, \"SAC\": sb3\.sac needs continuous actions"):
        build(["dqn", "sb3.sac"])


def test_a_memory_that_does_not_fit_raises_a_clear_error():
    text = "[replay]\nbuffer_size = 1_000_000_000_000\n[[learner]]\nalgorithm = 'dqn'\n"
    where = r"^p, \[\[learner\]\] number 1, \"DQN\": "
    message = (
        where + "A replay memory must fit into free memory, but 1,000,000,000,000 transitions need"
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
    deep = [
        f"dqn.on_pytorch.{name}"
        for name in ("batched", "generators", "networks", "pytorch", "tensors")
    ]
    others = [
        "dqn.learner",
        "fitted_q",
        "sb3.hooks",
        "sb3.learner",
        "sb3.log_probs",
        "sb3",
        "d3rlpy.hooks",
        "d3rlpy.learner",
    ]
    for module in (*deep, *others):
        monkeypatch.delitem(sys.modules, f"esbas.learners.{module}", raising=False)
        monkeypatch.delattr(f"esbas.learners.{module}", raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(
        MissingExtraError,
        match=rf"^The portfolio, \[\[learner\]\] number 1: .*: pip install 'esbas\[{extra}\]'\.$",
    ):
        recipe_of([member])


def test_pytorch_is_named_where_a_dqn_needs_it(monkeypatch):
    for module in ("batched", "networks", "pytorch"):
        monkeypatch.delitem(sys.modules, f"esbas.learners.dqn.on_pytorch.{module}", raising=False)
        monkeypatch.delattr(f"esbas.learners.dqn.on_pytorch.{module}", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    message = r"^The portfolio, \[\[learner\]\] number 1, \"DQN\": "
    message += r".* other than the CPU need PyTorch, .*: pip install 'esbas\[deep\]'\.$"
    with pytest.raises(MissingExtraError, match=message):
        recipe_of(["dqn(device='cuda')"]).build(CARTPOLE, steps=10, seed=0)
    assert (
        len(recipe_of(["dqn", "dqn(name='auto', device='auto')"]).build(CARTPOLE, steps=10, seed=0))
        == 2
    )
