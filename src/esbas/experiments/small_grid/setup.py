"""What is compared: SSBAS on the map of the paper's experiment, and ESBAS on an easier one."""

from esbas.experiments.envs import FruitMap
from esbas.experiments.gridworld.setup import Setup

EASY_MAP = "F..F\n.##.\n...."
"""The map for ESBAS.

Its policies change only when an epoch starts, so it needs an easier map and more exploration. It
was chosen to show a clear effect: see the text of the report.
"""


def setups(episodes: int) -> dict[str, Setup]:
    """Return the setup of each selector."""
    return {
        "ssbas": Setup(grid=FruitMap(), gamma=0.9, epsilon=0.01, episodes=episodes),
        "esbas": Setup(
            grid=FruitMap(EASY_MAP),
            gamma=0.9,
            epsilon=1.0,
            episodes=min(episodes, 16_383),
            horizon=3000.0,
            epochal=True,
        ),
    }
