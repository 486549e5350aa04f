"""Learners that users make: objects, classes, and functions of the environment and the seed."""

import copy
import inspect
import io
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from esbas._internal import values
from esbas._internal.registry import import_object
from esbas._internal.schema import short
from esbas.errors import InvalidValueError, unknown
from esbas.learner import Learner, Portfolio
from esbas.specs.atari_defaults import replay_of
from esbas.specs.options import error_context
from esbas.specs.portfolios.algorithms import algorithm_name
from esbas.specs.portfolios.build import BuildContext, algorithm_of
from esbas.specs.portfolios.recipe import recipe_of
from esbas.specs.sources import Unnamed, call_with, importable_name, label_of

ASSUMED_LENGTH = 1000  # steps of an episode without a time limit, for schedules
_KINDS = (
    "names of algorithms, learners, Stable-Baselines3 models, learner classes, "
    "or functions of the environment and the seed"
)
_MAKER_PARAMETER = "env"  # a function whose first parameter has this name makes learners


def given_learners(given: Any) -> tuple[Any, ...]:
    """Return learners as text where they have a name, and as they are otherwise.

    Args:
        given: a list of names of algorithms, learners, Stable-Baselines3 models, learner classes,
            or functions of the environment and the seed; or one of these.
    """
    if isinstance(given, Mapping):
        raise InvalidValueError(f"`learners` must be a list of {_KINDS}, but got a dictionary.")
    if isinstance(given, str | Unnamed) or callable(given) or _is_learner_or_model(given):
        return (_named(given),)
    return tuple(_named(each) for each in values.items("learners", given))


def _named(given: Any) -> Any:
    if isinstance(given, str | Unnamed) or _is_learner_or_model(given):
        return given
    if isinstance(given, type):
        return algorithm_name(given) or _named_class(given)
    if not callable(given):
        raise InvalidValueError(f"`learners` must be a list of {_KINDS}, but got {short(given)}.")
    if _is_maker(given):
        return importable_name(given) or given
    return given


def _named_class(given: type[Any]) -> Any:
    if given.__module__.partition(".")[0] in ("stable_baselines3", "sb3_contrib"):
        raise _own_episodes_only(given.__name__)
    if not callable(getattr(given, "policy", None)):
        got = f"the class {given.__name__}, which has no method `policy`"
        raise InvalidValueError(f"`learners` must be a list of {_KINDS}, but got {got}.")
    return importable_name(given) or given


def _own_episodes_only(name: str) -> InvalidValueError:
    reason = "it learns from its own episodes only, and learners learn from the episodes of all"
    return InvalidValueError(f"{name} cannot be a learner, because {reason}: use SAC, TD3 or DQN.")


def build_learners(
    given: Any, env: Any, *, steps: int | None, episodes: int | None, seed: int
) -> list[Learner]:
    """Make the learners of `esbas.run`.

    Args:
        given: as for `given_learners`.
        env: the environment.
        steps: the budget in environment steps, for schedules.
        episodes: the budget in episodes. All count with their maximal length.
        seed: of the run.
    """
    if not steps:
        spec = getattr(env, "spec", None)
        longest = getattr(spec, "max_episode_steps", None) or ASSUMED_LENGTH
        steps = (episodes or ASSUMED_LENGTH) * longest
    return MadePortfolio(given_learners(given)).build(env, steps=steps, seed=seed)


def is_made(learners: tuple[Any, ...]) -> bool:
    """Return whether any of these learners is an object, or made by a function.

    Otherwise TOML describes them.
    """
    return not all(_is_algorithm(each) for each in learners)


@dataclass(frozen=True)
class MadeLearner:
    """A learner of a `MadePortfolio`, for reports."""

    name: str
    algorithm: str
    options: Mapping[str, Any] = field(default_factory=dict)


class MadePortfolio:
    """A portfolio of learners that users make.

    Args:
        items: what `given_learners` returned.
        names: of the learners; known after the first `build` if they are not given.
    """

    memory: Mapping[str, Any] = {}
    text = ""  # it has no TOML

    def __init__(self, items: tuple[Any, ...], *, names: Iterable[str] = ()) -> None:
        self.items = items
        self.names = tuple(names)
        self._kinds: dict[str, str] = {}

    @property
    def learners(self) -> tuple[MadeLearner, ...]:
        unknown_kind = label_of(self.items)
        found = [MadeLearner(name, self._kinds.get(name, unknown_kind)) for name in self.names]
        return tuple(found)

    def conversions(self, observations: Any, actions: Any) -> tuple[str, ...]:
        """Return nothing: learners that users make get observations and actions as they are."""
        del observations, actions
        return ()

    def build(
        self, env: Any, *, steps: int, seed: int, folder: Path | None = None, processes: int = 1
    ) -> list[Learner]:
        """Make the learners of one run. The arguments are those of `Recipe.build`."""
        context = BuildContext(
            observation_space=env.observation_space,
            action_space=env.action_space,
            memory=replay_of(env),
            steps=steps,
            seed=seed,
            folder=folder,
            processes=processes,
        )
        of_texts = _build_texts(self.items, context)
        learners: list[Learner] = []
        for item in self.items:
            if _is_algorithm(item):
                learners += of_texts.pop(0)
            else:
                learners += _made(item, env, context)
        _give_different_names(learners)
        Portfolio(learners)  # raises an error for names that are the same
        self.names = tuple(learner.name for learner in learners)
        self._kinds = {learner.name: type(learner).__name__ for learner in learners}
        return learners

    def build_one(self, name: str, env: Any, *, steps: int, seed: int) -> Learner:
        """Make one learner again, to load a policy into it. The caller's own objects are copied."""
        for item in self.items:
            if isinstance(item, Learner) and item.name == name:
                return _copied(item)
        items = tuple(_copied_model(each) if _is_model(each) else each for each in self.items)
        learners = MadePortfolio(items).build(env, steps=steps, seed=seed)
        by_name = {learner.name: learner for learner in learners}
        if name not in by_name:
            raise unknown("learner", name, by_name)
        found = by_name.pop(name)
        for other in by_name.values():
            if other not in self.items and hasattr(other, "close"):
                other.close()
        return found


