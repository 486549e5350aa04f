"""The first 100 choices of each selector on a toy task, recorded. A change that alters them must be
intended.

To rewrite the files, run `python -m pytest tests/golden --update-golden`, and explain in the commit
why they differ.
"""

import json
from functools import partial
from pathlib import Path

import pytest

from esbas import (
    ESBAS,
    SSBAS,
    UCB1,
    BanditSelector,
    Fixed,
    KalmanThompson,
    SharedEvidence,
    Uniform,
    run,
)
from esbas.learners import Constant, TabularQ
from esbas.testing import Corridor

ARMS = ["slow", "fast", "wander"]
SELECTORS = {
    "esbas": ESBAS,
    "esbas-dialogue": partial(ESBAS, scale=None, epochs=[20, 20, 40], stationary=["wander"]),
    "ssbas": SSBAS,
    "fixed": partial(Fixed, arm="fast"),
    "uniform": Uniform,
    "ucb1": partial(BanditSelector, bandit=UCB1),
    "kalman-thompson": partial(BanditSelector, bandit=KalmanThompson),
    "shared-evidence": SharedEvidence,
}


def first_choices(selector):
    """Two learners and a policy that wanders to the right, in a corridor of six places."""
    explore = {"states": 6, "actions": 2, "epsilon": lambda episode: max(0.1, 1 - episode / 20)}
    learners = [
        TabularQ("slow", learning_rate=0.05, **explore),
        TabularQ("fast", learning_rate=0.5, **explore),
        Constant("wander", lambda place: int(place != 2)),
    ]
    return [
        (record.epoch, record.learner)
        for record in run(
            Corridor(6, slip=0.2, max_episode_steps=30), learners, selector, episodes=100, seed=1
        )
    ]


def as_lines(choices):
    """One line per epoch and one letter per choice, readable in a diff.

    Without epochs there is one line.
    """
    epochs = sorted({epoch for epoch, _ in choices})
    return ["".join(arm[0] for number, arm in choices if number == epoch) for epoch in epochs]


@pytest.mark.parametrize("name", SELECTORS)
def test_the_first_choices_are_the_recorded_ones(name, request):
    path = Path(__file__).parent / f"{name}.json"
    lines = as_lines(first_choices(SELECTORS[name](ARMS, seed=1)))
    if request.config.getoption("--update-golden"):
        path.write_text(json.dumps({"arms": ARMS, "choices by epoch": lines}, indent=2) + "\n")
    assert json.loads(path.read_text())["choices by epoch"] == lines
    assert sum(map(len, lines)) == 100


def test_every_file_belongs_to_a_selector():
    assert {path.stem for path in Path(__file__).parent.glob("*.json")} == set(SELECTORS)
