"""How often the intervals of `esbas.evaluation` contain the exact value, on tables whose exact values are known.

`python -m benchmarks.coverage` simulates 2,000 data sets for each of three tasks and three effective sample sizes, collected
independently or by a bandit. Simulations are vectorised over data sets and use the formulas of the package.
"""

import argparse
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esbas import seeding
from esbas.evaluation.doubly_robust import doubly_robust_terms
from esbas.evaluation.fitted_q import TransitionCounts, fitted_q, left_out
from esbas.evaluation.importance_sampling import reward_term
from esbas.evaluation.result import estimate_with_interval
from esbas.evaluation.weights import balance_log_weights, effective_sample_size

Array = NDArray[Any]
SHARES = {0.9: 0.9, 0.3: 0.3, 0.1: 0.085}
"""Effective sample sizes over n, and the limits 1 / E[w²] that lead to them: samples miss the largest weights."""
TRAJECTORIES = {0.9: 2000, 0.3: 2000, 0.1: 4000}
"""Of a data set, by effective sample size over n."""
ARMS, FOLDS, BATCH, CHUNK = 3, 5, 10, 250
ESTIMATORS = (
    *("trajectory", "trajectory, weighted", "decision", "decision, weighted"),
    *("balance", "balance, weighted", "doubly robust", "doubly robust, weighted"),
)


@dataclass(frozen=True, eq=False)
class Task:
    """A table of transitions, the policy to evaluate, and the policies that act."""

    name: str
    transitions: Array  # (S, A, S + 1): the last one is the end
    rewards: Array  # (S, A)
    start: Array  # (S,)
    horizon: int
    noise: float  # standard deviation of the rewards
    policy: Array  # (S, A)
    behaviours: Array  # (K, S, A)

    @property
    def value(self) -> float:
        """The exact value of the policy."""
        return self._expectation(self.policy, self.rewards)

    def inverse_share(self, behaviour: Array) -> float:
        """E[w²]: the limit of n over the effective sample size."""
        return self._expectation(self.policy**2 / behaviour, None)

    def _expectation(self, kernel: Array, rewards: Array | None) -> float:
        """The sum of rewards or, without them, the product of all factors."""
        values = np.zeros(len(self.start) + 1) if rewards is not None else np.ones(len(self.start) + 1)
        for _ in range(self.horizon):
            values[:-1] = (kernel * ((0 if rewards is None else rewards) + self.transitions @ values)).sum(axis=1)
        return float(self.start @ values[:-1])


Step = tuple[Array, Array, Array, Array]
"""States, actions, rewards and whether the episode still lasts, (D, n) each."""


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=2000, help="data sets of each kind")
    parser.add_argument(
        "--shares", type=float, nargs="+", choices=list(SHARES), default=list(SHARES), help="effective sample sizes / n"
    )
    parser.add_argument("--trajectories", type=int, help=f"of each data set; default: {TRAJECTORIES}")
    parser.add_argument("--seed", type=int, default=1, help="of tasks and data")
    given = parser.parse_args(arguments)
    began = time.process_time()
    print("| task | collection | ESS / n | " + " | ".join(ESTIMATORS) + " |\n|" + "---|" * (3 + len(ESTIMATORS)))
    for adaptive in (False, True):
        for name in TASKS:
            for share in given.shares:
                task, count = make_task(name, share, seed=given.seed), given.trajectories or TRAJECTORIES[share]
                covered, size = coverage(task, adaptive, sets=given.sets, trajectories=count, seed=given.seed)
                cells = [f"{100 * covered[each]:.1f}" for each in ESTIMATORS]
                print(
                    f"| {name} | {'adaptive' if adaptive else 'independent'} | {size:.2f} | " + " | ".join(cells) + " |",
                    flush=True,
                )
    print(f"\n{time.process_time() - began:.0f} s of CPU time")


def coverage(task: Task, adaptive: bool, *, sets: int, trajectories: int, seed: int) -> tuple[dict[str, float], float]:
    """The share of data sets whose interval contains the exact value, by estimator; and the mean effective sample size over n."""
    hits, sizes = dict.fromkeys(ESTIMATORS, 0), []
    for chunk in range(math.ceil(sets / CHUNK)):
        count = min(CHUNK, sets - chunk * CHUNK)
        rng = seeding.generator(seed, f"coverage, {task.name}", chunk, int(adaptive))
        arms, steps = collect(task, rng, adaptive, (count, trajectories))
        log_weights, mixture = log_weights_of(task, arms, steps)
        sizes.append(effective_sample_size(log_weights[-1]) / trajectories)
        for name, terms in all_terms(task, steps, log_weights, mixture):
            for label, weighted in ((name, False), (f"{name}, weighted", True)):
                _, low, high = estimate_with_interval(terms, weighted=weighted)
                hits[label] += int(((low <= task.value) & (task.value <= high)).sum())
    return {name: found / sets for name, found in hits.items()}, float(np.concatenate(sizes).mean())


