"""Runs: create one, change it between two episodes, save it, resume it."""

import os
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from esbas import seeding
from esbas._internal import archive, limits, schema, spaces, values
from esbas._internal.env_checks import broken
from esbas._internal.registry import import_object
from esbas._internal.schema import COUNT, AnyOf, Number
from esbas.errors import EsbasError, InvalidValueError, SaveFileError, counted, describe, require
from esbas.learner import Learner, Portfolio
from esbas.loop import Budget, Loop
from esbas.objective import ObjectiveLike, as_objective
from esbas.roster import Roster
from esbas.selectors import Selector, SelectorLike, as_selector
from esbas.trajectory import TrajectorySet

LearnersLike = Portfolio | Iterable[Any] | Callable[..., Any]

# These need more than NumPy, so they are imported when text is given.
_MAKE_ENV = "esbas.specs.envs:make_env"
_BUILD_LEARNERS = "esbas.specs.portfolios.given:build_learners"

_LIMIT = AnyOf(Number(min=0), Number(finite=False), None)
_STATE = {
    "seed": Number(min=0, max=2**1000, whole=True),
    "max_episode_steps": Number(min=1, whole=True),
    "keep_data": bool,
    "objective": str,
    "number": COUNT,
    "steps": COUNT,
    "budget": {"episodes": _LIMIT, "steps": _LIMIT},
    "selector": dict,
    "roster": {str: object},
    "data": object,
}


class Run(Loop):
    """A run in progress.

    Iterate over it for its records. Between two episodes it can be inspected, changed and saved.
    Created by `run` and `resume`.

    Attributes:
        env: the environment.
        selector: chooses the learner of each episode.
        objective: the value of an episode.
        budget: how long the run may be.
        data: all trajectories so far, if they are kept.
        number: episodes so far.
        steps: environment steps so far.
    """

    def __repr__(self) -> str:
        steps = counted(self.steps, "step")
        learners = counted(len(self.roster.learners), "learner")
        return f"<Run: episode {self.number}, {steps}, {learners}>"

    @property
    def learners(self) -> tuple[Learner, ...]:
        """The learners, as they were passed."""
        return tuple(learner.original for learner in self.roster.learners.values())

    def add(self, learner: Learner) -> None:
        """Add a learner during the run.

        It learns from all data when the next epoch starts; online, from now on.
        """
        Portfolio([learner]).check_spaces(self.env)
        self.selector.add_arm(learner.name, stationary=learner.stationary)
        self.roster.add(learner)

    def remove(self, name: str) -> None:
        """Remove a learner during the run."""
        self.selector.remove_arm(name)
        self.roster.remove(name)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the selector, the learners, the data and the budget to one file, atomically.

        See `esbas.resume`.
        """
        state = {
            "seed": self.seed,
            "max_episode_steps": self.max_episode_steps,
            "keep_data": self.keep_data,
            "objective": self.objective.name,
            "number": self.number,
            "steps": self.steps,
            "budget": asdict(self.budget),
            "selector": self.selector.state_dict(),
            "roster": self.roster.state_dict(),
            "data": self.data.state_dict(),
        }
        archive.write(path, "run", state)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `save` wrote.

        If a part does not fit, the selector and the learners get their old states back.
        """
        data = TrajectorySet()
        data.load_state_dict(state["data"])
        number = state["number"]
        with schema.restored_on_error(self.selector):
            self.selector.load_state_dict(state["selector"])
            arms = self.selector.arms
            names = tuple(self.roster.learners)
            require(
                arms == names,
                f"The saved selector must choose among the learners {schema.short(names)}, "
                f"but its arms are {schema.short(arms)}: {schema.REMEDY}.",
            )
            self.roster.load_state_dict(state["roster"], number=number + 1)
        self.number = number
        self.steps = state["steps"]
        self.share(data)

    def close(self) -> None:
        """Close the environment and the learners that have a `close` method, such as `Isolated`."""
        for part in (*self.learners, self.env):
            if hasattr(part, "close"):
                part.close()


