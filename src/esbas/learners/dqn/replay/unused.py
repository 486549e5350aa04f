"""A replay memory for learners that act and do not learn."""

from typing import Any

from esbas.learners.deep.replay import SharedReplay


class UnusedReplay(SharedReplay):
    """Takes the place of a memory of any capacity without its space, and ignores what was saved of that."""

    def __init__(self, env: Any, *, capacity: int = 2, stack: int = 1, clip_rewards: bool = False) -> None:
        del capacity
        super().__init__(env, capacity=2, stack=stack, clip_rewards=clip_rewards)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        del state
