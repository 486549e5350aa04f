"""The folder of a training, opened again."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esbas.errors import EsbasError, SaveFileError
from esbas.training.config import Train
from esbas.training.plan import Plan
from esbas.training.portfolio import read_recipe

COMMAND = "esbas train "
PORTFOLIO = "portfolio.toml"


@dataclass(frozen=True)
class Opened:
    """A training as its folder tells it."""

    folder: Path
    config: Train
    plan: Plan

    @property
    def seeds(self) -> tuple[int, ...]:
        """Of its runs."""
        return self.config.seeds


def open_folder(folder: Path, **keeping: Any) -> Opened:
    """The training in this folder; `keeping` are options that do not decide its numbers."""
    where = repr(str(folder))
    try:
        about = json.loads((folder / "config.json").read_text("utf-8"))
        command = str(about["command"])
        if not command.startswith(COMMAND):
            raise SaveFileError(
                f"{where} must be the folder of a training, but is of another command: `{about['again']}` continues it"
            )
        config = Train.from_options(command.removeprefix(COMMAND), dict(about["config"]), out=folder, **keeping)
        recipe = read_recipe((folder / PORTFOLIO).read_text("utf-8"), source=str(folder / PORTFOLIO))
    except EsbasError:
        raise
    except FileNotFoundError as error:
        missing = Path(error.filename).name
        raise SaveFileError(f"{where} must be the folder of a training, but it has no {missing}: check the path") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SaveFileError(f"{where} must be the folder of a training, but its config.json is damaged ({error})") from error
    return Opened(folder, config, config.plan(recipe))