def _build_texts(items: tuple[Any, ...], context: BuildContext) -> list[list[Learner]]:
    """Build the learners of each text.

    They are named together, so that their names show what differs.
    """
    texts = [each for each in items if _is_algorithm(each)]
    if not texts:
        return []
    specs = list(recipe_of(texts).learners)
    for spec in specs:
        spec.check_spaces(context)
    built: list[list[Learner]] = []
    for text in texts:
        count = len(recipe_of([text]).learners)  # several, if the text has a grid
        built.append([spec.build(context) for spec in specs[:count]])
        del specs[:count]
    return built


def _is_algorithm(item: Any) -> bool:
    """Return whether the item is the name of an algorithm, with or without options."""
    return isinstance(item, str) and not _names_maker(item)


def _made(item: Any, env: Any, context: BuildContext) -> list[Learner]:
    """Return the learners for one item that is not the name of an algorithm."""
    if _is_learner(item):
        return [item]
    if _is_model(item):
        return [_wrapped_model(item, context)]
    if isinstance(item, Unnamed):
        item()  # raises an error
    if isinstance(item, type):
        algorithm = algorithm_of(label_of(item), item)
        with error_context(f"Learner class {item.__name__}", rule="must fit the environment"):
            return [algorithm.make(context, algorithm.title)]
    maker = import_object(item) if isinstance(item, str) else item
    with error_context(f"The function {label_of(item)!r}", rule="must return learners"):
        result = call_with(maker, env=env, seed=context.seed)
        learners: list[Learner] = []
        for part in _returned_parts(result):
            learners += _made(part, env, context)
        return learners


def _returned_parts(result: Any) -> list[Any]:
    """Return the learners and models that a function has returned, as a list."""
    rule = "It must return a list of learners or of Stable-Baselines3 models"
    if _is_learner_or_model(result):
        return [result]
    parts = list(result) if isinstance(result, Iterable) else []
    if not parts:
        raise InvalidValueError(f"{rule}, but returned {short(result)}.")
    for part in parts:
        if not _is_learner_or_model(part):
            raise InvalidValueError(f"{rule}, but returned {short(part)} in its list.")
    return parts


def _give_different_names(learners: list[Learner]) -> None:
    """Number the models of one class, whose names are those of their classes."""
    counts: dict[str, int] = {}
    for learner in learners:
        counts[learner.name] = counts.get(learner.name, 0) + 1
        if counts[learner.name] > 1 and hasattr(learner, "model"):
            learner.name = f"{learner.name} {counts[learner.name]}"


def _is_learner_or_model(given: Any) -> bool:
    return _is_learner(given) or _is_model(given)


def _is_learner(given: Any) -> bool:
    return isinstance(given, Learner) and not isinstance(given, type)


def _is_model(given: Any) -> bool:
    """Return whether it is a model of Stable-Baselines3. The library is not imported for this."""
    base = getattr(sys.modules.get("stable_baselines3.common.base_class"), "BaseAlgorithm", None)
    return base is not None and isinstance(given, base)


def _wrapped_model(model: Any, context: BuildContext) -> Learner:
    from esbas.learners.sb3.hooks import OffPolicyAlgorithm, release
    from esbas.learners.sb3.learner import SB3Learner

    name = type(model).__name__
    if not isinstance(model, OffPolicyAlgorithm):
        raise _own_episodes_only(name)
    release(model)
    return SB3Learner(
        name, model, replay=context.replay, total_steps=context.steps, seed=context.seed
    )


def _copied_model(model: Any) -> Any:
    """Copy a model without its replay memory."""
    buffer = io.BytesIO()
    model.save(buffer, exclude=["replay_buffer", "env", "logger", "_logger"])
    buffer.seek(0)
    return type(model).load(buffer)


def _copied(learner: Learner) -> Learner:
    try:
        return copy.deepcopy(learner)
    except Exception as error:  # of the learner's own code
        remedy = "give a function of the environment and the seed that makes it"
        reason = f"{type(error).__name__}: {error}"
        raise InvalidValueError(
            f"Learner {learner.name!r} cannot be copied ({reason}): {remedy}."
        ) from error


def _is_maker(function: Callable[..., Any]) -> bool:
    """Return whether it is a function that makes learners for an environment."""
    if not inspect.isfunction(function):
        return False
    parameters = list(inspect.signature(function).parameters)
    return parameters[:1] == [_MAKER_PARAMETER]


def _names_maker(text: str) -> bool:
    """Return whether the text names a function that makes learners, as "module:function"."""
    if ":" not in text or "(" in text:
        return False
    return _is_maker(import_object(text))


def has_objects(items: tuple[Any, ...]) -> bool:
    """Return whether any learner is an object of the caller, which only one run can use."""
    return any(_is_learner_or_model(each) for each in items)
