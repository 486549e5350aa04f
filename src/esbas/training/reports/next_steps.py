"""What can be done with a training, as commands with its folder."""

import shlex

from esbas._internal.links import page
from esbas.errors import TrustError
from esbas.specs.portfolios.recipe import Recipe
from esbas.specs.trust import check_modules
from esbas.training.folder import TrainingFolder

CONTINUE = "continue this training"
PLAY = "play the best policy"
LOAD = "load it in Python"
EXPORT = "use it without esbas"
EXTEND = "train longer"


def next_steps(training: TrainingFolder) -> list[tuple[str, str]]:
    """Return what can be done next, and the command or the line of Python that does it.

    A training that objects describe cannot be opened by commands: it gets lines of Python.
    """
    config = training.plan.config
    name = "steps" if config.steps else "episodes"
    longer = 2 * (config.steps or config.episodes or 1)
    if config.unnamed.keys() - {"callbacks"}:
        return [
            (PLAY, "training.evaluate()"),
            (LOAD, "training.policy()"),
            (EXPORT, "training.export()"),
            (EXTEND, f"training.extend({name}={longer})"),
        ]
    trust = _needs_trust(training)
    folder = shlex.quote(str(training.folder)) + (" --trust" if trust else "")
    arguments = repr(str(training.folder)) + (", trust=True" if trust else "")
    steps = [
        (PLAY, f"esbas evaluate {folder}"),
        (LOAD, f"esbas.load_policy({arguments})"),
        (EXPORT, f"esbas export {folder}"),
        (EXTEND, f"esbas resume {folder} --{name} {longer}"),
    ]
    if not training.finished:
        steps.insert(0, (CONTINUE, f"esbas resume {folder}"))
    return steps


def documentation() -> str:
    """Return a sentence with the pages that explain these commands."""
    return f"Documentation: {page('train')} and {page('policies')}."


def _needs_trust(training: TrainingFolder) -> bool:
    """Whether the folder names modules, which commands import only if they are told to."""
    portfolio = training.plan.portfolio
    tables = {}
    if isinstance(portfolio, Recipe):
        tables["learner"] = [{"algorithm": spec.algorithm} for spec in portfolio.learners]
    try:
        check_modules(training.plan.config, tables, training.folder)
    except TrustError:
        return True
    return False
