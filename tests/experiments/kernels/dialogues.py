"""The dialogue experiment with ordinary objects that draw the random numbers of the kernel."""

from typing import Any

import numpy as np

from esbas import Evidence, Trajectory, TrajectorySet
from esbas.experiments.envs import DialogueFeatures, NegotiationDialogue
from esbas.experiments.envs.dialogue.negotiation import ScoreModel, negotiation_return
from esbas.experiments.envs.dialogue.user import UserParameters
from esbas.experiments.kernels import counter
from esbas.experiments.kernels.dialogue.one_dialogue import Game
from esbas.experiments.kernels.dialogue.whole_runs import LearningProtocol
from esbas.learners import LinearFQI
from esbas.loop import play

GAME = Game(4, 25, 0.9, 0.3, *ScoreModel(), *UserParameters())
EPOCHS = (20, 20, 40, 80, 160)
PROTOCOL = LearningProtocol(np.array(EPOCHS), 0.25, 0.6, 0.05, 1e-3, 200)


class Draws:
    """The words of the kernel as a `numpy.random.Generator`.

    It has the methods that dialogues and ε-greedy policies use.
    """

    def __init__(self, key: np.uint64, *, per_turn: int = 1) -> None:
        self._key = key
        self._per_turn = per_turn
        self._next = 0

    def random(self, size: int | None = None) -> Any:
        if size is not None:
            return np.array([self._take() for _ in range(size)])
        self._next += -self._next % self._per_turn  # skip the unused words of the previous turn
        return self._take()

    def integers(self, n: int) -> int:
        return int(self._take() * n)

    def standard_normal(self) -> float:
        self._next += 2
        return counter.normal(self._key, self._next - 2)

    def _take(self) -> float:
        self._next += 1
        return counter.uniform(self._key, self._next - 1)


def play_objects(
    key: np.uint64, learners: list[Any], selector: Any
) -> tuple[list[float], list[int], list[int]]:
    env = NegotiationDialogue()
    data = TrajectorySet()
    objective = negotiation_return()
    values = []
    arms = []
    acts = []
    epoch = 0
    for number in range(sum(EPOCHS)):
        choice = selector.ask()
        if choice.epoch > epoch:
            epoch = choice.epoch
            for learner in learners:
                if not learner.stationary:
                    learner.learn(data)
        world, chance = (np.uint64(counter.word(key, 2 * number + k)) for k in range(2))
        env._np_random = Draws(world)  # type: ignore[assignment]
        arms.append([learner.name for learner in learners].index(choice.arm))
        policy = learners[arms[-1]].policy()
        rng: Any = Draws(chance, per_turn=2)
        trajectory = play(env, policy, rng=rng)
        data.append(trajectory)
        value = objective(trajectory)
        evidence = None
        if selector.wants:
            evidence = evidence_of(trajectory, value, choice.arm, learners)
        selector.tell(choice, value, evidence=evidence)
        values.append(value)
        acts.append(len(trajectory))
    return values, arms, acts


def evidence_of(trajectory: Trajectory, value: float, arm: str, learners: list[Any]) -> Evidence:
    """What the loop passes to selectors that want log-probabilities."""
    policies = {learner.name: learner.policy() for learner in learners}

    def log_probs(other: Trajectory, name: str) -> Any:
        return policies[name].log_probs(other.observations[:-1], other.actions)

    return Evidence(
        trajectory=trajectory,
        value=value,
        arm=arm,
        log_probs_of=lambda name: log_probs(trajectory, name),
        log_probs_on=log_probs,
    )


def fqi(name: str, seed: int = 0) -> LinearFQI:
    return LinearFQI(f"{name}#{seed}", DialogueFeatures(name, seed=seed), actions=5, gamma=0.9)
