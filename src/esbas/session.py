"""A run with a budget, which can be saved, resumed and changed between any two episodes."""

import math
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from esbas import archive, limits, seeding
from esbas.errors import EsbasError, SaveFileError, require
from esbas.faults import Roster
from esbas.learner import Learner, Portfolio
from esbas.objective import Objective, as_objective
from esbas.runner import EpisodeRecord, Loop
from esbas.selectors import Selector
from esbas.trajectory import Trajectory, TrajectorySet


class Run(Iterator[EpisodeRecord]):
    """A run in progress: iterate over it for its records; between any two of them look at it, save it, stop. Made by `run`."""

    def __init__(self, loop: Loop, *, episodes: int | None, steps: int | None) -> None:
        for name, budget in (("episodes", episodes), ("steps", steps)):
            require(budget is None or budget >= 0, f"{name} >= 0, or None for no limit", **{name: budget})
        self.loop, self.episodes, self.steps = loop, episodes, steps
        self._records = loop.episodes()

    def __next__(self) -> EpisodeRecord:
        """Play an episode, unless the budget is used up."""
        if self.done:
            raise StopIteration
        try:
            return next(self._records)
        except BaseException:  # a generator that raised is finished; the run is not
            self._records = self.loop.episodes()
            raise

    @property
    def done(self) -> bool:
        """Whether the budget of episodes or of steps is used up."""
        return self.loop.number >= _limit(self.episodes) or self.loop.steps >= _limit(self.steps)

    @property
    def number(self) -> int:
        """How many episodes were played."""
        return self.loop.number

    @property
    def data(self) -> TrajectorySet:
        """All trajectories so far."""
        return self.loop.data

    @property
    def selector(self) -> Selector:
        """Who chooses."""
        return self.loop.selector

    def add(self, learner: Learner) -> None:
        """Add a learner while running; it learns from all data when the next epoch starts, or from now on."""
        Portfolio([learner]).check_spaces(self.loop.env)
        self.loop.selector.add_arm(learner.name, stationary=learner.stationary)
        self.loop.roster.add(learner)

    def remove(self, name: str) -> None:
        """Remove a learner while running."""
        self.loop.selector.remove_arm(name)
        self.loop.roster.remove(name)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, atomically: the selector, the learners, the data, the budget. See `resume`."""
        loop = self.loop
        settings = {"seed": loop.seed, "max_steps": loop.max_steps, "keep_data": loop.keep_data, "objective": loop.objective.name}
        budget = {"episodes": self.episodes, "steps": self.steps}
        progress = {"number": loop.number, "steps": loop.steps, "learn_due": loop.learn_due, "budget": budget}
        selector, learners, data = loop.selector.state_dict(), loop.roster.state_dict(), loop.data.state_dict()
        archive.write(path, "run", settings | progress | {"selector": selector, "learners": learners, "data": data})


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
    """Let the selector choose, episode by episode, who controls the environment, while every learner learns from everything.

    Args:
        env: any Gymnasium-style environment.
        portfolio: the learners.
        selector: who chooses among them; its arms are their names.
        episodes: the budget; None: no limit.
        steps: the budget in environment steps; the run ends with the episode that uses it up.
        objective: what an episode is worth, by default its discounted return; any function of a trajectory will do.
        seed: same seed, same run.
        max_steps: an episode that goes on for longer is an error.
        keep_data: whether to keep all trajectories; learners that `learn` from whole trajectories need them.
        time_limit: seconds that a learner may take to learn or to tell its policy, each time; longer is a fault. A learner's own
            attribute `time_limit` goes before. By the clock on the wall: a run in which one is too slow is not reproducible.

    Returns:
        An iterator over `EpisodeRecord`s.
    """
    members = portfolio if isinstance(portfolio, Portfolio) else Portfolio(portfolio)
    names = {"arms": selector.arms, "learners": members.names}
    require(selector.arms == members.names, "a selector's arms are the names of the learners, in order", **names)
    restless = [learner.name for learner in members if learner.name in selector.stationary and not learner.stationary]
    require(not restless, "arms told to be stationary have learners that never learn", stationary=restless)
    require(max_steps >= 1, "max_steps >= 1", max_steps=max_steps)
    enough = keep_data or not needs_data(members, selector)
    require(enough, "keep_data is on where learners learn from whole trajectories", keep_data=keep_data)
    seeding.sequence(seed)  # refuses a bad one now and not within the first episode
    members.check_spaces(env)
    roster = Roster(members, action_space=env.action_space, online=selector.online, time_limit=limits.checked(time_limit))
    loop = Loop(
        env=env,
        roster=roster,
        selector=selector,
        objective=as_objective(objective),
        seed=seed,
        max_steps=max_steps,
        keep_data=keep_data,
    )
    return Run(loop, episodes=episodes, steps=steps)


def resume(
    path: str | os.PathLike[str],
    env: Any,
    portfolio: Portfolio | Iterable[Learner],
    selector: Selector,
    *,
    objective: Objective | Callable[[Trajectory], float] | None = None,
    time_limit: float | None = None,
) -> Run:
    """Continue a saved run exactly where it was, with parts built as they were built for `run`.

    A save file holds data and no code, so environment, learners, selector, objective and time limit are given again; whatever
    they had learnt comes from the file. The rest of the run is identical to that of a run that was never interrupted. (One thing
    is not in the file: the older policy of a learner whose last learning failed; it goes on with the policy of its saved state.)
    """
    state = archive.read(path, "run")
    try:
        settings = {name: state[name] for name in ("seed", "max_steps", "keep_data")} | state["budget"]
        saved = tuple(state["learners"]), state["objective"]
        new = run(env, portfolio, selector, objective=objective, time_limit=time_limit, **settings)
        given = new.loop.roster.names, new.loop.objective.name
        if given != saved:
            before, now = (f"learners {names} and objective {name!r}" for names, name in (saved, given))
            raise SaveFileError(f"{str(path)!r} was saved with {before}, but got {now}: give the same")
        for part, name in ((new.loop.selector, "selector"), (new.loop.roster, "learners"), (new.loop.data, "data")):
            part.load_state_dict(state[name])
        new.loop.number, new.loop.steps, new.loop.learn_due = state["number"], state["steps"], state["learn_due"]
    except EsbasError:
        raise
    except Exception as error:  # a learner's own load_state_dict may raise anything
        told = f"{type(error).__name__}: {error}"
        raise SaveFileError(
            f"the parts given must fit those saved in {str(path)!r}, but {told}: build them as they were"
        ) from error
    return new


def needs_data(learners: Iterable[Learner], selector: Selector) -> bool:
    """Whether somebody learns from whole trajectories, so that a run must keep them."""
    return not selector.online or not all(hasattr(learner, "step") or learner.stationary for learner in learners)


def _limit(budget: int | None) -> float:
    return math.inf if budget is None else budget
