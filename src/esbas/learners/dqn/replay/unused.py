"""A replay memory for learners that act and do not learn."""

from typing import Any

from esbas.learners.dqn.replay.memory import SharedReplay


class UnusedReplay(SharedReplay):
    """Replaces a memory of any capacity, needs almost no space, and ignores what was saved."""

    def __init__(
        self, env: Any, *, buffer_size: int = 2, stack: int = 1, clip_rewards: bool = False
    ) -> None:
        del buffer_size
        super().__init__(env, buffer_size=2, stack=stack, clip_rewards=clip_rewards)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        del state
