"""Maximum likelihood for the parametric user of the negotiation dialogue.

The likelihood separates into independent factors: acceptance is a logistic regression on the number of the user's acts and the
gap; hanging up and conceding are Bernoulli trials. So the maximum is exact, and the observed information gives standard errors.
"""

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from esbas.envs.dialogue.log import SYSTEM, Act, Dialogue
from esbas.errors import EsbasError, InvalidValueError, require

Floats = NDArray[np.floating]
Five = tuple[float, float, float, float, float]


class UserAnswer(NamedTuple):
    """The answer of a user to a proposal of the system."""

    gap: float  # the user's cost of the proposal minus the cost of its own last proposal
    acts: int  # number of acts of the user before
    accepted: bool
    hung_up: bool
    conceded: bool | None  # whether it proposed its next best option; None if it had no such choice


def fit_user(dialogues: Iterable[Dialogue]) -> tuple[Five, Five]:
    """Estimates of slope, threshold, patience, hang_up and concede, and their standard errors."""
    answers = [answer for number, dialogue in enumerate(dialogues, start=1) for answer in _answers(dialogue, number)]
    accepted = np.array([answer.accepted for answer in answers], bool)
    varied = 0 < accepted.sum() < len(accepted)
    counts = {"accepted": int(accepted.sum()), "proposals": len(accepted)}
    require(varied, "users accept some of the system's proposals and not others", "add dialogues", **counts)
    design = np.array([(1.0, answer.acts, -answer.gap) for answer in answers])  # (N, 3)
    weights, covariance = _logistic_regression(design, accepted)
    intercept, drift, slope = weights.tolist()
    require(slope > 0, "users accept more expensive options less often", "add dialogues", slope=slope)
    # The parameters are slope, intercept / slope and drift / slope; their covariance follows from the delta method.
    jacobian = np.array([[0, 0, slope], [1, 0, -intercept / slope], [0, 1, -drift / slope]]) / slope
    errors = np.sqrt(np.diag(jacobian @ covariance @ jacobian.T)).tolist()
    hang_up, hang_up_error = _bernoulli([answer.hung_up for answer in answers if not answer.accepted], "refuse a proposal")
    choices = [answer.conceded for answer in answers if answer.conceded is not None]
    concede, concede_error = _bernoulli(choices, "counter-propose twice")
    return (slope, intercept / slope, drift / slope, hang_up, concede), (*errors, hang_up_error, concede_error)


def _answers(dialogue: Dialogue, number: int) -> Iterator[UserAnswer]:
    """The answers of the user. Raises an error for acts that are impossible in the model."""
    place = dialogue.place or f"dialogue {number}"
    costs, options = dialogue.user_costs, len(dialogue.user_costs)
    order = sorted(range(options), key=costs.__getitem__)
    rank, acts, asked = -1, 0, None  # asked: the last act of the system
    for position, act in enumerate(dialogue.acts, start=1):
        if act.by == SYSTEM:
            asked = act
            continue
        try:
            proposed = _rank_of(act, order, rank)
            own = max(rank, 0)
            if asked is None or asked.act == "ask_repeat":
                if proposed != own:
                    raise InvalidValueError(f"the user must propose option {order[own]} here, but the log has {_words(act)}")
            else:
                assert asked.option is not None  # a proposal, by the rules of the game
                gap = costs[asked.option] - costs[order[own]]
                chose = proposed is not None and rank >= 0
                yield UserAnswer(gap, acts, act.act == "accept", act.act == "hang_up", proposed != rank if chose else None)
        except EsbasError as error:
            remedy = "remove the dialogue, or write your own user model"
            raise InvalidValueError(f"{place}, act {position}: {error}: {remedy}") from None
        rank, acts = rank if proposed is None else proposed, acts + 1


def _rank_of(act: Act, order: list[int], rank: int) -> int | None:
    """The rank of the proposed option, or None if the act is not a proposal. The rank can stay or increase by one."""
    if act.act != "propose":
        return None
    assert act.option is not None  # by the rules of the game
    proposed = order.index(act.option)
    possible = {0} if rank < 0 else {rank, (rank + 1) % len(order)}
    if proposed not in possible:
        names = " or ".join(str(order[each]) for each in sorted(possible))
        raise InvalidValueError(f"the user must propose option {names} here, but the log has {_words(act)}")
    return proposed


def _words(act: Act) -> str:
    return f"{act.act!r}" + ("" if act.option is None else f" option {act.option}")


def _logistic_regression(design: Floats, accepted: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Newton's method: (d,) weights, and the inverse of the observed information, (d, d)."""
    weights = np.zeros(design.shape[1])
    for _ in range(50):
        likely = 0.5 + 0.5 * np.tanh(0.5 * (design @ weights))  # (N,): the sigmoid, without overflow
        information = design.T @ (design * (likely * (1 - likely))[:, None])
        try:
            covariance = np.linalg.inv(information)
        except np.linalg.LinAlgError:
            break
        step = covariance @ (design.T @ (accepted - likely))
        weights = weights + step
        if np.abs(step).max() < 1e-10:
            return weights, covariance
    raise InvalidValueError(
        f"acceptance must vary with gap and turn, but the fit to {len(accepted)} answers did not converge: add dialogues"
    )


def _bernoulli(trials: list[bool], occasion: str) -> tuple[float, float]:
    """The share of successes and its standard error, which is NaN if the share is 0 or 1."""
    require(len(trials) > 0, f"some users {occasion}", "add dialogues", found=0)
    share = sum(trials) / len(trials)
    return share, math.sqrt(share * (1 - share) / len(trials)) if 0 < share < 1 else math.nan
