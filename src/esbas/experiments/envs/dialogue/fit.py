"""Maximum likelihood for the parametric user of the negotiation dialogue.

The likelihood separates into independent factors: acceptance is a logistic regression on the number
of the user's acts and the gap; hanging up and conceding are Bernoulli trials. So the maximum is
exact, and the observed information gives standard errors.
"""

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from esbas.errors import EsbasError, InvalidValueError, require
from esbas.experiments.envs.dialogue.log import SYSTEM, Act, Dialogue

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
    """Return estimates and standard errors of slope, threshold, patience, hang_up and concede."""
    answers: list[UserAnswer] = []
    for number, dialogue in enumerate(dialogues, start=1):
        answers += _answers(dialogue, number)
    accepted = np.array([answer.accepted for answer in answers], bool)
    require(
        0 < accepted.sum() < len(accepted),
        "Users must accept some of the system's proposals and refuse others, but they accepted "
        f"{accepted.sum()} of {len(accepted)}: add dialogues.",
    )
    design = np.array([(1.0, answer.acts, -answer.gap) for answer in answers])  # (N, 3)
    weights, covariance = _logistic_regression(design, accepted)
    intercept, drift, slope = weights.tolist()
    require(
        slope > 0,
        "Users must accept more expensive options less often, but the fitted slope is "
        f"{slope:.3g}: add dialogues.",
    )
    # The parameters are slope, intercept / slope and drift / slope; their covariance follows from
    # the delta method.
    jacobian = np.array([[0, 0, slope], [1, 0, -intercept / slope], [0, 1, -drift / slope]]) / slope
    errors = np.sqrt(np.diag(jacobian @ covariance @ jacobian.T)).tolist()
    refusals = [answer.hung_up for answer in answers if not answer.accepted]
    hang_up, hang_up_error = _bernoulli(refusals, "refuse a proposal")
    choices = [answer.conceded for answer in answers if answer.conceded is not None]
    concede, concede_error = _bernoulli(choices, "counter-propose twice")
    parameters = (slope, intercept / slope, drift / slope, hang_up, concede)
    return parameters, (*errors, hang_up_error, concede_error)


def _answers(dialogue: Dialogue, number: int) -> Iterator[UserAnswer]:
    """Yield the answers of the user. Acts that are impossible in the model raise an error."""
    costs = dialogue.user_costs
    order = sorted(range(len(costs)), key=costs.__getitem__)
    rank = -1  # of the user's last proposal
    acts = 0
    asked = None  # the last act of the system
    for position, act in enumerate(dialogue.acts, start=1):
        if act.by == SYSTEM:
            asked = act
            continue
        try:
            proposed = _rank_of(act, order, rank)
            own = max(rank, 0)
            if asked is None or asked.act == "ask_repeat":
                if proposed != own:
                    raise _impossible(act, str(order[own]))
            else:
                assert asked.option is not None  # a proposal, by the rules of the game
                chose = proposed is not None and rank >= 0
                yield UserAnswer(
                    gap=costs[asked.option] - costs[order[own]],
                    acts=acts,
                    accepted=act.act == "accept",
                    hung_up=act.act == "hang_up",
                    conceded=proposed != rank if chose else None,
                )
        except EsbasError as error:
            source = dialogue.source or f"dialogue {number}"
            raise InvalidValueError(
                f"{source}, act {position}: {error} "
                "Remove the dialogue, or write your own user model."
            ) from None
        if proposed is not None:
            rank = proposed
        acts += 1


def _rank_of(act: Act, order: list[int], rank: int) -> int | None:
    """Return the rank of the proposed option, or None if the act is not a proposal.

    The rank can stay or increase by one.
    """
    if act.act != "propose":
        return None
    assert act.option is not None  # by the rules of the game
    proposed = order.index(act.option)
    possible = {0} if rank < 0 else {rank, (rank + 1) % len(order)}
    if proposed not in possible:
        raise _impossible(act, " or ".join(str(order[each]) for each in sorted(possible)))
    return proposed


def _impossible(act: Act, options: str) -> InvalidValueError:
    given = repr(act.act)
    if act.option is not None:
        given += f" option {act.option}"
    return InvalidValueError(
        f"The user must propose option {options} here, but the log has {given}."
    )


def _logistic_regression(design: Floats, accepted: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return the weights, (d,), and the inverse of the observed information, (d, d).

    This is Newton's method.
    """
    weights = np.zeros(design.shape[1])
    for _ in range(50):
        likely = 0.5 + 0.5 * np.tanh(0.5 * (design @ weights))  # (N,): the sigmoid, no overflow
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
        "Acceptance must vary with gap and turn, but the fit to "
        f"{len(accepted)} answers did not converge: add dialogues."
    )


def _bernoulli(trials: list[bool], occasion: str) -> tuple[float, float]:
    """Return the share of successes and its standard error, which is NaN if the share is 0 or 1."""
    require(len(trials) > 0, f"Some users must {occasion}, but none does: add dialogues.")
    share = sum(trials) / len(trials)
    error = math.sqrt(share * (1 - share) / len(trials)) if 0 < share < 1 else math.nan
    return share, error
