"""A recipe: a portfolio as TOML text, from which the learners can be built."""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

from esbas.envs.wrappers import number_of
from esbas.errors import InvalidValueError, SpaceError, require, unknown
from esbas.learner import Learner
from esbas.learners import SharedReplay
from esbas.training.atari_defaults import replay_of, stack_of
from esbas.training.options import checked, error_context, parameters_of, read_call
from esbas.training.portfolios.algorithms import ALGORITHMS, NUMBER_ACTIONS, find_algorithm
from esbas.training.portfolios.build import DISCRETE, OTHER, RESERVED, AlgorithmSpec, BuildContext, kind_of
from esbas.training.portfolios.members import MemberSpec, read_members
from esbas.training.portfolios.spaces import conversion, fits_a_table, is_large_image


@dataclass(frozen=True)
class Recipe:
    """A portfolio as text. Its learners can be built for different tasks, any number of times. Created by `read_recipe`."""

    text: str
    members: tuple[MemberSpec, ...] = field(compare=False, repr=False)
    memory: Mapping[str, Any] = field(compare=False, repr=False)  # options of the shared replay

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(member.name for member in self.members)

    def conversion(self, space: Any) -> str | None:
        """The wrapper that makes observations of this space fit the learners; None if none is needed, or none can.

        Learners of your own get observations as they are.
        """
        found = [ALGORITHMS.find(member.algorithm) for member in self.members]
        built_in = [each for each in found if isinstance(each, AlgorithmSpec)]
        tabular = any(each.observations == (DISCRETE,) for each in built_in)
        return conversion(space, tabular=tabular) if len(built_in) == len(found) else None

    def build(self, env: Any, *, steps: int, seed: int, folder: Path | None = None, processes: int = 1) -> list[Learner]:
        """Build the learners for a task.

        Args:
            env: the task.
            steps: the length of the run, for learning-rate and exploration schedules.
            seed: of the run.
            folder: where a large replay memory writes its rows; None: into save files.
            processes: how many processes train networks with convolutions.
        """
        context = self.context(env, steps=steps, seed=seed, folder=folder, processes=processes)
        for member in self.members:  # all of them before the first is built
            member.check_spaces(context)
        return [member.build(context) for member in self.members]

    def context(self, env: Any, *, steps: int, seed: int, folder: Path | None = None, processes: int = 1) -> BuildContext:
        """What the learners are built from."""
        require(steps >= 1, "steps >= 1", steps=steps)
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
        """The same portfolio with this device for all members that have the option and do not set it themselves."""
        able = [member for member in self.members if "device" in parameters_of(find_algorithm(member.algorithm).signature())]
        require(len(able) > 0, "a member has the option 'device'", "remove it", device=device)
        there = [
            replace(member, options={"device": device} | dict(member.options)) if member in able else member
            for member in self.members
        ]
        return replace(self, members=tuple(there))


def read_recipe(text: str, *, source: str) -> Recipe:
    """Read a portfolio in TOML; `source` names the text in errors. `example` explains the format."""
    tables = read_toml(text, source=source)
    with error_context(source):
        for name in tables:
            if name not in ("member", "replay"):
                raise unknown("table", name, ("member", "replay"))
        members, replay = tables.get("member"), tables.get("replay", {})
        listed = isinstance(members, list) and all(isinstance(each, dict) for each in members)
        rule, remedy = "a portfolio has members, each under [[member]]", 'add one, such as [[member]] with algorithm = "dqn"'
        require(listed and bool(members), rule, remedy, member=members)
        require(isinstance(replay, dict), "the options of the replay memory are under [replay]", replay=replay)
        memory = checked(SharedReplay, replay, kind="[replay]", reserved=RESERVED)
    return Recipe(text, read_members(members or [], source=source), memory)


def read_toml(text: str, *, source: str) -> dict[str, Any]:
    """Parse TOML; `source` names the text in errors."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also numbers with thousands of digits, and deep nesting
        raise InvalidValueError(f"{source} must be valid TOML, but: {str(error)[:200]}: fix that line") from error


def recipe_of(members: Sequence[str], *, replay: Mapping[str, Any] | None = None) -> Recipe:
    """A recipe from members such as "dqn", "dqn(rate=0.001, n_step=3)" or "module:Class(option=1)", and options of the memory."""
    lines = ["[replay]", *(f"{key} = {_toml(value)}" for key, value in replay.items()), ""] if replay else []
    for text in members:
        algorithm, options = read_call(text)
        with error_context(repr(text)):
            if "algorithm" in options:
                raise InvalidValueError("the algorithm must be given before the parentheses: remove it from the options")
            lines += ["[[member]]", f"algorithm = {_toml(algorithm)}"]
            lines += [f"{key} = {_toml(value)}" for key, value in options.items()] + [""]
    return read_recipe("\n".join(lines), source="the portfolio")


def default_recipe(env: Any) -> Recipe:
    """The default portfolio for a task.

    Tables for discrete observations and actions, DQNs for other tasks with discrete actions (with other networks for images),
    and Stable-Baselines3 models for continuous actions.
    """
    kind = kind_of(env.action_space)
    if kind == OTHER:
        message = (
            f"default portfolios need actions 0, ..., n - 1 or continuous actions, but the action space is {env.action_space}"
        )
        own = "wrap the task, or give a learner that supports it, as --members module:Class"
        raise SpaceError(f"{message}: " + (NUMBER_ACTIONS if number_of(env.action_space) else own))
    if kind == DISCRETE and fits_a_table(env.observation_space, int(env.action_space.n)):
        return read_recipe(_file("tabular.toml"), source="the default portfolio for discrete observations and actions")
    if kind == DISCRETE and is_large_image(env.observation_space):
        return read_recipe(_for_images(env), source="the default portfolio for images")
    return read_recipe(_file(f"{kind}.toml"), source=f"the default portfolio for {kind} actions")


def _for_images(env: Any) -> str:
    """The portfolio for Atari games with the options of the memory that fit these images."""
    text, own = _file("atari.toml"), {"stack": stack_of(env), "clip_rewards": False} | replay_of(env)
    for key, value in own.items():
        text = re.sub(rf"^{key} = \w+", f"{key} = {_toml(value)}", text, count=1, flags=re.MULTILINE)
    return text


def example() -> str:
    """A commented portfolio that works on CartPole-v1, and explains every table and algorithm."""
    return _file("example.toml")


def _file(name: str) -> str:
    return resources.files("esbas.training.portfolios").joinpath(name).read_text("utf-8")


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_toml(str(key))} = {_toml(item)}' for key, item in value.items())} }}" if value else "{}"
    raise InvalidValueError(f"a value must be a number, text, true or false, a list or a table, but is {value!r}: remove it")
