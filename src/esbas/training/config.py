"""The options of `esbas train`."""

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from tyro.constructors import PrimitiveConstructorSpec

from esbas.errors import require
from esbas.selectors.recommended import RECOMMENDED
from esbas.training.options import checked

if TYPE_CHECKING:  # imported where they are needed, so that `esbas train --help` is fast
    from esbas.training.portfolios.recipe import Recipe
    from esbas.training.runs.one_run import SaveOptions
    from esbas.training.runs.plan import Plan

DEFAULT_STEPS = 60_000
UNNAMED_SELECTOR = "ssbas"  # of folders that do not name one: the default until version 0.5
LONGEST_FILE_NAME = 100
_SELECTOR = "selector", "scale", "xi", "epochs"
_DECISIVE = (
    *("portfolio", "members", *_SELECTOR, "steps", "episodes", "objective", "seeds", "wrappers", "max_steps", "time_limit"),
    *("eval_every", "eval_episodes"),
    *("start_from", "device"),
)
_PATHS = "portfolio", "start_from"
Callbacks = Annotated[
    tuple[str | Callable[[], Any], ...],
    PrimitiveConstructorSpec(
        nargs="*",
        metavar="[MODULE:CLASS [MODULE:CLASS ...]]",
        instance_from_str=tuple,
        is_instance=lambda given: isinstance(given, tuple),
        str_from_instance=lambda given: [each if isinstance(each, str) else repr(each) for each in given],
    ),
]
"""Texts on the command line; in Python, also classes and functions without arguments."""


