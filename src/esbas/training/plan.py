"""Everything that decides the numbers of a training run but its seed; from it, the same parts can be built again at any time."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import esbas
from esbas import session
from esbas.errors import require, unknown
from esbas.learner import Learner
from esbas.objective import Objective
from esbas.selectors.registry import make_selector
from esbas.training.portfolio import Recipe
from esbas.training.tasks import make_task

OBJECTIVES: dict[str, Callable[[], Objective]] = {
    "return": esbas.total_return,
    "discounted": esbas.discounted_return,
    "longest": lambda: esbas.episode_length(maximize=True),
    "shortest": esbas.episode_length,
}
"""What an episode is worth to the selector, by name."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is trained, who chooses, and for how long.

    Attributes:
        env_id: of a Gymnasium environment.
        recipe: the portfolio.
        selector: by name; see `esbas.selectors.make_selector`.
        objective: a name of `OBJECTIVES`.
        steps, episodes: the budget, in one of the two.
        wrappers: of the environment, from the inside out; see `make_task`.
        max_steps: an episode that goes on for longer is an error.
        time_limit: seconds for a member's learning call.
    """

    env_id: str
    recipe: Recipe
    selector: str = "ssbas"
    objective: str = "return"
    steps: int | None = None
    episodes: int | None = None
    wrappers: tuple[str, ...] = ()
    max_steps: int = 100_000
    time_limit: float | None = None

    def __post_init__(self) -> None:
        budget = {"steps": self.steps, "episodes": self.episodes}
        one = (self.steps is None) != (self.episodes is None)
        require(one, "the budget is given in steps or in episodes", "give one of the two", **budget)
        require((self.steps or self.episodes or 0) >= 1, "the budget is at least 1", **budget)
        if self.objective not in OBJECTIVES:
            raise unknown("objective", self.objective, OBJECTIVES)

    def task(self, *, render_mode: str | None = None) -> Any:
        """The environment."""
        return make_task(self.env_id, wrappers=self.wrappers, render_mode=render_mode)

    def start(self, seed: int) -> esbas.Run:
        """A new run."""
        env, learners, selector = self._parts(seed)
        return esbas.run(
            env,
            learners,
            selector,
            episodes=self.episodes,
            steps=self.steps,
            objective=OBJECTIVES[self.objective](),
            seed=seed,
            max_steps=self.max_steps,
            keep_data=session.needs_data(learners, selector),
            time_limit=self.time_limit,
        )

    def resume(self, checkpoint: str | os.PathLike[str], seed: int) -> esbas.Run:
        """The run that was saved there, exactly as it was."""
        objective = OBJECTIVES[self.objective]()
        return session.resume(checkpoint, *self._parts(seed), objective=objective, time_limit=self.time_limit)

    def _parts(self, seed: int) -> tuple[Any, list[Learner], esbas.Selector]:
        env = self.task()
        learners = self.recipe.build(env, steps=self._length(env), seed=seed)
        fixed = [learner.name for learner in learners if learner.stationary]
        return env, learners, make_selector(self.selector, [learner.name for learner in learners], stationary=fixed, seed=seed)

    def _length(self, env: Any) -> int:
        """In steps, for schedules that need to know; a budget in episodes is taken for episodes of full length."""
        if self.steps is not None:
            return self.steps
        longest = getattr(env.spec, "max_episode_steps", None) or min(self.max_steps, 1000)
        return int(self.episodes or 1) * int(longest)


def close(run: esbas.Run) -> None:
    """Let go of what a run holds: the environment's window, the processes of isolated members."""
    for part in (*run.loop.roster.learners, run.loop.env):
        getattr(part, "close", lambda: None)()
