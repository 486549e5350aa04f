"""A plan: everything that decides the results of a training except the seed."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import esbas
from esbas import session
from esbas.errors import InvalidValueError
from esbas.learner import Learner
from esbas.loop import Budget
from esbas.objective import Objective, as_objective, make_objective
from esbas.specs import atari_defaults
from esbas.specs.envs import make_with_wrappers, wrap
from esbas.specs.portfolios.build import BuildContext
from esbas.specs.portfolios.given import ASSUMED_LENGTH, MadePortfolio, is_made
from esbas.specs.portfolios.recipe import Recipe, default_recipe, read_recipe, recipe_of
from esbas.specs.selectors import make_given_selector
from esbas.training import warm_start
from esbas.training.config import TrainingConfig
from esbas.training.normalization import Normalization, measure, read_normalization


def replay_folder(directory: Path) -> Path:
    """Return the folder in which a large replay memory writes its rows, within that of a run."""
    return directory / "replay"


@dataclass(frozen=True)
class Plan:
    """What to train on which environment, and for how long.

    The same plan and seed build the same run, in any process.

    Attributes:
        config: the options of the training.
        portfolio: its learners.
        normalization: of observations; None if there is none, or before it is known.
    """

    config: TrainingConfig
    portfolio: Recipe | MadePortfolio
    normalization: Normalization | None = None

    @property
    def objective(self) -> Objective:
        """The value of an episode."""
        given = self.config.objective
        return make_objective(given) if isinstance(given, str) else as_objective(given)

    @property
    def normalizes(self) -> bool:
        """Whether observations are normalized."""
        in_file = isinstance(self.portfolio, Recipe) and self.portfolio.normalize_observations
        return self.config.normalize_observations or in_file

    def env(self, *, render_mode: str | None = None) -> Any:
        """Create the environment with all its wrappers, also those that it gets by default."""
        env, _ = self.wrapped_env(render_mode=render_mode)
        return env

    def wrapped_env(self, *, render_mode: str | None = None) -> tuple[Any, tuple[Any, ...]]:
        """Create the environment, and return it with the list of its wrappers."""
        wrappers = self.config.wrappers
        env, applied = make_with_wrappers(
            self.config.env, wrappers=wrappers, render_mode=render_mode
        )
        return self.fitted(env, applied)

    def fitted(self, env: Any, applied: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        """Add wrappers that convert or normalize, if the learners need them.

        Args:
            env: the environment.
            applied: its wrappers.

        Returns:
            The environment and its wrappers.
        """
        added = self.portfolio.conversions(env.observation_space, env.action_space)
        for wrapper in added:
            env = wrap(env, wrapper)
        return self.normalized(env, (*applied, *added))

    def normalized(self, env: Any, applied: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        """Add the wrapper that normalizes observations, if there is one; as `fitted`."""
        if self.normalization is None:
            return env, applied
        self.normalization.check_fits(env.observation_space)
        wrapper = self.normalization.wrapper
        return wrap(env, wrapper), (*applied, wrapper)

    def with_normalization(self, env: Any) -> "Plan":
        """Return the plan with the constants for its observations.

        They are those of an earlier training from which learners start, because what they learnt
        there needs them; otherwise, they are measured.

        Args:
            env: the environment as `fitted` returns it; its steps are played here.
        """
        if self.portfolio.memory.get("stack", 1) > 1:
            raise InvalidValueError(
                "`normalize_observations` cannot be used with stacked frames, which are stored "
                "once: remove the option, or `stack` under [replay]."
            )
        for folder in self._earlier_folders():
            found = read_normalization(Path(folder))
            if found is not None:
                return replace(self, normalization=found)
        return replace(self, normalization=measure(env))

    def _earlier_folders(self) -> list[str]:
        """Return the folders of trainings from which learners start."""
        named = [] if self.config.start_from is None else [str(self.config.start_from)]
        if isinstance(self.portfolio, Recipe):
            named += [each.start_from for each in self.portfolio.learners if each.start_from]
        return named

    def start(
        self, seed: int, *, env: Any = None, folder: Path | None = None, processes: int = 1
    ) -> esbas.Run:
        """Build a new run.

        Args:
            seed: of the run.
            env: the environment, as `env()` creates it, which is done if none is given.
            folder: where a large replay memory writes its rows; None: into save files.
            processes: how many processes train networks with convolutions. Results do not depend on
                it.
        """
        if env is None:
            env = self.env()
        learners = self._build_learners(env, seed, folder, processes)
        self._start_from_earlier(learners, env, seed)
        selector = self._build_selector(learners, seed)
        run = session.run(
            env,
            learners,
            selector,
            episodes=self.config.episodes,
            steps=self.config.steps,
            objective=self.objective,
            seed=seed,
            max_episode_steps=self.config.max_episode_steps,
            keep_data=session.needs_data(learners, selector),
            learn_timeout=self.config.learn_timeout,
        )
        run.truncates = True  # an error would lose what was learnt since the last checkpoint
        return run

    def resume(
        self, checkpoint: str | os.PathLike[str], seed: int, *, processes: int = 1
    ) -> esbas.Run:
        """Build the run that was saved in this file, with the budget of the plan."""
        env = self.env()
        folder = replay_folder(Path(checkpoint).parent)
        learners = self._build_learners(env, seed, folder, processes)
        selector = self._build_selector(learners, seed)
        run = session.resume(
            checkpoint,
            env,
            learners,
            selector,
            objective=self.objective,
            learn_timeout=self.config.learn_timeout,
        )
        run.budget = Budget(episodes=self.config.episodes, steps=self.config.steps)
        run.truncates = True
        return run

    def close(self, run: esbas.Run) -> None:
        """Close the environment and the learners of a run, except learners that the caller gave."""
        given = self.portfolio.items if isinstance(self.portfolio, MadePortfolio) else ()
        for learner in run.learners:
            is_given = any(learner is each for each in given)
            if not is_given:
                close_learner(learner)
        run.env.close()

    def build_learner(
        self,
        name: str,
        *,
        observation_space: Any,
        action_space: Any,
        seed: int,
        isolate: bool | None = None,
    ) -> Learner:
        """Build one learner for acting, to load a policy into it.

        Args:
            name: of the learner.
            observation_space: of the environment with its wrappers.
            action_space: likewise.
            seed: of the run.
            isolate: whether it gets a separate process; None: as in the portfolio.
        """
        # The steps are for schedules, which acting does not need.
        steps = self.config.steps or self.config.episodes or 1
        if isinstance(self.portfolio, MadePortfolio):
            env = self.env()
            try:
                return self.portfolio.build_one(name, env, steps=steps, seed=seed)
            finally:
                env.close()
        spec = self.portfolio.learner(name)
        context = BuildContext(
            observation_space=observation_space,
            action_space=action_space,
            memory=self.portfolio.memory,
            steps=steps,
            seed=seed,
            acting=True,
        )
        spec.check_spaces(context)
        if isolate is not None:
            spec = replace(spec, isolate=isolate)
        return spec.build(context)

    def _build_learners(
        self, env: Any, seed: int, folder: Path | None, processes: int
    ) -> list[Learner]:
        steps = self._length(env)
        return self.portfolio.build(env, steps=steps, seed=seed, folder=folder, processes=processes)

    def _build_selector(self, learners: list[Learner], seed: int) -> esbas.Selector:
        return make_given_selector(
            self.config.selector,
            [learner.name for learner in learners],
            stationary=[learner.name for learner in learners if learner.stationary],
            scale=self.config.scale,
            xi=self.config.xi,
            epochs=self.config.epochs,
            seed=seed,
        )

    def _start_from_earlier(self, learners: list[Learner], env: Any, seed: int) -> None:
        """Load what earlier trainings learnt, where the options name one."""
        folder = self.config.start_from
        if isinstance(self.portfolio, MadePortfolio):
            if folder is not None:
                remedy = "name the learners, or load their states where they are made"
                raise InvalidValueError(
                    f"`start_from` needs learners that are given by name: {remedy}."
                )
            return
        context = self.portfolio.context(env, steps=self._length(env), seed=seed)
        named = None if folder is None else str(folder)
        warm_start.start_from(
            self.portfolio.learners,
            learners,
            context,
            folder=named,
            normalization=self.normalization,
        )

    def _length(self, env: Any) -> int:
        """Return the length of a run in steps, for schedules; of episodes, the largest possible."""
        if self.config.steps is not None:
            return self.config.steps
        longest = getattr(env.spec, "max_episode_steps", None)
        if not longest:
            longest = min(self.config.max_episode_steps, ASSUMED_LENGTH)
        return int(self.config.episodes or 1) * int(longest)


def close_learner(learner: Any) -> None:
    """Close a learner if it has something to close, such as a process."""
    close = getattr(learner, "close", None)
    if close is not None:
        close()


def make_plan(config: TrainingConfig, env: Any) -> Plan:
    """Return the plan of a new training.

    Args:
        config: the options.
        env: the environment with the wrappers that the options name, from which default learners
            follow.
    """
    portfolio = _choose_portfolio(config, env)
    if config.device is not None:
        if isinstance(portfolio, MadePortfolio):
            raise InvalidValueError(
                "`device` needs learners that are given by name: set it where they are made."
            )
        portfolio = portfolio.on_device(config.device)
    return Plan(config, portfolio)


def _choose_portfolio(config: TrainingConfig, env: Any) -> Recipe | MadePortfolio:
    if config.portfolio is not None:
        path = Path(config.portfolio)
        if not path.is_file():
            raise InvalidValueError(
                f"`portfolio` must be a file, but {str(path)!r} is not: `esbas example` writes one."
            )
        return read_recipe(path.read_text("utf-8", errors="replace"), source=str(path))
    if config.learners is None:
        return default_recipe(env)
    if is_made(config.learners):
        return MadePortfolio(config.learners)
    return recipe_of(config.learners, replay=atari_defaults.replay_of(env))
