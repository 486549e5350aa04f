"""The formulas of deep Q-learning, compiled: Huber loss, double Q-learning, Retrace. Dense and convolutional networks use them.

A batch is processed in rounds. In each round, `add_rewards` adds rewards and keeps the steps that are followed by a value,
networks evaluate what they lead to, and `bootstrap` adds these values and keeps the steps whose trace goes on. What is kept is
compacted, so networks evaluate only observations that matter.

Shared arguments: `at` (B,) are rows of the memory, `who` (B,) positions in the batch, `scales` (B,) the weights γ^k Π c of what
comes next; the first `count` of each are in use. `targets` (B,) is in the order of the batch.
"""

import math
from typing import Any

from esbas.columns import Array
from esbas.compiling import compiled


@compiled
def huber(error: Any) -> Any:
    """The Huber loss (Mnih et al., 2015): e² / 2 if |e| <= 1, otherwise |e| - 1/2."""
    size = abs(error)
    return size * size / 2 if size <= 1 else size - 0.5  # NaN gives NaN


@compiled
def huber_slope(error: Any) -> Any:
    """The derivative of the Huber loss."""
    return error if abs(error) <= 1 else math.copysign(1.0, error)


@compiled
def losses(values: Array, targets: Array, slopes: Array) -> tuple[float, float, float]:
    """The mean Huber loss, value and absolute error; fills in the derivatives of the mean loss by the values, (B,)."""
    loss, total, distance, count = 0.0, 0.0, 0.0, len(values)
    for i in range(count):
        error = values[i] - targets[i]
        loss += huber(error)
        total += values[i]
        distance += abs(error)
        slopes[i] = huber_slope(error) / count
    return loss / count, total / count, distance / count


@compiled
def expected_value(values: Array, choosers: Array, column: int) -> tuple[float, float, int]:
    """The mean of `values` over the actions with the largest of `choosers`, this largest value, and the number of such actions.

    Both arrays are (A, ...). With two networks, this is double Q-learning (van Hasselt et al., 2016). NaN gives NaN.
    """
    best, total, ties = choosers[0, column], values[0, column], 1
    for action in range(1, len(choosers)):
        chooser = choosers[action, column]
        if chooser > best or chooser != chooser:
            best, total, ties = chooser, values[action, column], 1
        elif chooser == best:
            total += values[action, column]
            ties += 1
        if best != best:
            return best, best, 1
    return total / ties, best, ties


@compiled
def trace_coefficient(probability: float, log_prob: float, trace_decay: float) -> float:
    """The coefficient λ min(1, π / μ) of a trace (Munos et al., 2016); 0 if log μ, of the behaviour, is unknown (NaN)."""
    if probability == 0 or math.isnan(log_prob):
        return 0.0
    behaviour = math.exp(log_prob)
    return trace_decay if probability >= behaviour else trace_decay * probability / behaviour


@compiled
def rounds_of(n_step: int, corrected: bool) -> tuple[int, int]:
    """The number of rounds, and of rewards per round: corrected returns bootstrap after each reward, others at the end only."""
    return (n_step, 1) if corrected else (1, n_step)


@compiled
def start(rows: Array, at: Array, who: Array, scales: Array, targets: Array) -> int:
    """Prepare the first round for these rows of the memory, (B,)."""
    for i in range(len(rows)):
        at[i], who[i], scales[i], targets[i] = rows[i], i, 1, 0
    return len(rows)


@compiled
def add_rewards(memory: Any, length: int, gamma: Any, at: Array, who: Array, scales: Array, targets: Array, count: int) -> int:
    """Add up to `length` discounted rewards, fewer where a segment ends; steps that end an episode are dropped."""
    rewards, terminated, tails, kept = memory.rewards, memory.terminated, memory.tails, 0
    for i in range(count):
        row, scale = at[i], scales[i]
        for step in range(length):
            targets[who[i]] += scale * rewards[row]
            scale *= gamma
            if step + 1 == length or tails[row] >= 0:
                break
            row = (row + 1) % len(rewards)
        if not terminated[row]:
            at[kept], who[kept], scales[kept] = row, who[i], scale
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
    """Add the values of the next observations; steps whose trace is cut, or after which a segment ends, are dropped.

    Retrace(λ) with the greedy policy π: Q(s_0, a_0) + Σ_k γ^k (Π_{i=1..k} c_i) (r_k + γ E_π Q(s_{k+1}, .) - Q(s_k, a_k)). The
    terms Q(s_0, a_0) cancel and are omitted. Q are `values` of the target network, (A, ...), for the observations after
    the rows `at`; π is greedy with respect to `choosers`.
    """
    actions, log_probs, tails, kept = memory.actions, memory.log_probs, memory.tails, 0
    for i in range(count):
        row, b, scale = at[i], who[i], scales[i]
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
            at[kept], who[kept], scales[kept] = row, b, scale
            kept += 1
    return kept
