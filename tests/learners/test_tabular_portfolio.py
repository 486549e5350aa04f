"""Tabular learners in portfolios."""

from importlib import resources

import gymnasium as gym
import pytest

import esbas
from esbas.errors import SpaceError
from esbas.learners import (
    DoubleQ,
    ExpectedSARSA,
    PrioritizedSweeping,
    QLambda,
    RMax,
    TabularQ,
)
from esbas.specs.portfolios.recipe import read_recipe, recipe_of

KINDS = {
    "tabular_q": TabularQ,
    "double_q": DoubleQ,
    "q_lambda": QLambda,
    "expected_sarsa": ExpectedSARSA,
}
OTHERS = {"prioritized_sweeping": PrioritizedSweeping, "r_max": RMax}
PORTFOLIO = resources.files("esbas.specs.portfolios").joinpath("tabular.toml").read_text("utf-8")


@pytest.mark.parametrize("name", KINDS)
def test_algorithms_have_their_options(name):
    text = f"{name}(learning_rate=0.3, gamma=0.9, initial=2.0, epsilon=[0.4, 0.1, 100])"
    (learner,) = recipe_of([text]).build(gym.make("FrozenLake-v1"), steps=10, seed=3)
    assert type(learner) is KINDS[name]
    assert (learner.table == 2.0).all()
    assert learner.epsilon() == 0.4


@pytest.mark.parametrize("name", OTHERS)
def test_algorithms_with_a_model_have_their_options(name):
    text = f"{name}(gamma=0.9, planning_steps=7, epsilon=[0.4, 0.1, 100])"
    (learner,) = recipe_of([text]).build(gym.make("FrozenLake-v1"), steps=10, seed=3)
    assert type(learner) is OTHERS[name]
    assert learner.planning_steps == 7
    assert learner.epsilon() == 0.4


def test_double_q_is_seeded_by_the_run():
    seeds = [
        recipe_of(["double_q"]).build(gym.make("FrozenLake-v1"), steps=10, seed=seed)[0]
        for seed in (0, 0, 1)
    ]
    states = [learner.state_dict()["rng"] for learner in seeds]
    assert states[0] == states[1] != states[2]


@pytest.mark.parametrize("name", KINDS | OTHERS)
def test_other_observations_are_refused(name):
    with pytest.raises(SpaceError, match=f"{name} needs discrete observations"):
        recipe_of([name]).build(gym.make("CartPole-v1"), steps=10, seed=0)


def test_the_portfolio_learns():
    env = gym.make("FrozenLake-v1", is_slippery=False)
    learners = read_recipe(PORTFOLIO, source="tabular").build(env, steps=6000, seed=0)
    assert {type(learner) for learner in learners} == {TabularQ, PrioritizedSweeping, RMax}
    selector = esbas.SSBAS([learner.name for learner in learners], seed=0)
    run = esbas.run(
        env, learners, selector, steps=6000, objective=esbas.total_return(), seed=0, keep_data=False
    )
    values = [record.value for record in run]
    assert sum(values[-50:]) / 50 > 0.8
    assert sum(values[:20]) / 20 < 0.5
