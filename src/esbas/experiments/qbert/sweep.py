"""All runs: the selector over six networks and, if wanted, each network alone.

Each method is a training in its own folder.
"""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import esbas
from esbas import seeding
from esbas._internal.columns import Array
from esbas.experiments.qbert.setup import QbertSetup
from esbas.learners import EpsilonGreedy
from esbas.reporting import Results
from esbas.reporting.files import plain
from esbas.reporting.results import CONFIG, read_config
from esbas.reporting.terminal import print_text
from esbas.training.train import check_options, start_or_continue

if TYPE_CHECKING:
    from esbas.experiments.qbert import Qbert

# Random games: their number, and their steps relative to a run.
FEWEST = 3
MOST = 100
SHARE = 0.05


def open_results(options: "Qbert") -> Results:
    """Open the results folder. Methods can be added to it: `--alone` after a run without it."""
    options.check()
    folder = options.out or Path("esbas-qbert")
    settings = options.settings()
    if not (folder / CONFIG).is_file():
        # Errors in the options are raised before a folder is created.
        training = options.trainings(folder)[options.setup.title]
        check_options(training.config)
        training.plan.start(options.seed).close()
    elif options.alone and read_config(folder)["config"] == plain(settings | {"alone": None}):
        results = Results(folder, command=options.command, config=settings | {"alone": None})
        results.change(settings, earlier={"alone": None})
        return results
    return Results(folder, command=options.command, config=settings)


def run_sweep(options: "Qbert", results: Results) -> Array:
    """Start or continue the training of each method, and return scores of random games, (N,)."""
    for name, training in options.trainings(results.folder).items():
        if training.finished and (training.folder / "report.html").exists():
            print_text(f"{name}: finished before. Results: {training.folder}")
        else:
            start_or_continue(training)
    parts = {"random": partial(random_scores, options.setup, options.seed)}
    finished = options.run_parts(results, parts, description="games with random actions")
    return finished["random"]["scores"]


def random_scores(setup: QbertSetup, seed: int) -> dict[str, Array]:
    """Return the scores of games in which all actions are drawn uniformly, for comparison."""
    env = setup.make_env()
    steps = 0
    policy = random_policy(env)
    scores: list[float] = []
    try:
        while len(scores) < FEWEST or (len(scores) < MOST and steps < SHARE * setup.profile.steps):
            rng = seeding.generator(seed, "random games", len(scores) + 1)
            game = esbas.play(env, policy, rng=rng, seed=int(rng.integers(2**31)))
            scores.append(float(game.rewards.sum()))
            steps += len(game)
    finally:
        env.close()
    return {"scores": np.array(scores)}


def random_policy(env: Any) -> EpsilonGreedy:
    """Return a policy that draws all actions uniformly."""
    values = np.zeros(int(env.action_space.n))
    return EpsilonGreedy(lambda _: values, lambda: 1.0)
