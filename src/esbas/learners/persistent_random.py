"""Random actions that are repeated, in any action space."""

import copy
import math
from typing import Any, Self, TypedDict, Unpack

import numpy as np

from esbas._internal import spaces
from esbas.learners.constant import Constant
from esbas.learners.ez_greedy import check_exponent, draw_repetitions
from esbas.learners.from_env import check_options, name_for, spaces_of


class PersistentRandomOptions(TypedDict, total=False):
    """The options of `PersistentRandom`."""

    zeta: float


class PersistentRandom(Constant):
    """Draws a random action and a number n, takes the action n times in a row, and so on.

    n has a zeta distribution, P(n) ∝ n^-zeta, which is heavy-tailed: most actions are taken once
    or twice, a few for long. This is the exploration of εz-greedy policies with ε = 1 (Dabney,
    Ostrovski and Barreto, 2021; see `EZGreedy`). It never learns: it is a source of data that
    single random actions would not give.

    Args:
        name: the name of the learner.
        action_space: of the environment.
        zeta: the exponent, greater than 1: the smaller, the longer the repetitions.
    """

    title = "persistent random"

    def __init__(self, name: str, *, action_space: Any, zeta: float = 2.0) -> None:
        check_exponent(zeta)
        self.action_space = action_space
        super().__init__(name, PersistentRandomPolicy(action_space, zeta))

    @classmethod
    def for_env(
        cls, env: Any, *, name: str | None = None, **options: Unpack[PersistentRandomOptions]
    ) -> Self:
        """Build the learner for an environment.

        Args:
            env: the environment, from which the action space is read.
            name: the name of the learner. Default: "persistent random", and the exponent if given.
            **options: the other arguments of the class.
        """
        _, action_space = spaces_of(env)
        check_options(cls, options)
        return cls(name_for(cls, name, options), action_space=action_space, **options)


class PersistentRandomPolicy:
    """Repeats random actions.

    What is being repeated belongs to one episode, so `start` returns a new object for each. The
    probability of an action depends on the actions before it, so there are no `log_probs`.

    Args:
        action_space: of the environment.
        zeta: the exponent, greater than 1.
    """

    def __init__(self, action_space: Any, zeta: float) -> None:
        self.action_space = action_space
        self.zeta = zeta
        self.log_prob = spaces.uniform_log_prob(action_space)  # of an action that is drawn
        # An action that is repeated has probability 1. There is no such density.
        self.log_prob_repeated = 0.0 if spaces.is_discrete(action_space) else math.nan

    def start(self) -> "PersistentRandomEpisode":
        return PersistentRandomEpisode(self)

    def act(self, observation: Any, rng: np.random.Generator) -> Any:
        """Draw the first action of an episode. Call `act` of what `start` returns for the rest."""
        return self.start().act(observation, rng)


class PersistentRandomEpisode:
    """A policy that repeats random actions, in one episode."""

    def __init__(self, policy: PersistentRandomPolicy) -> None:
        self._policy = policy
        self._repeated: Any = None  # the action that is being repeated
        self._left = 0  # how often it will be taken

    def act(self, observation: Any, rng: np.random.Generator) -> Any:
        action, _ = self.act_with_log_prob(observation, rng)
        return action

    def act_with_log_prob(self, observation: Any, rng: np.random.Generator) -> tuple[Any, float]:
        """Return an action and its log-probability (log-density), given the episode so far.

        While a discrete action is being repeated, its probability is 1. Other actions have no
        density then: NaN.
        """
        del observation
        log_prob = self._policy.log_prob_repeated
        if self._left == 0:
            self._repeated = spaces.random_action(self._policy.action_space, rng)
            self._left = draw_repetitions(self._policy.zeta, rng)
            log_prob = self._policy.log_prob
        self._left -= 1
        return copy.deepcopy(self._repeated), log_prob  # environments may change their actions
