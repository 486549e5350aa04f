"""The negotiation dialogue of the paper's Section 4: two players look for an agreement among a few options.

The functions are plain: the environment calls them as they are, the compiled experiment compiles the same ones.

A dialogue draws, in this order: the system's costs and the user's (uniform), one uniform for who starts (the user, if it is below
1/2); then for each turn of the user, its opening included and whatever it does: three uniforms for the user (accept, hang up,
concede) and, if it proposes, two uniforms (recognition error, which other option) and one normal (score) for the channel.
"""

import math

from esbas.envs.dialogue_user import sigmoid

REF_INSIST, REF_NEW_PROP, ASK_REPEAT, SYSTEM_ACCEPT, END_DIAL = 0, 1, 2, 3, 4  # the system's actions
NOTHING = -1  # no option, no rank


def next_rank(rank: int, options: int) -> int:
    """The system's next best option after the one it proposed last; its best one at first and after its worst one."""
    return (rank + 1) % options


def proposed_rank(action: int, rank: int, options: int) -> int:
    """The rank (among the system's options by cost) that a proposing action proposes."""
    return max(rank, 0) if action == REF_INSIST else next_rank(rank, options)


def agreement_reward(system_cost: float, user_cost: float, understood: bool) -> float:
    """R = 2 - ν_s - ν_u; without the 2 if the option that the system accepts is not the one that the user proposed."""
    return (2.0 if understood else 0.0) - system_cost - user_cost


def heard_option(spoken: int, options: int, error_rate: float, u_error: float, u_other: float) -> int:
    """The option understood: with probability `error_rate` one of the others, uniformly."""
    if u_error >= error_rate:
        return spoken
    other = int(u_other * (options - 1))
    return other if other < spoken else other + 1


def recognition_score(understood: bool, normal: float, right: float, wrong: float, deviation: float) -> float:
    """sigmoid(X), X ~ N(x, deviation²), where x is `right` if the option was understood and `wrong` if not."""
    return sigmoid((right if understood else wrong) + deviation * normal)


def negotiation_value(reward: float, acts: int, gamma: float) -> float:
    """γ^n R, n being the number of system acts."""
    return reward * math.pow(gamma, acts)
