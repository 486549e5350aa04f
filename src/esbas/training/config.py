"""The options of `esbas train`."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import tyro

from esbas.engine import find_engine
from esbas.engine.threads import Threads
from esbas.errors import require
from esbas.training.options import checked
from esbas.training.portfolios.recipe import Recipe, default_recipe, read_recipe, recipe_of
from esbas.training.runs.one_run import SaveOptions
from esbas.training.runs.plan import Plan
from esbas.training.tasks import make_task

DEFAULT_STEPS = 60_000
_SELECTOR = "selector", "scale", "xi", "epochs"
_DECISIVE = (
    *("portfolio", "members", *_SELECTOR, "steps", "episodes", "objective", "seeds", "wrappers", "max_steps", "time_limit"),
)


@dataclass(frozen=True)
class Train:
    """Train a portfolio of learners on a Gymnasium task. One learner controls each episode; all learn from all episodes.

    esbas train CartPole-v1 trains six DQNs. esbas train --example writes a commented portfolio to start from.
    """

    env_id: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV_ID")] = ""
    """The task: a Gymnasium id such as CartPole-v1, or module:Id to import the module that registers it."""
    _: KW_ONLY
    portfolio: Path | None = None
    """The learners, as a TOML file. Default: six DQNs for discrete actions, Stable-Baselines3 models for continuous actions."""
    members: tuple[str, ...] = ()
    """The learners, instead of a file: dqn, "dqn(rate=0.001, n_step=3)", sb3.qrdqn, "module:Class(option=1)", ..."""
    selector: str = "ssbas"
    """How learners are chosen: ssbas, esbas, uniform, linear-thompson, fixed:NAME, any bandit of the library, or module:Class."""
    scale: str = "auto"
    """How values are scaled for the selector: auto (from recent values), raw (as in the paper), or LOW,HIGH such as 0,500."""
    xi: float | None = None
    """The parameter of UCB1 in ssbas, esbas and ucb1. Default: the paper's 1/4."""
    epochs: tuple[int, ...] = ()
    """Epoch lengths, such as 20 20 40; then lengths double. Learners learn when an epoch starts. Default: the selector's own."""
    steps: int | None = None
    """The budget in environment steps, default 60,000. The last episode is played to its end."""
    episodes: int | None = None
    """The budget in episodes, instead of steps."""
    objective: str = "return"
    """The value of an episode: return, discounted (gamma 0.99), longest, shortest, or module:name."""
    seeds: tuple[int, ...] = (0,)
    """One run per seed. Results are averaged over the runs, with confidence intervals."""
    wrappers: tuple[str, ...] = ()
    """Gymnasium wrappers around the task, the innermost first: "TimeLimit(max_episode_steps=200)" FlattenObservation."""
    max_steps: int = 100_000
    """An episode with more steps is an error."""
    time_limit: float | None = None
    """Seconds per learning call of a member. A member that takes longer is dismissed for a while. Default: no limit."""
    jobs: int = 1
    """How many seeds run at the same time. Results do not depend on it."""
    engine: str | None = None
    """Where the runs are executed: sequential, processes, or module:Class. Default: processes if several run at the same time."""
    checkpoint_every: float = 30.0
    """Seconds between two checkpoints. A training that is killed continues from the last one, with the same results."""
    tensorboard: bool = True
    """Write TensorBoard logs into FOLDER/runs/seed-N/tensorboard, if TensorBoard is installed."""
    out: Path | None = None
    """The folder for all files, default ./esbas-ENV_ID. The same command, or esbas resume FOLDER, continues there."""
    example: bool = False
    """Write a commented portfolio to ./portfolio.toml, and nothing else."""

    @property
    def folder(self) -> Path:
        return self.out or Path("esbas-" + "".join(c if c.isalnum() or c in "-_." else "-" for c in self.env_id))

    @property
    def saving(self) -> SaveOptions:
        return SaveOptions(checkpoint_every=self.checkpoint_every, tensorboard=self.tensorboard)

    def check(self) -> None:
        """Check the options that a plan does not contain."""
        require(len(self.seeds) > 0, "there is a seed", seeds=self.seeds)
        require(min(self.seeds) >= 0, "seeds are >= 0", seeds=self.seeds)
        require(len(set(self.seeds)) == len(self.seeds), "seeds are different", seeds=self.seeds)
        require(self.jobs >= 1, "jobs >= 1", jobs=self.jobs)
        require(self.checkpoint_every >= 0, "checkpoint_every >= 0", checkpoint_every=self.checkpoint_every)
        if self.engine is not None:
            shared = isinstance(find_engine(self.engine), Threads) and self.jobs > 1  # global generators, timers
            rule, remedy = "runs at the same time are in different processes", "--engine processes, or --jobs 1"
            require(not shared, rule, remedy, engine=self.engine, jobs=self.jobs)

    def recipe(self) -> Recipe:
        """The portfolio: from the file, from `members`, or the default one."""
        both = self.portfolio is not None and bool(self.members)
        require(
            not both, "a portfolio is a file or members", "give one of the two", portfolio=self.portfolio, members=self.members
        )
        if self.portfolio is not None:
            readable = self.portfolio.is_file()
            require(readable, "a portfolio is a file", "esbas train --example writes one", portfolio=str(self.portfolio))
            return read_recipe(self.portfolio.read_text("utf-8", errors="replace"), source=str(self.portfolio))
        return recipe_of(self.members) if self.members else default_recipe(make_task(self.env_id, wrappers=self.wrappers))

    def plan(self, recipe: Recipe) -> Plan:
        steps = DEFAULT_STEPS if self.steps is None and self.episodes is None else self.steps
        return Plan(
            env_id=self.env_id,
            recipe=recipe,
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
        )

    def options(self) -> dict[str, Any]:
        """The options that affect results, as plain data, without those that have their default value."""
        defaults = {field.name: field.default for field in fields(self)}
        chosen = {name: getattr(self, name) for name in _DECISIVE if getattr(self, name) != defaults[name]}
        return {name: str(value) if isinstance(value, Path) else value for name, value in chosen.items()}

    @classmethod
    def from_options(cls, env_id: str, options: Mapping[str, Any], **more: Any) -> "Train":
        """The inverse of `options`; raises an InvalidValueError for values of the wrong type and options that are unknown."""
        others = [field.name for field in fields(cls) if field.name not in _DECISIVE]
        plain = checked(cls, options, kind="a training", reserved=others, hints={"portfolio": str})
        if "portfolio" in plain:
            plain["portfolio"] = Path(plain["portfolio"])
        return cls(env_id, **plain, **more)
