"""One negotiation dialogue: the formulas of game, user, channel and features, compiled.

A dialogue has two streams of random words: one for costs, user and channel, one for exploration.
Each turn has its own words.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from esbas._internal.compiling import compiled
from esbas.experiments.envs.dialogue import features as feature_formulas
from esbas.experiments.envs.dialogue import negotiation, user
from esbas.experiments.envs.dialogue.features import NOTHING_HEARD_COST, TWO_32
from esbas.experiments.envs.dialogue.negotiation import (
    ASK_REPEAT,
    END_DIAL,
    NOTHING,
    NOTHING_HEARD_SCORE,
    REF_NEW_PROP,
    SYSTEM_ACCEPT,
)
from esbas.experiments.envs.dialogue.user import ACCEPT, PROPOSE
from esbas.experiments.kernels.counter import normal, uniform, word
from esbas.learners.epsilon_greedy import action_probability

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Integer = int | np.int64  # numba would compile another version for a literal 0

ACTIONS = len(negotiation.ACTIONS)
WORDS_PER_ANSWER = 7  # accept, hang up, concede, recognition error, other option, two for the score

# A step is a row of numbers. A row is one cache line.
SCORE = 0  # SCORE, DIFFERENCE and TIME are the base features
DIFFERENCE = 1
TIME = 2
TURN = 3  # starts at 1
LOWEST = 4  # 32 bits of the system's lowest cost, which identify the dialogue for the noise
ACTION = 5
REWARD = 6
ENDS = 7  # whether the dialogue ends
COLUMNS = 8

_accept_logit = compiled(user.accept_logit)
_sigmoid = compiled(user.sigmoid)
_answer_to_proposal = compiled(user.answer_to_proposal)
_repeated_rank = compiled(user.repeated_rank)
_countered_rank = compiled(user.countered_rank)
_proposed_rank = compiled(negotiation.proposed_rank)
_agreement_reward = compiled(negotiation.agreement_reward)
_heard_option = compiled(negotiation.heard_option)
_score_logit = compiled(negotiation.score_logit)
_negotiation_value = compiled(negotiation.negotiation_value)
_time_feature = compiled(feature_formulas.time_feature)
_difference_feature = compiled(feature_formulas.difference_feature)
_feature_count = compiled(feature_formulas.feature_count)
_fill_features = compiled(feature_formulas.fill_features)
_scatter = compiled(feature_formulas.scatter)
_action_probability = compiled(action_probability)


class Game(NamedTuple):
    """The rules, the channel and the user."""

    options: int
    max_acts: int
    gamma: float
    error_rate: float
    right: float  # mean logit of the score if the option was understood
    wrong: float  # mean logit of the score if it was not
    deviation: float
    slope: float
    threshold: float
    patience: float
    hang_up: float
    concede: float


class Traits(NamedTuple):
    """A learner of a portfolio, as numbers."""

    base: int  # number of base features: 3, or 2 without the time
    noise: int = 0  # number of noise features
    square: int = 0  # whether products are added
    seed: int = 0  # seed of its noise
    constant: int = 0  # whether it never learns nor explores
    keep: int = 0  # whether its arm is never reset


class Scratch(NamedTuple):
    """Arrays for one dialogue, allocated once because allocation is slow."""

    costs: Floats  # (2 * options,): the system's, then the user's
    order: Integers  # (2 * options,): the options of each player by increasing cost
    base: Floats  # (D,): base features of one step
    features: Floats  # (D,): all features of one step


@compiled
def new_scratch(game: Game, size: int) -> Scratch:
    """Allocate arrays for learners with at most `size` features."""
    return Scratch(
        np.empty(2 * game.options),
        np.empty(2 * game.options, np.int64),
        np.empty(size),
        np.empty(size),
    )


@compiled
def feature_total(learner: Traits) -> int:
    """Return the number of features of a learner."""
    return _feature_count(learner.base + learner.noise, learner.square != 0)


@compiled
def fill_row(steps: Floats, i: Integer, learner: Traits, scratch: Scratch) -> None:
    """Write the features of step i for a learner to `scratch.features`."""
    base = scratch.base
    for j in range(learner.base):
        base[j] = steps[i, j]
    for j in range(learner.noise):
        dialogue = _scatter(_scatter(0, learner.seed), np.int64(steps[i, LOWEST]))
        turn = _scatter(dialogue, np.int64(steps[i, TURN]))
        base[learner.base + j] = _scatter(turn, j) / TWO_32
    count = learner.base + learner.noise
    _fill_features(base, count, learner.square != 0, scratch.features)


@compiled
def play(
    key: np.uint64,
    number: Integer,
    game: Game,
    learner: Traits,
    weights: Floats,  # (A, D)
    epsilon: float,
    steps: Floats,  # (N, COLUMNS)
    start: Integer,
    scratch: Scratch,
) -> tuple[int, float]:
    """Play dialogue `number` of a run and write its steps from row `start` on.

    Returns:
        The number of the system's acts, and the value of the dialogue.
    """
    world = word(key, 2 * number)  # the stream of costs, user and channel
    chance = word(key, 2 * number + 1)  # the stream of exploration
    n = game.options
    # The system's costs and order come first, then the user's.
    costs = scratch.costs
    order = scratch.order
    _draw_costs(world, 0, n, costs, order)
    _draw_costs(world, n, n, costs, order)
    user_starts = uniform(world, 2 * n) < 0.5
    at = 2 * n + 1  # index of the next random word
    system_rank = NOTHING
    user_rank = NOTHING
    heard = NOTHING
    spoken = NOTHING
    user_acts = 0
    turn = 0
    score = NOTHING_HEARD_SCORE
    reward = 0.0
    action = ASK_REPEAT  # the user opens a dialogue as it repeats a proposal
    while True:
        # The user acts, unless the system opens the dialogue.
        if turn > 0 or user_starts:
            if action == ASK_REPEAT:
                user_rank = _repeated_rank(user_rank)
            else:
                system_rank = _proposed_rank(action, system_rank, n)
                offer = order[system_rank]
                gap = costs[n + offer] - costs[n + order[n + _repeated_rank(user_rank)]]
                logit = _accept_logit(gap, user_acts, game.slope, game.threshold, game.patience)
                u_accept = uniform(world, at)
                u_hang_up = uniform(world, at + 1)
                answer = _answer_to_proposal(_sigmoid(logit), game.hang_up, u_accept, u_hang_up)
                if answer != PROPOSE:
                    if answer == ACCEPT:
                        reward = _agreement_reward(costs[offer], costs[n + offer], True)
                    break
                user_rank = _countered_rank(user_rank, n, game.concede, uniform(world, at + 2))
            if turn == game.max_acts:
                break
            user_acts += 1
            spoken = order[n + user_rank]
            u_error = uniform(world, at + 3)
            u_other = uniform(world, at + 4)
            heard = _heard_option(spoken, n, game.error_rate, u_error, u_other)
            noise = normal(world, at + 5)
            logit = _score_logit(heard == spoken, noise, game.right, game.wrong, game.deviation)
            score = _sigmoid(logit)
            at += WORDS_PER_ANSWER

        # The system observes and acts.
        i = start + turn
        turn += 1
        heard_cost = costs[heard] if heard != NOTHING else NOTHING_HEARD_COST
        next_cost = costs[order[_proposed_rank(REF_NEW_PROP, system_rank, n)]]
        steps[i, SCORE] = score
        steps[i, DIFFERENCE] = _difference_feature(heard_cost, next_cost)
        steps[i, TIME] = _time_feature(turn)
        steps[i, TURN] = turn
        steps[i, LOWEST] = math.floor(costs[order[0]] * TWO_32)
        if learner.constant == 0 and uniform(chance, 2 * turn - 2) < epsilon:
            action = int(uniform(chance, 2 * turn - 1) * ACTIONS)
        else:
            fill_row(steps, i, learner, scratch)
            action = _greedy(weights, scratch.features, feature_total(learner))
        steps[i, ACTION] = action
        steps[i, REWARD] = 0.0
        steps[i, ENDS] = 0.0
        if action == SYSTEM_ACCEPT and heard != NOTHING:
            reward = _agreement_reward(costs[heard], costs[n + spoken], heard == spoken)
        if action in (SYSTEM_ACCEPT, END_DIAL):
            break
    steps[start + turn - 1, REWARD] = reward
    steps[start + turn - 1, ENDS] = 1.0
    return turn, _negotiation_value(reward, turn, game.gamma)


@compiled
def log_probability(
    steps: Floats,  # (N, COLUMNS)
    start: Integer,
    length: int,
    learner: Traits,
    weights: Floats,  # (A, D)
    epsilon: float,
    scratch: Scratch,
) -> float:
    """Return the log-probability with which a learner takes all actions of a dialogue.

    The dialogue consists of the `length` steps from row `start` on.
    """
    greedy_steps = 0
    size = feature_total(learner)
    for i in range(start, start + length):
        fill_row(steps, i, learner, scratch)
        greedy = _greedy(weights, scratch.features, size) == np.int64(steps[i, ACTION])
        if learner.constant != 0 and not greedy:
            return -math.inf
        greedy_steps += greedy
    if learner.constant != 0:
        return 0.0
    likely = _action_probability(True, 1, epsilon, ACTIONS)
    unlikely = _action_probability(False, 1, epsilon, ACTIONS)
    return greedy_steps * math.log(likely) + (length - greedy_steps) * math.log(unlikely)


@compiled
def _draw_costs(world: np.uint64, start: int, options: int, costs: Floats, order: Integers) -> None:
    """Draw the costs of a player and sort its options by cost, both from index `start` on."""
    for option in range(options):
        cost = uniform(world, start + option)
        costs[start + option] = cost
        rank = option
        while rank > 0 and costs[start + order[start + rank - 1]] > cost:
            order[start + rank] = order[start + rank - 1]
            rank -= 1
        order[start + rank] = option


@compiled
def _greedy(weights: Floats, features: Floats, count: int) -> int:
    """Return the action with the largest value; the first one of equals."""
    best = -math.inf
    chosen = 0
    for action in range(ACTIONS):
        value = 0.0
        for i in range(count):
            value += weights[action, i] * features[i]
        if value > best:
            best = value
            chosen = action
    return chosen
