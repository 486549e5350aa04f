"""How often the intervals of `esbas.off_policy` contain the exact value, on small tables.

`python -m benchmarks.coverage` simulates 2,000 data sets for each of three tasks and three
effective sample sizes, collected independently or by a bandit. Simulations are vectorised over data
sets and use the formulas of the package. Shapes: D data sets of n trajectories, S states, A
actions, K policies that act.
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
from esbas.off_policy.doubly_robust import doubly_robust_terms
from esbas.off_policy.fitted_q import TransitionCounts, fitted_q, left_out
from esbas.off_policy.importance_sampling import reward_term
from esbas.off_policy.result import estimate_with_interval
from esbas.off_policy.weights import balance_log_weights, effective_sample_size

Array = NDArray[Any]
SHARES = {0.9: 0.9, 0.3: 0.3, 0.1: 0.085}
"""Effective sample sizes over n, and the limits 1 / E[w²] that lead to them.

They differ because samples miss the largest weights.
"""
TRAJECTORIES = {0.9: 2000, 0.3: 2000, 0.1: 4000}
"""Of a data set, by effective sample size over n."""
ARMS = 3
FOLDS = 5
BATCH = 10
CHUNK = 250
ESTIMATORS = (
    "trajectory",
    "trajectory, weighted",
    "decision",
    "decision, weighted",
    "balance",
    "balance, weighted",
    "doubly robust",
    "doubly robust, weighted",
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
    behaviors: Array  # (K, S, A)

    @property
    def value(self) -> float:
        """The exact value of the policy."""
        return self._expectation(self.policy, self.rewards)

    def inverse_share(self, behavior: Array) -> float:
        """Return E[w²]: the limit of n over the effective sample size."""
        return self._expectation(self.policy**2 / behavior, None)

    def _expectation(self, kernel: Array, rewards: Array | None) -> float:
        """Return the expected sum of rewards or, without them, the product of all factors."""
        states = len(self.start)
        if rewards is None:
            values = np.ones(states + 1)
            rewards = np.zeros(kernel.shape)
        else:
            values = np.zeros(states + 1)
        for _ in range(self.horizon):
            values[:-1] = (kernel * (rewards + self.transitions @ values)).sum(axis=1)
        return float(self.start @ values[:-1])


Step = tuple[Array, Array, Array, Array]
"""States, actions, rewards and whether the episode still lasts, (D, n) each."""


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", type=int, default=2000, help="data sets of each kind")
    parser.add_argument(
        "--shares",
        type=float,
        nargs="+",
        choices=list(SHARES),
        default=list(SHARES),
        help="effective sample sizes / n",
    )
    parser.add_argument(
        "--trajectories", type=int, help=f"of each data set; default: {TRAJECTORIES}"
    )
    parser.add_argument("--seed", type=int, default=1, help="of tasks and data")
    given = parser.parse_args(arguments)
    began = time.process_time()
    header = ["task", "collection", "ESS / n", *ESTIMATORS]
    _print_row(header)
    print("|" + "---|" * len(header))
    for adaptive in (False, True):
        for name in TASKS:
            for share in given.shares:
                task = make_env(name, share, seed=given.seed)
                count = given.trajectories or TRAJECTORIES[share]
                covered, size = coverage(
                    task, adaptive, sets=given.sets, trajectories=count, seed=given.seed
                )
                percents = [f"{100 * covered[each]:.1f}" for each in ESTIMATORS]
                collection = "adaptive" if adaptive else "independent"
                _print_row([name, collection, f"{size:.2f}", *percents])
    print(f"\n{time.process_time() - began:.0f} s of CPU time")


def _print_row(cells: Sequence[str]) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


def coverage(
    task: Task, adaptive: bool, *, sets: int, trajectories: int, seed: int
) -> tuple[dict[str, float], float]:
    """Return the share of data sets whose interval contains the exact value, by estimator.

    The second value is the mean effective sample size over n.
    """
    hits = dict.fromkeys(ESTIMATORS, 0)
    sizes = []
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


def all_terms(
    task: Task, steps: list[Step], log_weights: list[Array], mixture: Array
) -> Iterator[tuple[str, list[Any]]]:
    """Yield the terms of each estimator, of all data sets at once."""
    returns = _returns(steps)
    yield "trajectory", [(log_weights[-1], returns)]
    decisions = []
    for time_step, (_, _, rewards, _) in enumerate(steps):
        decisions.append(reward_term(time_step, log_weights[time_step], rewards, gamma=1.0))
    yield "decision", decisions
    yield "balance", [(mixture, returns)]
    columns = []
    action_values = _action_values(task, steps)
    for weights, step, (q, v) in zip(log_weights, steps, action_values, strict=True):
        columns.append((weights, step[2], q, v))
    yield "doubly robust", list(doubly_robust_terms(columns, gamma=1.0))


def _returns(steps: list[Step]) -> Array:
    total = np.zeros(())
    for _, _, rewards, _ in steps:
        total = total + rewards
    return total


def collect(
    task: Task, rng: np.random.Generator, adaptive: bool, shape: tuple[int, int]
) -> tuple[Array, list[Step]]:
    """Play the episodes of several data sets.

    Args:
        task: the table.
        rng: draws everything.
        adaptive: whether UCB1 chooses the arms from the returns so far, for batches of episodes;
            otherwise they are drawn at random.
        shape: the number of data sets, and of episodes in each.

    Returns:
        The arms, and the steps of all episodes.
    """
    if not adaptive:
        arms = rng.integers(ARMS, size=shape)
        return arms, _play(task, rng, arms)
    sets, count = shape
    arms = np.tile(np.arange(BATCH) % ARMS, (sets, 1))  # the first batch
    batches = [_play(task, rng, arms)]
    returns = _returns(batches[0])
    while arms.shape[1] < count:
        played = arms.shape[1]
        best = _ucb1(arms, returns)
        batch = np.repeat(best[:, None], min(BATCH, count - played), axis=1)
        batches.append(_play(task, rng, batch))
        arms = np.concatenate([arms, batch], axis=1)
        returns = np.concatenate([returns, _returns(batches[-1])], axis=1)
    return arms, [
        _joined([batch[time_step] for batch in batches]) for time_step in range(task.horizon)
    ]


def _ucb1(arms: Array, returns: Array) -> Array:
    """Return the best arm of each data set, (D,), from those played so far, (D, n)."""
    counts = []
    sums = []
    for arm in range(ARMS):
        counts.append((arms == arm).sum(axis=1))
        sums.append(np.where(arms == arm, returns, 0).sum(axis=1))
    pulls = np.stack(counts, axis=1)  # (D, K)
    means = np.stack(sums, axis=1) / pulls
    spread = returns.std(axis=1, keepdims=True)
    width = np.sqrt(math.log(arms.shape[1]) / (2 * pulls))
    return np.asarray((means + spread * width).argmax(axis=1))


def _joined(steps: list[Step]) -> Step:
    """Return the same step of several batches as one."""
    states, actions, rewards, lasts = zip(*steps, strict=True)
    return (
        np.concatenate(states, axis=1),
        np.concatenate(actions, axis=1),
        np.concatenate(rewards, axis=1),
        np.concatenate(lasts, axis=1),
    )


def _play(task: Task, rng: np.random.Generator, arms: Array) -> list[Step]:
    states, actions = task.rewards.shape
    chances = np.cumsum(task.behaviors, axis=-1).reshape(-1, actions)
    moves = np.cumsum(task.transitions, axis=-1).reshape(-1, states + 1)
    state = _draw(rng, np.cumsum(task.start)[None], np.zeros_like(arms))
    steps = []
    for _ in range(task.horizon):
        lasts = state < states
        here = np.where(lasts, state, 0)
        action = _draw(rng, chances, arms * states + here)
        rewards = task.rewards[here, action]
        if task.noise:
            rewards = rewards + task.noise * rng.standard_normal(arms.shape)
        steps.append((here, action, rewards * lasts, lasts))
        state = np.where(lasts, _draw(rng, moves, here * actions + action), states)
    return steps


def _draw(rng: np.random.Generator, cumulated: Array, rows: Array) -> Array:
    """Draw a number for each entry of `rows`, with the cumulated probabilities of that row."""
    uniform = rng.random(rows.shape)
    drawn = np.zeros(rows.shape, np.intp)
    for column in cumulated.T[:-1]:
        drawn += uniform > column[rows]
    return drawn


def log_weights_of(task: Task, arms: Array, steps: list[Step]) -> tuple[list[Array], Array]:
    """Return log-weights up to each step, and of whole trajectories.

    The former are against the policy that acted, the latter against the mixture of all policies.
    """
    with np.errstate(divide="ignore"):
        target = np.log(task.policy)
        behaviors = np.log(task.behaviors)
    sums = np.zeros((ARMS + 1, *arms.shape))
    acting = np.arange(ARMS)[:, None, None] == arms
    weights = []
    for states, actions, _, lasts in steps:
        sums[:-1] += np.where(lasts, behaviors[:, states, actions], 0)
        sums[-1] += np.where(lasts, target[states, actions], 0)
        weights.append(sums[-1] - np.where(acting, sums[:-1], 0).sum(axis=0))
    counts = np.append(acting.sum(axis=2), np.zeros((1, len(arms)), int), axis=0)  # (K + 1, D)
    mixture = [balance_log_weights(sums[:, k].T, counts[:, k])[:, -1] for k in range(len(arms))]
    return weights, np.stack(mixture)


def _action_values(task: Task, steps: list[Step]) -> list[tuple[Array, Array]]:
    """Return Q(s, a) and V(s) of each step, fitted to the other folds of each data set.

    Data sets and folds are the columns of one large table.
    """
    states, actions = task.rewards.shape
    sets, count = steps[0][0].shape
    column = np.arange(sets)[:, None] * FOLDS + np.arange(count) % FOLDS
    kinds = states * actions * (states + 1)
    columns = sets * FOLDS
    counts = np.zeros(kinds * columns)
    rewards = np.zeros(states * actions * columns)
    following = [np.where(lasts, here, states) for here, _, _, lasts in steps[1:]]
    following.append(np.full((sets, count), states))  # the end
    for (here, action, reward, lasts), after in zip(steps, following, strict=True):
        pair = here * actions + action
        row = pair * (states + 1) + after
        counts += np.bincount((row * columns + column)[lasts], minlength=len(counts))
        rewards += np.bincount(
            (pair * columns + column)[lasts], reward[lasts], minlength=len(rewards)
        )
    pairs, afters = np.divmod(np.arange(kinds), states + 1)
    table = left_out(
        TransitionCounts(
            pairs,
            afters,
            counts.reshape(-1, sets, FOLDS),
            rewards.reshape(-1, sets, FOLDS),
        )
    )
    flat = TransitionCounts(
        pairs, afters, table.counts.reshape(-1, columns), table.rewards.reshape(-1, columns)
    )
    q, v = fitted_q(flat, task.policy, gamma=1.0, iterations=task.horizon)
    found = []
    for here, action, _, lasts in steps:
        found.append((q[here, action, column] * lasts, v[here, column] * lasts))
    return found


def make_env(name: str, share: float, *, seed: int) -> Task:
    """Return a task whose effective sample size is about `share` of n.

    Its policies act as differently as this takes.
    """
    task = TASKS[name](seed)
    rng = seeding.generator(seed, f"policies, {name}")
    common = rng.normal(size=task.rewards.shape)
    policies = []
    for _ in range(ARMS):
        other = _softmax(common + 0.6 * rng.normal(size=common.shape))
        low = 0.0
        high = 1.0
        for _ in range(40):
            middle = (low + high) / 2
            mixture = (1 - middle) * task.policy + middle * other
            if 1 / task.inverse_share(mixture) > SHARES[share]:
                low = middle
            else:
                high = middle
        policies.append((1 - low) * task.policy + low * other)
    return Task(**vars(task) | {"behaviors": np.stack(policies)})


def _softmax(scores: Array) -> Array:
    powers = np.exp(scores)
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def _greedy(transitions: Array, rewards: Array, horizon: int, *, epsilon: float) -> Array:
    """Return the epsilon-greedy policy of the best actions at the start of an episode."""
    values = np.zeros(len(rewards) + 1)
    q = rewards
    for _ in range(horizon):
        q = rewards + transitions @ values
        values[:-1] = q.max(axis=1)
    policy = np.full(rewards.shape, epsilon / rewards.shape[1])
    policy[np.arange(len(policy)), q.argmax(axis=1)] += 1 - epsilon
    return policy


def _chain(seed: int) -> Task:
    """Return five states in a row, with rewards at both ends, for 8 steps.

    Actions are left and right; 20 % of them go the other way.
    """
    del seed
    size = 5
    transitions = np.zeros((5, 2, 6))
    for state in range(size):
        left = max(state - 1, 0)
        right = min(state + 1, size - 1)
        for action, (meant, other) in enumerate(((left, right), (right, left))):
            transitions[state, action, other] += 0.2
            transitions[state, action, meant] += 0.8
    rewards = np.zeros((size, 2))
    rewards[0] = 0.2
    rewards[-1] = 1.0
    policy = np.tile([0.3, 0.7], (size, 1))
    return Task("chain", transitions, rewards, np.eye(size)[2], 8, 0.0, policy, policy[None])


def _random(seed: int) -> Task:
    """Return six states and three actions with random transitions and noisy rewards.

    An episode ends with probability 0.15 in each step, or after 12 steps.
    """
    rng = seeding.generator(seed, "random table")
    states = 6
    actions = 3
    inside = 0.85 * rng.dirichlet(np.full(states, 0.5), (states, actions))
    transitions = np.concatenate([inside, np.full((states, actions, 1), 0.15)], axis=-1)
    rewards = rng.normal(size=(states, actions))
    policy = _greedy(transitions, rewards, 12, epsilon=0.2)
    return Task(
        "random", transitions, rewards, np.full(states, 1 / states), 12, 1.0, policy, policy[None]
    )


def _grid(seed: int) -> Task:
    """Return 3 x 3 fields: each step costs 1 until the far corner, for 12 steps at most.

    Actions are four directions, of which 30 % are random.
    """
    del seed
    size = 3
    directions = ((1, 0), (0, 1), (-1, 0), (0, -1))
    goal = size * size - 1
    end = size * size
    transitions = np.zeros((9, 4, 10))
    for state in range(size * size):
        row, column = divmod(state, size)
        for number, (down, right) in enumerate(directions):
            next_row = min(max(row + down, 0), size - 1)
            next_column = min(max(column + right, 0), size - 1)
            following = size * next_row + next_column
            if following == goal:
                following = end
            for action in range(4):
                chance = 0.075 + 0.7 * (number == action)
                transitions[state, action, following] += chance
    rewards = -np.ones((size * size, 4))
    policy = _greedy(transitions, rewards, 12, epsilon=0.2)
    return Task("grid", transitions, rewards, np.eye(size * size)[0], 12, 0.0, policy, policy[None])


TASKS = {"chain": _chain, "random": _random, "grid": _grid}


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
