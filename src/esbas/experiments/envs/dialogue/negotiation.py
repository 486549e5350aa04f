"""The negotiation dialogue of the paper's Section 4: two players look for an agreement among a few options.

The functions call no other Python functions, so that the environment and the compiled experiment can share them.

A dialogue draws, in this order: the costs of the system and of the user (uniform), and one uniform number for the player who
starts (the user, if it is below 1/2). Each turn of the user, including its opening, draws three uniform numbers for the user
(accept, hang up, concede) and, if it proposes, two uniform numbers (recognition error, other option) and a normal one (score) for
the channel.
"""

import copy
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from esbas.envs.dialogue.log import SYSTEM, USER, Act, Dialogue
from esbas.envs.dialogue.transcript import transcript
from esbas.envs.dialogue.user import ACCEPT, HANG_UP, User, UserModel, sigmoid
from esbas.errors import require, unknown
from esbas.objective import Objective
from esbas.spaces import membership
from esbas.trajectory import Trajectory

REF_INSIST, REF_NEW_PROP, ASK_REPEAT, SYSTEM_ACCEPT, END_DIAL = 0, 1, 2, 3, 4  # the system's actions
ACTIONS = "RefInsist", "RefNewProp", "AskRepeat", "Accept", "EndDial"
NOTHING = -1  # no option, no rank
NOTHING_HEARD_SCORE = 0.5  # the recognition score before the first proposal is heard
Floats = NDArray[np.float64]


def proposed_rank(action: int, rank: int, options: int) -> int:
    """The rank, by cost, of the option that the system proposes after `rank`: the same, or the next one modulo `options`."""
    return max(rank, 0) if action == REF_INSIST else (rank + 1) % options


def agreement_reward(system_cost: float, user_cost: float, understood: bool) -> float:
    """R = 2 - ν_s - ν_u, or -ν_s - ν_u if the system accepts another option than the user proposed."""
    return (2.0 if understood else 0.0) - system_cost - user_cost


def heard_option(spoken: int, options: int, error_rate: float, u_error: float, u_other: float) -> int:
    """The option that the system understands: with probability `error_rate` another one, uniformly."""
    if u_error >= error_rate:
        return spoken
    other = int(u_other * (options - 1))
    return other if other < spoken else other + 1


def score_logit(understood: bool, normal: float, right: float, wrong: float, deviation: float) -> float:
    """X ~ N(x, deviation²), where x is `right` if the option was understood and `wrong` if not; the score is its sigmoid."""
    return (right if understood else wrong) + deviation * normal


def negotiation_value(reward: float, acts: int, gamma: float) -> float:
    """γ^n R, where n is the number of system acts."""
    return reward * gamma**acts


class ScoreModel(NamedTuple):
    """The confidence score of the recogniser: see `score_logit`."""

    right: float = 1.0
    wrong: float = 0.0
    deviation: float = 0.2


