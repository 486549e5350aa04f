"""A plan: everything that decides the results of a training except the seed."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import esbas
from esbas import session
from esbas.errors import require
from esbas.learner import Learner
from esbas.objective import make_objective
from esbas.runner import Budget
from esbas.selectors.recommended import RECOMMENDED
from esbas.training import warm_start
from esbas.training.portfolios.recipe import Recipe
from esbas.training.selectors import read_scale, read_selector
from esbas.training.tasks import make_with_wrappers, wrap

ASSUMED_LENGTH = 1000  # steps of an episode without a time limit, for learning-rate schedules


def replay_folder(directory: Path) -> Path:
    """Where a large replay memory writes its rows, within the folder of a run."""
    return directory / "replay"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to train on which task, and for how long. The same plan and seed build the same run, in any process.

    Attributes:
        env_id: the name of the task with its options; see `make_task`.
        recipe: the portfolio.
        selector: a name, with options as in "ssbas(xi=1)"; see `esbas.training.selectors.read_selector`.
        scale: "auto", "raw", or "LOW,HIGH".
        xi: of UCB1; None: the selector's default.
        epochs: the lengths of the epochs; none: the selector's default.
        objective: a name; see `esbas.objective.make_objective`.
        steps, episodes: the budget, in one of the two.
        wrappers: of the environment, the innermost first; see `make_task`.
        max_steps: an episode with more steps is an error.
        time_limit: in seconds, for each learning call of a member.
        eval_every: environment steps between two evaluations; 0: only at the end.
        eval_episodes: of each member in an evaluation.
        start_from: the folder of an earlier training, from whose learners new runs start; see `esbas.training.warm_start`.
        env: an environment, or what creates it, if the name is not enough.
    """

    env_id: str
    recipe: Recipe
    selector: str = RECOMMENDED
    scale: str = "auto"
    xi: float | None = None
    epochs: tuple[int, ...] = ()
    objective: str = "return"
    steps: int | None = None
    episodes: int | None = None
    wrappers: tuple[str, ...] = ()
    max_steps: int = 100_000
    time_limit: float | None = None
    eval_every: int = 0
    eval_episodes: int = 10
    start_from: str | None = None
    env: Any = None

    def __post_init__(self) -> None:
        budget = {"steps": self.steps, "episodes": self.episodes}
        one = (self.steps is None) != (self.episodes is None)
        require(one, "the budget is given in steps or in episodes", "give one of the two", **budget)
        require((self.steps or self.episodes or 0) >= 1, "the budget is at least 1", **budget)
        require(self.eval_every >= 0, "eval_every >= 0", "0 evaluates only at the end", eval_every=self.eval_every)
        require(self.eval_episodes >= 1, "eval_episodes >= 1", eval_episodes=self.eval_episodes)
        make_objective(self.objective)
        read_scale(self.scale)

    def task(self, *, render_mode: str | None = None) -> Any:
        """The task with its wrappers and, if necessary, one that makes its observations fit the portfolio."""
        return self.wrapped_task(render_mode=render_mode)[0]

    def wrapped_task(self, *, render_mode: str | None = None) -> tuple[Any, tuple[str, ...]]:
        """The task, and all of its wrappers as text, including those that it gets by default."""
        source = self.env_id if self.env is None else self.env
        task, wrappers = make_with_wrappers(source, wrappers=self.wrappers, render_mode=render_mode)
        conversion = self.recipe.conversion(task.observation_space)
        return (task, wrappers) if conversion is None else (wrap(task, conversion), (*wrappers, conversion))

    def start(self, seed: int, *, folder: Path | None = None, processes: int = 1) -> esbas.Run:
        """Build a new run.

        Args:
            seed: of the run.
            folder: where a large replay memory writes its rows; None: into save files.
            processes: how many processes train networks with convolutions. Results do not depend on it.
        """
        env, learners, selector = self._parts(seed, folder, processes)
        warm_start.start_from(
            self.recipe.members, learners, self.recipe.context(env, steps=self._length(env), seed=seed), folder=self.start_from
        )
        return esbas.run(
            env,
            learners,
            selector,
            episodes=self.episodes,
            steps=self.steps,
            objective=make_objective(self.objective),
            seed=seed,
            max_steps=self.max_steps,
            keep_data=session.needs_data(learners, selector),
            time_limit=self.time_limit,
        )

    def resume(self, checkpoint: str | os.PathLike[str], seed: int, *, processes: int = 1) -> esbas.Run:
        """Build the run that was saved in this file. Its budget is that of the plan, which may have been extended."""
        parts = self._parts(seed, replay_folder(Path(checkpoint).parent), processes)
        run = session.resume(checkpoint, *parts, objective=make_objective(self.objective), time_limit=self.time_limit)
        run.budget = Budget(episodes=self.episodes, steps=self.steps)
        return run

    def _parts(self, seed: int, folder: Path | None, processes: int) -> tuple[Any, list[Learner], esbas.Selector]:
        env = self.task()
        learners = self.recipe.build(env, steps=self._length(env), seed=seed, folder=folder, processes=processes)
        fixed = [learner.name for learner in learners if learner.stationary]
        names = [learner.name for learner in learners]
        settings: dict[str, Any] = {"scale": self.scale, "xi": self.xi, "epochs": self.epochs}
        return env, learners, read_selector(self.selector, names, stationary=fixed, seed=seed, **settings)

    def _length(self, env: Any) -> int:
        """The length of the run in steps, for schedules. A budget in episodes assumes that all have the maximal length."""
        if self.steps is not None:
            return self.steps
        longest = getattr(env.spec, "max_episode_steps", None) or min(self.max_steps, ASSUMED_LENGTH)
        return int(self.episodes or 1) * int(longest)