def all_terms(task: Task, steps: list[Step], log_weights: list[Array], mixture: Array) -> Iterator[tuple[str, list[Any]]]:
    """The terms of each estimator, of all data sets at once."""
    returns = sum((rewards for _, _, rewards, _ in steps), np.zeros(()))
    yield "trajectory", [(log_weights[-1], returns)]
    rewards = [step[2] for step in steps]
    yield "decision", [reward_term(time, *pair, gamma=1.0) for time, pair in enumerate(zip(log_weights, rewards, strict=True))]
    yield "balance", [(mixture, returns)]
    values = _action_values(task, steps)
    columns = ((weights, reward, *pair) for weights, reward, pair in zip(log_weights, rewards, values, strict=True))
    yield "doubly robust", list(doubly_robust_terms(columns, gamma=1.0))


def collect(task: Task, rng: np.random.Generator, adaptive: bool, shape: tuple[int, int]) -> tuple[Array, list[Step]]:
    """Episodes of arms that are drawn at random, or chosen by UCB1 from the returns so far, for batches of episodes."""
    if not adaptive:
        arms = rng.integers(ARMS, size=shape)
        return arms, _play(task, rng, arms)
    chosen, parts, returns = [np.tile(np.arange(BATCH) % ARMS, (shape[0], 1))], list[list[Step]](), list[Array]()
    while True:
        parts.append(_play(task, rng, chosen[-1]))
        returns.append(sum((step[2] for step in parts[-1]), np.zeros(())))
        played = sum(each.shape[1] for each in chosen)
        if played >= shape[1]:
            break
        arms, values = np.concatenate(chosen, axis=1), np.concatenate(returns, axis=1)
        counts = np.stack([(arms == arm).sum(axis=1) for arm in range(ARMS)], axis=1)
        means = np.stack([np.where(arms == arm, values, 0).sum(axis=1) for arm in range(ARMS)], axis=1) / counts
        index = means + values.std(axis=1, keepdims=True) * np.sqrt(math.log(played) / (2 * counts))
        chosen.append(np.repeat(index.argmax(axis=1)[:, None], min(BATCH, shape[1] - played), axis=1))
    steps = [[np.concatenate(columns, axis=1) for columns in zip(*same, strict=True)] for same in zip(*parts, strict=True)]
    return np.concatenate(chosen, axis=1), [(states, actions, rewards, lasts) for states, actions, rewards, lasts in steps]


def _play(task: Task, rng: np.random.Generator, arms: Array) -> list[Step]:
    states, actions = task.rewards.shape
    chances = np.cumsum(task.behaviours, axis=-1).reshape(-1, actions)
    moves = np.cumsum(task.transitions, axis=-1).reshape(-1, states + 1)
    state, steps = _draw(rng, np.cumsum(task.start)[None], np.zeros_like(arms)), []
    for _ in range(task.horizon):
        lasts = state < states
        here = np.where(lasts, state, 0)
        action = _draw(rng, chances, arms * states + here)
        rewards = task.rewards[here, action] + task.noise * (rng.standard_normal(arms.shape) if task.noise else 0.0)
        steps.append((here, action, rewards * lasts, lasts))
        state = np.where(lasts, _draw(rng, moves, here * actions + action), states)
    return steps


def _draw(rng: np.random.Generator, cumulated: Array, rows: Array) -> Array:
    """A random number for each entry of `rows`, with the cumulated probabilities of that row."""
    uniform, drawn = rng.random(rows.shape), np.zeros(rows.shape, np.intp)
    for column in cumulated.T[:-1]:
        drawn += uniform > column[rows]
    return drawn


def log_weights_of(task: Task, arms: Array, steps: list[Step]) -> tuple[list[Array], Array]:
    """Log-weights up to each step against the policy that acted, and of whole trajectories against the mixture."""
    with np.errstate(divide="ignore"):
        target, behaviours = np.log(task.policy), np.log(task.behaviours)
    sums, acting, weights = np.zeros((ARMS + 1, *arms.shape)), np.arange(ARMS)[:, None, None] == arms, []
    for states, actions, _, lasts in steps:
        sums[:-1] += np.where(lasts, behaviours[:, states, actions], 0)
        sums[-1] += np.where(lasts, target[states, actions], 0)
        weights.append(sums[-1] - np.where(acting, sums[:-1], 0).sum(axis=0))
    counts = np.append(acting.sum(axis=2), np.zeros((1, len(arms)), int), axis=0)  # (K + 1, D)
    mixture = [balance_log_weights(sums[:, k].T, counts[:, k])[:, -1] for k in range(len(arms))]
    return weights, np.stack(mixture)


