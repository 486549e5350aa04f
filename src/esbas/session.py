"""Runs: create one, change it between two episodes, save it, resume it."""

import os
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from esbas import archive, limits, schema, seeding
from esbas.errors import EsbasError, SaveFileError, describe, require
from esbas.faults import Roster
from esbas.learner import Learner, Portfolio
from esbas.objective import Objective, as_objective
from esbas.runner import Budget, Loop
from esbas.schema import COUNT, AnyOf, Number
from esbas.selectors import Selector
from esbas.trajectory import Trajectory, TrajectorySet

_SAVED = "selector", "roster", "data"
_LIMIT = AnyOf(Number(min=0), Number(finite=False), None)
_STATE = {
    "seed": Number(min=0, max=2**1000, whole=True),
    "max_steps": Number(min=1, whole=True),
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
    """A run in progress. Iterate over it for its records; between two episodes it can be inspected, changed and saved.

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

    @property
    def learners(self) -> tuple[Learner, ...]:
        return tuple(member.learner for member in self.roster.members.values())

    def add(self, learner: Learner) -> None:
        """Add a learner during the run. It learns from all data when the next epoch starts; online, from now on."""
        Portfolio([learner]).check_spaces(self.env)
        self.selector.add_arm(learner.name, stationary=learner.stationary)
        self.roster.add(learner)

    def remove(self, name: str) -> None:
        """Remove a learner during the run."""
        self.selector.remove_arm(name)
        self.roster.remove(name)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the selector, the learners, the data and the budget to one file, atomically. See `esbas.resume`."""
        settings = {"seed": self.seed, "max_steps": self.max_steps, "keep_data": self.keep_data, "objective": self.objective.name}
        progress = {"number": self.number, "steps": self.steps, "budget": asdict(self.budget)}
        parts = {name: getattr(self, name).state_dict() for name in _SAVED}
        archive.write(path, "run", settings | progress | parts)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `save` wrote. If a part does not fit, selector and learners get their old states back."""
        where, data, names = "the saved run", TrajectorySet(), tuple(self.roster.members)
        data.load_state_dict(state["data"])
        number, steps = state["number"], state["steps"]
        kept = len(data) >= number if self.keep_data else len(data) == 0
        schema.require(kept, "there is a trajectory per episode", where, trajectories=len(data), number=number)
        schema.require(steps >= number, "an episode has a step", where, steps=steps, number=number)
        with schema.restored_on_error(self.selector):
            self.selector.load_state_dict(state["selector"])
            fits = self.selector.arms == names and self.selector.number >= number
            asked = {"arms": self.selector.arms, "choices": self.selector.number}
            schema.require(fits, "the selector has chosen among the learners", where, remedy=schema.REMEDY, **asked)
            self.roster.load_state_dict(state["roster"])
        self.number, self.steps = number, steps
        self.share(data)
        self.roster.number = self.number + 1
        self.roster.begin_episode()

    def close(self) -> None:
        """Close the environment and the learners that have a `close` method (such as `Isolated`, which has a process)."""
        for part in (*self.learners, self.env):
            getattr(part, "close", lambda: None)()


def run(
    env: Any,
    portfolio: Portfolio | Iterable[Learner],
    selector: Selector,
    *,
    episodes: int | None = None,
    steps: int | None = None,
    objective: Objective | Callable[[Trajectory], float] | None = None,
    seed: int = 0,
    max_steps: int = 100_000,
    keep_data: bool = True,
    time_limit: float | None = None,
) -> Run:
    """Let the selector choose the learner that controls each episode, while every learner learns from every trajectory.

    Args:
        env: any Gymnasium-style environment.
        portfolio: the learners.
        selector: chooses among them; its arms are their names.
        episodes: the budget in episodes; None: no limit.
        steps: the budget in environment steps; the episode that reaches it is completed.
        objective: the value of an episode, by default its discounted return; any function of a trajectory.
        seed: same seed, same run.
        max_steps: an episode that takes longer is an error.
        keep_data: whether to keep all trajectories; learners that `learn` from whole trajectories need them.
        time_limit: seconds that a learner may take to learn or to return its policy, each time; a longer call is a fault. A
            learner's own attribute `time_limit` takes precedence. This is wall-clock time: a run in which a call is too slow is
            not reproducible.

    Returns:
        An iterator over `EpisodeRecord`s.
    """
    vector = hasattr(env, "num_envs") and hasattr(env, "single_action_space")
    require(not vector, "the environment is a single one", "give one environment, not a vector of them", env=type(env).__name__)
    members = portfolio if isinstance(portfolio, Portfolio) else Portfolio(portfolio)
    names = {"arms": selector.arms, "learners": members.names}
    require(selector.arms == members.names, "a selector's arms are the names of the learners, in order", **names)
    learning = [learner.name for learner in members if learner.name in selector.stationary and not learner.stationary]
    require(not learning, "the learners of stationary arms are stationary", stationary=learning)
    require(max_steps >= 1, "max_steps >= 1", max_steps=max_steps)
    enough = keep_data or not needs_data(members, selector)
    require(enough, "keep_data is on where learners learn from whole trajectories", keep_data=keep_data)
    seeding.sequence(seed)  # raises an error for a bad seed
    members.check_spaces(env)
    roster = Roster(members, action_space=env.action_space, online=selector.online, time_limit=limits.checked(time_limit))
    budget = Budget(episodes=episodes, steps=steps)
    return Run(
        env,
        roster,
        selector,
        objective=as_objective(objective),
        budget=budget,
        seed=seed,
        max_steps=max_steps,
        keep_data=keep_data,
    )


def resume(
    path: str | os.PathLike[str],
    env: Any,
    portfolio: Portfolio | Iterable[Learner],
    selector: Selector,
    *,
    objective: Objective | Callable[[Trajectory], float] | None = None,
    time_limit: float | None = None,
) -> Run:
    """Continue a saved run, with parts built in the same way as for `run`.

    A save file contains data and no code, so environment, learners, selector, objective and time limit are passed again; their
    states come from the file. The rest of the run gives the same results as an uninterrupted run. One thing is not in the file:
    the older policy of a learner whose last learning call failed; it continues with the policy of its saved state.

    If the file does not fit, the selector and the learners that were passed get their old states back, through their own
    `state_dict` and `load_state_dict`.
    """
    state = archive.read(path, "run")
    try:
        schema.check(state, _STATE, f"the run in {str(path)!r}")
        settings = {name: state[name] for name in ("seed", "max_steps", "keep_data")} | state["budget"]
        saved = tuple(state["roster"]), state["objective"]
        new = run(env, portfolio, selector, objective=objective, time_limit=time_limit, **settings)
        given = tuple(new.roster.members), new.objective.name
        if given != saved:
            before, now = (f"learners {schema.short(names)} and objective {name[:200]!r}" for names, name in (saved, given))
            raise SaveFileError(f"{str(path)!r} was saved with {before}, but got {now}: pass the same")
        new.load_state_dict(state)
    except EsbasError:
        raise
    except Exception as error:  # a learner's own load_state_dict may raise anything
        reason = " ".join(describe(error).split())
        raise SaveFileError(
            f"the parts passed must fit those saved in {str(path)!r}, but {reason}: build them in the same way"
        ) from error
    return new


def needs_data(learners: Iterable[Learner], selector: Selector) -> bool:
    """Whether a run must keep its trajectories, because a learner learns from whole trajectories."""
    return not selector.online or not all(hasattr(learner, "step") or learner.stationary for learner in learners)
