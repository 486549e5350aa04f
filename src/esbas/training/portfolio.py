"""A portfolio as a text, in TOML: what people write, and what a run's folder keeps."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from esbas.errors import InvalidValueError, SpaceError, require, unknown
from esbas.learner import Learner
from esbas.learners import SharedReplay
from esbas.training.entries import Member, read_members
from esbas.training.options import checked, read_call, telling
from esbas.training.workshop import OTHER, Workshop, kind_of


@dataclass(frozen=True)
class Recipe:
    """A portfolio that can be built for any task it fits, any number of times. The text says it all; see `read_recipe`."""

    text: str
    members: tuple[Member, ...] = field(compare=False, repr=False)
    memory: Mapping[str, int] = field(compare=False, repr=False)  # options of the shared replay

    @property
    def names(self) -> tuple[str, ...]:
        """The members' names, in order."""
        return tuple(member.name for member in self.members)

    def build(self, env: Any, *, steps: int, seed: int) -> list[Learner]:
        """The learners for this task; `steps` is the length of the run, which schedules refer to."""
        require(steps >= 1, "steps >= 1", steps=steps)
        observed, done = env.observation_space, env.action_space
        shop = Workshop(observation_space=observed, action_space=done, memory=self.memory, steps=steps, seed=seed)
        for member in self.members:  # all of them before anything is made
            member.check_spaces(shop)
        return [member.build(shop) for member in self.members]


def read_recipe(text: str, *, source: str) -> Recipe:
    """The recipe that a text in TOML tells; `source` names it in errors. `example` explains what may stand in it."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidValueError(f"{source} must be in TOML, but: {error}: mend that line") from error
    with telling(source):
        for name in tables:
            if name not in ("member", "replay"):
                raise unknown("table", name, ("member", "replay"))
        members, replay = tables.get("member"), tables.get("replay", {})
        listed = isinstance(members, list) and all(isinstance(each, dict) for each in members)
        rule, remedy = "a portfolio has members, each under [[member]]", 'add one, such as [[member]] with algorithm = "dqn"'
        require(listed and bool(members), rule, remedy, member=members)
        require(isinstance(replay, dict), "the memory stands under [replay]", replay=replay)
        memory = checked(SharedReplay, replay, kind="[replay]", ours=("env",))
    return Recipe(text, read_members(members or [], source=source), memory)


def recipe_of(members: Sequence[str]) -> Recipe:
    """A recipe from members such as "dqn", "dqn(rate=0.001, n_step=3)", "sb3.qrdqn"; its text is the TOML it amounts to."""
    lines = []
    for text in members:
        algorithm, options = read_call(text)
        with telling(repr(text)):
            if "algorithm" in options:
                raise InvalidValueError("the algorithm must stand before the brackets: leave it out within them")
            lines += ["[[member]]", f"algorithm = {_toml(algorithm)}"]
            lines += [f"{key} = {_toml(value)}" for key, value in options.items()] + [""]
    return read_recipe("\n".join(lines), source="the portfolio")


def default_recipe(env: Any) -> Recipe:
    """A portfolio for the task's actions: DQNs, or members of Stable-Baselines3 where actions are continuous."""
    kind = kind_of(env.action_space)
    if kind == OTHER:
        told = (
            f"the usual portfolios are for actions 0, ..., n - 1 and for continuous ones, but those here are {env.action_space}"
        )
        raise SpaceError(f"{told}: wrap the task so that they are, or give a portfolio of learners that can")
    return read_recipe(_file(f"{kind}.toml"), source=f"the usual portfolio for {kind} actions")


def example() -> str:
    """A commented recipe that works on CartPole-v1 as it is, and explains every table and algorithm."""
    return _file("example.toml")


def _file(name: str) -> str:
    return resources.files("esbas.training").joinpath(name).read_text("utf-8")


def _toml(value: Any) -> str:
    """A value in TOML."""
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
    raise InvalidValueError(f"a value must be a number, text, true or false, a list or a table, but is {value!r}: leave it out")
