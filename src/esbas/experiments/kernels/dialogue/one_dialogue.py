"""One negotiation dialogue: the formulas of game, user, channel and features, compiled.

A dialogue has two streams of random words: one for costs, user and channel, one for exploration. Each turn has its own words.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from esbas.compiling import compiled
from esbas.envs.dialogue import features as feature_formulas
from esbas.envs.dialogue import negotiation, user
from esbas.envs.dialogue.features import NOTHING_HEARD_COST, TWO_32
from esbas.envs.dialogue.negotiation import ASK_REPEAT, END_DIAL, NOTHING, NOTHING_HEARD_SCORE, REF_NEW_PROP, SYSTEM_ACCEPT
from esbas.envs.dialogue.user import ACCEPT, PROPOSE
from esbas.kernels.counter import normal, uniform, word
from esbas.learners.epsilon_greedy import action_probability

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Integer = int | np.int64  # numba would compile another version for a literal 0

ACTIONS = len(negotiation.ACTIONS)
WORDS_PER_ANSWER = 7  # accept, hang up, concede, recognition error, other option, two for the score

# A step is a row of numbers: the base features, the turn starting at 1, 32 bits of the system's lowest cost (which identify the
# dialogue for the noise), the action, the reward, and whether the dialogue ends. A row is one cache line.
SCORE, DIFFERENCE, TIME, TURN, LOWEST, ACTION, REWARD, ENDS = range(8)
COLUMNS = 8

_accept_logit, _sigmoid = compiled(user.accept_logit), compiled(user.sigmoid)
_answer_to_proposal, _repeated_rank = compiled(user.answer_to_proposal), compiled(user.repeated_rank)
_countered_rank, _proposed_rank = compiled(user.countered_rank), compiled(negotiation.proposed_rank)
_agreement_reward, _heard_option = compiled(negotiation.agreement_reward), compiled(negotiation.heard_option)
_score_logit, _negotiation_value = compiled(negotiation.score_logit), compiled(negotiation.negotiation_value)
_time_feature, _difference_feature = compiled(feature_formulas.time_feature), compiled(feature_formulas.difference_feature)
_feature_count, _fill_features = compiled(feature_formulas.feature_count), compiled(feature_formulas.fill_features)
_scatter, _action_probability = compiled(feature_formulas.scatter), compiled(action_probability)


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
    """An algorithm of a portfolio, as numbers."""

    base: int  # number of base features: 3, or 2 without the time
    noise: int = 0  # number of noise features
    square: int = 0  # whether products are added
    seed: int = 0  # seed of its noise
    constant: int = 0  # whether it never learns nor explores
    keep: int = 0  # whether its arm is never reset


class Scratch(NamedTuple):
    """Arrays for one dialogue, allocated once since allocation is slow."""

    costs: Floats  # (2 * options,): the system's, the user's
    order: Integers  # (2 * options,): their options by increasing cost
    base: Floats  # base features of one step
    features: Floats  # (D,): all features of one step


@compiled
def new_scratch(game: Game, size: int) -> Scratch:
    """Arrays for members with at most `size` features."""
    return Scratch(np.empty(2 * game.options), np.empty(2 * game.options, np.int64), np.empty(size), np.empty(size))


@compiled
def feature_total(member: Traits) -> int:
    """The number of features of a member."""
    return _feature_count(member.base + member.noise, member.square != 0)


@compiled
def fill_row(steps: Floats, i: Integer, member: Traits, scratch: Scratch) -> None:
    """Write the features of step i for a member to `scratch.features`."""
    base, features = scratch.base, scratch.features
    for j in range(member.base):
        base[j] = steps[i, j]
    for j in range(member.noise):
        dialogue = _scatter(_scatter(0, member.seed), np.int64(steps[i, LOWEST]))
        base[member.base + j] = _scatter(_scatter(dialogue, np.int64(steps[i, TURN])), j) / TWO_32
    _fill_features(base, member.base + member.noise, member.square != 0, features)


@compiled
def play(
    key: np.uint64,
    number: Integer,
    game: Game,
    member: Traits,
    weights: Floats,  # (A, D)
    epsilon: float,
    steps: Floats,  # (N, COLUMNS)
    start: Integer,
    scratch: Scratch,
) -> tuple[int, float]:
    """Play dialogue `number` of a run and write its steps from row `start` on. Returns the number of acts and the value."""
    world, chance = word(key, 2 * number), word(key, 2 * number + 1)
    n, costs, order = game.options, scratch.costs, scratch.order  # the system's costs and order come first, then the user's
    _draw_costs(world, 0, n, costs, order)
    _draw_costs(world, n, n, costs, order)
    at = 2 * n + 1  # index of the next random word
    user_starts = uniform(world, 2 * n) < 0.5
    system_rank = user_rank = heard = spoken = NOTHING
    user_acts = turn = 0
    score, reward, action = NOTHING_HEARD_SCORE, 0.0, ASK_REPEAT  # an opening is like a repetition
    while True:
        if turn > 0 or user_starts:
            if action == ASK_REPEAT:
                user_rank = _repeated_rank(user_rank)
            else:
                system_rank = _proposed_rank(action, system_rank, n)
                offer = order[system_rank]
                gap = costs[n + offer] - costs[n + order[n + _repeated_rank(user_rank)]]
                likely = _sigmoid(_accept_logit(gap, user_acts, game.slope, game.threshold, game.patience))
                answer = _answer_to_proposal(likely, game.hang_up, uniform(world, at), uniform(world, at + 1))
                if answer != PROPOSE:
                    if answer == ACCEPT:
                        reward = _agreement_reward(costs[offer], costs[n + offer], True)
                    break
                user_rank = _countered_rank(user_rank, n, game.concede, uniform(world, at + 2))
            if turn == game.max_acts:
                break
            user_acts += 1
            spoken = order[n + user_rank]
            heard = _heard_option(spoken, n, game.error_rate, uniform(world, at + 3), uniform(world, at + 4))
            score = _sigmoid(_score_logit(heard == spoken, normal(world, at + 5), game.right, game.wrong, game.deviation))
            at += WORDS_PER_ANSWER
        i = start + turn
        turn += 1
        heard_cost = costs[heard] if heard != NOTHING else NOTHING_HEARD_COST
        steps[i, SCORE] = score
        steps[i, DIFFERENCE] = _difference_feature(heard_cost, costs[order[_proposed_rank(REF_NEW_PROP, system_rank, n)]])
        steps[i, TIME] = _time_feature(turn)
        steps[i, TURN], steps[i, LOWEST] = turn, math.floor(costs[order[0]] * TWO_32)
        if member.constant == 0 and uniform(chance, 2 * turn - 2) < epsilon:
            action = int(uniform(chance, 2 * turn - 1) * ACTIONS)
        else:
            fill_row(steps, i, member, scratch)
            action = _greedy(weights, scratch.features, feature_total(member))
        steps[i, ACTION], steps[i, REWARD], steps[i, ENDS] = action, 0.0, 0.0
        if action == SYSTEM_ACCEPT and heard != NOTHING:
            reward = _agreement_reward(costs[heard], costs[n + spoken], heard == spoken)
        if action in (SYSTEM_ACCEPT, END_DIAL):
            break
    steps[start + turn - 1, REWARD], steps[start + turn - 1, ENDS] = reward, 1.0
    return turn, _negotiation_value(reward, turn, game.gamma)


@compiled
def log_probability(
    steps: Floats,  # (N, COLUMNS)
    start: Integer,
    length: int,
    member: Traits,
    weights: Floats,  # (A, D)
    epsilon: float,
    scratch: Scratch,
) -> float:
    """The logarithm of the probability with which a member takes the actions of a dialogue, the steps from row `start` on."""
    greedy_steps, size = 0, feature_total(member)
    for i in range(start, start + length):
        fill_row(steps, i, member, scratch)
        greedy = _greedy(weights, scratch.features, size) == np.int64(steps[i, ACTION])
        if member.constant != 0 and not greedy:
            return -math.inf
        greedy_steps += greedy
    if member.constant != 0:
        return 0.0
    likely, unlikely = _action_probability(True, 1, epsilon, ACTIONS), _action_probability(False, 1, epsilon, ACTIONS)
    return greedy_steps * math.log(likely) + (length - greedy_steps) * math.log(unlikely)


@compiled
def _draw_costs(world: np.uint64, start: int, options: int, costs: Floats, order: Integers) -> None:
    """Draw the costs of a player and sort its options by cost, both from index `start` on."""
    for option in range(options):
        cost = uniform(world, start + option)
        costs[start + option] = cost
        place = option
        while place > 0 and costs[start + order[start + place - 1]] > cost:
            order[start + place] = order[start + place - 1]
            place -= 1
        order[start + place] = option


@compiled
def _greedy(weights: Floats, features: Floats, count: int) -> int:
    """The action with the largest value; the first one of equals."""
    best, chosen = -math.inf, 0
    for action in range(ACTIONS):
        value = 0.0
        for i in range(count):
            value += weights[action, i] * features[i]
        if value > best:
            best, chosen = value, action
    return chosen
