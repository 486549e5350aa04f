"""Checks the contract of a policy."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from esbas import seeding
from esbas._internal import spaces
from esbas.learner import POLICY_METHODS, Policy, RandomPolicy
from esbas.loop import play
from esbas.testing.contract import check_rules, expect


@dataclass
class PolicyCase:
    """A policy, and observations and actions that occur in an environment."""

    policy: Callable[[], Policy]
    action_space: Any
    observations: Any  # (N, ...)
    actions: Any  # (N, ...)
    draws: int


def check_policy(
    factory: Callable[[], Policy],
    env: Any,
    *,
    seed: int = 0,
    max_episode_steps: int = 100_000,
    draws: int = 2000,
) -> None:
    """Raise a ContractError unless the policy keeps the contract of `esbas.Policy`.

    The rules: it acts within the action space and draws only from the generator it is given;
    `act_with_log_prob` takes the same actions as `act`; log-probabilities are at most 0 and add up
    to probability 1 for discrete actions, are those with which the policy acts, and are the same in
    one call for a trajectory and step by step.

    Args:
        factory: called as `factory()`; returns the policy.
        env: any Gymnasium-style environment.
        seed: seed of the episode whose observations are used.
        max_episode_steps: an episode that takes longer is an error.
        draws: how many actions are drawn at each observation, to compare their frequencies with
            their probabilities. Fewer are faster and find fewer mistakes.
    """
    case = policy_case(factory, env, seed=seed, max_episode_steps=max_episode_steps, draws=draws)
    check_rules(type(factory()).__name__, POLICY_RULES, case)


def policy_case(
    factory: Callable[[], Policy], env: Any, *, seed: int, max_episode_steps: int, draws: int
) -> PolicyCase:
    """Return the policy with a few observations of an episode with random actions."""
    rng, env_seed = seeding.episode(seed, 0)
    trajectory = play(
        env,
        RandomPolicy(env.action_space),
        rng=rng,
        seed=env_seed,
        max_episode_steps=max_episode_steps,
    )
    some = slice(0, None, max(1, len(trajectory) // 8))
    return PolicyCase(
        policy=factory,
        action_space=env.action_space,
        observations=trajectory.observations[:-1][some],
        actions=trajectory.actions[some],
        draws=draws,
    )


def started(policy: Any) -> Any:
    """Return the object that acts in one episode."""
    if not hasattr(policy, "start"):
        return policy
    acting = policy.start()
    return policy if acting is None else acting


def act_once(policy: Policy, observation: Any, seed: int) -> Any:
    """Return the action of a policy in a new episode, drawn with this seed."""
    return started(policy).act(observation, seeding.generator(seed, "act"))


def _acts(case: PolicyCase) -> None:
    """A policy acts within the action space, and draws only from the generator it is given."""
    expect(callable(getattr(case.policy(), "act", None)), f"{case.policy()!r} has no `act`")
    is_inside = spaces.membership(case.action_space)
    for observation in case.observations:
        actions = [act_once(case.policy(), observation, seed) for seed in range(3)]
        again = [act_once(case.policy(), observation, seed) for seed in range(3)]
        for action in actions + again:
            expect(
                is_inside(action), f"it took action {action!r}, which is not in {case.action_space}"
            )
        for one, two in zip(actions, again, strict=True):
            expect(
                bool(np.array_equal(one, two)),
                f"it acted differently with the same generator: {actions} and {again}",
            )


def _methods_are_callable(case: PolicyCase) -> None:
    """The optional methods of a policy are methods, or missing."""
    policy = case.policy()
    for name in POLICY_METHODS:
        expect(
            not hasattr(policy, name) or callable(getattr(policy, name)),
            f"{name} is {getattr(policy, name, None)!r}",
        )


def _acts_with_log_prob(case: PolicyCase) -> None:
    """`act_with_log_prob` returns the action of `act`, with the same draws, and its probability."""
    policy = started(case.policy())
    if not hasattr(policy, "act_with_log_prob"):
        return
    for observation in case.observations:
        for seed in range(4):
            one = seeding.generator(seed, "act")
            two = seeding.generator(seed, "act")
            alone = started(case.policy()).act(observation, one)
            action, log_prob = started(case.policy()).act_with_log_prob(observation, two)
            expect(
                bool(np.array_equal(action, alone)),
                f"act_with_log_prob took {action!r} where act took {alone!r}",
            )
            expect(
                seeding.state_of(one) == seeding.state_of(two),
                "act_with_log_prob drew more or fewer random numbers than act",
            )
            number = isinstance(log_prob, float | np.floating) and log_prob != math.inf
            expect(number, f"the log-probability of {action!r} is {log_prob!r}")
            if hasattr(case.policy(), "log_probs") and not math.isnan(log_prob):
                batched = _log_probs(case.policy(), [observation], [action])[0]
                close = math.isclose(batched, log_prob, rel_tol=1e-4, abs_tol=1e-4)
                expect(
                    close,
                    f"act_with_log_prob returned {log_prob} for {action!r}, log_probs {batched}",
                )


def _gives_log_probs(case: PolicyCase) -> None:
    """Log-probabilities are one number per action, and those with which the policy acts.

    The probabilities of all discrete actions have the sum 1.
    """
    policy = case.policy()
    space = case.action_space
    if not hasattr(policy, "log_probs"):
        return
    logged = _log_probs(policy, case.observations, case.actions)
    expect(
        not np.isnan(logged).any() and not (logged == np.inf).any(), f"log_probs returned {logged}"
    )
    if not spaces.is_discrete(space):
        return
    actions = [int(space.start) + k for k in range(int(space.n))]
    for observation in case.observations:
        probabilities = np.exp(_log_probs(policy, [observation] * len(actions), actions))
        total = float(probabilities.sum())
        expect(
            abs(total - 1) < 1e-6,
            f"the probabilities {probabilities.tolist()} have the sum {total:g}",
        )
        _expect_frequencies(case, observation, actions, probabilities.tolist())


def _expect_frequencies(
    case: PolicyCase, observation: Any, actions: list[int], probabilities: list[float]
) -> None:
    rng = seeding.generator(0, "frequencies")
    policy = case.policy()
    drawn = [int(started(policy).act(observation, rng)) for _ in range(case.draws)]
    for action, probability in zip(actions, probabilities, strict=True):
        share = drawn.count(action) / case.draws
        variance = max(probability * (1 - probability), 0) / case.draws
        margin = 6 * math.sqrt(variance) + 1e-9  # exceeded by chance once in 10^8 times
        expect(
            abs(share - probability) <= margin,
            f"it took action {action} in {share:.1%} of {case.draws} draws, "
            f"with probability {probability:.4g}",
        )


def _log_probs(policy: Any, observations: Any, actions: Any) -> Any:
    logged = policy.log_probs(np.asarray(observations), np.asarray(actions))
    shape = np.shape(logged)
    expect(
        shape == (len(actions),),
        f"log_probs returned an array of shape {shape} for {len(actions)} actions",
    )
    return np.asarray(logged, np.float64)


POLICY_RULES = (_methods_are_callable, _acts, _acts_with_log_prob, _gives_log_probs)
