"""The compiled dialogue experiment against the ordinary objects: dialogue by dialogue when both draw the same numbers."""

from typing import Any

import numpy as np
import pytest

from esbas import ESBAS, Fixed, TrajectorySet, run
from esbas.envs import DialogueFeatures, NegotiationDialogue
from esbas.envs.dialogue.negotiation import ScoreModel, negotiation_return
from esbas.envs.dialogue.user import UserParameters
from esbas.kernels import counter
from esbas.kernels.dialogue.one_dialogue import Game, Traits
from esbas.kernels.dialogue.whole_runs import LearningProtocol, mean_value, members, whole_run
from esbas.learners import LinearFQI
from esbas.learners.linear_fqi import linear_constant
from esbas.runner import play

GAME = Game(4, 25, 0.9, 0.3, *ScoreModel(), *UserParameters())
EPOCHS = (20, 20, 40, 80, 160)
PROTOCOL = LearningProtocol(np.array(EPOCHS), 0.25, 0.6, 0.05, 1e-3, 200)


class Draws:
    """The words of the kernel as a `numpy.random.Generator`, with the methods that dialogues and ε-greedy policies use."""

    def __init__(self, key: np.uint64, *, per_turn: int = 1) -> None:
        self._key, self._per_turn, self._next = key, per_turn, 0

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


def play_objects(key: np.uint64, learners: list[Any], selector: Any) -> tuple[list[float], list[int], list[int]]:
    env, data, objective = NegotiationDialogue(), TrajectorySet(), negotiation_return()
    values, arms, acts, epoch = [], [], [], 0
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
        trajectory = play(env, learners[arms[-1]].policy(), rng=Draws(chance, per_turn=2))  # type: ignore[arg-type]
        data.append(trajectory)
        selector.tell(choice, objective(trajectory))
        values.append(objective(trajectory))
        acts.append(len(trajectory))
    return values, arms, acts


def fqi(name: str, seed: int = 0) -> LinearFQI:
    return LinearFQI(f"{name}#{seed}", DialogueFeatures(name, seed=seed), actions=5, gamma=0.9)


def test_a_canonical_run_equals_the_objects() -> None:
    key, learner = counter.run_key(3, "canonical"), fqi("simple")
    values, _, acts = play_objects(key, [learner], Fixed([learner.name], epochs=EPOCHS))
    got_values, got_arms, got_acts, weights = whole_run(key, GAME, members([Traits(3)], [None]), PROTOCOL)
    assert not got_arms.any()
    np.testing.assert_array_equal(got_acts, acts)
    np.testing.assert_allclose(got_values, values, rtol=1e-12)
    np.testing.assert_allclose(weights[0], learner.weights, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("keep", [False, True], ids=["reset", "no reset"])
def test_esbas_over_all_kinds_of_members_equals_the_objects(keep: bool) -> None:
    key, constant = counter.run_key(5, "esbas"), np.random.default_rng(0).normal(size=(5, 10))
    learners = [
        fqi("simple"),
        fqi("fast-2"),
        linear_constant("constant", DialogueFeatures("simple-2"), constant),
        fqi("n-2-fast", seed=7),
        fqi("n-1-simple-2", seed=8),
    ]
    names = [learner.name for learner in learners]
    selector = ESBAS(names, xi=0.25, scale=None, epochs=EPOCHS, stationary=["constant"] if keep else [])
    values, arms, acts = play_objects(key, learners, selector)
    kinds = [
        Traits(3),
        Traits(2, square=1),
        Traits(3, square=1, constant=1, keep=int(keep)),
        Traits(2, noise=2, seed=7),
        Traits(3, noise=1, square=1, seed=8),
    ]
    portfolio = members(kinds, [None, None, constant, None, None])
    got_values, got_arms, got_acts, weights = whole_run(key, GAME, portfolio, PROTOCOL)
    np.testing.assert_array_equal(got_arms, arms)
    np.testing.assert_array_equal(got_acts, acts)
    np.testing.assert_allclose(got_values, values, rtol=1e-12)
    assert set(arms) == set(range(5))
    for k, learner in enumerate(learners):
        if isinstance(learner, LinearFQI):
            np.testing.assert_allclose(weights[k, :, : learner.features.size], learner.weights, rtol=1e-6, atol=1e-9)


def test_a_dialogue_has_the_same_draws_no_matter_which_algorithm_acts() -> None:
    """Common random numbers: two portfolios that act equally in the first, random epoch have the same dialogues."""
    key = counter.run_key(0, "same")
    first, second = (whole_run(key, GAME, members([Traits(base)], [None]), PROTOCOL) for base in (2, 3))
    np.testing.assert_array_equal(first[0][:20], second[0][:20])
    assert (first[0][20:] != second[0][20:]).any()
    other = whole_run(counter.run_key(1, "same"), GAME, members([Traits(2)], [None]), PROTOCOL)
    assert (first[0][:20] != other[0][:20]).any()


def test_a_greedy_policy_earns_the_same_as_with_the_objects() -> None:
    """Other draws, the same mean."""
    rng = np.random.default_rng(1)
    weights = rng.normal(size=(5, 10))
    weights[4] = -9.0  # never ends the dialogue
    policy = linear_constant("constant", DialogueFeatures("simple-2"), weights).policy()
    env, objective = NegotiationDialogue(), negotiation_return()
    env.reset(seed=0)
    values = np.array([objective(play(env, policy, rng=rng)) for _ in range(1500)])
    mean, deviation = mean_value(counter.run_key(0), GAME, members([Traits(3, square=1, constant=1)], [weights]), 200_000)
    assert abs(values.mean() - mean) < 4 * deviation / 1500**0.5
    assert deviation == pytest.approx(values.std(), rel=0.1)


@pytest.mark.slow
def test_whole_runs_earn_the_same_as_with_the_objects() -> None:
    """ESBAS over two learners in its ordinary loop: other draws, the same mean return in the last epoch."""
    ordinary = np.array([_ordinary_run(seed) for seed in range(120)])
    portfolio = members([Traits(3), Traits(2, square=1)], [None, None])
    compiled = np.array([whole_run(counter.run_key(seed), GAME, portfolio, PROTOCOL)[0][160:].mean() for seed in range(4000)])
    assert abs(ordinary.mean() - compiled.mean()) < 4 * compiled.std() / 120**0.5
    assert ordinary.std() == pytest.approx(compiled.std(), rel=0.3)


def _ordinary_run(seed: int) -> float:
    learners = [fqi("simple"), fqi("fast-2")]
    selector = ESBAS([learner.name for learner in learners], scale=None, epochs=EPOCHS)
    going = run(NegotiationDialogue(), learners, selector, episodes=sum(EPOCHS), objective=negotiation_return(), seed=seed)
    return float(np.mean([record.value for record in going][160:]))


def test_words_are_uniform_and_normal() -> None:
    key = counter.run_key(0, "words")
    uniforms = np.sort([counter.uniform(key, i) for i in range(20_000)])
    normals = np.array([counter.normal(key, i) for i in range(0, 40_000, 2)])
    assert np.abs(uniforms - (np.arange(20_000) + 0.5) / 20_000).max() < 1.63 / 20_000**0.5  # Kolmogorov and Smirnov, 1 %
    assert abs(normals.mean()) < 0.03
    assert normals.std() == pytest.approx(1, abs=0.02)
    assert (normals**4).mean() == pytest.approx(3, abs=0.2)
