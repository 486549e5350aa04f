"""The user of the negotiation dialogue: a stationary model with parameters that can be fitted from logged dialogues.

The paper (Laroche & Féraud, ICLR 2018) built its user by imitation learning from human data that were never published. This one
is ours: five numbers, whose defaults reproduce the level of the paper's results. The functions are plain: the user model calls
them as they are, the compiled experiment compiles the same ones.
"""

import math

PROPOSE, ACCEPT, HANG_UP = 0, 1, 2  # what a user can do


def sigmoid(x: float) -> float:
    """1 / (1 + e^-x), without overflow."""
    e = math.exp(-abs(x))
    return 1.0 / (1.0 + e) if x >= 0.0 else e / (1.0 + e)


def accept_probability(gap: float, acts: int, slope: float, threshold: float, patience: float) -> float:
    """How likely the user accepts an option that costs it `gap` more than its own last proposal, after `acts` acts of its own."""
    return sigmoid(slope * (threshold + patience * acts - gap))


def answer_to_proposal(accept: float, hang_up: float, u_accept: float, u_hang_up: float) -> int:
    """Accept with probability `accept`; otherwise hang up with probability `hang_up`; otherwise propose something else."""
    if u_accept < accept:
        return ACCEPT
    return HANG_UP if u_hang_up < hang_up else PROPOSE


def repeated_rank(rank: int) -> int:
    """The rank (among the user's options by cost) that it proposes when it opens or is asked to repeat: its best one at first."""
    return max(rank, 0)


def countered_rank(rank: int, options: int, concede: float, u_concede: float) -> int:
    """The rank that the user counter-proposes: its best one at first, then with probability `concede` the next, wrapping."""
    if rank < 0:
        return 0
    return (rank + 1) % options if u_concede < concede else rank
