"""The folder of a training, opened again."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esbas.errors import SaveFileError
from esbas.files import read_file
from esbas.reporting import Results
from esbas.reporting.results import CONFIG, read_config
from esbas.training.config import UNNAMED_SELECTOR, Train
from esbas.training.options import error_context
from esbas.training.portfolios.recipe import read_recipe, read_toml
from esbas.training.runs.plan import Plan
from esbas.training.trust import check_modules

COMMAND = "esbas train "
IN_PYTHON = "in Python: esbas.training.main(Train(env="
PORTFOLIO = "portfolio.toml"


@dataclass(frozen=True)
class TrainingFolder:
    """A training: its folder, its options and its plan."""

    folder: Path
    config: Train
    plan: Plan

    @property
    def seeds(self) -> tuple[int, ...]:
        return self.config.seeds


def command_of(config: Train) -> str:
    """What continues a training, for config.json. A task that has no name can be continued in Python only."""
    return f"{COMMAND}{_quoted(config.task)}" if config.in_python is None else f"{IN_PYTHON}{config.task}))"


def results_of(config: Train) -> Results:
    """The results folder of a training; that of an older version may leave out the selector."""
    options = config.options()
    recorded = read_config(config.folder)["config"] if (config.folder / CONFIG).is_file() else options
    if config.selector == UNNAMED_SELECTOR and "selector" not in recorded:
        del options["selector"]
    return Results(config.folder, command=command_of(config), config=options)


def open_folder(folder: Path, *, trust: bool = False, **options: Any) -> TrainingFolder:
    """The training in this folder.

    Args:
        folder: written by `esbas train`.
        trust: import the modules that the folder names. Without it, a folder that names any is refused, because a module runs
            code when it is imported.
        options: those that do not affect the results, such as `jobs`; and `env`, as in `Train`, for a task that has no name.
    """
    where = repr(str(folder))
    path = folder / PORTFOLIO
    if not (folder / CONFIG).is_file():
        raise SaveFileError(f"{where} must be the folder of a training, but it has no {CONFIG}: check the path")
    about = read_config(folder)
    if about["command"].startswith(IN_PYTHON) and options.get("env") is None:
        message = f"{where} must be opened in Python, because its task is an object without a name"
        raise SaveFileError(f"{message}: esbas.training.main(Train(env=..., out=...)) with the same options continues it")
    if not about["command"].startswith((COMMAND, IN_PYTHON)):
        again = about["again"]
        raise SaveFileError(f"{where} must be the folder of a training, but another command wrote it: `{again}` continues it")
    if not path.is_file():
        message = f"{where} must have a portfolio, but it has no {PORTFOLIO}"
        raise SaveFileError(f"{message}: `{about['again']} --out {folder}` writes it again")
    with error_context(str(folder / CONFIG)):
        config = Train.from_options(_task(about["command"]), about["config"], out=folder, **options)
    config.check()
    text = read_file(path).decode("utf-8", "replace")
    if not trust:
        check_modules(config, read_toml(text, source=str(path)), folder)
    return TrainingFolder(folder, config, config.plan(read_recipe(text, source=str(path))))


def open_without_task(folder: Path, *, trust: bool = False) -> TrainingFolder:
    """The training in this folder, for what needs its portfolio and files alone: the module of the task is not imported."""

    def absent() -> Any:
        raise SaveFileError(f"{str(folder)!r} was opened without its task: use open_folder")

    return open_folder(folder, trust=trust, env=absent)


def task_of(folder: Path) -> str:
    """The name of the task, as config.json has it; nothing is imported."""
    command = str(read_config(folder)["command"])
    return command.removeprefix(IN_PYTHON).removesuffix("))") if command.startswith(IN_PYTHON) else _task(command)


def _quoted(text: str) -> str:
    """The text as a word of a shell, in double quotes if it has single ones."""
    return f'"{text}"' if "'" in text and not set(text) & set('"$`\\!') else shlex.quote(text)


def _task(command: str) -> str:
    """The task in a command of `command_of`."""
    try:
        return " ".join(shlex.split(command.removeprefix(COMMAND)))
    except ValueError:  # quotes that are not closed
        return command.removeprefix(COMMAND)
