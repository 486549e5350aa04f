"""A task that counts steps, so that progress is visible while an episode runs."""

import time
from collections.abc import Callable
from typing import Any


class CountingTask:
    """Passes everything on to the task, and calls `report` with the steps of the current episode if it takes long.

    Args:
        task: any Gymnasium-style environment.
        report: called within `step`.
        every: seconds between two calls, and from `restart` to the first.
    """

    def __init__(self, task: Any, report: Callable[[int], None], *, every: float) -> None:
        self._task, self._report, self._every = task, report, every
        self._step, self._now = task.step, time.monotonic  # looked up once: `step` is called often
        self.steps = 0  # in the current episode
        self.restart()

    def restart(self) -> None:
        """Start to wait again, because a status was reported elsewhere."""
        self._due = self._now() + self._every

    def reset(self, **options: Any) -> Any:
        self.steps = 0
        return self._task.reset(**options)

    def step(self, action: Any) -> Any:
        result = self._step(action)
        self.steps += 1
        if self._now() >= self._due:
            self._report(self.steps)
            self.restart()
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._task, name)
