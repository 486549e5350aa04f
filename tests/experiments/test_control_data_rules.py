"""Rules for the value of data: each sees what it is meant to see, and finds the best arm otherwise."""

import numpy as np
import pytest

import esbas
from esbas.experiments.control.data_rules import Coverage, FallingShare, Improvement, Upside


def play(bandit, rewards, rounds):
    """The arms that were chosen, for rewards that are the same in every round."""
    chosen = []
    for _ in range(rounds):
        chosen.append(bandit.choose())
        bandit.update(chosen[-1], rewards[chosen[-1]] + bandit.rng.normal(scale=0.01))
    return np.array(chosen)


@pytest.mark.parametrize("rule", [FallingShare, Upside, Improvement])
def test_the_best_arm_is_found(rule):
    assert (play(rule(3, rng=np.random.default_rng(0)), [0.0, 1.0, 0.2], 400)[200:] == 1).mean() > 0.8


def test_a_falling_share_is_uniform():
    runs = [play(FallingShare(3, rng=np.random.default_rng(seed)), [0.0, 1.0, 0.2], 400) for seed in range(4)]
    expected = 4 * sum(min(1.0, np.sqrt(0.9 / t)) for t in range(1, 400)) * 2 / 3
    assert 0.7 * expected < (np.array(runs) != 1).sum() < 1.6 * expected  # some of these choices are not uniform


def test_rare_large_rewards_make_small_differences_matter_less():
    def late_share(rule):
        bandit, chosen = rule(2, rng=np.random.default_rng(1)), []
        for t in range(300):
            k = bandit.choose()
            chosen.append(k)
            bandit.update(k, 100.0 if t == 40 else 0.1 * k + bandit.rng.normal(scale=0.01))
        return np.mean(np.array(chosen[60:]) == 0)

    assert late_share(Upside) > late_share(esbas.KalmanThompson) + 0.05


def test_an_arm_that_improves_the_others_gets_a_bonus():
    bandit, level, chosen = Improvement(2, rng=np.random.default_rng(0)), 0.0, []
    for _ in range(400):
        k = bandit.choose()
        chosen.append(k)
        bandit.update(k, (level if k == 0 else level - 1.0) + bandit.rng.normal(scale=0.05))
        level += 0.5 if k == 1 else 0.0  # arm 1 always earns less, and teaches both
    assert np.mean(np.array(chosen[100:]) == 1) > 0.5


def test_coverage_prefers_arms_that_visit_new_states_until_they_are_known():
    def shares(known):
        selector, rng = Coverage(["left", "right"], known=known, seed=0), np.random.default_rng(0)
        chosen = []
        for _ in range(600):
            choice = selector.ask()
            states = rng.integers(0, 3, 10) if choice.arm == "left" else rng.integers(0, 200, 10)
            trajectory = esbas.Trajectory(
                observations=np.append(states, 0),
                actions=np.zeros(10, int),
                rewards=np.zeros(10),
                terminated=True,
                truncated=False,
            )
            value = 1.0 if choice.arm == "left" else 0.0
            evidence = esbas.Evidence(trajectory=trajectory, value=value, arm=choice.arm, log_probs_of={})
            selector.tell(choice, value, evidence=evidence)
            chosen.append(choice.arm == "right")
        return np.mean(chosen[20:200]), np.mean(chosen[400:])

    early, late = shares(known=2)
    assert early > 0.3
    assert late < 0.1
    assert shares(known=0)[0] < 0.15  # nothing is ever new
    assert Coverage(["a", "b"]).ask(among=["b"]).arm == "b"
