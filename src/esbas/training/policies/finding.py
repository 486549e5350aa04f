"""Find a policy of a training: the best one that was kept, or one in the last checkpoint."""

import math
from pathlib import Path
from typing import Any

from esbas._internal import archive, schema
from esbas.errors import InvalidValueError, SaveFileError, unknown
from esbas.training.folder import TrainingFolder
from esbas.training.policies.policy_file import BEST, StoredPolicy, best_of, read_policy
from esbas.training.reports import curves
from esbas.training.runs.episode_log import read_episodes
from esbas.training.runs.one_run import run_folder
from esbas.training.runs.resuming import how_to_resume
from esbas.trajectory import TrajectorySet


def find_best(training: TrainingFolder, seed: int | None = None) -> StoredPolicy | None:
    """Return the best policy that was kept, of one run or of all runs.

    None before the first evaluation.
    """
    kept = []
    for each in _wanted_seeds(training, seed):
        path = run_folder(training.folder, each) / BEST
        if path.exists():
            kept.append(read_policy(path))
    return best_of(kept, training.plan.objective)


def find_run(training: TrainingFolder, seed: int | None = None) -> int:
    """Return the given seed, or that of the run with the best mean of its last episodes.

    The run must have a checkpoint.
    """
    objective = training.plan.objective
    ranks: dict[int, float] = {}
    for each in _wanted_seeds(training, seed):
        directory = run_folder(training.folder, each)
        if not _checkpoint(directory).exists():
            continue
        run = read_episodes(directory)
        if len(run):
            ranks[each] = objective.score(curves.last_mean(run))
    if not ranks:
        which = "the training" if seed is None else f"the run of seed {seed}"
        message = f"There is no checkpoint of {which} in {str(training.folder)!r} yet"
        remedy = f"wait for the first one, or {how_to_resume(training.plan, training.folder)}"
        raise SaveFileError(f"{message}: {remedy}.")
    return max(ranks, key=ranks.__getitem__)


def learner_at_checkpoint(training: TrainingFolder, seed: int, name: str) -> StoredPolicy:
    """Return a learner as it is in the last checkpoint of a run."""
    if name not in training.plan.portfolio.names:
        raise unknown("learner", name, training.plan.portfolio.names)
    found = learners_at_checkpoint(training, seed)
    if name not in found:
        message = f"Learner {name!r} is not in the checkpoint, because it could not be saved"
        raise SaveFileError(f"{message}: choose another one, or see faults.csv.")
    return found[name]


def learners_at_checkpoint(training: TrainingFolder, seed: int) -> dict[str, StoredPolicy]:
    """Return all learners as they are in the last checkpoint of a run.

    Those that could not be saved are left out.
    """
    path = _checkpoint(run_folder(training.folder, seed))
    content = archive.read(path, "run")
    specs = training.plan.portfolio.learners
    entry = {"learner": schema.AnyOf(dict, None), str: Any}
    roster = {spec.name: entry for spec in specs}
    shape = {"roster": roster, "steps": schema.COUNT, str: Any}
    schema.check(content, shape, f"the run in {str(path)!r}")
    found = {}
    for spec in specs:
        state = content["roster"][spec.name]["learner"]
        if state is not None:
            found[spec.name] = StoredPolicy(
                learner=spec.name,
                algorithm=spec.algorithm,
                seed=seed,
                steps=content["steps"],
                mean=math.nan,
                whole=True,
                state=state,
            )
    if not found:
        message = f"No learner is in the checkpoint {str(path)!r}, because none could be saved"
        raise SaveFileError(f"{message}: see faults.csv.")
    return found


def kept_trajectories(training: TrainingFolder, seed: int) -> TrajectorySet:
    """Return the trajectories in the last checkpoint of a run."""
    path = _checkpoint(run_folder(training.folder, seed))
    data = TrajectorySet()
    content = archive.read(path, "run")
    schema.check(content, {"data": object, str: Any}, f"the run in {str(path)!r}")
    data.load_state_dict(content["data"])
    if not len(data):
        run = f"The run of seed {seed} in {str(training.folder)!r}"
        cause = "because all its learners learn from single steps"
        remedy = "train with --selector esbas or --epochs, or evaluate without --offline"
        raise SaveFileError(f"{run} has kept no trajectories, {cause}: {remedy}.")
    return data


def _wanted_seeds(training: TrainingFolder, seed: int | None) -> tuple[int, ...]:
    """Return the given seed, or all seeds of the training."""
    if seed is None:
        return training.seeds
    if seed not in training.seeds:
        known = f"one of the seeds of the training, {schema.short(training.seeds)}"
        raise InvalidValueError(f"`seed` must be {known}, but got {schema.short(seed)}.")
    return (seed,)


def _checkpoint(directory: Path) -> Path:
    return directory / "checkpoint.npz"
