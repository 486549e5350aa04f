"""The options of a training: one definition for `esbas.train`, `esbas train` and config.json."""

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, Field, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

import tyro
from tyro.constructors import PrimitiveConstructorSpec

from esbas._internal import values
from esbas._internal.schema import short
from esbas.errors import InvalidValueError
from esbas.selectors.recommended import RECOMMENDED
from esbas.specs import sources

DEFAULT_STEPS = 60_000
LONGEST_FILE_NAME = 100
_LARGEST_BUDGET = 10**15  # a million years of steps; a larger number is a typing error
_LIST_OF_ENVIRONMENTS = (
    "python -c 'import gymnasium; gymnasium.pprint_registry()' lists all that are installed"
)


def decisive(default: Any) -> Any:
    """Declare an option that decides results: it is stored, and a training keeps its value."""
    return field(default=default, metadata={"decides": True})


def _words(metavar: str) -> PrimitiveConstructorSpec[Any]:
    """Read any number of words on the command line; in Python, they may be other objects."""
    return PrimitiveConstructorSpec(
        nargs="*",
        metavar=f"[{metavar} ...]",
        instance_from_str=tuple,
        is_instance=lambda _: True,
        str_from_instance=lambda given: [sources.label_of(each) for each in given or ()],
    )


def _word(metavar: str) -> PrimitiveConstructorSpec[Any]:
    """Read one word on the command line; in Python, it may be another object."""
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=lambda words: words[0],
        is_instance=lambda _: True,
        str_from_instance=lambda given: [sources.label_of(given)],
    )


