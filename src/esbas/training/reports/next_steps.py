"""What can be done with a training, as commands with its folder."""

from esbas._internal.links import page
from esbas.training.folder import TrainingFolder
from esbas.training.runs.resuming import has_objects, needs_trust, shell_arguments

CONTINUE = "continue this training"
PLAY = "play the best policy"
LOAD = "load it in Python"
EXPORT = "use it without esbas"
EXTEND = "train longer"


def next_steps(training: TrainingFolder) -> list[tuple[str, str]]:
    """Return what can be done next, and the command or the line of Python that does it.

    A training that objects describe cannot be opened by commands: it gets lines of Python.
    """
    plan = training.plan
    config = plan.config
    name = "steps" if config.steps else "episodes"
    longer = 2 * (config.steps or config.episodes or 1)
    if has_objects(plan):
        return [
            (PLAY, "training.evaluate()"),
            (LOAD, "training.policy()"),
            (EXPORT, "training.export()"),
            (EXTEND, f"training.extend({name}={longer})"),
        ]
    folder = shell_arguments(plan, training.folder)
    arguments = repr(str(training.folder))
    if needs_trust(plan, training.folder):
        arguments += ", trust=True"
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
