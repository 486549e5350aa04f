"""The user of the negotiation dialogue: a stationary model that can be fitted to logged dialogues.

The paper (Laroche & Féraud, ICLR 2018) built its user by imitation learning from human data that
were never published. This model is our own: it has five parameters, whose defaults reproduce the
level of the paper's results. The functions call no other Python functions, so that the user model
and the compiled experiment can share them.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, Self

import numpy as np

from esbas.errors import require
from esbas.experiments.envs.dialogue.fit import fit_user
from esbas.experiments.envs.dialogue.log import Dialogue

# Kinds of user acts.
PROPOSE = 0
ACCEPT = 1
HANG_UP = 2


def sigmoid(x: float) -> float:
    """Return 1 / (1 + e^-x) without overflow."""
    e = math.exp(-abs(x))
    return 1.0 / (1.0 + e) if x >= 0.0 else e / (1.0 + e)


def accept_logit(gap: float, acts: int, slope: float, threshold: float, patience: float) -> float:
    """Return the log-odds of accepting an option.

    The option costs `gap` more than the user's last proposal or, at first, its best option.
    """
    return slope * (threshold + patience * acts - gap)


def answer_to_proposal(accept: float, hang_up: float, u_accept: float, u_hang_up: float) -> int:
    """Return ACCEPT with probability `accept`, otherwise HANG_UP with probability `hang_up`.

    Otherwise, the user proposes another option.
    """
    if u_accept < accept:
        return ACCEPT
    return HANG_UP if u_hang_up < hang_up else PROPOSE


def repeated_rank(rank: int) -> int:
    """Return the rank, by cost, of the option that the user proposes when it opens or repeats.

    At first, this is its best option.
    """
    return max(rank, 0)


def countered_rank(rank: int, options: int, concede: float, u_concede: float) -> int:
    """Return the rank of the counter-proposal.

    It is 0 at first, and later with probability `concede` the next rank, modulo `options`.
    """
    if rank < 0:
        return 0
    return (rank + 1) % options if u_concede < concede else rank


class UserParameters(NamedTuple):
    """The parameters of the user model."""

    slope: float = 4.0  # how sharply acceptance depends on the gap between the proposals
    threshold: float = 0.38  # the gap accepted with probability 1/2 before the user's first act
    patience: float = 0.05  # increase of the threshold with each act of the user
    hang_up: float = 0.03  # probability of hanging up when it does not accept
    concede: float = 0.1  # probability of proposing its next best option when it counter-proposes


class UserAct(NamedTuple):
    """An act of the user."""

    kind: int  # PROPOSE, ACCEPT or HANG_UP
    option: int = -1  # if it proposes


class User(Protocol):
    """The interface of users.

    A user must be stationary: its behavior may depend only on the current dialogue.
    """

    def start(self, costs: Sequence[float]) -> None:
        """Start a dialogue; `costs` are the user's costs of the options."""
        ...

    def answer(self, proposal: int | None, rng: np.random.Generator) -> UserAct:
        """Answer a proposal of the system.

        None requests the opening proposal or a repetition; the answer must be a proposal.
        """
        ...


class UserModel:
    """The parametric user. `UserModel.fit` estimates it from logged dialogues.

    Args:
        parameters: the parameters of its behavior.
        standard_errors: standard errors of the parameters, if they were fitted.
    """

    def __init__(
        self,
        parameters: UserParameters | None = None,
        *,
        standard_errors: UserParameters | None = None,
    ) -> None:
        if parameters is None:
            parameters = UserParameters()
        require(
            parameters.slope > 0, f"`slope` must be greater than 0, but got {parameters.slope!r}."
        )
        for name in ("hang_up", "concede"):
            value = getattr(parameters, name)
            require(0 <= value <= 1, f"`{name}` must be between 0 and 1, but got {value!r}.")
        self.parameters = parameters
        self.standard_errors = standard_errors
        self.start(())

    @classmethod
    def fit(cls, dialogues: Iterable[Dialogue]) -> Self:
        """Return the maximum-likelihood user of these dialogues.

        Its standard errors come from the observed information.
        """
        parameters, errors = fit_user(dialogues)
        return cls(UserParameters(*parameters), standard_errors=UserParameters(*errors))

    def start(self, costs: Sequence[float]) -> None:
        self._costs = [float(cost) for cost in costs]
        self._order = sorted(range(len(self._costs)), key=self._costs.__getitem__)  # best first
        self._rank = -1
        self._acts = 0

    def answer(self, proposal: int | None, rng: np.random.Generator) -> UserAct:
        """Answer a proposal. This always takes three uniform draws from `rng`."""
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
