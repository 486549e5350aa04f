"""`esbas.train` trains a portfolio of learners and writes all results into a folder."""

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import gymnasium

from esbas._internal.compile_notice import announcing_compilation
from esbas._internal.registry import where
from esbas.engine import find_engine, is_remote, read_resources
from esbas.engine.threads import Threads
from esbas.errors import EsbasError, InvalidValueError, MissingExtraError, TrainingError
from esbas.reporting import ReportFolder
from esbas.reporting.results import CONFIG
from esbas.selectors import Selector
from esbas.specs import atari_defaults
from esbas.specs.env_names import NamedMaker
from esbas.specs.envs import NO_WRAPPERS, make_env, make_with_wrappers
from esbas.specs.portfolios.given import has_objects
from esbas.specs.portfolios.spaces import conversion_notes, image_note
from esbas.specs.sources import Unnamed
from esbas.training.callbacks import find_callback
from esbas.training.config import RunOptions, TrainingConfig, usable_cores
from esbas.training.display.live_view import LiveView
from esbas.training.folder import (
    TrainingFolder,
    check_usable,
    command_line,
    create_folder,
    differences,
    find_unfinished,
    free_folder,
)
from esbas.training.normalization import NORMALIZED_NOTE
from esbas.training.options_of import takes_options_of
from esbas.training.policies.layers import layers_of
from esbas.training.runs.one_run import SaveOptions, is_finished
from esbas.training.runs.plan import Plan, make_plan
from esbas.training.runs.seeds import train_seeds
from esbas.training.training import Training


@takes_options_of(TrainingConfig)
def train(config: TrainingConfig) -> Training:
    """Train a portfolio of learners on a Gymnasium environment, and return the result.

    One learner controls each episode; all learn from all episodes. Everything is kept in a folder.
    The same call continues a training that was interrupted, with the same results.

    Parts are given as text, as on the command line, or as objects, classes and functions: an
    environment or a function that creates one; learners, Stable-Baselines3 models, classes, or a
    function of the environment and the seed that returns a list of learners; a selector, its class,
    or a function of the names of the learners; an objective or a function of a trajectory;
    wrappers, callbacks and engines.
    """
    return run_config(config)


def run_config(config: TrainingConfig) -> Training:
    """Train with these options, as `train` does."""
    check_options(config)
    config = _with_env_name(config)
    unfinished = find_unfinished(config)
    if unfinished is not None:
        note = "The same call started this training before: it continues."
        return continue_training(unfinished, notes=[note])
    with announcing_compilation(enabled=config.progress):
        plan, layers, notes = _check_plan(config)
    folder, why_not_wanted = free_folder(config)
    if why_not_wanted:
        notes.insert(0, why_not_wanted)
    training = create_folder(folder, plan, layers)
    return continue_training(training, notes=notes)


def start_or_continue(training: TrainingFolder) -> Training:
    """Train in exactly this folder: in a new one, or in one that has the same training."""
    if not (training.folder / CONFIG).is_file():
        env, applied = training.plan.wrapped_env()
        layers = layers_of(env, applied)
        env.close()
        create_folder(training.folder, training.plan, layers)
    elif differences(training.folder, training.config):
        raise InvalidValueError(
            f"The folder {str(training.folder)!r} has another training: give another folder."
        )
    return continue_training(training)


def check_options(config: TrainingConfig) -> None:
    """Raise an error for options that can not work, before anything is built."""
    for callback in config.callbacks:
        find_callback(callback)
    if len(config.seeds) > 1:
        _check_several_seeds(config)
    _check_engine(config)


def continue_training(training: TrainingFolder, *, notes: Sequence[str] = ()) -> Training:
    """Start or continue the runs of a training, and write its report.

    Args:
        training: its folder exists.
        notes: sentences that are printed first.
    """
    config = training.config
    check_usable(training)
    if config.progress:
        _print(_announcement(training))
    _print(*notes)
    jobs = config.jobs
    engine = config.engine
    if config.unnamed:
        jobs = 1
        engine = "sequential"
        _print(*_notes_about_unnamed(config))
    saving = _without_missing_extras(save_options(config))
    waiting = [seed for seed in training.seeds if not is_finished(training.folder, seed)]
    title = f"{config.env_name}, {config.selector_name}"
    try:
        with (
            announcing_compilation(enabled=config.progress),
            LiveView(title, seeds=waiting, enabled=config.progress) as view,
        ):
            train_seeds(
                training.plan,
                training.seeds,
                training.folder,
                jobs=jobs,
                saving=saving,
                report=view.show,
                engine=engine,
                resources=config.resource_words,
            )
    except BaseException:
        with suppress(EsbasError, OSError):  # only the first error matters
            write_report(training)
        raise
    write_report(training)
    return Training(training)


def write_report(training: TrainingFolder) -> None:
    """Write the tables, figures and report of a training into its folder."""
    # Imported late: figures need memory, and so does the compilation of learners before.
    from esbas.training.reports.training_report import publish

    publish(ReportFolder(training.folder, command_line=command_line(training.config)), training)


def save_options(config: TrainingConfig) -> SaveOptions:
    """Return what runs save, and in how many processes each trains networks with convolutions."""
    processes = config.processes
    if processes is None:
        processes = max(1, _cores_per_run(config))
    return SaveOptions(
        checkpoint_every=config.checkpoint_every,
        tensorboard=config.tensorboard,
        callbacks=tuple(config.callbacks),
        processes=processes,
    )


