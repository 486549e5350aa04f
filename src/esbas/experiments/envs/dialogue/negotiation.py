"""The negotiation dialogue of the paper's Section 4.

Two players look for an agreement among a few options.

The functions call no other Python functions, so that the environment and the compiled experiment
can share them.

A dialogue draws, in this order: the costs of the system and of the user (uniform), and one uniform
number for the player who starts (the user, if it is below 1/2). Each turn of the user, including
its opening, draws three uniform numbers for the user (accept, hang up, concede) and, if it
proposes, two uniform numbers (recognition error, other option) and a normal one (score) for the
channel.
"""

import copy
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from esbas._internal.spaces import membership
from esbas.errors import InvalidValueError, require, unknown
from esbas.experiments.envs.dialogue.log import SYSTEM, USER, Act, Dialogue
from esbas.experiments.envs.dialogue.transcript import transcript
from esbas.experiments.envs.dialogue.user import ACCEPT, HANG_UP, User, UserModel, sigmoid
from esbas.objective import Objective
from esbas.trajectory import Trajectory

# The system's actions.
REF_INSIST = 0
REF_NEW_PROP = 1
ASK_REPEAT = 2
SYSTEM_ACCEPT = 3
END_DIAL = 4
ACTIONS = "RefInsist", "RefNewProp", "AskRepeat", "Accept", "EndDial"
NOTHING = -1  # no option, no rank
NOTHING_HEARD_SCORE = 0.5  # the recognition score before the first proposal is heard
_RESET_OPTIONS = "system_costs", "user_costs", "user_starts"

Floats = NDArray[np.float64]


def proposed_rank(action: int, rank: int, options: int) -> int:
    """Return the rank, by cost, of the option that the system proposes after `rank`.

    REF_INSIST repeats the same one; otherwise it is the next one modulo `options`.
    """
    return max(rank, 0) if action == REF_INSIST else (rank + 1) % options


def agreement_reward(system_cost: float, user_cost: float, understood: bool) -> float:
    """Return R = 2 - ν_s - ν_u.

    It is -ν_s - ν_u if the system accepts another option than the user proposed.
    """
    shared = 2.0 if understood else 0.0
    return shared - system_cost - user_cost


def heard_option(
    spoken: int, options: int, error_rate: float, u_error: float, u_other: float
) -> int:
    """Return the option that the system understands.

    With probability `error_rate` it is another one than `spoken`, drawn uniformly.
    """
    if u_error >= error_rate:
        return spoken
    other = int(u_other * (options - 1))
    return other if other < spoken else other + 1


def score_logit(
    understood: bool, normal: float, right: float, wrong: float, deviation: float
) -> float:
    """Return X ~ N(x, deviation²), whose sigmoid is the score.

    x is `right` if the option was understood and `wrong` if not.
    """
    mean = right if understood else wrong
    return mean + deviation * normal


def negotiation_value(reward: float, acts: int, gamma: float) -> float:
    """Return γ^n R, where n is the number of system acts."""
    return reward * gamma**acts


class ScoreModel(NamedTuple):
    """The confidence score of the recognizer: see `score_logit`."""

    right: float = 1.0
    wrong: float = 0.0
    deviation: float = 0.2


