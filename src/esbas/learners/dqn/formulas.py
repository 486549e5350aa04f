"""The formulas of deep Q-learning, compiled: Huber loss, double Q-learning, Retrace.

Dense and convolutional networks use them. A batch is processed in rounds. In each round,
`add_rewards` adds rewards and keeps the steps that are followed by a value, networks evaluate what
they lead to, and `bootstrap` adds these values and keeps the steps whose trace goes on. What is
kept is compacted, so networks evaluate only observations that matter.

Shared arguments: `at` (B,) are rows of the memory, `who` (B,) positions in the batch, `scales` (B,)
the weights γ^k Π c of what comes next; the first `count` of each are in use. `targets` (B,) is in
the order of the batch.
"""

import math
from typing import Any

from esbas._internal.columns import Array
from esbas._internal.compiling import compiled, inlined
from esbas.learners.count_bonus import count_bonus

_count_bonus = inlined(count_bonus)


@inlined
def huber(error: Any) -> Any:
    """Return the Huber loss (Mnih et al., 2015): e² / 2 if |e| <= 1, otherwise |e| - 1/2."""
    size = abs(error)
    return size * size / 2 if size <= 1 else size - 0.5  # NaN gives NaN


@inlined
def huber_slope(error: Any) -> Any:
    """Return the derivative of the Huber loss."""
    return error if abs(error) <= 1 else math.copysign(1.0, error)


@compiled
def losses(values: Array, targets: Array, slopes: Array) -> tuple[float, float, float]:
    """Return the mean Huber loss, value and absolute error.

    Also fill in `slopes`, (B,): the derivatives of the mean loss by the values.
    """
    loss = 0.0
    total = 0.0
    distance = 0.0
    count = len(values)
    for i in range(count):
        error = values[i] - targets[i]
        loss += huber(error)
        total += values[i]
        distance += abs(error)
        slopes[i] = huber_slope(error) / count
    return loss / count, total / count, distance / count


@inlined
def expected_value(values: Array, choosers: Array, column: int) -> tuple[float, float, int]:
    """Return the mean of `values` over the actions with the largest of `choosers`.

    Also return this largest value and the number of such actions. Both arrays are (A, ...). With
    two networks, this is double Q-learning (van Hasselt et al., 2016). NaN gives NaN.
    """
    best = choosers[0, column]
    total = values[0, column]
    ties = 1
    for action in range(1, len(choosers)):
        chooser = choosers[action, column]
        if chooser > best or chooser != chooser:
            best = chooser
            total = values[action, column]
            ties = 1
        elif chooser == best:
            total += values[action, column]
            ties += 1
        if best != best:
            return best, best, 1
    return total / ties, best, ties


@inlined
def trace_coefficient(probability: float, log_prob: float, trace_decay: float) -> float:
    """Return the coefficient λ min(1, π / μ) of a trace (Munos et al., 2016).

    It is 0 if log μ, that of the behavior, is unknown (NaN).
    """
    if probability == 0 or math.isnan(log_prob):
        return 0.0
    behavior = math.exp(log_prob)
    return trace_decay if probability >= behavior else trace_decay * probability / behavior


@compiled
def rounds_of(n_steps: int, corrected: bool) -> tuple[int, int]:
    """Return the number of rounds, and of rewards per round.

    Corrected returns bootstrap after each reward, others only at the end.
    """
    return (n_steps, 1) if corrected else (1, n_steps)


@compiled
def start(rows: Array, at: Array, who: Array, scales: Array, targets: Array) -> int:
    """Prepare the first round for these rows of the memory, (B,)."""
    for i in range(len(rows)):
        at[i] = rows[i]
        who[i] = i
        scales[i] = 1
        targets[i] = 0
    return len(rows)


@compiled
def add_rewards(
    memory: Any,
    length: int,
    gamma: Any,
    bonus: Any,
    at: Array,
    who: Array,
    scales: Array,
    targets: Array,
    count: int,
) -> int:
    """Add up to `length` discounted rewards, fewer where a segment ends.

    If `bonus` is not 0, each of them is increased by the `count_bonus` of the next observation,
    from the visits until now. Steps that terminate an episode are dropped. Return how many are
    kept.
    """
    rewards = memory.rewards
    terminated = memory.terminated
    tails = memory.tails
    codes = memory.codes
    visits = memory.visits
    kept = 0
    for i in range(count):
        row = at[i]
        scale = scales[i]
        for step in range(length):
            targets[who[i]] += scale * rewards[row]
            if bonus > 0:
                targets[who[i]] += scale * _count_bonus(bonus, visits[codes[row]])
            scale *= gamma
            if step + 1 == length or tails[row] >= 0:
                break
            row = (row + 1) % len(rewards)
        if not terminated[row]:
            at[kept] = row
            who[kept] = who[i]
            scales[kept] = scale
            kept += 1
    return kept


@compiled
def bootstrap(
    memory: Any,
    values: Array,
    choosers: Array,
    trace_decay: Any,
    last: bool,
    at: Array,
    who: Array,
    scales: Array,
    targets: Array,
    count: int,
) -> int:
    """Add the values of the next observations.

    Steps whose trace is cut, or after which a segment ends, are dropped. Return how many are kept.

    Retrace(λ) with the greedy policy π: Q(s_0, a_0) + Σ_k γ^k (Π_{i=1..k} c_i) (r_k + γ E_π
    Q(s_{k+1}, .) - Q(s_k, a_k)). The terms Q(s_0, a_0) cancel and are omitted. Q are `values` of
    the target network, (A, ...), for the observations after the rows `at`. π is greedy with
    respect to `choosers`.
    """
    actions = memory.actions
    log_probs = memory.log_probs
    tails = memory.tails
    kept = 0
    for i in range(count):
        row = at[i]
        b = who[i]
        scale = scales[i]
        expected, best, ties = expected_value(values, choosers, i)
        targets[b] += scale * expected
        if last or tails[row] >= 0:
            continue
        row = (row + 1) % len(actions)
        action = actions[row]
        probability = 1 / ties if choosers[action, i] == best else 0.0
        coefficient = trace_coefficient(probability, log_probs[row], trace_decay)
        if coefficient > 0:
            scale *= coefficient
            targets[b] -= scale * values[action, i]
            at[kept] = row
            who[kept] = b
            scales[kept] = scale
            kept += 1
    return kept