@dataclass(frozen=True)
class Train:
    """Train a portfolio of learners on a Gymnasium task. One learner controls each episode; all learn from all episodes.

    esbas train CartPole-v1 trains six DQNs, and esbas train FrozenLake-v1 trains tables. esbas train --example writes a commented
    portfolio to start from.
    """

    env_id: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TASK")] = ""
    """The task: a Gymnasium id such as CartPole-v1, "FrozenLake-v1(is_slippery=False)", package:Id to import the package that
    registers it, module:Class or mytask.py:Class for an environment of your own, or mytask.py if there is only one in it."""
    _: KW_ONLY
    env_kwargs: tuple[str, ...] = ()
    """Options of the task, such as is_slippery=False map_name=8x8. Default: its own."""
    portfolio: Path | None = None
    """The learners, as a TOML file. Default: tables for discrete observations and actions, otherwise six DQNs for discrete
    actions and Stable-Baselines3 models for continuous actions."""
    members: tuple[str, ...] = ()
    """The learners, instead of a file: dqn, "dqn(rate=0.001, n_step=3)", sb3.qrdqn, "module:Class(option=1)",
    "mylearner.py:Class", ... Default: see --portfolio."""
    selector: str = RECOMMENDED
    """How learners are chosen: kalman-thompson, ssbas, esbas, uniform, shared-evidence, linear-thompson, fixed:NAME, any of
    `esbas bandits`, or module:Class; with options as in "ssbas(xi=1)" or "exp3(gamma=0.1)"."""
    scale: str = "auto"
    """How values are scaled for the selector: auto (from recent values), raw (as in the paper), or LOW,HIGH such as 0,500."""
    xi: float | None = None
    """The parameter of UCB1 in ssbas, esbas and ucb1. Default: the paper's 1/4."""
    epochs: tuple[int, ...] = ()
    """Epoch lengths, such as 20 20 40; then lengths double. Learners learn when an epoch starts. Default: the selector's own."""
    steps: int | None = None
    """The budget in environment steps. The last episode is played to its end. Default: 60,000, if --episodes is not given."""
    episodes: int | None = None
    """The budget in episodes, instead of steps. Default: as many as the steps allow."""
    objective: str = "return"
    """The value of an episode: return, discounted (gamma 0.99), longest, shortest, or module:name."""
    seeds: tuple[int, ...] = (0,)
    """One run per seed. Results are averaged over the runs, with confidence intervals."""
    wrappers: tuple[str, ...] = ()
    """Wrappers around the task, the innermost first: those of Gymnasium such as "TimeLimit(max_episode_steps=200)",
    DiscreteActions, DiscreteObservations, or module:Class. Default: preprocessing for Atari games, which --wrappers none
    removes, otherwise none. Dict and Tuple observations are converted by themselves."""
    max_steps: int = 100_000
    """An episode with more steps is an error."""
    time_limit: float | None = None
    """Seconds per learning call of a member. A member that takes longer is dismissed for a while. Default: no limit."""
    eval_every: int = 0
    """Steps between two evaluations: greedy policies play, nobody learns, the best one is kept. Default: only at the end."""
    eval_episodes: int = 10
    """Episodes per learner in an evaluation. Without --eval-every, fewer if they would take over 10 % of the training's steps."""
    start_from: Path | None = None
    """The folder of an earlier training: members with the same name and algorithm start from what was learnt there.
    Default: none."""
    device: str | None = None
    """Where deep members compute, unless a member sets its own device: cpu, cuda, mps or auto. Default: that of the algorithm."""
    jobs: int = 1
    """How many seeds run at the same time. Results do not depend on it."""
    engine: str | None = None
    """Where the runs are executed: sequential, processes, ray (also ray:auto or ray://HOST:PORT for a running cluster), or
    module:Class. Default: processes if several run at the same time."""
    resources: tuple[str, ...] = ()
    """What --engine ray reserves for each run, such as cpus=2 gpus=0.5 memory=4 (in GB). Default: cpus=1."""
    processes: int | None = None
    """Processes that train networks with convolutions beside the acting. Results do not depend on it. Default: the number of
    usable cores divided by the number of runs at the same time, or the CPUs that --resources reserves."""
    checkpoint_every: float = 30.0
    """Seconds between two checkpoints. A training that is killed continues from the last one, with the same results."""
    tensorboard: bool = True
    """Write TensorBoard logs into FOLDER/runs/seed-N/tensorboard, if TensorBoard is installed."""
    callbacks: Callbacks = ()
    """Callbacks of your own, such as module:Class or "module:Class(option=1)": docs/metrics.md."""
    out: Path | None = None
    """The folder for all files. The same command, or esbas resume FOLDER, continues there. Default: ./esbas-TASK."""
    example: bool = False
    """Write a commented portfolio to ./portfolio.toml, and nothing else."""

    env: Annotated[Any, tyro.conf.Suppress] = None
    """In Python, instead of `env_id`: an environment, for one seed, which is never closed; or a function that creates one."""

    @cached_property
    def task(self) -> str:
        """The task with its options. An importable function is named, so that other processes and commands find it."""
        from esbas.training.task_names import complete_name, name_of

        require(not (self.env_id and self.env is not None), "a task is given by its name or as env", env_id=self.env_id)
        return complete_name(self.env_id if self.env is None else name_of(self.env), self.env_kwargs)

    @property
    def folder(self) -> Path:
        return self.out or Path(f"esbas-{file_name(self.task)}")

    @property
    def in_python(self) -> Any:
        """What creates the task, if its name alone does not; None otherwise."""
        from esbas.training.task_names import is_importable

        return None if self.env is None or is_importable(self.env) else self.env

    @property
    def _source(self) -> Any:
        return self.task if self.in_python is None else self.in_python

    @property
    def saving(self) -> "SaveOptions":
        from esbas.training.runs.one_run import SaveOptions

        placed = self._placed_cpus()
        share = max(1, usable_cores() // min(self.jobs, len(self.seeds)) if placed is None else int(placed))
        return SaveOptions(
            checkpoint_every=self.checkpoint_every,
            tensorboard=self.tensorboard,
            callbacks=self.callbacks,
            processes=share if self.processes is None else self.processes,
        )

    def check(self) -> None:
        """Check the options that a plan does not contain."""
        require(len(self.seeds) > 0, "there is a seed", seeds=self.seeds)
        require(min(self.seeds) >= 0, "seeds are >= 0", seeds=self.seeds)
        require(len(set(self.seeds)) == len(self.seeds), "seeds are different", seeds=self.seeds)
        require(self.jobs >= 1, "jobs >= 1", jobs=self.jobs)
        require(self.processes is None or self.processes >= 1, "processes >= 1", processes=self.processes)
        require(self.checkpoint_every >= 0, "checkpoint_every >= 0", checkpoint_every=self.checkpoint_every)
        if self.callbacks:
            from esbas.training.callbacks import find_callback

            for callback in self.callbacks:
                find_callback(callback)
        self._check_env()
        self._placed_cpus()
        if self.engine is not None:
            from esbas.engine import find_engine
            from esbas.engine.threads import Threads

            shared = isinstance(find_engine(self.engine), Threads) and self.jobs > 1  # global generators, timers
            rule, remedy = "runs at the same time are in different processes", "--engine processes, or --jobs 1"
            require(not shared, rule, remedy, engine=self.engine, jobs=self.jobs)

    def _placed_cpus(self) -> float | None:
        """The CPUs of a run on a cluster; None on this machine. Raises an error if the resources are invalid."""
        if self.engine is None and not self.resources:
            return None
        from esbas.engine import find_engine, is_remote, read_resources

        engine = find_engine(self.engine or "processes")
        resources = read_resources(self.resources, jobs=self.jobs, engine=engine)
        return resources.cpus if is_remote(engine) else None

    def _check_env(self) -> None:
        """An environment is one object, and a function without a name cannot be sent to another process."""
        if self.in_python is None:
            return
        remedy = "set them where the environment is created"
        require(not self.env_kwargs, "env_kwargs belong to a task that is given by its name", remedy, env_kwargs=self.env_kwargs)
        if not callable(self.env):
            require(
                len(self.seeds) == 1, "an environment is used for one seed", "give a function that creates it", seeds=self.seeds
            )
        remedy = "define it in a module, or use jobs=1"
        require(self.jobs == 1, "env is a function that other processes can import", remedy, env=self.task, jobs=self.jobs)

    def recipe(self) -> "Recipe":
        """The portfolio: from the file, from `members`, or the default one."""
        from esbas.training.atari_defaults import replay_of
        from esbas.training.portfolios.recipe import default_recipe, read_recipe, recipe_of
        from esbas.training.tasks import make_task

        both = self.portfolio is not None and bool(self.members)
        require(
            not both, "a portfolio is a file or members", "give one of the two", portfolio=self.portfolio, members=self.members
        )
        if self.portfolio is not None:
            readable = self.portfolio.is_file()
            require(readable, "a portfolio is a file", "esbas train --example writes one", portfolio=str(self.portfolio))
            return read_recipe(self.portfolio.read_text("utf-8", errors="replace"), source=str(self.portfolio))
        task = make_task(self._source, wrappers=self.wrappers)
        try:
            return recipe_of(self.members, replay=replay_of(task)) if self.members else default_recipe(task)
        finally:
            task.close()

    def plan(self, recipe: "Recipe") -> "Plan":
        from esbas.training.runs.plan import Plan

        steps = DEFAULT_STEPS if self.steps is None and self.episodes is None else self.steps
        return Plan(
            env_id=self.task,
            env=self.in_python,
            recipe=recipe if self.device is None else recipe.on_device(self.device),
            selector=self.selector,
            scale=self.scale,
            xi=self.xi,
            epochs=self.epochs,
            objective=self.objective,
            steps=steps,
            episodes=self.episodes,
            wrappers=self.wrappers,
            max_steps=self.max_steps,
            time_limit=self.time_limit,
            eval_every=self.eval_every,
            eval_episodes=self.eval_episodes,
            start_from=None if self.start_from is None else str(self.start_from),
        )

    def options(self) -> dict[str, Any]:
        """The selector, and the other options that affect results and do not have their default value, as plain data."""
        defaults = {field.name: field.default for field in fields(self) if field.name != "selector"}
        chosen = {name: getattr(self, name) for name in _DECISIVE if getattr(self, name) != defaults.get(name)}
        return {name: str(value) if isinstance(value, Path) else value for name, value in chosen.items()}

    @classmethod
    def from_options(cls, env_id: str, options: Mapping[str, Any], **more: Any) -> "Train":
        """The inverse of `options`; raises an InvalidValueError for values of the wrong type and options that are unknown."""
        others = [field.name for field in fields(cls) if field.name not in _DECISIVE]
        named = {"selector": UNNAMED_SELECTOR} | dict(options)
        plain = checked(cls, named, kind="a training", reserved=others, hints=dict.fromkeys(_PATHS, str))
        plain |= {name: Path(plain[name]) for name in _PATHS if name in plain}
        return cls(env_id if more.get("env") is None else "", **plain, **more)


def usable_cores() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def file_name(task: str) -> str:
    """The name of a task with letters, digits, dots, dashes and underscores only.

    >>> file_name("FrozenLake-v1(is_slippery=False, map_name='8x8')")
    'FrozenLake-v1-is_slippery-False-map_name-8x8'
    """
    plain = re.sub(r"[^\w.-]+", "-", re.sub(r"\.py\b", "", task)).strip("-.")
    if len(plain) <= LONGEST_FILE_NAME:
        return plain
    return f"{plain[:LONGEST_FILE_NAME]}-{hashlib.sha256(task.encode()).hexdigest()[:8]}"
