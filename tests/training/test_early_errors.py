"""Calls that cannot work are refused before they change anything."""

import inspect

import gymnasium
import pytest

import esbas
from esbas.errors import SaveFileError
from esbas.learners import EpsilonGreedy
from esbas.training.folder import read_about

QUIET = {"tensorboard": False, "progress": False}


class Unsavable:
    """Has no state_dict."""

    stationary = True
    name = "unsavable"

    def policy(self):
        return EpsilonGreedy(lambda observation: [0.0] * 4, 1.0)


def test_a_learner_without_a_state_is_refused_before_the_training(tmp_path):
    with pytest.raises(SaveFileError, match="'unsavable' does not have both: add them"):
        esbas.train(
            "FrozenLake-v1", learners=[Unsavable()], steps=100, out=tmp_path / "it", **QUIET
        )
    assert not (tmp_path / "it").exists()


PARTS = {
    "environment": {"env": lambda: gymnasium.make("FrozenLake-v1")},
    "objective": {"objective": lambda trajectory: float(len(trajectory))},
    "selector": {"selector": lambda arms: esbas.SSBAS(arms)},
    "wrapper": {"wrappers": [lambda env: gymnasium.wrappers.TimeLimit(env, 50)]},
}


@pytest.mark.parametrize("kind", PARTS)
def test_an_extension_that_cannot_run_changes_nothing(tmp_path, kind):
    options = {
        "env": "FrozenLake-v1",
        "learners": ["tabular_q"],
        "steps": 100,
        "out": tmp_path / "it",
        **QUIET,
        **PARTS[kind],
    }
    training = esbas.train(**options)
    before = read_about(training.folder)
    loaded = esbas.load_training(training.folder)
    with pytest.raises(SaveFileError, match=r"call esbas\.train with the arguments"):
        loaded.extend(steps=200)
    assert read_about(training.folder) == before
    assert loaded.finished
    # the process that has the parts can do it
    assert training.extend(steps=200).runs()["steps"][0] >= 200


def test_the_signature_is_for_people():
    shown = f"{inspect.signature(esbas.train)} {inspect.signature(esbas.Training.extend)}"
    assert "Annotated" not in shown
    assert "Spec" not in shown
