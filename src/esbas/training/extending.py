"""A training that becomes longer, or gets more runs, in its own folder."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from esbas.errors import InvalidValueError, require
from esbas.reporting.files import plain
from esbas.reporting.results import CONFIG, read_config
from esbas.schema import short
from esbas.training.config import DEFAULT_STEPS, UNNAMED_SELECTOR, Train
from esbas.training.folder import TrainingFolder, command_of, results_of
from esbas.training.runs.clock import read_clock, write_clock
from esbas.training.runs.lock import locked
from esbas.training.runs.one_run import run_folder
from esbas.training.runs.plan import Plan

_CHANGEABLE = "steps", "episodes", "seeds"


def extend(
    training: TrainingFolder, *, steps: int | None = None, episodes: int | None = None, seeds: Sequence[int] = ()
) -> TrainingFolder:
    """Give a training a new budget and more seeds, and store both in its folder. It is not played yet.

    The folder keeps the earlier budgets and seeds. What is the same already stays as it is.

    Args:
        training: finished or not.
        steps: the new budget in environment steps.
        episodes: the new budget in episodes, instead of steps.
        seeds: of runs to add to those that exist.
    """
    config, plan = training.config, training.plan
    if steps is not None or episodes is not None:
        plan = replace(plan, steps=steps, episodes=episodes)
        config = replace(config, steps=steps, episodes=episodes)
    config = replace(config, seeds=tuple(dict.fromkeys((*config.seeds, *seeds))))
    config.check()
    longer = (plan.steps, plan.episodes) != (training.plan.steps, training.plan.episodes)
    if not longer and config.seeds == training.seeds:
        return training
    results = results_of(training.config)
    if longer:
        _check_played(training, plan)
        _reopen(training)  # first: if only this happens before a kill, the runs are finished again at once
    budget = {"steps": training.plan.steps, "episodes": training.plan.episodes, "seeds": list(training.seeds)}
    results.change(config.options(), earlier={name: value for name, value in budget.items() if value is not None})
    return TrainingFolder(training.folder, config, plan)


def check_same_length(config: Train) -> None:
    """Raise an error that names the command if the folder has this training with another length, or with an older default."""
    if not (config.folder / CONFIG).is_file():
        return
    about = read_config(config.folder)
    old, new = _with_defaults(about["config"]), _with_defaults(plain(config.options()))
    where = shlex.quote(str(config.folder))
    if about["command"] != command_of(config):
        return
    if "selector" not in about["config"] and new["selector"] != UNNAMED_SELECTOR:
        rule = f"the training in {str(config.folder)!r} has the selector {UNNAMED_SELECTOR}, the default of its version"
        remedy = f"`esbas resume {where}` continues it, or give another --out"
        raise InvalidValueError(f"{rule}, but this is {new['selector']}: {remedy}")
    changed = [name for name in _CHANGEABLE if old[name] != new[name]]
    same = all(old.get(name) == new.get(name) for name in {*old, *new} - {*_CHANGEABLE})
    if not same or not changed:
        return
    budget = next((name for name in ("steps", "episodes") if new[name] is not None), "steps")
    words = ["--" + budget, str(new[budget])] if {"steps", "episodes"} & set(changed) else []
    added = [str(seed) for seed in new["seeds"] if not isinstance(old["seeds"], list) or seed not in old["seeds"]]
    words += ["--seeds", *added] if added else []
    before, now = (", ".join(f"{name}={short(each[name])}" for name in changed) for each in (old, new))
    message = f"the training in {str(config.folder)!r} has {before}, but this is {now}"
    remedy = f"`esbas resume {where} {' '.join(words)}` extends it" if words else f"`esbas resume {where}` continues it"
    raise InvalidValueError(f"{message}: {remedy}, or give another --out")


def _with_defaults(options: Mapping[str, Any]) -> dict[str, Any]:
    budget = {"steps": options.get("steps"), "episodes": options.get("episodes")}
    if budget["steps"] is None and budget["episodes"] is None:
        budget["steps"] = DEFAULT_STEPS
    return {"seeds": [0], "selector": UNNAMED_SELECTOR} | dict(options) | budget


def _check_played(training: TrainingFolder, plan: Plan) -> None:
    """Raise an error if a run has played more than the new budget."""
    for seed in training.seeds:
        clock = read_clock(run_folder(training.folder, seed))
        for name, budget in (("steps", plan.steps), ("episodes", plan.episodes)):
            played = 0 if clock is None else getattr(clock, name)
            rule, remedy = f"a budget is at least what has been played, {played:,} {name} with seed {seed}", "give a larger one"
            require(budget is None or played <= budget, rule, remedy, **{name: budget})


def _reopen(training: TrainingFolder) -> None:
    """Mark the finished runs as unfinished."""
    for seed in training.seeds:
        directory = run_folder(training.folder, seed)
        if directory.is_dir():
            with locked(directory):
                clock = read_clock(directory)
                if clock is not None and clock.finished:
                    write_clock(directory, replace(clock, finished=False))
