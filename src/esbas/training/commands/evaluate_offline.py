"""`esbas evaluate FOLDER --offline`: the values of members, estimated from the trajectories that the training kept."""

import math

from esbas.errors import SaveFileError, unknown
from esbas.objective import make_objective
from esbas.reporting.files import write_csv, write_json
from esbas.reporting.terminal import print_table, print_text
from esbas.training.folder import TrainingFolder
from esbas.training.policies.finding import find_run
from esbas.training.policies.offline import OfflineScore, score_offline

HEADER = "learner", "policy", "value", "low", "high", "effective sample size", "episodes", "problem"


def evaluate_offline(training: TrainingFolder, *, member: str | None, seed: int | None) -> None:
    """Print the table, and write it to offline.csv and offline.json."""
    names = training.plan.recipe.names
    if member is not None and member not in names:
        raise unknown("learner", member, names)
    run, folder = find_run(training, seed), training.folder
    found = score_offline(training, run, names=names if member is None else [member])
    if not found.scores:
        raise SaveFileError(f"learner {member!r} must be in the checkpoint, but it could not be saved: see faults.csv")
    rows = [_row(score) for score in found.scores]
    objective = make_objective(training.plan.objective).name
    about = {"seed": run, "objective": objective, "frozen": found.frozen, "episodes without probabilities": found.unknown}
    write_csv(folder / "offline.csv", HEADER, rows)
    write_json(folder / "offline.json", about | {"policies": [dict(zip(HEADER, row, strict=True)) for row in rows]})
    shown = HEADER if any(row[-1] for row in rows) else HEADER[:-1]
    print_table(f"Seed {run}: {objective}, estimated from episodes of the training", shown, [row[: len(shown)] for row in rows])
    if not found.frozen:
        print_text("The policies have learnt from these episodes, or from others since: the values are likely too good.")
    if found.unknown:
        print_text(f"{found.unknown:,} episodes were left out, because the probabilities of their actions were not recorded.")
    print_text(f"low and high are the ends of 95 % intervals. Files: {folder / 'offline.csv'}, {folder / 'offline.json'}")


def _row(score: OfflineScore) -> tuple[object, ...]:
    found = score.estimate
    if found is None:
        return score.learner, score.policy, *[math.nan] * 4, None, score.problem
    numbers = found.value, found.low, found.high, found.effective_sample_size
    return score.learner, score.policy, *numbers, found.n, score.problem
