"""The options of `esbas train`."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import tyro

from esbas.errors import require
from esbas.training.plan import Plan
from esbas.training.portfolio import Recipe, default_recipe, read_recipe, recipe_of
from esbas.training.single import Keeping
from esbas.training.tasks import make_task

DEFAULT_STEPS = 60_000
_DECISIVE = "portfolio", "members", "selector", "steps", "episodes", "objective", "seeds", "wrappers", "max_steps", "time_limit"


@dataclass(frozen=True)
class Train:
    """Train a portfolio of learners on a Gymnasium task: one of them controls each episode, all of them learn from all episodes.

    esbas train CartPole-v1 trains six DQNs; esbas train --example writes a commented portfolio to start from.
    """

    env_id: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV_ID")] = ""
    """The task: a Gymnasium id, such as CartPole-v1, or module:Id for a package that registers it."""
    _: KW_ONLY
    portfolio: Path | None = None
    """The learners, as a TOML file. By default six DQNs for discrete actions, models of Stable-Baselines3 for continuous ones."""
    members: tuple[str, ...] = ()
    """The learners, instead of a file: dqn, "dqn(rate=0.001, n_step=3)", sb3.qrdqn, sb3.sac, ..."""
    selector: str = "ssbas"
    """Who chooses: ssbas, esbas, uniform, fixed:NAME, or any bandit of the library."""
    steps: int | None = None
    """The budget in environment steps, 60,000 by default; the episode that uses it up is finished."""
    episodes: int | None = None
    """The budget in episodes, instead of steps."""
    objective: str = "return"
    """What an episode is worth to the selector: return, discounted (0.99), longest or shortest."""
    seeds: tuple[int, ...] = (0,)
    """One run for each; results are averaged over them, with intervals."""
    wrappers: tuple[str, ...] = ()
    """Wrappers of Gymnasium around the task, from the inside out: "TimeLimit(max_episode_steps=200)" FlattenObservation."""
    max_steps: int = 100_000
    """An episode that goes on for longer is an error."""
    time_limit: float | None = None
    """Seconds for one learning call of a member; who takes longer is dismissed for a while. By default there is no limit."""
    jobs: int = 1
    """How many seeds go at once, each in a process of its own. The numbers do not depend on it."""
    checkpoint_every: float = 30.0
    """Seconds between two checkpoints. Whenever it is killed, training continues from the last one, with the same numbers."""
    tensorboard: bool = True
    """Write TensorBoard logs into FOLDER/runs/seed-N/tensorboard."""
    out: Path | None = None
    """The folder for everything: by default ./esbas-ENV_ID. The same command, or esbas resume FOLDER, continues there."""
    example: bool = False
    """Write a commented portfolio to ./portfolio.toml, and nothing else."""

    @property
    def folder(self) -> Path:
        """Where the results go."""
        return self.out or Path("esbas-" + "".join(c if c.isalnum() or c in "-_." else "-" for c in self.env_id))

    @property
    def keeping(self) -> Keeping:
        """What is kept besides the numbers."""
        return Keeping(checkpoint_every=self.checkpoint_every, tensorboard=self.tensorboard)

    def recipe(self) -> Recipe:
        """The portfolio: from the file, from the names, or the usual one."""
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
        """What to run."""
        steps = DEFAULT_STEPS if self.steps is None and self.episodes is None else self.steps
        return Plan(
            env_id=self.env_id,
            recipe=recipe,
            selector=self.selector,
            objective=self.objective,
            steps=steps,
            episodes=self.episodes,
            wrappers=self.wrappers,
            max_steps=self.max_steps,
            time_limit=self.time_limit,
        )

    def options(self) -> dict[str, Any]:
        """What decides the numbers, as plain data; left out where it is the default."""
        defaults = {field.name: field.default for field in fields(self)}
        chosen = {name: getattr(self, name) for name in _DECISIVE if getattr(self, name) != defaults[name]}
        return {name: str(value) if isinstance(value, Path) else value for name, value in chosen.items()}

    @classmethod
    def from_options(cls, env_id: str, options: Mapping[str, Any], **more: Any) -> "Train":
        """The way back from `options`."""
        plain: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
        if plain.get("portfolio") is not None:
            plain["portfolio"] = Path(plain["portfolio"])
        return cls(env_id, **plain, **more)
