"""Which policy of a training is meant: the best one that was kept, or that of a member in the last checkpoint."""

import math
from pathlib import Path
from typing import Any

from esbas import archive, schema
from esbas.errors import SaveFileError, require, unknown
from esbas.objective import make_objective
from esbas.training.folder import TrainingFolder
from esbas.training.policies.policy_file import BEST, StoredPolicy, best_of, read_policy
from esbas.training.reports import curves
from esbas.training.runs.episode_log import read_episodes
from esbas.training.runs.one_run import run_folder
from esbas.trajectory import TrajectorySet


def find_best(training: TrainingFolder, seed: int | None = None) -> StoredPolicy | None:
    """The best policy that was kept, of one run or of all runs; None before the first evaluation."""
    _check_seed(training, seed)
    paths = [run_folder(training.folder, each) / BEST for each in (training.seeds if seed is None else (seed,))]
    return best_of([read_policy(path) for path in paths if path.exists()], make_objective(training.plan.objective))


def find_run(training: TrainingFolder, seed: int | None = None) -> int:
    """The given seed, or that of the run with the best mean of its last episodes. The run must have a checkpoint."""
    _check_seed(training, seed)
    wanted = training.seeds if seed is None else (seed,)
    directories = {each: run_folder(training.folder, each) for each in wanted}
    runs = {each: read_episodes(directory) for each, directory in directories.items() if _checkpoint(directory).exists()}
    if not any(map(len, runs.values())):
        which = "a run" if seed is None else f"the run of seed {seed}"
        message = f"{which} must have a checkpoint, but there is none in {str(training.folder)!r} yet"
        raise SaveFileError(f"{message}: wait for the first one, or `esbas resume {training.folder}`")
    objective = make_objective(training.plan.objective)
    return max((each for each in runs if len(runs[each])), key=lambda each: objective.score(curves.last_mean(runs[each])))


def member_at_checkpoint(training: TrainingFolder, seed: int, name: str) -> StoredPolicy:
    """The member as it is in the last checkpoint of a run."""
    if name not in training.plan.recipe.names:
        raise unknown("learner", name, training.plan.recipe.names)
    found = members_at_checkpoint(training, seed)
    if name not in found:
        message = f"learner {name!r} must be in the checkpoint, but it could not be saved"
        raise SaveFileError(f"{message}: choose another one, or see faults.csv")
    return found[name]


def members_at_checkpoint(training: TrainingFolder, seed: int) -> dict[str, StoredPolicy]:
    """All members as they are in the last checkpoint of a run, without those that could not be saved."""
    path = _checkpoint(run_folder(training.folder, seed))
    content = archive.read(path, "run")
    members = training.plan.recipe.members
    entry = {"learner": schema.AnyOf(dict, None), str: Any}
    roster = {member.name: entry for member in members}
    schema.check(content, {"roster": roster, "steps": schema.COUNT, str: Any}, f"the run in {str(path)!r}")
    found = {
        member.name: StoredPolicy(
            learner=member.name,
            algorithm=member.algorithm,
            seed=seed,
            steps=content["steps"],
            mean=math.nan,
            whole=True,
            state=content["roster"][member.name]["learner"],
        )
        for member in members
        if content["roster"][member.name]["learner"] is not None
    }
    if not found:
        message = f"a learner must be in the checkpoint {str(path)!r}, but none could be saved"
        raise SaveFileError(f"{message}: see faults.csv")
    return found


def kept_trajectories(training: TrainingFolder, seed: int) -> TrajectorySet:
    """The trajectories in the last checkpoint of a run."""
    path, data = _checkpoint(run_folder(training.folder, seed)), TrajectorySet()
    content = archive.read(path, "run")
    schema.check(content, {"data": object, "number": schema.COUNT, str: Any}, f"the run in {str(path)!r}")
    data.load_state_dict(content["data"])
    if not len(data):
        message = f"trajectories must have been kept, but the run of seed {seed} in {str(training.folder)!r} has none"
        remedy = "train with --selector esbas or --epochs, or evaluate without --offline"
        raise SaveFileError(f"{message}, because all its learners learn from single steps: {remedy}")
    schema.require(len(data) >= content["number"], "there is a trajectory per episode", f"{str(path)!r}", trajectories=len(data))
    return data


def _check_seed(training: TrainingFolder, seed: int | None) -> None:
    known = seed is None or seed in training.seeds
    require(known, "the seed is one of the seeds of the training", seed=seed, seeds=training.seeds)


def _checkpoint(directory: Path) -> Path:
    return directory / "checkpoint.npz"
