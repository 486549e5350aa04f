"""Learners with metrics and policy states, and callbacks, for the tests of `module:Class`."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from esbas.learners import EpsilonGreedy
from esbas.training import Callback


class Counting:
    """Counts transitions. Its policy is one number per action; its optimizer is the count."""

    stationary = False

    def __init__(self, name: str, *, action_space: Any, width: int = 1) -> None:
        self.name = name
        self.seen = 0
        self.weights = np.zeros((width, int(action_space.n)))

    def step(self, transition):
        self.seen += 1
        self.weights[:, transition.action] += 1

    def policy(self):
        return EpsilonGreedy(lambda observation: self.weights[0], 0.5)

    def metrics(self):
        return {"loss": 1.0 / max(self.seen, 1), "epsilon": 0.5, "mean Q": float("nan")}

    def state_dict(self):
        return {"seen": self.seen, "weights": self.weights.copy()}

    def load_state_dict(self, state):
        self.seen, self.weights[:] = state["seen"], state["weights"]

    def policy_state(self):
        return {"weights": self.weights.copy()}

    def load_policy_state(self, state):
        if state["weights"].shape != self.weights.shape:
            raise ValueError(f"the weights have the shape {state['weights'].shape}")
        self.weights[:] = state["weights"]


class Boastful(Counting):
    """Its metrics are no numbers."""

    def metrics(self):
        return {"loss": "small"}


class Logger(Callback):
    """Writes what it is told to FOLDER/log.jsonl."""

    def __init__(self, *, only: str = "") -> None:
        self._only = only

    def _log(self, kind, **content):
        if self._only in ("", kind):
            with self._path.open("a") as file:
                file.write(json.dumps({"kind": kind} | content) + "\n")

    def on_start(self, run):
        self._path = Path(run.folder) / "log.jsonl"
        self._log("start", steps=run.steps, learners=run.learners, seed=run.seed)

    def on_episode(self, record, *, steps):
        self._log("episode", number=record.number, steps=steps)

    def on_status(self, status):
        metrics = {learner.name: dict(learner.metrics) for learner in status.learners}
        self._log("status", steps=status.steps, current=status.current, metrics=metrics)

    def on_end(self, *, finished):
        self._log("end", finished=finished)


class Failing(Callback):
    """Raises an exception in one method."""

    def __init__(self, method: str) -> None:
        def fail(*_, **__):
            raise RuntimeError("no connection\nat all")

        setattr(self, method, fail)


class Placed(Counting):
    """Has a device."""

    def __init__(self, name: str, *, action_space: Any, device: str = "auto") -> None:
        super().__init__(name, action_space=action_space)
        self.device = device
