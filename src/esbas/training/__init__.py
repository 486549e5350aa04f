"""What `esbas train` does: any Gymnasium task, any portfolio, recorded in a folder."""

from pathlib import Path

from esbas.errors import InvalidValueError, require
from esbas.reporting import Results
from esbas.reporting.terminal import print_text
from esbas.training.account import publish
from esbas.training.config import Train
from esbas.training.crew import train_all
from esbas.training.folder import COMMAND, PORTFOLIO, Opened, open_folder
from esbas.training.live import View
from esbas.training.plan import Plan, close
from esbas.training.portfolio import Recipe, default_recipe, example, read_recipe, recipe_of
from esbas.training.single import run_folder
from esbas.training.tasks import make_task

__all__ = ["Plan", "Recipe", "Train", "default_recipe", "main", "make_task", "open_folder", "read_recipe", "recipe_of", "train"]


def main(config: Train) -> None:
    """What `esbas train` does."""
    if config.example:
        _write_example(Path(PORTFOLIO))
        return
    require(config.env_id != "", "a task is named", "esbas train CartPole-v1", env_id=config.env_id)
    train(Opened(config.folder, config, config.plan(config.recipe())))


def train(opened: Opened) -> None:
    """Start the training, or continue it, and write its report."""
    config, folder, plan = opened.config, opened.folder, opened.plan
    _check(config)
    _try(plan, config.seeds[0], folder)
    results = Results(folder, command=COMMAND + config.env_id, config=config.options())
    _keep_portfolio(folder / PORTFOLIO, plan.recipe)
    _announce(opened)
    try:
        with View(f"{config.env_id}, {config.selector}") as view:
            train_all(plan, config.seeds, folder, jobs=config.jobs, keeping=config.keeping, tell=view.tell)
    finally:
        publish(results, opened)


def _check(config: Train) -> None:
    require(len(config.seeds) > 0, "there is a seed", seeds=config.seeds)
    require(min(config.seeds) >= 0, "seeds are >= 0", seeds=config.seeds)
    require(len(set(config.seeds)) == len(config.seeds), "seeds are different", seeds=config.seeds)
    require(config.jobs >= 1, "jobs >= 1", jobs=config.jobs)
    require(config.checkpoint_every >= 0, "checkpoint_every >= 0", checkpoint_every=config.checkpoint_every)


def _try(plan: Plan, seed: int, folder: Path) -> None:
    """Build everything once, so that whatever does not fit is told before anything starts and no folder is made."""
    if not run_folder(folder, seed).exists():
        close(plan.start(seed))


def _announce(opened: Opened) -> None:
    plan, names, seeds = opened.plan, opened.plan.recipe.names, len(opened.seeds)
    budget = f"{plan.steps:,} steps" if plan.steps else f"{plan.episodes:,} episodes"
    runs = "" if seeds == 1 else f", {seeds} runs"
    who = f"{len(names)} learners" if len(names) > 1 else "one learner"
    print_text(f"{plan.env_id}: {who}, {plan.selector} chooses who acts, {budget}{runs}. Results: {opened.folder}")


def _keep_portfolio(path: Path, recipe: Recipe) -> None:
    """The folder holds the portfolio that its numbers come from."""
    if not path.exists():
        path.write_text(recipe.text, "utf-8")
    elif path.read_text("utf-8") != recipe.text:
        told = f"the portfolio of a training stays the same, but {str(path)!r} differs from the one given now"
        raise InvalidValueError(f"{told}: give another --out, or `esbas resume {path.parent}`")


def _write_example(path: Path) -> None:
    require(not path.exists(), "there is no file yet", "move it away", path=str(path))
    path.write_text(example(), "utf-8")
    print(f"{path} is written: edit it, then `esbas train CartPole-v1 --portfolio {path}`")