def _cores_per_run(config: TrainingConfig) -> int:
    reserved = _reserved_cpus(config)
    if reserved is not None:
        return int(reserved)
    runs_at_once = min(config.jobs, len(config.seeds))
    return usable_cores() // runs_at_once


def _check_several_seeds(config: TrainingConfig) -> None:
    """Raise an error if a part is an object, which only one run can use."""
    if isinstance(config.env, gymnasium.Env):
        remedy = "give a function that creates it"
        raise InvalidValueError(f"An environment object can be used for one seed only: {remedy}.")
    if isinstance(config.selector, Selector):
        remedy = "give its class, or a function that makes it"
        raise InvalidValueError(f"A selector object can be used for one seed only: {remedy}.")
    if has_objects(config.learners or ()):
        remedy = "give a function of the environment and the seed that makes them"
        raise InvalidValueError(
            f"Learners that are objects can be used for one seed only: {remedy}."
        )


def _with_env_name(config: TrainingConfig) -> TrainingConfig:
    """Name a function that creates an environment after what it creates.

    The folder and messages have this name.
    """
    if isinstance(config.env, str | gymnasium.Env | Unnamed):
        return config
    first = make_env(config.env, wrappers=[NO_WRAPPERS])
    return replace(config, env=NamedMaker(config.env, first))


def _check_plan(config: TrainingConfig) -> tuple[Plan, list[Any], list[str]]:
    """Build everything once, so that errors are raised before a folder is created.

    Returns the plan, the spaces of the environment for `create_folder`, and advice for the user.
    """
    with _exits_as_errors():
        return _checked_plan(config)


@contextmanager
def _exits_as_errors() -> Iterator[None]:
    """Turn an exit into an error: the program must not end as if the training had succeeded."""
    try:
        yield
    except SystemExit as error:
        cause = f"the environment or a learner raised SystemExit({error.code!r})"
        raise TrainingError(
            f"The training cannot start, because {cause}: remove this exit{where(error)}."
        ) from error


def _checked_plan(config: TrainingConfig) -> tuple[Plan, list[Any], list[str]]:
    env, wrappers = make_with_wrappers(config.env, wrappers=config.wrappers)
    try:
        plan = make_plan(config, env)
        env, applied = plan.fitted(env, wrappers)
        notes = _advice(plan, env, applied)
        if plan.normalizes:
            plan = plan.with_normalization(env)
            env, applied = plan.normalized(env, applied)
            notes.append(NORMALIZED_NOTE)
        run = plan.start(config.seeds[0], env=env)
        run.roster.require_savable()  # otherwise, the first checkpoint would fail
        layers = layers_of(env, applied)
    except BaseException:
        env.close()
        raise
    plan.close(run)
    return plan, layers, notes


def _advice(plan: Plan, env: Any, applied: tuple[Any, ...]) -> list[str]:
    """Return what a user should know about wrappers that were added, or that would help."""
    given = plan.config.wrappers
    if given == (NO_WRAPPERS,):
        return []
    added = applied[len(given) :]
    preprocessed = atari_defaults.note_of(env, added, plan.portfolio.memory)
    if preprocessed is not None:
        return [preprocessed]
    notes = conversion_notes(env, added)
    about_images = image_note(env)
    if about_images is not None:
        notes.append(about_images)
    return notes


def _announcement(training: TrainingFolder) -> str:
    config = training.config
    count = len(training.names)
    learners = f"{count} learners" if count > 1 else "one learner"
    budget = f"{config.steps:,} steps" if config.steps else f"{config.episodes:,} episodes"
    runs = f", {len(training.seeds)} runs" if len(training.seeds) > 1 else ""
    about = f"{config.env_name}: {learners}, selector {config.selector_name}, {budget}{runs}."
    return f"{about} Results: {training.folder}"


def _notes_about_unnamed(config: TrainingConfig) -> list[str]:
    """Return which parts have no name, so that the runs stay in this process."""
    parts = ", ".join(f"{name} ({label})" for name, label in config.unnamed.items())
    again = "the same call continues the training if it is interrupted"
    notes = [f"Only this process can run {parts}: {again}."]
    if config.jobs > 1 or config.engine not in (None, "sequential"):
        notes.append("So the runs go one after the other, without other jobs or engines.")
    return notes


def _check_engine(config: TrainingConfig) -> None:
    _reserved_cpus(config)
    if config.engine is None or config.jobs == 1:
        return
    # Threads would share global generators and timers.
    if isinstance(find_engine(config.engine), Threads):
        remedy = "use the engine processes, or jobs=1"
        raise InvalidValueError(f"Runs at the same time must be in different processes: {remedy}.")


def _reserved_cpus(options: RunOptions) -> float | None:
    """Return the CPUs of a run on a cluster; None on this machine.

    Raises an error for invalid resources.
    """
    if options.engine is None and not options.resources:
        return None
    engine = find_engine(options.engine or "processes")
    resources = read_resources(options.resource_words, jobs=options.jobs, engine=engine)
    return resources.cpus if is_remote(engine) else None


def _without_missing_extras(saving: SaveOptions) -> SaveOptions:
    """Return the options without TensorBoard if it is not installed."""
    try:
        if saving.tensorboard:
            importlib.import_module("esbas.training.display.tensorboard")
    except MissingExtraError as error:
        _print(f"esbas: note: {error}")
        return replace(saving, tensorboard=False)
    return saving


def _print(*lines: str) -> None:
    """Print notes beside the progress, on standard error."""
    for line in lines:
        print(line, file=sys.stderr, flush=True)
