"""Algorithms of d3rlpy in a portfolio file."""

from typing import Any

import pytest

import esbas
from esbas.errors import EsbasError, SpaceError, UnknownNameError
from esbas.specs.envs import make_env
from esbas.specs.portfolios.recipe import recipe_of

CARTPOLE, PENDULUM = make_env("CartPole-v1"), make_env("Pendulum-v1")


def build(member: str, env: Any) -> Any:
    (learner,) = recipe_of([member]).build(env, steps=100, seed=0)
    return learner


def test_members_are_built_and_play():
    quick = build(
        "d3rlpy.dqn(hidden=[8], batch_size=4, updates_per_step=0.1, "
        "options={'learning_rate': 0.001})",
        CARTPOLE,
    )
    assert quick.name == "d3rlpy dqn"
    assert (quick.batch_size, quick.updates_per_step) == (4, 0.1)
    records = list(esbas.run(CARTPOLE, [quick], esbas.ESBAS([quick.name]), episodes=3))
    assert not any(record.faults for record in records)
    assert build("d3rlpy.td3(hidden=[8], noise=0.2)", PENDULUM).name == "d3rlpy td3"


def test_one_name_stands_for_both_kinds_of_actions():
    assert {
        type(build("d3rlpy.sac(hidden=[8])", env).model).__name__ for env in (CARTPOLE, PENDULUM)
    } == {"DiscreteSAC", "SAC"}


@pytest.mark.parametrize(
    ("member", "env", "kind", "message"),
    [
        (
            "d3rlpy.dqm",
            CARTPOLE,
            UnknownNameError,
            "There is no algorithm named 'd3rlpy.dqm': did you mean 'd3rlpy.dqn'?",
        ),
        (
            "d3rlpy.dqn(batsh=3)",
            CARTPOLE,
            UnknownNameError,
            "There is no option of d3rlpy.dqn named 'batsh': did you mean 'batch_size'?",
        ),
        (
            "d3rlpy.dqn",
            PENDULUM,
            SpaceError,
            '"d3rlpy dqn": d3rlpy.dqn needs discrete actions, but the action space is Box(',
        ),
        (
            "d3rlpy.td3",
            CARTPOLE,
            SpaceError,
            "d3rlpy.td3 needs continuous actions, but the action space is Discrete(2)",
        ),
        ("d3rlpy.dqn(options={'learning_rat': 1})", CARTPOLE, EsbasError, "learning_rat"),
        (
            "d3rlpy.dqn(noise=0.1)",
            CARTPOLE,
            EsbasError,
            "`noise` is for Box actions, but got 0.1: use `epsilon` instead.",
        ),
    ],
)
def test_a_member_that_is_wrong_raises_a_clear_error(member, env, kind, message):
    with pytest.raises(kind) as caught:
        build(member, env)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
