"""Maximum likelihood for the parametric user of the negotiation dialogue.

The user's choices separate: whether it accepts is a logistic regression on the number of its acts and the gap; whether it hangs
up and whether it concedes are coins. So the maximum is found exactly, and the observed information gives standard errors.
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
    """What a user did with a proposal of the system."""

    gap: float  # its cost of the proposal minus that of its own last one
    acts: int  # how often it had acted before
    accepted: bool
    hung_up: bool
    conceded: bool | None  # moved on to its next best option; None if it could not choose


def fit_user(dialogues: Iterable[Dialogue]) -> tuple[Five, Five]:
    """Slope, threshold, patience, hang_up, concede and their standard errors."""
    answers = [answer for number, dialogue in enumerate(dialogues, start=1) for answer in _answers(dialogue, number)]
    accepted = np.array([answer.accepted for answer in answers], bool)
    varied = 0 < accepted.sum() < len(accepted)
    counts = {"accepted": int(accepted.sum()), "proposals": len(accepted)}
    require(varied, "users accept some of the system's proposals and not others", "add dialogues", **counts)
    design = np.array([(1.0, answer.acts, -answer.gap) for answer in answers])  # (N, 3)
    weights, covariance = _logistic_regression(design, accepted)
    intercept, drift, slope = weights.tolist()
    require(slope > 0, "users accept dearer options less often", "add dialogues", slope=slope)
    # The parameters are slope, intercept / slope and drift / slope: the delta method carries the covariance over.
    jacobian = np.array([[0, 0, slope], [1, 0, -intercept / slope], [0, 1, -drift / slope]]) / slope
    errors = np.sqrt(np.diag(jacobian @ covariance @ jacobian.T)).tolist()
    hang_up, hang_up_error = _coin([answer.hung_up for answer in answers if not answer.accepted], "refuse a proposal")
    choices = [answer.conceded for answer in answers if answer.conceded is not None]
    concede, concede_error = _coin(choices, "counter-propose twice")
    return (slope, intercept / slope, drift / slope, hang_up, concede), (*errors, hang_up_error, concede_error)


def _answers(dialogue: Dialogue, number: int) -> Iterator[UserAnswer]:
    """The user's answers; acts that the model never does are errors."""
    place = dialogue.place or f"dialogue {number}"
    costs, options = dialogue.user_costs, len(dialogue.user_costs)
    order = sorted(range(options), key=costs.__getitem__)
    rank, acts, asked = -1, 0, None  # asked: the system's last act, if the user answers to it
    for position, act in enumerate(dialogue.acts, start=1):
        if act.by == SYSTEM:
            asked = act
            continue
        try:
            proposed = _rank_of(act, order, rank)
            own = max(rank, 0)
            if asked is None or asked.act == "ask_repeat":
                if proposed != own:
                    raise InvalidValueError(f"a user must here propose option {order[own]}, but does {_words(act)}")
            else:
                assert asked.option is not None  # a proposal, by the rules of the game
                gap = costs[asked.option] - costs[order[own]]
                chose = proposed is not None and rank >= 0
                yield UserAnswer(gap, acts, act.act == "accept", act.act == "hang_up", proposed != rank if chose else None)
        except EsbasError as error:
            remedy = "leave the dialogue out, or write a user of your own"
            raise InvalidValueError(f"{place}, act {position}: {error}: {remedy}") from None
        rank, acts = rank if proposed is None else proposed, acts + 1


def _rank_of(act: Act, order: list[int], rank: int) -> int | None:
    """The rank of what the user proposes, None if it does not; it can only stay or move on by one."""
    if act.act != "propose":
        return None
    assert act.option is not None  # by the rules of the game
    proposed = order.index(act.option)
    possible = {0} if rank < 0 else {rank, (rank + 1) % len(order)}
    if proposed not in possible:
        names = " or ".join(str(order[each]) for each in sorted(possible))
        raise InvalidValueError(f"a user must here propose option {names}, but does {_words(act)}")
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
    remedy = "add dialogues"
    raise InvalidValueError(
        f"acceptance must vary with gap and turn to be fitted, but {len(accepted)} answers do not tell: {remedy}"
    )


def _coin(tosses: list[bool], occasion: str) -> tuple[float, float]:
    """The share of heads and its standard error; at 0 or 1 the information is infinite and the error unknown: NaN."""
    require(len(tosses) > 0, f"there are users who {occasion}", "add dialogues", found=0)
    share = sum(tosses) / len(tosses)
    return share, math.sqrt(share * (1 - share) / len(tosses)) if 0 < share < 1 else math.nan