PathOption = Annotated[str | os.PathLike[str] | None, _word("PATH")]
Numbers = Annotated[
    Sequence[int],
    PrimitiveConstructorSpec(
        nargs="*",
        metavar="INT...",
        instance_from_str=tuple,  # `values` reads them, as it reads text in Python
        is_instance=lambda _: True,
        str_from_instance=lambda given: [str(each) for each in given],
    ),
]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How the runs of a training are executed. Results do not depend on it."""

    jobs: int = 1
    """How many seeds run at the same time."""
    engine: Annotated[Any, _word("NAME")] = None
    """Where the runs are executed: sequential, processes, ray (also ray:auto or ray://HOST:PORT for
    a running cluster), or module:Class. Default: processes if several run at the same time."""
    resources: Annotated[Mapping[str, float] | Sequence[str], _words("NAME=NUMBER")] = ()
    """What the engine ray reserves for each run, such as cpus=2 gpus=0.5 memory=4 (in GB). Default:
    cpus=1."""
    processes: int | None = None
    """Processes that train networks with convolutions beside the acting. Default: the number of
    usable cores divided by the number of runs at the same time, or the CPUs that resources
    reserve."""
    checkpoint_every: float = 30.0
    """Seconds between two checkpoints. A training that is killed continues from the last one, with
    the same results."""
    tensorboard: bool = True
    """Write TensorBoard logs into FOLDER/runs/seed-N/tensorboard, if TensorBoard is installed."""
    callbacks: Annotated[Sequence[Any], _words("MODULE:CLASS")] = ()
    """Callbacks of your own, such as module:Class or "module:Class(option=1)": docs/metrics.md. A
    callback can also stop a run."""
    progress: bool = True
    """Show progress: a live view in a terminal or a notebook, plain lines elsewhere."""

    def __post_init__(self) -> None:
        self._set("jobs", values.whole("jobs", self.jobs, at_least=1))
        self._set("resources", values.settings("resources", self.resources))
        if self.processes is not None:
            self._set("processes", values.whole("processes", self.processes, at_least=1))
        seconds = values.number("checkpoint_every", self.checkpoint_every, at_least=0)
        self._set("checkpoint_every", seconds)
        self._set("tensorboard", values.truth("tensorboard", self.tensorboard))
        self._set("progress", values.truth("progress", self.progress))
        self._set("callbacks", self._checked_callbacks())
        self._set("engine", self._checked_engine())

    @property
    def resource_words(self) -> tuple[str, ...]:
        """The resources as words such as "cpus=2"."""
        return tuple(self.resources)

    def _set(self, name: str, value: Any) -> None:
        """Replace a given value by its final form, which a frozen dataclass otherwise forbids."""
        object.__setattr__(self, name, value)

    def _checked_callbacks(self) -> tuple[Any, ...]:
        given = self.callbacks
        is_single = isinstance(given, str) or callable(given) or hasattr(given, "on_episode")
        listed = (given,) if is_single else values.items("callbacks", given)
        return tuple(sources.named(each) for each in listed)

    def _checked_engine(self) -> Any:
        given = self.engine
        if given is None or isinstance(given, str):
            return given
        if isinstance(given, type):
            return sources.importable_name(given) or given()
        if not callable(getattr(given, "map", None)):
            what = "the name of an engine, or an object with a method `map`"
            raise InvalidValueError(f"`engine` must be {what}, but got {short(given)}.")
        return given


@dataclass(frozen=True)
class TrainingConfig(RunOptions):
    """Train a portfolio of learners on a Gymnasium environment.

    One learner controls each episode; all learn from all episodes. esbas train CartPole-v1 trains
    four DQNs, and esbas train FrozenLake-v1 trains tables. esbas example writes a commented
    portfolio to start from.
    """

    env: Annotated[Any, tyro.conf.Positional, _word("ENV")] = decisive("")
    """The environment: a Gymnasium id such as CartPole-v1, "FrozenLake-v1(is_slippery=False)",
    package:Id to import the package that registers it, module:Class or myenv.py:Class for an
    environment of your own, or myenv.py if there is only one in it."""
    _: KW_ONLY
    env_kwargs: Annotated[Mapping[str, Any] | Sequence[str], _words("NAME=VALUE")] = decisive(())
    """Options of the environment, such as is_slippery=False map_name=8x8. Default: its own."""
    learners: Annotated[Any, _words("NAME")] = decisive(None)
    """The learners: dqn, "dqn(learning_rate=0.001, n_steps=3)", sb3.qrdqn,
    "module:Class(option=1)", "mylearner.py:Class", or mylearners.py:function for a function of the
    environment and the seed that returns a list. Default: tables for discrete observations and
    actions, otherwise four DQNs for discrete actions and Stable-Baselines3 models for continuous
    actions."""
    portfolio: PathOption = decisive(None)
    """The learners as a TOML file, instead of a list. Default: see learners."""
    selector: Annotated[Any, _word("NAME")] = decisive(RECOMMENDED)
    """How learners are chosen: kalman-thompson, ssbas, esbas, uniform, shared-evidence,
    linear-thompson, fixed:NAME, any of `esbas bandits`, or module:Class; with options as in
    "ssbas(xi=1)" or "exp3(gamma=0.1)"."""
    scale: Annotated[Any, _word("SCALE")] = decisive("auto")
    """How values are scaled for the selector: auto (from recent values), raw (as in the paper), or
    LOW,HIGH such as 0,500."""
    xi: float | None = decisive(None)
    """The parameter of UCB1 in ssbas, esbas and ucb1. Default: the paper's 1/4."""
    epochs: Numbers = decisive(())
    """Epoch lengths, such as 20 20 40; then lengths double. Learners learn when an epoch starts.
    Default: the selector's own."""
    steps: int | None = decisive(None)
    """The budget of a run in environment steps, such as 100000, 1e5, 100k or 2M. The last episode
    is played to its end. Default: 60,000 if no number of episodes is given."""
    episodes: int | None = decisive(None)
    """The budget in episodes, instead of steps. Default: as many as the steps allow."""
    minutes: float | None = decisive(None)
    """Stop a run after this many minutes of training, if its budget is not used up before. Default:
    no limit."""
    until: float | None = decisive(None)
    """Stop a run when the mean value of its recent episodes has reached this number, from its
    twentieth episode on. Recent are the episodes of the last tenth of the steps, and at least 5.
    Default: no such number."""
    objective: Annotated[Any, _word("NAME")] = decisive("return")
    """The value of an episode: return, discounted (gamma 0.99), longest, shortest, success_rate,
    "constrained_return(cost='cost', limit=25, penalty=10)", or module:name."""
    seeds: Numbers = decisive((0,))
    """One run per seed, such as 0 1 2, 0,1,2 or 0-4. Results are averaged over the runs, with
    confidence intervals."""
    wrappers: Annotated[Sequence[Any], _words("NAME")] = decisive(())
    """Wrappers around the environment, the innermost first: those of Gymnasium such as
    "TimeLimit(max_episode_steps=200)", DiscreteActions, DiscreteObservations, or module:Class.
    Default: preprocessing for Atari games, which --wrappers none removes, otherwise none. Dict and
    Tuple observations are converted by themselves."""
    normalize_observations: bool = decisive(False)
    """Shift and scale each component of observations by its mean and deviation over 1,000 steps
    with random actions, which are played before and are not part of the budget. It helps if
    components have very different sizes."""
    max_episode_steps: int = decisive(100_000)
    """An episode is truncated after this many steps, for environments that may never end one."""
    learn_timeout: float | None = decisive(None)
    """Seconds per learning call of a learner. A learner that takes longer is dismissed for a while.
    Default: no limit."""
    eval_every: int = decisive(0)
    """Steps between two evaluations, such as 5000 or 5k, in which the greedy policies play without
    learning. The best one is kept. Default: only at the end."""
    eval_episodes: int = decisive(10)
    """Episodes per learner in an evaluation, if the steps for it allow it. At the end, learners
    that may be the best play more, in at most half of the training's steps."""
    start_from: PathOption = decisive(None)
    """The folder of an earlier training: learners with the same name and algorithm start from what
    was learnt there. Default: none."""
    device: str | None = decisive(None)
    """Where deep learners compute, unless a learner sets its own device: cpu, cuda, mps or auto.
    Default: that of the algorithm."""
    out: PathOption = None
    """The folder for all files. The same command continues an unfinished training there; if the
    folder is taken, a free name is used. Default: ./esbas-ENV."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_env()
        self._check_budget()
        self._check_parts()
        self._check_selector()
        normalizes = values.truth("normalize_observations", self.normalize_observations)
        self._set("normalize_observations", normalizes)
        longest = values.whole("max_episode_steps", self.max_episode_steps, at_least=1)
        self._set("max_episode_steps", longest)
        self._set("eval_every", values.whole("eval_every", self.eval_every, at_least=0))
        self._set("eval_episodes", values.whole("eval_episodes", self.eval_episodes, at_least=1))
        if self.learn_timeout is not None:
            self._set("learn_timeout", values.number("learn_timeout", self.learn_timeout, above=0))
        if self.device is not None:
            values.text("device", self.device)
        for name in ("portfolio", "start_from", "out"):
            given = getattr(self, name)
            if given is not None:
                self._set(name, str(values.path(name, given)))

    def _check_env(self) -> None:
        from esbas.specs.env_names import given_env

        if self.env is None or self.env == "":
            remedy = "try CartPole-v1, FrozenLake-v1 or Pendulum-v1, or your own as myenv.py"
            raise InvalidValueError(f"No environment is given: {remedy}; {_LIST_OF_ENVIRONMENTS}.")
        self._set("env", given_env(self.env, self.env_kwargs))
        self._set("env_kwargs", ())  # they are part of `env` now

    def _check_budget(self) -> None:
        found = values.seeds("seeds", self.seeds)
        if not found:
            raise InvalidValueError("`seeds` must not be empty.")
        self._set("seeds", found)
        if self.steps is not None and self.episodes is not None:
            raise InvalidValueError("Give `steps` or `episodes`, not both.")
        if self.steps is None and self.episodes is None:
            self._set("steps", DEFAULT_STEPS)
        for name in ("steps", "episodes"):
            given = getattr(self, name)
            if given is not None:
                budget = values.whole(name, given, at_least=1, at_most=_LARGEST_BUDGET)
                self._set(name, budget)
        if self.minutes is not None:
            self._set("minutes", values.number("minutes", self.minutes, above=0))
        if self.until is not None:
            self._set("until", values.number("until", self.until))

    def _check_parts(self) -> None:
        from esbas.specs.envs import given_wrappers
        from esbas.specs.portfolios.given import given_learners

        if self.learners is not None:
            self._set("learners", given_learners(self.learners))
            if not self.learners:
                raise InvalidValueError(
                    "`learners` must not be empty: leave it out for the default learners."
                )
        if self.learners is not None and self.portfolio is not None:
            raise InvalidValueError("Give `learners` or `portfolio`, not both.")
        self._set("wrappers", given_wrappers(self.wrappers))

    def _check_selector(self) -> None:
        from esbas.specs.selectors import given_objective, given_scale, given_selector

        self._set("selector", given_selector(self.selector))
        self._set("objective", given_objective(self.objective))
        self._set("scale", given_scale(self.scale))
        if self.xi is not None:
            self._set("xi", values.number("xi", self.xi))
        lengths = () if self.epochs is None else self.epochs
        self._set("epochs", values.wholes("epochs", lengths, at_least=1))

    @property
    def env_name(self) -> str:
        """The environment for people: its name with its options."""
        if isinstance(self.env, str):
            return self.env
        from esbas.specs.env_names import name_of

        return name_of(self.env)

    @property
    def selector_name(self) -> str:
        return sources.label_of(self.selector)

    @property
    def folder(self) -> Path:
        """The folder that is wanted; the training has another one if this is taken."""
        if self.out is not None:
            return Path(self.out)
        return Path(f"esbas-{file_name(self.env_name)}")

    @property
    def unnamed(self) -> dict[str, str]:
        """The parts that need this process, because they have no name to import them by."""
        found: dict[str, str] = {}
        for name in ("env", "learners", "selector", "objective", "wrappers", "callbacks"):
            given = getattr(self, name)
            if not sources.is_text(given):
                found[name] = self.env_name if name == "env" else sources.label_of(given)
        return found

    def to_plain(self) -> dict[str, Any]:
        """Return the options that decide results as plain data, for config.json."""
        plain = {}
        for each in decisive_fields():
            plain[each.name] = sources.to_plain(getattr(self, each.name))
        if isinstance(plain["env"], dict):  # an object: its id says more than its class
            plain["env"] = {"object": self.env_name}
        return plain

    @classmethod
    def from_plain(cls, data: Mapping[str, Any], **more: Any) -> "TrainingConfig":
        """Return the options that `to_plain` described.

        Args:
            data: options by name. Those that are missing have their defaults.
            more: options that do not decide results.
        """
        known = {each.name for each in decisive_fields()}
        options = {}
        for name, value in data.items():
            if name not in known:
                raise InvalidValueError(f"There is no option of a training named {short(name)}.")
            options[name] = sources.from_plain(value)
        return cls(**options, **more)


def decisive_fields() -> list[Field[Any]]:
    """Return the fields that decide results."""
    return [each for each in fields(TrainingConfig) if each.metadata.get("decides")]


def usable_cores() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def file_name(env: str) -> str:
    """Return a name with letters, digits, dots, dashes and underscores only.

    >>> file_name("FrozenLake-v1(is_slippery=False, map_name='8x8')")
    'FrozenLake-v1-is_slippery-False-map_name-8x8'
    """
    without_suffix = re.sub(r"\.py\b", "", env)
    plain = re.sub(r"[^\w.-]+", "-", without_suffix).strip("-.")
    if len(plain) <= LONGEST_FILE_NAME:
        return plain
    digest = hashlib.sha256(env.encode()).hexdigest()  # keeps long names different
    return f"{plain[:LONGEST_FILE_NAME]}-{digest[:8]}"
