"""What is compared: the protocol, and the portfolios of the paper's table and figure.

The paper is Laroche & Féraud, ICLR 2018.
"""

from typing import NamedTuple

import numpy as np

from esbas.experiments.envs import NegotiationDialogue
from esbas.experiments.envs.dialogue.user import UserModel
from esbas.experiments.kernels.dialogue.one_dialogue import Game
from esbas.experiments.kernels.dialogue.whole_runs import LearningProtocol

EPOCHS = (20, *(20 * 2**k for k in range(11)))
"""The lengths of the 12 epochs: 20, 20, 40, ..., 20,480.

Their sum is 40,960; the paper prints 40,920.
"""
TRAJECTORIES = sum(EPOCHS)
XI = 0.25
GAMMA = 0.9
EXPLORATION = 0.6
"""Learners explore with probability 0.6^β in epoch β, so epoch 0 is random."""
RIDGE = 0.05
TOLERANCE = 1e-3
MAX_ITERATIONS = 200
"""Parameters of fitted Q iteration. The paper gives none of them."""


def _game() -> Game:
    """Return the rules, with the defaults of the environment."""
    env = NegotiationDialogue()
    user = UserModel()
    return Game(env.options, env.length, GAMMA, env.error_rate, *env.score, *user.parameters)


GAME = _game()
PROTOCOL = LearningProtocol(
    np.array(EPOCHS, np.int64), XI, EXPLORATION, RIDGE, TOLERANCE, MAX_ITERATIONS
)


class Paper(NamedTuple):
    """The numbers in the paper for a row: regret against the best learner, and the worst."""

    w_best: int
    w_worst: int


TABLE = {
    "simple-2 + fast-2": Paper(35, -181),
    "simple + n-1-simple-2": Paper(-73, -131),
    "simple + n-1-simple": Paper(3, -2),
    "simple-2 + n-1-simple-2": Paper(-12, -38),
    "all-4 + constant-1.10": Paper(21, -2032),
    "all-4 + constant-1.11": Paper(-21, -1414),
    "all-4 + constant-1.13": Paper(-10, -561),
    "all-4": Paper(-28, -275),
    "all-2-simple + constant-1.08": Paper(-41, -2734),
    "all-2-simple + constant-1.11": Paper(-40, -2013),
    "all-2-simple + constant-1.13": Paper(-123, -799),
    "all-2-simple": Paper(-90, -121),
    "fast + simple-2": Paper(-39, -256),
    "simple-2 + constant-1.01": Paper(169, -5361),
    "simple-2 + constant-1.11": Paper(53, -1380),
    # The paper lists the portfolio twice. The second time, we use other policies.
    "simple-2 + constant-1.11 (second)": Paper(57, -1288),
    "simple + constant-1.08": Paper(54, -2622),
    "simple + constant-1.10": Paper(88, -1565),
    "simple + constant-1.14": Paper(-6, -297),
    "all-4 + all-4-n-1 + constant-1.09": Paper(25, -2308),
    "all-4 + all-4-n-1 + constant-1.11": Paper(20, -1324),
    "all-4 + all-4-n-1 + constant-1.14": Paper(-16, -348),
    "all-4 + all-4-n-1": Paper(-10, -142),
    "all-2-simple + all-2-n-1-simple": Paper(-80, -181),
    "4*n-2-simple": Paper(-20, -20),
    "4*n-3-simple": Paper(-13, -13),
    "8*n-1-simple-2": Paper(-22, -22),
    "simple-2 + constant-0.97 (no reset)": Paper(113, -7131),
    "simple-2 + constant-1.05 (no reset)": Paper(23, -3756),
    "simple-2 + constant-1.09 (no reset)": Paper(-19, -2170),
    "simple-2 + constant-1.13 (no reset)": Paper(-16, -703),
    "simple-2 + constant-1.14 (no reset)": Paper(-125, -319),
}
"""Table 2 of the paper, all 32 rows in its order."""

PAPER_INTERVAL = 6.0
"""The half width of the paper's 95 % intervals: "about ± 6"."""

FIGURE = "all-2-simple", "simple-2 + constant-1.01", "all-4 + all-4-n-1"
"""The portfolios of the paper's Figure 2.

It shows the performance by epoch (a, c, e) and the selection ratios (b, d, f).
"""
