"""`esbas evaluate FOLDER`: plays the best policy of a training, or all its learners."""

import math
from typing import Any

from esbas._internal.compile_notice import announcing_compilation
from esbas.cli.evaluate_options import Evaluate
from esbas.errors import InvalidValueError
from esbas.reporting import Table
from esbas.reporting.terminal import print_table, print_text
from esbas.training.evaluating import evaluate_learners, evaluate_offline, evaluate_policy
from esbas.training.folder import TrainingFolder, open_folder

ALL = "all"


def main(config: Evaluate) -> None:
    """Run `esbas evaluate` with these options."""
    if config.offline:
        _evaluate_offline(config)
        return
    training = open_folder(config.folder, trust=config.trust)
    with announcing_compilation():
        if config.learner == ALL:
            _evaluate_all(training, config)
        else:
            _evaluate_one(training, config)


def _evaluate_one(training: TrainingFolder, config: Evaluate) -> None:
    result = evaluate_policy(
        training,
        learner=config.learner,
        seed=config.seed,
        episodes=config.episodes,
        explore=config.explore,
        render=config.render,
        video=config.video,
        eval_seed=config.eval_seed,
        progress=True,
    )
    count = "one episode" if result.runs == 1 else f"{result.runs} episodes"
    mode = "with" if result.explores else "without"
    player = f"{result.learner}, seed {result.seed}, trained for {result.steps:,} steps"
    table = result.table()
    print_table(f"{player}: {count} {mode} exploration", table.columns, table.rows)
    files = f"{training.folder / 'evaluation.csv'}, {training.folder / 'evaluation.json'}"
    print_text(f"Intervals are over episodes of this one policy. Files: {files}", *result.notes)
    if result.video is not None:
        print_text(f"The first episode: {result.video}")


def _evaluate_all(training: TrainingFolder, config: Evaluate) -> None:
    if config.render or config.video is not None:
        raise InvalidValueError("One learner can be shown or recorded: name it with --learner.")
    table, seed, steps = evaluate_learners(
        training,
        seed=config.seed,
        episodes=config.episodes,
        explore=config.explore,
        eval_seed=config.eval_seed,
    )
    mode = "with" if config.explore else "without"
    count = f"{config.episodes} episodes of each learner {mode} exploration"
    _print(f"Seed {seed}, trained for {steps:,} steps: {count}", table, bold=_best(training, table))
    files = f"{training.folder / 'evaluation.csv'}, {training.folder / 'evaluation.json'}"
    print_text(f"All play the same episodes; intervals are over episodes. Files: {files}")


def _evaluate_offline(config: Evaluate) -> None:
    for name in ("explore", "render", "video"):
        if getattr(config, name):
            raise InvalidValueError(f"Nothing is played offline: leave out --{name}, or --offline.")
    training = open_folder(config.folder, trust=config.trust, needs_env=False)
    learner = None if config.learner == ALL else config.learner
    table, seed, notes = evaluate_offline(training, learner=learner, seed=config.seed)
    objective = training.plan.objective.name
    _print(f"Seed {seed}: {objective}, estimated from episodes of the training", table)
    files = f"{training.folder / 'offline.csv'}, {training.folder / 'offline.json'}"
    print_text(*notes, f"low and high are the ends of 95 % intervals. Files: {files}")


def _best(training: TrainingFolder, table: Table) -> list[int]:
    """Return the row of the best learner, if any could play."""
    objective = training.plan.objective
    best: list[int] = []
    best_score = -math.inf
    for number, row in enumerate(table.rows):
        mean: Any = row[1]  # an Estimate
        problem = row[-1]
        if problem:
            continue
        score = objective.score(float(mean))
        if not best or score > best_score:
            best = [number]
            best_score = score
    return best


def _print(title: str, table: Table, *, bold: list[int] | None = None) -> None:
    """Print a table without its last column, of problems, if there are none."""
    has_problems = any(row[-1] for row in table.rows)
    shown = len(table.columns) if has_problems else len(table.columns) - 1
    print_table(title, table.columns[:shown], [row[:shown] for row in table.rows], bold=bold or [])
