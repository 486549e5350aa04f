"""The user of the negotiation dialogue: a stationary model whose parameters can be fitted to logged dialogues.

The paper (Laroche & Féraud, ICLR 2018) built its user by imitation learning from human data that were never published. This one
is ours: five numbers, whose defaults reproduce the level of the paper's results. The functions are plain and call no others: the
user model calls them as they are, the compiled experiment compiles the same ones.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, Self

import numpy as np

from esbas.envs.dialogue.fit import fit_user
from esbas.envs.dialogue.log import Dialogue
from esbas.errors import require

PROPOSE, ACCEPT, HANG_UP = 0, 1, 2  # what a user can do


def sigmoid(x: float) -> float:
    """1 / (1 + e^-x), without overflow."""
    e = math.exp(-abs(x))
    return 1.0 / (1.0 + e) if x >= 0.0 else e / (1.0 + e)


def accept_logit(gap: float, acts: int, slope: float, threshold: float, patience: float) -> float:
    """The log-odds that the user accepts an option that costs it `gap` more than its last proposal (or its best option)."""
    return slope * (threshold + patience * acts - gap)


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


class UserParameters(NamedTuple):
    """What distinguishes one user from another."""

    slope: float = 4.0  # how sharply acceptance depends on the gap between the system's proposal and its own
    threshold: float = 0.38  # the gap that it accepts half of the time before its first act
    patience: float = 0.05  # by how much the threshold grows with each of its acts
    hang_up: float = 0.03  # probability, each time that it does not accept
    concede: float = 0.1  # probability of moving on to its next best option when it counter-proposes


class UserAct(NamedTuple):
    """What a user does."""

    kind: int  # PROPOSE, ACCEPT or HANG_UP
    option: int = -1  # if it proposes


class User(Protocol):
    """Any stationary user can take part: it must behave alike in every dialogue with the same costs and course."""

    def start(self, costs: Sequence[float]) -> None:
        """A new dialogue; the user's cost of each option."""
        ...

    def answer(self, proposal: int | None, rng: np.random.Generator) -> UserAct:
        """Answer to the system's proposal; None: open the dialogue, or repeat what was said last (only a proposal will do)."""
        ...


class UserModel:
    """The parametric user. `UserModel.fit` makes one from logged dialogues.

    Args:
        parameters: of its behaviour.
        standard_errors: of the parameters, if they were fitted.
    """

    def __init__(self, parameters: UserParameters | None = None, *, standard_errors: UserParameters | None = None) -> None:
        self.parameters = parameters = parameters or UserParameters()
        self.standard_errors = standard_errors
        require(parameters.slope > 0, "slope > 0", slope=parameters.slope)
        for name in ("hang_up", "concede"):
            value = getattr(parameters, name)
            require(0 <= value <= 1, f"0 <= {name} <= 1", **{name: value})
        self.start(())

    @classmethod
    def fit(cls, dialogues: Iterable[Dialogue]) -> Self:
        """The user who most likely said what the users of these dialogues said, with standard errors (observed information)."""
        parameters, errors = fit_user(dialogues)
        return cls(UserParameters(*parameters), standard_errors=UserParameters(*errors))

    def start(self, costs: Sequence[float]) -> None:
        """A new dialogue."""
        self._costs = [float(cost) for cost in costs]
        self._order = sorted(range(len(self._costs)), key=self._costs.__getitem__)  # its options, the best one first
        self._rank, self._acts = -1, 0

    def answer(self, proposal: int | None, rng: np.random.Generator) -> UserAct:
        """Three uniform draws, whatever it does."""
        u_accept, u_hang_up, u_concede = rng.random(3).tolist()
        self._acts += 1
        own = repeated_rank(self._rank)
        if proposal is None:
            self._rank = own
            return UserAct(PROPOSE, self._order[own])
        gap = self._costs[proposal] - self._costs[self._order[own]]
        slope, threshold, patience, hang_up, concede = self.parameters
        accept = sigmoid(accept_logit(gap, self._acts - 1, slope, threshold, patience))
        kind = answer_to_proposal(accept, hang_up, u_accept, u_hang_up)
        if kind != PROPOSE:
            return UserAct(kind)
        self._rank = countered_rank(self._rank, len(self._order), concede, u_concede)
        return UserAct(PROPOSE, self._order[self._rank])
