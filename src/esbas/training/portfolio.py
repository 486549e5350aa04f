"""A portfolio as a text, in TOML: what a run's folder keeps, and what a person edits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from esbas.learner import Learner


@dataclass(frozen=True)
class Recipe:
    """A portfolio that can be built for any task it fits, any number of times."""

    text: str

    def build(self, env: Any, *, steps: int, seed: int) -> list[Learner]:
        """The learners; `steps` is the length of the run, which schedules refer to."""
        raise NotImplementedError(env, steps, seed)


def read_recipe(text: str, *, source: str) -> Recipe:
    """The recipe that the text tells; `source` names it in errors."""
    raise NotImplementedError(text, source)


def recipe_of(members: Sequence[str]) -> Recipe:
    """A recipe from members such as "dqn", "dqn(rate=0.001, n_step=3)", "sb3.qrdqn"; its text is the TOML it amounts to."""
    raise NotImplementedError(members)


def default_recipe(env: Any) -> Recipe:
    """A portfolio for the task's action space."""
    raise NotImplementedError(env)


def example() -> str:
    """A commented recipe that works on CartPole-v1 as it is, and explains every table and algorithm."""
    raise NotImplementedError