class NegotiationDialogue(gymnasium.Env[Floats, np.int64]):
    """The system's side of the dialogue.

    All rewards are 0 except the last one, which is R in the paper.

    An observation contains everything that the system knows: the number t of its next act, starting
    at 1; the recognition score of the last proposal that it heard (0.5 if none); the ranks, by its
    own cost, of the option heard, of its own last proposal (both -1 if none), and of the option
    that RefNewProp would propose; and its costs in increasing order.

    The actions are RefInsist (repeat the last own proposal, at first the best option), RefNewProp
    (propose the next best option, and the best one after the worst), AskRepeat, Accept (the option
    heard last) and EndDial.

    The return in the paper is γ^n R, where n is the number of system acts: `negotiation_return()`
    is this objective. The discounted return that Q functions estimate counts steps from 0, so it is
    larger by the factor 1/γ.

    Args:
        options: the number of options.
        error_rate: probability that the system understands another option than the user proposed.
        score: the model of the recognition score.
        length: after this many system acts the dialogue ends with R = 0.
        user: any stationary user; by default `UserModel()`.
        render_mode: "ansi" (`render` returns the transcript), "human" (turns are printed) or None.
    """

    # Gymnasium requires a dictionary.
    metadata = {"render_modes": ["ansi", "human"], "render_fps": 1}  # noqa: RUF012

    def __init__(
        self,
        *,
        options: int = 4,
        error_rate: float = 0.3,
        score: ScoreModel | None = None,
        length: int = 25,
        user: User | None = None,
        render_mode: str | None = None,
    ) -> None:
        require(options >= 2, f"`options` must be at least 2, but got {options!r}.")
        require(
            0 <= error_rate <= 1, f"`error_rate` must be between 0 and 1, but got {error_rate!r}."
        )
        require(length >= 1, f"`length` must be at least 1, but got {length!r}.")
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise unknown("render mode", render_mode, self.metadata["render_modes"])
        self.options = options
        self.error_rate = error_rate
        self.length = length
        self.render_mode = render_mode
        self.score = ScoreModel() if score is None else score
        require(
            self.score.deviation >= 0,
            f"`deviation` must be at least 0, but got {self.score.deviation!r}.",
        )
        # A copy, because a user has a state within the dialogue.
        self.user: User = UserModel() if user is None else copy.deepcopy(user)
        low = [1.0, 0.0, -1.0, -1.0, 0.0]
        high = [length + 1.0, 1.0, options - 1.0, options - 1.0, options - 1.0]
        self.observation_space = spaces.Box(
            np.array(low + [0.0] * options), np.array(high + [1.0] * options), dtype=np.float64
        )
        self.action_space = spaces.Discrete(len(ACTIONS))
        self._is_action = membership(self.action_space)
        self._over = True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        """Start a dialogue.

        `options` may contain "system_costs", "user_costs" (one per option) and "user_starts".
        """
        super().reset(seed=seed, options=options)
        given = options or {}
        n = self.options
        for name in given:
            if name not in _RESET_OPTIONS:
                raise unknown("reset option", name, _RESET_OPTIONS)
        drawn = self.np_random.random(2 * n + 1).tolist()
        self.system_costs: list[float] = list(given.get("system_costs", drawn[:n]))
        self.user_costs: list[float] = list(given.get("user_costs", drawn[n : 2 * n]))
        for name, costs in (("system_costs", self.system_costs), ("user_costs", self.user_costs)):
            if len(costs) != n:
                raise InvalidValueError(f"`{name}` must have {n} numbers, but got {costs!r}.")
        # The system's options, the best first, and the rank of each option in this order.
        self._order = sorted(range(n), key=self.system_costs.__getitem__)
        self._rank_of = sorted(range(n), key=self._order.__getitem__)
        self._sorted_costs = sorted(self.system_costs)
        self._rank = NOTHING
        self._heard = NOTHING
        self._spoken = NOTHING
        self._score = NOTHING_HEARD_SCORE
        self._acts = 0
        self._over = False
        self._shown = 0
        self._log: list[Act] = []
        self.user.start(self.user_costs)
        if given.get("user_starts", drawn[-1] < 0.5):
            self._answer(None)
        self._show()
        return self._observation(), {}

    def step(self, action: int | np.int64) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """Let the system act, then the user answer."""
        if self._over:
            raise InvalidValueError("There is no dialogue to continue: call reset() first.")
        if not self._is_action(action):
            raise InvalidValueError(
                f"An action must be one of 0 to {len(ACTIONS) - 1}, but got {action!r}."
            )
        self._acts += 1
        reward = self._act(int(action))
        self._over = self._over or self._acts == self.length
        self._show()
        return self._observation(), reward, self._over, False, {}

    def _act(self, action: int) -> float:
        if action == SYSTEM_ACCEPT:
            return self._accept()
        if action == END_DIAL:
            self._over = True
            self._log.append(Act(SYSTEM, "end"))
            return 0.0
        if action == ASK_REPEAT:
            self._log.append(Act(SYSTEM, "ask_repeat"))
            return self._answer(None)
        self._rank = proposed_rank(action, self._rank, self.options)
        option = self._order[self._rank]
        self._log.append(Act(SYSTEM, "propose", option))
        return self._answer(option)

    def _accept(self) -> float:
        """Accept what the system heard last.

        If it heard nothing, the dialogue ends without an agreement.
        """
        self._over = True
        if self._heard == NOTHING:
            self._log.append(Act(SYSTEM, "accept", None))
            return 0.0
        self._log.append(Act(SYSTEM, "accept", self._heard))
        system_cost = self.system_costs[self._heard]
        user_cost = self.user_costs[self._spoken]
        return agreement_reward(system_cost, user_cost, self._heard == self._spoken)

    def _answer(self, proposal: int | None) -> float:
        """Let the user act and the system hear it.

        Returns the reward, which is 0 unless the user accepts.
        """
        kind, option = self.user.answer(proposal, self.np_random)
        if kind == ACCEPT and proposal is not None:
            self._over = True
            self._log.append(Act(USER, "accept"))
            return agreement_reward(self.system_costs[proposal], self.user_costs[proposal], True)
        if kind == HANG_UP:
            self._over = True
            self._log.append(Act(USER, "hang_up"))
            return 0.0
        if not 0 <= option < self.options:
            raise InvalidValueError(
                f"A user must propose one of 0 to {self.options - 1}, but got {option!r}."
            )
        u_error, u_other = self.np_random.random(2).tolist()
        self._spoken = option
        self._heard = heard_option(option, self.options, self.error_rate, u_error, u_other)
        normal = self.np_random.standard_normal()
        self._score = sigmoid(score_logit(self._heard == option, normal, *self.score))
        self._log.append(Act(USER, "propose", option, self._heard, self._score))
        return 0.0

    def _observation(self) -> Floats:
        heard = NOTHING if self._heard == NOTHING else self._rank_of[self._heard]
        following = proposed_rank(REF_NEW_PROP, self._rank, self.options)
        return np.array(
            [self._acts + 1, self._score, heard, self._rank, following, *self._sorted_costs],
            np.float64,
        )

    @property
    def dialogue(self) -> Dialogue:
        """The dialogue so far, in the form of a log entry."""
        return Dialogue(tuple(self.user_costs), tuple(self._log), tuple(self.system_costs))

    def render(self) -> str | None:
        """Return the transcript so far in mode "ansi", otherwise None."""
        return transcript(self.dialogue) if self.render_mode == "ansi" else None

    def _show(self) -> None:
        """In mode "human", print the new lines of the transcript."""
        if self.render_mode == "human":
            lines = transcript(self.dialogue).splitlines()
            print(*lines[self._shown :], sep="\n", flush=True)
            self._shown = len(lines)


def negotiation_return(gamma: float = 0.9) -> Objective:
    """Return the paper's objective: γ^n R, where n is the number of system acts."""
    require(0 <= gamma <= 1, f"`gamma` must be between 0 and 1, but got {gamma!r}.")

    def function(trajectory: Trajectory) -> float:
        return negotiation_value(float(trajectory.rewards[-1]), len(trajectory), gamma)

    return Objective(name=f"negotiation return, gamma={gamma:g}", function=function)
