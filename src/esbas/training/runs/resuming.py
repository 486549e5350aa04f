"""How a training that stopped is continued: what error messages tell the user to do."""

import shlex
from pathlib import Path

from esbas.errors import TrustError
from esbas.specs.portfolios.recipe import Recipe
from esbas.specs.trust import check_modules
from esbas.training.runs.plan import Plan


def how_to_resume(plan: Plan, folder: Path) -> str:
    """Return what continues a training, as the beginning of a sentence or of its part."""
    if has_objects(plan):
        return "the same call of `esbas.train`"
    return f"`esbas resume {shell_arguments(plan, folder)}`"


def has_objects(plan: Plan) -> bool:
    """Return whether objects describe the training, so that commands cannot open it."""
    return bool(plan.config.unnamed.keys() - {"callbacks"})


def shell_arguments(plan: Plan, folder: Path) -> str:
    """Return the folder as an argument of a command, with the option to trust it if needed."""
    quoted = shlex.quote(str(folder))
    return f"{quoted} --trust" if needs_trust(plan, folder) else quoted


def needs_trust(plan: Plan, folder: Path) -> bool:
    """Return whether the folder names modules, which commands import only if they are told to."""
    tables = {}
    if isinstance(plan.portfolio, Recipe):
        tables["learner"] = [{"algorithm": spec.algorithm} for spec in plan.portfolio.learners]
    try:
        check_modules(plan.config, tables, folder)
    except TrustError:
        return True
    return False
