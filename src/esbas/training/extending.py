"""A training that becomes longer, or gets more runs, in its own folder."""

from dataclasses import replace

from esbas._internal import values
from esbas.errors import InvalidValueError
from esbas.specs.sources import require_parts
from esbas.training.config import RunOptions, TrainingConfig
from esbas.training.extension import Extension
from esbas.training.folder import TrainingFolder, change_folder, check_usable, refuse_link
from esbas.training.runs.clock import read_clock, write_clock
from esbas.training.runs.lock import locked
from esbas.training.runs.one_run import run_folder
from esbas.training.runs.stopping import LIMITS, limits_of


def extend(training: TrainingFolder, extension: Extension) -> TrainingFolder:
    """Give a training a new budget and more seeds, and store both in its folder. Nothing is played.

    The folder keeps the earlier budgets and seeds. New limits replace all earlier ones: a run that
    was stopped early continues to its new budget.
    """
    # Before anything is written:
    require_parts(training.config)
    refuse_link(training.folder)
    check_usable(training)
    config = _extended(training.config, extension)
    running = {name: getattr(extension, name) for name in RunOptions.__dataclass_fields__}
    config = replace(config, **running)
    plan = replace(training.plan, config=config)
    if config.to_plain() == training.config.to_plain():
        return TrainingFolder(training.folder, plan)
    is_longer = limits_of(config) != limits_of(training.config)
    if is_longer:
        _check_played(training, config)
        # Before the new limits are stored: after a kill in between, the runs finish again at once.
        _reopen(training)
    earlier = {**limits_of(training.config), "seeds": list(training.seeds)}
    known = {name: value for name, value in earlier.items() if value is not None}
    return change_folder(training, plan, earlier=known)


def _extended(config: TrainingConfig, extension: Extension) -> TrainingConfig:
    added = values.seeds("seeds", extension.seeds)
    seeds = tuple(dict.fromkeys([*config.seeds, *added]))  # each once
    changes_length = any(getattr(extension, name) is not None for name in LIMITS)
    if not changes_length:
        return replace(config, seeds=seeds)
    steps = extension.steps
    episodes = extension.episodes
    if steps is None and episodes is None:
        steps = config.steps
        episodes = config.episodes
    return replace(
        config,
        seeds=seeds,
        steps=steps,
        episodes=episodes,
        minutes=extension.minutes,
        until=extension.until,
    )


def _check_played(training: TrainingFolder, config: TrainingConfig) -> None:
    """Raise an error if a run has played more than the new budget."""
    for seed in training.seeds:
        clock = read_clock(run_folder(training.folder, seed))
        if clock is None:
            continue
        for name in ("steps", "episodes"):
            budget = getattr(config, name)
            played = getattr(clock, name)
            if budget is not None and played > budget:
                least = f"what seed {seed} has played, {played:,}"
                message = f"`{name}` must be at least {least}, but got {budget:,}"
                raise InvalidValueError(f"{message}: give a larger number.")


def _reopen(training: TrainingFolder) -> None:
    """Mark the finished runs as unfinished."""
    for seed in training.seeds:
        directory = run_folder(training.folder, seed)
        if not directory.is_dir():
            continue
        with locked(directory):
            clock = read_clock(directory)
            if clock is not None and clock.finished:
                write_clock(directory, replace(clock, finished=False))
