"""`esbas train TASK`: trains a portfolio on a Gymnasium task and writes all results into a folder."""

import importlib
import sys
import tomllib
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from esbas.errors import EsbasError, InvalidValueError, MissingExtraError, require
from esbas.files import read_file, write_atomically
from esbas.reporting import Results
from esbas.reporting.terminal import print_text
from esbas.training import atari_defaults
from esbas.training.config import Train
from esbas.training.display.live_view import LiveView
from esbas.training.extending import check_same_length
from esbas.training.folder import PORTFOLIO, TrainingFolder, results_of
from esbas.training.policies.layers import write_layers
from esbas.training.portfolios.recipe import Recipe, example, read_toml
from esbas.training.portfolios.spaces import image_note
from esbas.training.runs.one_run import SaveOptions, is_finished, run_folder
from esbas.training.runs.plan import Plan
from esbas.training.runs.seeds import train_seeds
from esbas.training.tasks import NO_WRAPPERS

__all__ = ["Train", "main", "train"]
_LIST = "python -c 'import gymnasium; gymnasium.pprint_registry()' lists all that are installed"
_SOME_TASKS = f"try CartPole-v1, FrozenLake-v1 or Pendulum-v1, or your own as mytask.py; {_LIST}"


def main(config: Train) -> None:
    """Run `esbas train` with these options."""
    if config.example:
        _write_example(Path(PORTFOLIO))
        return
    if not config.env_id and config.env is None:
        raise InvalidValueError(f"esbas train needs a task, but none is given: {_SOME_TASKS}")
    check_same_length(config)
    train(TrainingFolder(config.folder, config, config.plan(config.recipe())))


def train(training: TrainingFolder) -> None:
    """Start or continue a training, and write its report."""
    config, folder, plan = training.config, training.folder, training.plan
    config.check()
    notes = _try_build(plan, config.seeds[0], folder)
    results = results_of(config)
    _write_portfolio(folder / PORTFOLIO, plan.recipe)
    write_layers(folder, plan)
    _announce(training)
    print_text(*notes)
    saving, seeds = _without_missing_extras(config.saving), [seed for seed in config.seeds if not is_finished(folder, seed)]
    try:
        with LiveView(f"{config.task}, {config.selector}", seeds=seeds) as view:
            where: dict[str, Any] = {"jobs": config.jobs, "engine": config.engine, "resources": config.resources}
            train_seeds(plan, config.seeds, folder, saving=saving, report=view.show, **where)
    except BaseException:
        with suppress(EsbasError, OSError):  # the first error is the cause
            publish(results, training)
        raise
    publish(results, training)


def publish(results: Results, training: TrainingFolder) -> None:
    """Write the report."""
    from esbas.training.reports.training_report import publish as write  # figures need memory, and so does compiling before

    write(results, training)


def _try_build(plan: Plan, seed: int, folder: Path) -> list[str]:
    """Build a run once, so that errors in the options are raised before a folder is created. Returns advice about the task."""
    if run_folder(folder, seed).exists():
        return []
    run = plan.start(seed)
    run.close()
    task, wrappers = plan.wrapped_task()
    task.close()
    if plan.wrappers == (NO_WRAPPERS,):
        return []
    added = wrappers[len(plan.wrappers) :]
    preprocessed = atari_defaults.note_of(task, added, plan.recipe.memory)
    if preprocessed is not None:
        return [preprocessed]
    converted = [f"Observations are converted by {name}, so that these learners can use them." for name in added]
    note = image_note(task)
    return converted if note is None else [*converted, note]


def _without_missing_extras(saving: SaveOptions) -> SaveOptions:
    """The options without TensorBoard if it is not installed: results do not depend on it."""
    try:
        if saving.tensorboard:
            importlib.import_module("esbas.training.display.tensorboard")
    except MissingExtraError as error:
        print(f"esbas: note: {error}", file=sys.stderr)
        return replace(saving, tensorboard=False)
    return saving


def _announce(training: TrainingFolder) -> None:
    plan, names, seeds = training.plan, training.plan.recipe.names, len(training.seeds)
    budget = f"{plan.steps:,} steps" if plan.steps else f"{plan.episodes:,} episodes"
    runs = "" if seeds == 1 else f", {seeds} runs"
    learners = f"{len(names)} learners" if len(names) > 1 else "one learner"
    print_text(f"{plan.env_id}: {learners}, selector {plan.selector}, {budget}{runs}. Results: {training.folder}")


def _write_portfolio(path: Path, recipe: Recipe) -> None:
    """Keep the portfolio with the results."""
    kept = read_file(path, missing=b"").decode("utf-8", "replace")
    if not kept:  # esbas 0.1 left an empty file if it was killed
        write_atomically(path, recipe.text.encode())
    elif read_toml(kept, source=str(path)) != tomllib.loads(recipe.text):  # comments may differ
        message = f"the portfolio of a training must stay the same, but {str(path)!r} differs from the given one"
        raise InvalidValueError(f"{message}: give another --out, or `esbas resume {path.parent}`")


def _write_example(path: Path) -> None:
    require(not path.exists(), "the file does not exist yet", "move it to another place", path=str(path))
    write_atomically(path, example().encode())
    print(f"Wrote {path}: edit it, then `esbas train CartPole-v1 --portfolio {path}`")