class NegotiationDialogue(gymnasium.Env[Floats, np.int64]):
    """The system's side of the dialogue. All rewards are 0 except the last one, which is R in the paper.

    An observation contains everything that the system knows: the number t of its next act, starting at 1; the recognition score
    of the last proposal that it heard (0.5 if none); the ranks, by its own cost, of the option heard, of its own last proposal
    (both -1 if none), and of the option that RefNewProp would propose; and its costs in increasing order.

    The actions are RefInsist (repeat the last own proposal, at first the best option), RefNewProp (propose the next best option,
    and the best one after the worst), AskRepeat, Accept (the option heard last) and EndDial.

    The return in the paper is γ^n R, where n is the number of system acts: `negotiation_return()` is this objective. The
    discounted return that Q functions estimate counts steps from 0, so it is larger by the factor 1/γ.

    Args:
        options: the number of options.
        error_rate: probability that the system understands another option than the user proposed.
        score: the model of the recognition score.
        length: after this many system acts the dialogue ends with R = 0.
        user: any stationary user; by default `UserModel()`.
        render_mode: "ansi" (`render` returns the transcript), "human" (turns are printed) or None.
    """

    metadata = {"render_modes": ["ansi", "human"], "render_fps": 1}  # noqa: RUF012  # required by Gymnasium

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
        require(options >= 2, "options >= 2", options=options)
        require(0 <= error_rate <= 1, "0 <= error_rate <= 1", error_rate=error_rate)
        require(length >= 1, "length >= 1", length=length)
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise unknown("render mode", render_mode, self.metadata["render_modes"])
        self.options, self.error_rate, self.length, self.render_mode = options, error_rate, length, render_mode
        self.score = ScoreModel() if score is None else score
        require(self.score.deviation >= 0, "deviation >= 0", deviation=self.score.deviation)
        self.user: User = UserModel() if user is None else copy.deepcopy(user)  # a user has a state within the dialogue
        low, high = [1.0, 0.0, -1.0, -1.0, 0.0], [length + 1.0, 1.0, options - 1.0, options - 1.0, options - 1.0]
        self.observation_space = spaces.Box(np.array(low + [0.0] * options), np.array(high + [1.0] * options), dtype=np.float64)
        self.action_space = spaces.Discrete(len(ACTIONS))
        self._is_action = membership(self.action_space)
        self._over = True

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Floats, dict[str, Any]]:
        """Start a dialogue. `options` may contain "system_costs", "user_costs" (one per option) and "user_starts"."""
        super().reset(seed=seed, options=options)
        given, n = options or {}, self.options
        for name in given:
            if name not in _RESET_OPTIONS:
                raise unknown("reset option", name, _RESET_OPTIONS)
        drawn = self.np_random.random(2 * n + 1).tolist()
        self.system_costs: list[float] = list(given.get("system_costs", drawn[:n]))
        self.user_costs: list[float] = list(given.get("user_costs", drawn[n : 2 * n]))
        require(len(self.system_costs) == len(self.user_costs) == n, f"both players have {n} costs", **given)
        self._order = sorted(range(n), key=self.system_costs.__getitem__)  # its options, the best first
        self._rank_of = sorted(range(n), key=self._order.__getitem__)
        self._sorted_costs = sorted(self.system_costs)
        self._rank = self._heard = self._spoken = NOTHING
        self._score, self._acts, self._over, self._shown = NOTHING_HEARD_SCORE, 0, False, 0
        self._log: list[Act] = []
        self.user.start(self.user_costs)
        if given.get("user_starts", drawn[-1] < 0.5):
            self._answer(None)
        self._show()
        return self._observation(), {}

    def step(self, action: int | np.int64) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """The system acts, then the user answers."""
        require(not self._over, "a dialogue has started and not ended", "call reset first", over=self._over)
        require(self._is_action(action), f"an action is one of 0 to {len(ACTIONS) - 1}", action=action)
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
        """The system accepts what it heard last. If it heard nothing, the dialogue ends without an agreement."""
        self._over = True
        nothing = self._heard == NOTHING
        self._log.append(Act(SYSTEM, "accept", None if nothing else self._heard))
        if nothing:
            return 0.0
        system_cost, user_cost = self.system_costs[self._heard], self.user_costs[self._spoken]
        return agreement_reward(system_cost, user_cost, self._heard == self._spoken)

    def _answer(self, proposal: int | None) -> float:
        """The turn of the user, and what the system hears. Returns the reward, which is 0 unless the user accepts."""
        kind, option = self.user.answer(proposal, self.np_random)
        if kind == ACCEPT and proposal is not None:
            self._over = True
            self._log.append(Act(USER, "accept"))
            return agreement_reward(self.system_costs[proposal], self.user_costs[proposal], True)
        if kind == HANG_UP:
            self._over = True
            self._log.append(Act(USER, "hang_up"))
            return 0.0
        require(0 <= option < self.options, f"a user proposes one of 0 to {self.options - 1}", option=option)
        u_error, u_other = self.np_random.random(2).tolist()
        self._spoken, self._heard = option, heard_option(option, self.options, self.error_rate, u_error, u_other)
        self._score = sigmoid(score_logit(self._heard == option, self.np_random.standard_normal(), *self.score))
        self._log.append(Act(USER, "propose", option, self._heard, self._score))
        return 0.0

    def _observation(self) -> Floats:
        heard = NOTHING if self._heard == NOTHING else self._rank_of[self._heard]
        following = proposed_rank(REF_NEW_PROP, self._rank, self.options)
        return np.array([self._acts + 1, self._score, heard, self._rank, following, *self._sorted_costs], np.float64)

    @property
    def dialogue(self) -> Dialogue:
        """The dialogue so far, in the form of a log entry."""
        return Dialogue(tuple(self.user_costs), tuple(self._log), tuple(self.system_costs))

    def render(self) -> str | None:
        """The transcript so far in mode "ansi", otherwise None."""
        return transcript(self.dialogue) if self.render_mode == "ansi" else None

    def _show(self) -> None:
        """In mode "human", print the new lines of the transcript."""
        if self.render_mode == "human":
            lines = transcript(self.dialogue).splitlines()
            print(*lines[self._shown :], sep="\n", flush=True)
            self._shown = len(lines)


_RESET_OPTIONS = "system_costs", "user_costs", "user_starts"


def negotiation_return(gamma: float = 0.9) -> Objective:
    """The return in the paper: γ^n R, where n is the number of system acts."""
    require(0 <= gamma <= 1, "0 <= gamma <= 1", gamma=gamma)

    def function(trajectory: Trajectory) -> float:
        return negotiation_value(float(trajectory.rewards[-1]), len(trajectory), gamma)

    return Objective(name=f"negotiation return, gamma={gamma:g}", function=function)