def run(
    env: Any,
    learners: LearnersLike,
    selector: SelectorLike = None,
    *,
    episodes: int | None = None,
    steps: int | None = None,
    objective: ObjectiveLike = None,
    seed: int = 0,
    max_episode_steps: int = 100_000,
    keep_data: bool = True,
    learn_timeout: float | None = None,
) -> Run:
    """Create a run, in which a selector chooses the learner that controls each episode.

    Every learner learns from every trajectory, whoever acted.

    Args:
        env: any Gymnasium-style environment, a function that creates one, or a name such as
            "CartPole-v1".
        learners: a list of learners, which have different names. As for `esbas.train`, it may also
            have names of algorithms, classes and Stable-Baselines3 models, or be a function of the
            environment and the seed that returns such a list.
        selector: chooses among them: a selector whose arms are their names; a class such as
            `esbas.SSBAS`; a function that makes a selector, called with these names; or a name such
            as "ssbas". Default: the recommended one. See `esbas.selectors.as_selector`. What is
            made here has the seed of the run.
        episodes: the budget in episodes; None: no limit.
        steps: the budget in environment steps; the episode that reaches it is completed, unless it
            is very long and the environment may never end it: see `esbas.loop.length_of_cut`.
        objective: the value of an episode, by default its discounted return: an objective, any
            function of a trajectory, or a name such as "return" or "shortest".
        seed: same seed, same run.
        max_episode_steps: an episode that takes longer is an error.
        keep_data: whether to keep all trajectories; learners that `learn` from whole trajectories
            need them.
        learn_timeout: seconds that a learner may take to learn or to return its policy, each time;
            a longer call is a fault. A learner's own attribute `learn_timeout` takes precedence.
            This is wall-clock time: a run in which a call is too slow is not reproducible.

    Returns:
        An iterator over `EpisodeRecord`s.
    """
    budget = Budget(episodes=episodes, steps=steps)
    longest = values.whole("max_episode_steps", max_episode_steps, at_least=1)
    values.truth("keep_data", keep_data)
    seeding.sequence(seed)  # raises an error for a bad seed
    timeout = limits.checked(learn_timeout)
    wanted = as_objective(objective)
    env = _as_env(env)
    portfolio = _as_portfolio(
        learners, env, steps=budget.steps, episodes=budget.episodes, seed=seed
    )
    stationary = [learner.name for learner in portfolio if learner.stationary]
    made = as_selector(selector, portfolio.names, stationary=stationary, seed=seed)
    for name in portfolio.names:
        require(
            name in stationary or name not in made.stationary,
            f"Stationary arms must belong to stationary learners, but {name!r} learns: "
            "leave it out of `stationary`.",
        )
    require(
        keep_data or not needs_data(portfolio, made),
        "`keep_data` must not be False, because learners learn from whole trajectories.",
    )
    portfolio.check_spaces(env)
    roster = Roster(
        portfolio,
        action_space=env.action_space,
        online=made.online,
        learn_timeout=timeout,
    )
    return Run(
        env,
        roster,
        made,
        objective=wanted,
        budget=budget,
        seed=seed,
        max_episode_steps=longest,
        keep_data=keep_data,
    )


def resume(
    path: str | os.PathLike[str],
    env: Any,
    learners: LearnersLike,
    selector: SelectorLike = None,
    *,
    objective: ObjectiveLike = None,
    learn_timeout: float | None = None,
) -> Run:
    """Continue a saved run, with parts built in the same way as for `run`.

    A save file contains data and no code, so environment, learners, selector, objective and time
    limit are passed again, as for `run`. Their states and the seed come from the file. The rest of
    the run gives the same results as an uninterrupted run. One thing is not in the file: the older
    policy of a learner whose last learning call failed; it continues with the policy of its saved
    state.

    If the file does not fit, the selector and the learners that were passed get their old states
    back, through their own `state_dict` and `load_state_dict`.
    """
    state = archive.read(path, "run")
    try:
        schema.check(state, _STATE, f"the run in {str(path)!r}")
        resumed = run(
            env,
            learners,
            selector,
            episodes=state["budget"]["episodes"],
            steps=state["budget"]["steps"],
            objective=objective,
            seed=state["seed"],
            max_episode_steps=state["max_episode_steps"],
            keep_data=state["keep_data"],
            learn_timeout=learn_timeout,
        )
        saved = _parts(tuple(state["roster"]), state["objective"])
        given = _parts(tuple(resumed.roster.learners), resumed.objective.name)
        if given != saved:
            raise SaveFileError(
                f"{str(path)!r} was saved with {saved}, but got {given}: pass the same."
            )
        resumed.load_state_dict(state)
    except EsbasError:
        raise
    except Exception as error:  # a learner's own load_state_dict may raise anything
        reason = " ".join(describe(error).split())
        raise SaveFileError(
            f"The parts passed must fit those saved in {str(path)!r}, but {reason}: "
            "build them in the same way."
        ) from error
    return resumed


def _parts(learners: tuple[str, ...], objective: str) -> str:
    return f"learners {schema.short(learners)} and objective {objective[:200]!r}"


def _as_env(given: Any) -> Any:
    """Return the environment given, or create the one that a name, a class or a function is for."""
    if isinstance(given, str):
        return import_object(_MAKE_ENV)(given)
    env = given
    if isinstance(given, type) or (callable(given) and not _is_env(given)):
        env = given()
    if not _is_env(env):
        raise InvalidValueError(
            "`env` must be an environment, the name of one, or a function that creates one, "
            f"but got {schema.short(env)}."
        )
    if not hasattr(env, "action_space"):
        raise broken(env, "has no `action_space`: define it in `__init__`")
    if spaces.is_vector(env):
        kind = type(env).__name__
        raise InvalidValueError(
            f"Vector environments are not supported, but got {kind}: pass a single environment."
        )
    return env


def _is_env(given: Any) -> bool:
    return hasattr(given, "reset") and hasattr(given, "step")


def _as_portfolio(
    given: Any, env: Any, *, steps: int | None, episodes: int | None, seed: int
) -> Portfolio:
    """Return the learners given, or make those that names, classes and functions are for."""
    if isinstance(given, Portfolio):
        return given
    if isinstance(given, str) or callable(given):
        items = [given]
    elif isinstance(given, Iterable):
        items = list(given)
    else:
        remedy = "put it in a list" if _is_learner(given) else "pass [learner, ...]"
        raise InvalidValueError(
            f"`learners` must be a list of learners, but got {schema.short(given)}: {remedy}."
        )
    if not all(_is_learner(item) for item in items):
        build_learners = import_object(_BUILD_LEARNERS)
        items = build_learners(items, env, steps=steps, episodes=episodes, seed=seed)
    return Portfolio(items)


def _is_learner(given: Any) -> bool:
    return isinstance(given, Learner) and not isinstance(given, type)


def needs_data(learners: Iterable[Learner], selector: Selector) -> bool:
    """Return whether a run must keep its trajectories, because learners learn from all of them."""
    if not selector.online:
        return True
    return any(not learner.stationary and not hasattr(learner, "step") for learner in learners)
