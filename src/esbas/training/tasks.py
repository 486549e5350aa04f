"""Tasks by name: any registered Gymnasium environment, with wrappers."""

from collections.abc import Sequence
from typing import Any

import gymnasium


def make_task(env_id: str, *, wrappers: Sequence[str] = (), render_mode: str | None = None) -> gymnasium.Env[Any, Any]:
    """The environment with this id, inside wrappers such as "TimeLimit(max_episode_steps=200)", the first one innermost."""
    raise NotImplementedError(env_id, wrappers, render_mode)
