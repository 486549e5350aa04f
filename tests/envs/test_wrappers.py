"""Wrappers that number combinations of discrete parts."""

import gymnasium
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple

from esbas.envs import DiscreteActions, DiscreteObservations
from esbas.errors import SpaceError


class Anything(gymnasium.Env):
    def __init__(self, actions, observations):
        self.action_space = actions
        self.observation_space = observations


ACTIONS = [
    (MultiDiscrete([2, 3, 4]), 24),
    (MultiDiscrete([[2, 3], [1, 2]], start=[[1, 0], [5, -1]]), 12),
    (MultiBinary(4), 16),
    (MultiBinary((2, 2)), 16),
    (Discrete(4, start=1), 4),
    (Discrete(3), 3),
    (Tuple([Discrete(2, start=1), MultiBinary(2)]), 8),
    (Dict(hand=Tuple([Discrete(3), Discrete(2)]), turn=MultiDiscrete([2, 2])), 24),
]


@pytest.mark.parametrize(("space", "n"), ACTIONS)
def test_each_number_is_another_action(space, n):
    wrapped = DiscreteActions(Anything(space, Discrete(2)))
    actions = [wrapped.action(number) for number in range(n)]
    assert wrapped.action_space == Discrete(n)
    assert all(space.contains(action) for action in actions)
    assert len({str(action) for action in actions}) == n


def test_the_last_part_changes_fastest():
    wrapped = DiscreteActions(Anything(MultiDiscrete([2, 3], start=[5, 0]), Discrete(2)))
    assert [wrapped.action(number).tolist() for number in range(6)] == [
        [5, 0],
        [5, 1],
        [5, 2],
        [6, 0],
        [6, 1],
        [6, 2],
    ]


@pytest.mark.parametrize(("space", "n"), ACTIONS)
def test_each_observation_has_its_number(space, n):
    numbered = DiscreteActions(Anything(space, Discrete(2)))
    wrapped = DiscreteObservations(Anything(Discrete(2), space))
    assert [wrapped.observation(numbered.action(number)) for number in range(n)] == list(range(n))


def test_observations_with_several_parts_are_numbered():
    space = Dict(hand=Tuple([Discrete(3, start=1), MultiBinary(2)]), turn=Discrete(2))
    wrapped = DiscreteObservations(Anything(Discrete(2), space))
    assert wrapped.observation_space == Discrete(24)
    found = [
        wrapped.observation({"hand": (card, bits), "turn": turn})
        for card in (1, 2, 3)
        for bits in ([0, 0], [0, 1], [1, 0], [1, 1])
        for turn in (0, 1)
    ]
    assert found == list(range(24))
    cards = DiscreteObservations(gymnasium.make("Blackjack-v1"))
    first, _ = cards.reset(seed=0)
    assert (cards.observation_space.n, type(first)) == (704, int)


@pytest.mark.parametrize(
    ("wrapper", "space", "message"),
    [
        (
            DiscreteActions,
            Box(0, 1),
            "needs actions with discrete parts only, such as MultiDiscrete, but .* is Box",
        ),
        (
            DiscreteActions,
            Tuple([Discrete(2), Box(0, 1)]),
            "needs actions with discrete parts only, such as MultiDiscrete, but .* is Tuple",
        ),
        (
            DiscreteActions,
            MultiDiscrete([200, 200]),
            "must have at most 10,000 actions for DiscreteActions, but .* has 40,000",
        ),
        (DiscreteActions, MultiBinary(5000), r"has about 10\^1505: write a wrapper with the"),
        (
            DiscreteObservations,
            Dict(a=Discrete(2), b=Box(0, 1)),
            "needs observations with discrete parts only, but",
        ),
        (
            DiscreteObservations,
            MultiDiscrete([2000, 2000]),
            "must have at most 1,000,000 observations .* use FlattenObservation",
        ),
    ],
)
def test_what_cannot_be_numbered_is_refused(wrapper, space, message):
    with pytest.raises(SpaceError, match=message):
        wrapper(Anything(space, space))
