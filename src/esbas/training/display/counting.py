"""An environment that counts steps, so that progress is visible while an episode runs."""

import time
from collections.abc import Callable
from typing import Any


class CountingEnv:
    """Passes everything on to an environment, and reports progress in long episodes.

    Args:
        env: any Gymnasium-style environment.
        report: called within `step`, with the steps of the current episode.
        every: seconds between two calls, and from `restart` to the first.
    """

    def __init__(self, env: Any, report: Callable[[int], None], *, every: float) -> None:
        self._env = env
        self._report = report
        self._every = every
        # Looked up once, because `step` is called often.
        self._step = env.step
        self._now = time.monotonic
        self.steps = 0  # in the current episode
        self.restart()

    def restart(self) -> None:
        """Start to wait again, because a status was reported elsewhere."""
        self._due = self._now() + self._every

    def reset(self, **options: Any) -> Any:
        self.steps = 0
        return self._env.reset(**options)

    def step(self, action: Any) -> Any:
        result = self._step(action)
        self.steps += 1
        if self._now() >= self._due:
            self._report(self.steps)
            self.restart()
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)
