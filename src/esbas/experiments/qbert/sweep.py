"""All runs: the selector over six networks and, if wanted, each network alone. Each method is a training in its own folder."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import esbas
from esbas import seeding
from esbas.columns import Array
from esbas.experiments.qbert.setup import QbertSetup
from esbas.learners import EpsilonGreedy
from esbas.reporting import Results
from esbas.reporting.files import plain
from esbas.reporting.results import CONFIG, read_config
from esbas.reporting.terminal import print_text
from esbas.training.commands.train import train
from esbas.training.runs.one_run import is_finished

if TYPE_CHECKING:
    from esbas.experiments.qbert import Qbert

FEWEST, MOST, SHARE = 3, 100, 0.05  # random games: their number, and their steps relative to a run


def open_results(options: "Qbert") -> Results:
    """The results folder. Methods can be added to it: `--alone` after a run without it."""
    options.check()
    folder, settings = options.out or Path("esbas-qbert"), options.settings()
    if not (folder / CONFIG).is_file():
        training, *_ = options.trainings(folder).values()
        training.config.check()
        training.plan.start(options.seed).close()  # errors in the options are raised before a folder is created
    elif options.alone and read_config(folder)["config"] == plain(settings | {"alone": None}):
        results = Results(folder, command=options.command, config=settings | {"alone": None})
        results.change(settings, earlier={"alone": None})
        return results
    return Results(folder, command=options.command, config=settings)


def run_sweep(options: "Qbert", results: Results) -> Array:
    """Start or continue the training of each method. Returns the scores of random games, (N,)."""
    for name, training in options.trainings(results.folder).items():
        finished = all(is_finished(training.folder, seed) for seed in training.seeds)
        if finished and (training.folder / "report.html").exists():
            print_text(f"{name}: finished before. Results: {training.folder}")
        else:
            train(training)
    parts = {"random": partial(random_scores, options.setup, options.seed)}
    return options.run_parts(results, parts, description="games with random actions")["random"]["scores"]


def random_scores(setup: QbertSetup, seed: int) -> dict[str, Array]:
    """The scores of games in which all actions are drawn uniformly, for comparison."""
    task, steps = setup.make_task(), 0
    policy, scores = random_policy(task), list[float]()
    try:
        while len(scores) < FEWEST or (len(scores) < MOST and steps < SHARE * setup.profile.steps):
            rng = seeding.generator(seed, "random games", len(scores) + 1)
            game = esbas.play(task, policy, rng=rng, seed=int(rng.integers(2**31)))
            scores.append(float(game.rewards.sum()))
            steps += len(game)
    finally:
        task.close()
    return {"scores": np.array(scores)}


def random_policy(task: Any) -> EpsilonGreedy:
    """Draws all actions uniformly."""
    values = np.zeros(int(task.action_space.n))
    return EpsilonGreedy(lambda _: values, lambda: 1.0)
