"""The compiled dialogue experiment against the ordinary objects.

They agree dialogue by dialogue when both draw the same numbers.
"""

import numpy as np
import pytest

from esbas import ESBAS, Fixed, run
from esbas.experiments.envs import DialogueFeatures, NegotiationDialogue
from esbas.experiments.envs.dialogue.negotiation import negotiation_return
from esbas.experiments.kernels import counter
from esbas.experiments.kernels.dialogue.one_dialogue import Traits
from esbas.experiments.kernels.dialogue.whole_runs import learner_arrays, mean_value, whole_run
from esbas.learners import LinearFQI
from esbas.learners.linear_fqi import linear_constant
from esbas.loop import play
from experiments.kernels.dialogues import EPOCHS, GAME, PROTOCOL, fqi, play_objects


def test_a_canonical_run_equals_the_objects() -> None:
    key = counter.run_key(3, "canonical")
    learner = fqi("simple")
    values, _, acts = play_objects(key, [learner], Fixed([learner.name], epochs=EPOCHS))
    got_values, got_arms, got_acts, weights = whole_run(
        key, GAME, learner_arrays([Traits(3)], [None]), PROTOCOL
    )
    assert not got_arms.any()
    np.testing.assert_array_equal(got_acts, acts)
    np.testing.assert_allclose(got_values, values, rtol=1e-12)
    np.testing.assert_allclose(weights[0], learner.weights, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("keep", [False, True], ids=["reset", "no reset"])
def test_esbas_over_all_kinds_of_learners_equals_the_objects(keep: bool) -> None:
    key = counter.run_key(5, "esbas")
    constant = np.random.default_rng(0).normal(size=(5, 10))
    learners = [
        fqi("simple"),
        fqi("fast-2"),
        linear_constant("constant", DialogueFeatures("simple-2"), constant),
        fqi("n-2-fast", seed=7),
        fqi("n-1-simple-2", seed=8),
    ]
    names = [learner.name for learner in learners]
    selector = ESBAS(
        names, xi=0.25, scale=None, epochs=EPOCHS, stationary=["constant"] if keep else []
    )
    values, arms, acts = play_objects(key, learners, selector)
    kinds = [
        Traits(3),
        Traits(2, square=1),
        Traits(3, square=1, constant=1, keep=int(keep)),
        Traits(2, noise=2, seed=7),
        Traits(3, noise=1, square=1, seed=8),
    ]
    portfolio = learner_arrays(kinds, [None, None, constant, None, None])
    got_values, got_arms, got_acts, weights = whole_run(key, GAME, portfolio, PROTOCOL)
    np.testing.assert_array_equal(got_arms, arms)
    np.testing.assert_array_equal(got_acts, acts)
    np.testing.assert_allclose(got_values, values, rtol=1e-12)
    assert set(arms) == set(range(5))
    for k, learner in enumerate(learners):
        if isinstance(learner, LinearFQI):
            np.testing.assert_allclose(
                weights[k, :, : learner.features.size], learner.weights, rtol=1e-6, atol=1e-9
            )


def test_a_dialogue_has_the_same_draws_no_matter_which_learner_acts() -> None:
    """Two portfolios that act equally in the first, random epoch have the same dialogues."""
    key = counter.run_key(0, "same")
    first, second = (
        whole_run(key, GAME, learner_arrays([Traits(base)], [None]), PROTOCOL) for base in (2, 3)
    )
    np.testing.assert_array_equal(first[0][:20], second[0][:20])
    assert (first[0][20:] != second[0][20:]).any()
    other = whole_run(
        counter.run_key(1, "same"), GAME, learner_arrays([Traits(2)], [None]), PROTOCOL
    )
    assert (first[0][:20] != other[0][:20]).any()


def test_a_greedy_policy_earns_the_same_as_with_the_objects() -> None:
    """Other draws, the same mean."""
    rng = np.random.default_rng(1)
    weights = rng.normal(size=(5, 10))
    weights[4] = -9.0  # never ends the dialogue
    policy = linear_constant("constant", DialogueFeatures("simple-2"), weights).policy()
    env = NegotiationDialogue()
    objective = negotiation_return()
    env.reset(seed=0)
    values = np.array([objective(play(env, policy, rng=rng)) for _ in range(1500)])
    mean, deviation = mean_value(
        counter.run_key(0),
        GAME,
        learner_arrays([Traits(3, square=1, constant=1)], [weights]),
        200_000,
    )
    assert abs(values.mean() - mean) < 4 * deviation / 1500**0.5
    assert deviation == pytest.approx(values.std(), rel=0.1)


@pytest.mark.slow
def test_whole_runs_earn_the_same_as_with_the_objects() -> None:
    """ESBAS over two learners in its ordinary loop has other draws and the same mean return."""
    ordinary = np.array([_ordinary_run(seed) for seed in range(120)])
    portfolio = learner_arrays([Traits(3), Traits(2, square=1)], [None, None])
    compiled = np.array(
        [
            whole_run(counter.run_key(seed), GAME, portfolio, PROTOCOL)[0][160:].mean()
            for seed in range(4000)
        ]
    )
    assert abs(ordinary.mean() - compiled.mean()) < 4 * compiled.std() / 120**0.5
    assert ordinary.std() == pytest.approx(compiled.std(), rel=0.3)


def _ordinary_run(seed: int) -> float:
    learners = [fqi("simple"), fqi("fast-2")]
    selector = ESBAS([learner.name for learner in learners], scale=None, epochs=EPOCHS)
    going = run(
        NegotiationDialogue(),
        learners,
        selector,
        episodes=sum(EPOCHS),
        objective=negotiation_return(),
        seed=seed,
    )
    return float(np.mean([record.value for record in going][160:]))


def test_words_are_uniform_and_normal() -> None:
    key = counter.run_key(0, "words")
    uniforms = np.sort([counter.uniform(key, i) for i in range(20_000)])
    normals = np.array([counter.normal(key, i) for i in range(0, 40_000, 2)])
    # Kolmogorov and Smirnov, 1 %
    assert np.abs(uniforms - (np.arange(20_000) + 0.5) / 20_000).max() < 1.63 / 20_000**0.5
    assert abs(normals.mean()) < 0.03
    assert normals.std() == pytest.approx(1, abs=0.02)
    assert (normals**4).mean() == pytest.approx(3, abs=0.2)
