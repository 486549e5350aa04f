"""A recipe: a portfolio as TOML text, from which the learners can be built."""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

from esbas._internal.values import truth
from esbas.errors import InvalidValueError, SpaceError, require, unknown
from esbas.learner import Learner
from esbas.learners import SharedReplay
from esbas.specs.atari_defaults import replay_of, stack_of
from esbas.specs.options import checked, error_context, parameters_of, read_call
from esbas.specs.portfolios.algorithms import ALGORITHMS, find_algorithm
from esbas.specs.portfolios.build import (
    DISCRETE,
    OTHER,
    RESERVED,
    AlgorithmSpec,
    BuildContext,
    kind_of,
)
from esbas.specs.portfolios.learner_tables import LearnerSpec, read_learner_tables
from esbas.specs.portfolios.spaces import (
    conversions,
    fits_a_table,
    is_large_image,
    numbered,
    too_many_actions,
)

_TABLES = "learner", "replay", "normalize_observations"


@dataclass(frozen=True)
class Recipe:
    """A portfolio as text, created by `read_recipe`.

    Its learners can be built for different environments, any number of times.

    Attributes:
        text: the TOML.
        learners: the learners, before they are built.
        memory: the options of the replay memory that they share.
        normalize_observations: whether observations are normalized, as the option of a training.
    """

    text: str
    learners: tuple[LearnerSpec, ...] = field(compare=False, repr=False)
    memory: Mapping[str, Any] = field(compare=False, repr=False)
    normalize_observations: bool = field(default=False, compare=False, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(learner.name for learner in self.learners)

    def learner(self, name: str) -> LearnerSpec:
        """Return the learner with this name, before it is built."""
        for learner in self.learners:
            if learner.name == name:
                return learner
        raise unknown("learner", name, self.names)

    def conversions(self, observations: Any, actions: Any) -> tuple[str, ...]:
        """Return the wrappers that make an environment with these spaces fit the learners.

        The innermost comes first. There are none if none is needed, or none helps. Learner classes
        of the user get observations and actions as they are.
        """
        algorithms = [ALGORITHMS.find(learner.algorithm) for learner in self.learners]
        built_in = [each for each in algorithms if isinstance(each, AlgorithmSpec)]
        if len(built_in) < len(algorithms):
            return ()
        numbering: tuple[str, ...] = ()
        is_needed = not all(OTHER in each.actions for each in built_in)
        helps_all = all(DISCRETE in each.actions for each in built_in)
        if is_needed and helps_all and numbered(actions) is not actions:
            numbering = ("DiscreteActions",)
        has_table = any(each.observations == (DISCRETE,) for each in built_in)
        return (*numbering, *conversions(observations, tabular=has_table))

    def build(
        self, env: Any, *, steps: int, seed: int, folder: Path | None = None, processes: int = 1
    ) -> list[Learner]:
        """Build the learners for an environment.

        Args:
            env: the environment.
            steps: the length of the run, for learning-rate and exploration schedules.
            seed: of the run.
            folder: where a large replay memory writes its rows; None: into save files.
            processes: how many processes train networks with convolutions.
        """
        context = self.context(env, steps=steps, seed=seed, folder=folder, processes=processes)
        for learner in self.learners:  # all of them before the first is built
            learner.check_spaces(context)
        return [learner.build(context) for learner in self.learners]

    def context(
        self, env: Any, *, steps: int, seed: int, folder: Path | None = None, processes: int = 1
    ) -> BuildContext:
        """Return what the learners are built from; arguments as in `build`."""
        require(steps >= 1, f"`steps` must be at least 1, but got {steps!r}.")
        return BuildContext(
            observation_space=env.observation_space,
            action_space=env.action_space,
            memory=self.memory,
            steps=steps,
            seed=seed,
            folder=folder,
            processes=processes,
        )

    def on_device(self, device: str) -> "Recipe":
        """Return the same portfolio with this device for all learners that do not set it.

        Learners without the option `device` stay as they are.
        """
        learners: list[LearnerSpec] = []
        is_used = False
        for learner in self.learners:
            if "device" in parameters_of(find_algorithm(learner.algorithm).signature()):
                is_used = True
                learner = replace(learner, options={"device": device} | dict(learner.options))
            learners.append(learner)
        require(is_used, f"No learner has the option `device`, but got {device!r}: remove it.")
        return replace(self, learners=tuple(learners))


def read_recipe(text: str, *, source: str) -> Recipe:
    """Read a portfolio in TOML. `example` explains the format.

    Args:
        text: the TOML.
        source: names the text in errors.
    """
    tables = read_toml(text, source=source)
    with error_context(source):
        for name in tables:
            if name not in _TABLES:
                raise unknown("table", name, _TABLES)
        learners = tables.get("learner")
        is_list = isinstance(learners, list) and all(isinstance(each, dict) for each in learners)
        if not is_list or not learners:
            rule = "A portfolio must have learners, each under [[learner]]"
            got = "none" if learners is None else repr(learners)
            remedy = 'add one, such as [[learner]] with algorithm = "dqn"'
            raise InvalidValueError(f"{rule}, but got {got}: {remedy}.")
        replay = tables.get("replay", {})
        if not isinstance(replay, dict):
            rule = "The options of the replay memory must be under [replay]"
            raise InvalidValueError(f"{rule}, but got replay = {replay!r}.")
        memory = checked(SharedReplay, replay, kind="[replay]", reserved=RESERVED)
        normalizes = truth("normalize_observations", tables.get("normalize_observations", False))
    specs = read_learner_tables(learners, source=source)
    return Recipe(text, specs, memory, normalize_observations=normalizes)


def read_toml(text: str, *, source: str) -> dict[str, Any]:
    """Parse TOML; `source` names the text in errors."""
    try:
        return tomllib.loads(text)
    # The parser also fails with numbers of thousands of digits, and with deep nesting.
    except (ValueError, RecursionError) as error:
        problem = str(error)[:200].rstrip(".")
        raise InvalidValueError(
            f"{source} must be valid TOML, but: {problem}: fix that line."
        ) from error


def recipe_of(learners: Sequence[str], *, replay: Mapping[str, Any] | None = None) -> Recipe:
    """Return a recipe from texts such as "dqn(learning_rate=0.001)" or "module:Class(option=1)".

    Args:
        learners: the texts.
        replay: options of the replay memory.
    """
    lines: list[str] = []
    if replay:
        lines += ["[replay]", *_toml_lines(replay), ""]
    for text in learners:
        algorithm, options = read_call(text)
        with error_context(repr(text)):
            if "algorithm" in options:
                raise InvalidValueError(
                    "The algorithm must be given before the parentheses: "
                    "remove it from the options."
                )
            lines += ["[[learner]]", f"algorithm = {_toml(algorithm)}", *_toml_lines(options), ""]
    return read_recipe("\n".join(lines), source="The portfolio")


def default_recipe(env: Any) -> Recipe:
    """Return the default portfolio for an environment.

    Tables for discrete observations and actions, DQNs for other environments with discrete actions
    (with other networks for images), and Stable-Baselines3 models for continuous actions.
    """
    actions = numbered(env.action_space)  # `conversions` adds the wrapper that does this
    kind = kind_of(actions)
    if kind == OTHER:
        rule = "Default portfolios need discrete or continuous actions"
        problem = too_many_actions(actions)
        if problem is not None:
            raise SpaceError(f"{rule}, but the action space {actions} {problem}.")
        remedy = "wrap the environment, or give a learner that supports it, as "
        remedy += "--learners module:Class"
        raise SpaceError(f"{rule}, but the action space is {actions}: {remedy}.")
    if kind == DISCRETE and fits_a_table(env.observation_space, int(actions.n)):
        text = _file("tabular.toml")
        about = "discrete observations and actions"
    elif kind == DISCRETE and is_large_image(env.observation_space):
        text = _for_images(env)
        about = "images"
    else:
        text = _file(f"{kind}.toml")
        about = f"{kind} actions"
    return read_recipe(text, source=f"The default portfolio for {about}")


def _for_images(env: Any) -> str:
    """Return the portfolio for Atari games, with options of the memory that fit these images."""
    text = _file("atari.toml")
    fitting = {"stack": stack_of(env), "clip_rewards": False} | replay_of(env)
    for key, value in fitting.items():
        line = re.compile(rf"^{key} = \w+", re.MULTILINE)
        text = line.sub(f"{key} = {_toml(value)}", text, count=1)
    return text


def example() -> str:
    """Return a commented portfolio that works on CartPole-v1 and explains every algorithm."""
    return _file("example.toml")


def _file(name: str) -> str:
    return resources.files("esbas.specs.portfolios").joinpath(name).read_text("utf-8")


def _toml_lines(options: Mapping[str, Any]) -> list[str]:
    return [f"{key} = {_toml(value)}" for key, value in options.items()]


def _toml(value: Any) -> str:
    """Return a value as TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        items = [f"{_toml(str(key))} = {_toml(item)}" for key, item in value.items()]
        return f"{{ {', '.join(items)} }}" if items else "{}"
    kinds = "a number, text, true or false, a list or a table"
    raise InvalidValueError(f"A value must be {kinds}, but got {value!r}: remove it.")