def _action_values(task: Task, steps: list[Step]) -> list[tuple[Array, Array]]:
    """Q(s, a) and V(s) of each step, fitted to the other folds of each data set: the columns of one large table."""
    (states, actions), (sets, count) = task.rewards.shape, steps[0][0].shape
    column = np.arange(sets)[:, None] * FOLDS + np.arange(count) % FOLDS
    kinds, columns = states * actions * (states + 1), sets * FOLDS
    counts, rewards = np.zeros(kinds * columns), np.zeros(states * actions * columns)
    ends = np.full((sets, count), states)
    following = [*(np.where(lasts, here, states) for here, _, _, lasts in steps[1:]), ends]
    for (here, action, reward, lasts), after in zip(steps, following, strict=True):
        pair = here * actions + action
        counts += np.bincount(((pair * (states + 1) + after) * columns + column)[lasts], minlength=len(counts))
        rewards += np.bincount((pair * columns + column)[lasts], reward[lasts], minlength=len(rewards))
    kind = np.arange(kinds)
    shape = -1, sets, FOLDS
    rows = kind // (states + 1), kind % (states + 1)
    table = left_out(TransitionCounts(*rows, counts.reshape(shape), rewards.reshape(shape)))
    flat = TransitionCounts(*rows, table.counts.reshape(-1, columns), table.rewards.reshape(-1, columns))
    q, v = fitted_q(flat, task.policy, gamma=1.0, iterations=task.horizon)
    return [(q[here, action, column] * lasts, v[here, column] * lasts) for here, action, _, lasts in steps]


def make_task(name: str, share: float, *, seed: int) -> Task:
    """A task whose policies act so differently that the effective sample size is about `share` of n."""
    task, rng = TASKS[name](seed), seeding.generator(seed, f"policies, {name}")
    common, policies = rng.normal(size=task.rewards.shape), []
    for _ in range(ARMS):
        other, low, high = _softmax(common + 0.6 * rng.normal(size=common.shape)), 0.0, 1.0
        for _ in range(40):
            middle = (low + high) / 2
            fits = 1 / task.inverse_share((1 - middle) * task.policy + middle * other) > SHARES[share]
            low, high = (middle, high) if fits else (low, middle)
        policies.append((1 - low) * task.policy + low * other)
    return Task(**vars(task) | {"behaviours": np.stack(policies)})


def _softmax(scores: Array) -> Array:
    powers = np.exp(scores)
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def _greedy(transitions: Array, rewards: Array, horizon: int, *, epsilon: float) -> Array:
    """The epsilon-greedy policy of the best actions at the start of an episode."""
    values, q = np.zeros(len(rewards) + 1), rewards
    for _ in range(horizon):
        q = rewards + transitions @ values
        values[:-1] = q.max(axis=1)
    policy = np.full(rewards.shape, epsilon / rewards.shape[1])
    policy[np.arange(len(policy)), q.argmax(axis=1)] += 1 - epsilon
    return policy


def _chain(seed: int) -> Task:
    """Five states in a row; 8 steps; left and right, of which 20 % go the other way; rewards at both ends."""
    del seed
    size, transitions = 5, np.zeros((5, 2, 6))
    for state in range(size):
        for action, move in enumerate((-1, 1)):
            transitions[state, action, max(state - move, 0) if state - move < size else size - 1] += 0.2
            transitions[state, action, max(state + move, 0) if state + move < size else size - 1] += 0.8
    rewards = np.zeros((size, 2))
    rewards[0], rewards[-1] = 0.2, 1.0
    policy = np.tile([0.3, 0.7], (size, 1))
    return Task("chain", transitions, rewards, np.eye(size)[2], 8, 0.0, policy, policy[None])


def _random(seed: int) -> Task:
    """Six states, three actions, random transitions, noisy rewards; an episode ends with probability 0.15, or after 12 steps."""
    rng, states, actions = seeding.generator(seed, "random table"), 6, 3
    inside = 0.85 * rng.dirichlet(np.full(states, 0.5), (states, actions))
    transitions = np.concatenate([inside, np.full((states, actions, 1), 0.15)], axis=-1)
    rewards = rng.normal(size=(states, actions))
    policy = _greedy(transitions, rewards, 12, epsilon=0.2)
    return Task("random", transitions, rewards, np.full(states, 1 / states), 12, 1.0, policy, policy[None])


def _grid(seed: int) -> Task:
    """3 x 3 fields, four directions, of which 30 % are random; each step costs 1 until the far corner; 12 steps at most."""
    del seed
    size, directions = 3, ((1, 0), (0, 1), (-1, 0), (0, -1))
    goal, transitions = size * size - 1, np.zeros((9, 4, 10))
    for state in range(size * size):
        for action in range(4):
            for number, (down, right) in enumerate(directions):
                row, column = (min(max(at + by, 0), size - 1) for at, by in zip(divmod(state, size), (down, right), strict=True))
                following = size * row + column
                transitions[state, action, size * size if following == goal else following] += 0.075 + 0.7 * (number == action)
    rewards = -np.ones((size * size, 4))
    policy = _greedy(transitions, rewards, 12, epsilon=0.2)
    return Task("grid", transitions, rewards, np.eye(size * size)[0], 12, 0.0, policy, policy[None])


TASKS = {"chain": _chain, "random": _random, "grid": _grid}


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
