"""Runs that stop before their budget is used up: at a value, after some minutes, or because a
callback asks.
"""

import json
import shutil
import time

import gymnasium
import numpy as np
import pytest

import esbas
from esbas import cli
from esbas.training import recent
from esbas.training.runs.episode_log import read_episodes
from training.programs import assert_same, numbers, train_without_report

OPTIONS = {
    "learners": ["tabular_q(learning_rate=0.5, epsilon=0.1)", "random"],
    "tensorboard": False,
    "progress": False,
}


def run_of(training, seed=0):
    return training.folder / "runs" / f"seed-{seed}"


def stop_of(training, seed=0):
    return json.loads((run_of(training, seed) / "stop.json").read_text())


def first_reached(episodes, value):
    """The first episode after which the mean of recent episodes has reached a value, by
    definition.
    """
    for count in range(recent.SETTLED, len(episodes) + 1):
        weights = recent.recent_weights(episodes.steps[:count])
        values = episodes.values[count - len(weights) : count]
        if np.average(values, weights=weights) >= value:
            return count
    return None


def test_a_run_stops_when_recent_episodes_have_reached_a_value(tmp_path):
    lake = "FrozenLake-v1(is_slippery=False)"
    whole = train_without_report(lake, steps=6000, out=tmp_path / "whole", **OPTIONS)
    count = first_reached(read_episodes(run_of(whole)), 0.6)
    assert count is not None
    training = esbas.train(lake, steps=6000, until=0.6, out=tmp_path / "it", **OPTIONS)
    episodes = read_episodes(run_of(training))
    assert len(episodes) == count
    assert training.finished
    assert training.score.mean >= 0.6
    assert stop_of(training) == {
        "steps": int(episodes.steps[-1]),
        "reason": "until",
        "limits": {"steps": 6000, "episodes": None, "minutes": None, "until": 0.6},
    }
    assert training.policy().steps == episodes.steps[-1]  # the usual evaluation
    assert "Stopped at a mean value of 0.6" in " ".join(training.report.read_text().split())


def test_each_run_stops_by_itself(tmp_path):
    training = train_without_report(
        "FrozenLake-v1(is_slippery=False)",
        steps=6000,
        until=0.6,
        seeds=range(3),
        out=tmp_path / "it",
        **OPTIONS,
    )
    ends = [stop_of(training, seed)["steps"] for seed in range(3)]
    assert len(set(ends)) > 1
    assert ends == list(training.runs()["steps"])


def test_values_that_are_minimized_stop_from_above(tmp_path):
    options = OPTIONS | {"learners": "random", "objective": "shortest"}
    training = train_without_report(
        "CartPole-v1", steps=20_000, until=40, out=tmp_path / "it", **options
    )
    assert training.score.mean <= 40
    assert training.runs()["episodes"] == (recent.SETTLED,)
    never = train_without_report(
        "CartPole-v1", steps=1000, until=4, out=tmp_path / "never", **options
    )
    assert never.runs()["steps"][0] >= 1000


def test_the_first_episodes_never_stop_a_run(tmp_path):
    training = train_without_report(
        "CartPole-v1", episodes=recent.SETTLED - 1, until=0, learners="random", out=tmp_path / "it"
    )
    assert training.runs()["episodes"] == (recent.SETTLED - 1,)


class Slow(gymnasium.Wrapper):
    """Takes a millisecond per step."""

    def step(self, action):
        time.sleep(0.001)
        return super().step(action)


def test_a_run_stops_after_some_minutes(tmp_path):
    training = train_without_report(
        "CartPole-v1",
        steps=10**9,
        minutes=0.5 / 60,
        wrappers=Slow,
        out=tmp_path / "it",
        **OPTIONS | {"learners": "random"},
    )
    assert training.finished
    assert stop_of(training)["reason"] == "minutes"
    assert 0.5 <= training.runs()["seconds"][0] < 60
    assert training.policy().steps == stop_of(training)["steps"]


class StopAt(esbas.Callback):
    """Asks to stop after an episode."""

    def __init__(self, episode=7):
        self.episode = episode
        self.ended = []

    def on_episode(self, record, *, steps):
        return record.number == self.episode

    def on_end(self, *, finished):
        self.ended.append(finished)


def test_a_callback_stops_a_run(tmp_path):
    callback = StopAt()
    training = train_without_report(
        "CartPole-v1", callbacks=[callback], out=tmp_path / "it", **OPTIONS | {"learners": "random"}
    )
    assert training.runs()["episodes"] == (7,)
    assert stop_of(training)["reason"] == "callback"
    assert callback.ended == [True]


def test_on_the_command_line_too(tmp_path, capsys):
    command = [
        "train",
        "CartPole-v1",
        "--learners",
        "random",
        "--no-tensorboard",
        "--out",
        str(tmp_path / "it"),
    ]
    assert cli.main([*command, "--callbacks", "training.test_stopping:StopAt(episode=9)"]) == 0
    assert "Stopped because a callback asked for it: seed 0 at step" in " ".join(
        capsys.readouterr().out.split()
    )
    assert cli.main([*command, "--until", "5"]) == 0
    assert len(read_episodes(tmp_path / "it-2" / "runs" / "seed-0")) == recent.SETTLED


@pytest.mark.parametrize("until", [0.6, None])
def test_a_stopped_run_that_was_killed_ends_at_the_same_step(tmp_path, until):
    """The stop is stored as a number of steps: it counts even if the reason would not come
    again.
    """
    options = OPTIONS | {"steps": 6000, "out": tmp_path / "it"}
    if until is None:
        options["callbacks"] = [StopAt(60)]
    else:
        options["until"] = until
    training = train_without_report("FrozenLake-v1(is_slippery=False)", **options)
    whole = shutil.copytree(training.folder, tmp_path / "whole")
    shutil.rmtree(run_of(training) / "replay", ignore_errors=True)
    for name in (
        "checkpoint.npz",
        "clock.json",
        "best.npz",
        "evaluations.csv",
        "episodes.csv",
        "faults.csv",
    ):
        (run_of(training) / name).unlink()  # killed before the first checkpoint, but after the stop
    again = esbas.load_training(training.folder).extend(progress=False, tensorboard=False)
    assert again.finished
    assert_same(numbers(whole), numbers(training.folder))


def test_a_stopped_run_that_is_extended_goes_on(tmp_path):
    training = train_without_report(
        "FrozenLake-v1(is_slippery=False)", steps=6000, until=0.6, out=tmp_path / "it", **OPTIONS
    )
    end = training.runs()["steps"][0]
    training.extend(steps=7000, progress=False, tensorboard=False)
    assert training.runs()["steps"][0] >= 7000 > end
    assert training.config.until is None
    whole = train_without_report(
        "FrozenLake-v1(is_slippery=False)", steps=7000, out=tmp_path / "whole", **OPTIONS
    )
    assert_same(numbers(whole.folder), numbers(training.folder))
    about = json.loads((training.folder / "config.json").read_text())
    assert about["earlier"] == [{"steps": 6000, "until": 0.6, "seeds": [0]}]
