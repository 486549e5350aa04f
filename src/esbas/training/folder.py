"""The folder of a training: how it is chosen, described in config.json, and opened again."""

import os
import platform
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from esbas._internal import schema
from esbas._internal.files import file_errors, read_file, write_atomically
from esbas.errors import FileError, InvalidValueError, SaveFileError
from esbas.reporting.files import plain, write_json
from esbas.reporting.results import CONFIG, package_versions
from esbas.specs.options import error_context
from esbas.specs.portfolios.given import MadePortfolio
from esbas.specs.portfolios.recipe import Recipe, read_recipe, read_toml
from esbas.specs.sources import to_plain
from esbas.specs.trust import check_modules
from esbas.training.config import TrainingConfig, decisive_fields
from esbas.training.normalization import NORMALIZATION, read_normalization, write_normalization
from esbas.training.policies.layers import SPACES, Layer, write_layers
from esbas.training.runs.lock import require_unlocked
from esbas.training.runs.one_run import is_finished, run_folder
from esbas.training.runs.plan import Plan

FORMAT = 2  # of the folder; increased when an older version could not read what is written
PORTFOLIO = "portfolio.toml"
IN_PYTHON = "in Python: esbas.train with the same arguments"
_KIND = "training"
_SHAPE = {
    "kind": str,
    "format": int,
    "config": dict,
    "learners": [str],
    "made": bool,
    "again": str,
    "versions": {str: str},
    "platform": str,
    "earlier": [dict],
}
_REMEDY = "restore an earlier copy, or use another folder"


@dataclass(frozen=True)
class TrainingFolder:
    """A training: its folder and its plan."""

    folder: Path
    plan: Plan

    @property
    def config(self) -> TrainingConfig:
        return self.plan.config

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(self.config.seeds)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the learners."""
        return self.plan.portfolio.names

    @property
    def finished(self) -> bool:
        """Whether all runs are finished."""
        return all(is_finished(self.folder, seed) for seed in self.seeds)


def create_folder(folder: Path, plan: Plan, layers: list[Layer]) -> TrainingFolder:
    """Create the folder of a new training.

    Args:
        folder: new, or empty.
        plan: of the training.
        layers: the spaces of its environment, see `write_layers`.
    """
    with file_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    if isinstance(plan.portfolio, Recipe):
        write_atomically(folder / PORTFOLIO, plan.portfolio.text.encode())
    if plan.normalization is not None:
        write_normalization(folder, plan.normalization)
    write_layers(folder, layers)
    _write_about(folder, plan, earlier=[])  # last: it makes the folder that of a training
    return TrainingFolder(folder, plan)


def change_folder(
    training: TrainingFolder, plan: Plan, *, earlier: Mapping[str, Any]
) -> TrainingFolder:
    """Store a plan with a larger budget or more seeds, and what was `earlier`."""
    history = [*read_about(training.folder)["earlier"], plain(earlier)]
    _write_about(training.folder, plan, earlier=history)
    return TrainingFolder(training.folder, plan)


def _write_about(folder: Path, plan: Plan, *, earlier: list[Any]) -> None:
    about = {
        "kind": _KIND,
        "format": FORMAT,
        "config": plan.config.to_plain(),
        "learners": list(plan.portfolio.names),
        "made": isinstance(plan.portfolio, MadePortfolio),
        "again": command_line(plan.config),
        "versions": package_versions(),
        "platform": platform.platform(),
        "earlier": earlier,
    }
    write_json(folder / CONFIG, about)


def read_about(folder: Path) -> dict[str, Any]:
    """Read what config.json says about a training. Another format is refused."""
    path = folder / CONFIG
    where = repr(str(path))
    not_a_training = f"{str(folder)!r} is not the folder of a training"
    if not path.is_file():
        raise SaveFileError(f"{not_a_training}, because it has no {CONFIG}: check the path.")
    data = schema.read_json(read_file(path), where, remedy=_REMEDY)
    if not _describes_training(data):
        again = data.get("again") if isinstance(data, dict) else None
        remedy = f"`{again}` continues it" if isinstance(again, str) else "check the path"
        raise SaveFileError(f"{not_a_training}, but of another command: {remedy}.")
    if data.get("format") != FORMAT:
        written = schema.short(data.get("format", 1))
        message = f"The training in {str(folder)!r} has format {written}"
        remedy = "use the version of esbas that wrote it, or another folder"
        raise SaveFileError(f"{message}, but this version reads format {FORMAT}: {remedy}.")
    schema.check(data, _SHAPE, where, remedy=_REMEDY)
    return dict(data)


def _describes_training(data: Any) -> bool:
    """Return whether the content of config.json is that of a training, in any format."""
    if not isinstance(data, dict):
        return False
    is_old_training = str(data.get("command", "")).startswith("esbas train ")
    return data.get("kind") == _KIND or is_old_training


def open_folder(
    folder: Path, *, trust: bool = False, needs_env: bool = True, **options: Any
) -> TrainingFolder:
    """Open the training in this folder.

    Args:
        folder: written by `esbas train`.
        trust: import the modules that the folder names. Without it, a folder that names any is
            refused, because a module runs code when it is imported.
        needs_env: whether the environment will be created. If not, its module need not be trusted.
        options: those that do not affect the results, such as `jobs`.
    """
    about = read_about(folder)
    with error_context(str(folder / CONFIG)):
        config = TrainingConfig.from_plain(about["config"], out=folder, **options)
    path = folder / PORTFOLIO
    if not about["made"] and not path.is_file():
        message = f"{str(folder)!r} must have a portfolio, but it has no {PORTFOLIO}"
        raise SaveFileError(f"{message}: restore it, or start again in another folder.")
    if not trust:
        tables = {} if about["made"] else read_toml(_read_text(path), source=str(path))
        check_modules(config, tables, folder, needs_env=needs_env)
    return TrainingFolder(folder, _plan_in(folder, config))


def check_usable(training: TrainingFolder) -> None:
    """Raise an error if the runs cannot be continued here, before anything is written or shown.

    Another process may be training them, or a link may lead to files that are not of the training.
    """
    _refuse_links(training.folder)
    for seed in training.seeds:
        directory = run_folder(training.folder, seed)
        if not is_finished(training.folder, seed):
            require_unlocked(directory)


def refuse_link(folder: Path) -> None:
    """Raise an error if the folder itself is a symbolic link."""
    if folder.is_symlink():
        raise FileError(
            f"A training must not be continued through a link, but {str(folder)!r} is a symbolic "
            f"link to {os.path.realpath(folder)!r}: give that folder itself."
        )


def _refuse_links(folder: Path) -> None:
    """Raise an error if a file that continuing reads or writes is a symbolic link.

    A folder from elsewhere could link to any file.
    """
    runs = folder / "runs"
    paths = [folder / CONFIG, folder / PORTFOLIO, folder / SPACES, runs]
    for parent, folders, names in os.walk(runs):
        paths += [Path(parent, name) for name in (*folders, *names)]
    for path in paths:
        if path.is_symlink():
            raise FileError(
                f"The files of a training must not be links, but {str(path)!r} is a symbolic link "
                f"to {os.path.realpath(path)!r}: replace it by a copy of what it leads to."
            )


def find_unfinished(config: TrainingConfig) -> TrainingFolder | None:
    """Return the training that the same call started and did not finish; None if there is none."""
    for folder in _candidates(config.folder):
        if not (folder / CONFIG).is_file() or not _is_training(folder):
            continue
        if differences(folder, config):
            continue
        found = TrainingFolder(folder, _plan_in(folder, config))
        if not found.finished:
            return found
    return None


def free_folder(config: TrainingConfig) -> tuple[Path, str]:
    """Return a folder that is free, and a sentence if it is not the one that is wanted.

    If the wanted folder is taken, the first free one of FOLDER-2, FOLDER-3, ... is used.
    """
    wanted = config.folder
    if wanted.exists() and not wanted.is_dir():
        raise InvalidValueError(
            f"`out` must be a folder, but {str(wanted)!r} is a file: give another path."
        )
    if _is_free(wanted):
        return wanted, ""
    number = 2
    while not _is_free(_numbered(wanted, number)):
        number += 1
    free = _numbered(wanted, number)
    return free, f"{wanted} {_why_taken(wanted, config)}, so the results go to {free}."


def command_line(config: TrainingConfig) -> str:
    """Return the command that gives the same results, for messages."""
    stored = config.to_plain()
    if config.unnamed.keys() - {"callbacks"}:
        return IN_PYTHON
    words = ["esbas", "train", str(config.env)]
    for field in decisive_fields():
        value = stored[field.name]
        if field.name == "env" or value is None or value == to_plain(field.default):
            continue
        listed = value if isinstance(value, list) else [value]
        words.append(f"--{field.name.replace('_', '-')}")
        if value is not True:
            words += map(str, listed)
    return " ".join(_quoted(word) for word in words)


def _quoted(text: str) -> str:
    """Return a word of a shell, in double quotes if it has single ones."""
    has_only_single_quotes = "'" in text and not set(text) & set('"$`\\!')
    return f'"{text}"' if has_only_single_quotes else shlex.quote(text)


def _numbered(folder: Path, number: int) -> Path:
    return folder.with_name(f"{folder.name}-{number}")


def _candidates(folder: Path) -> Iterator[Path]:
    """Yield the folders that a training with this name may have used."""
    number = 1
    candidate = folder
    with file_errors(folder):  # such as a name that is too long
        while candidate.exists():
            yield candidate
            number += 1
            candidate = _numbered(folder, number)


def _is_free(folder: Path) -> bool:
    """Return whether a training can be created here. A kill may have left its first files."""
    with file_errors(folder):
        if not folder.exists() and not folder.is_symlink():
            return True
        if not folder.is_dir():
            return False
        for path in folder.iterdir():
            is_first_file = path.name in (PORTFOLIO, NORMALIZATION, SPACES)
            if not is_first_file and not path.name.startswith("."):
                return False
        return True


def _is_training(folder: Path) -> bool:
    """Return whether the folder is that of a training in this format.

    Another format raises an error.
    """
    data = schema.read_json(read_file(folder / CONFIG), repr(str(folder / CONFIG)), remedy=_REMEDY)
    if not _describes_training(data):
        return False
    read_about(folder)
    return True


def differences(folder: Path, config: TrainingConfig) -> dict[str, tuple[Any, Any]]:
    """Return the old and new values of options in which a new training differs from a folder."""
    stored = read_about(folder)["config"]
    given = plain(config.to_plain())
    found: dict[str, tuple[Any, Any]] = {}
    for field in decisive_fields():
        default = plain(to_plain(field.default))
        old = stored.get(field.name, default)
        new = given[field.name]
        if old != new:
            found[field.name] = old, new
    if not found and config.portfolio is not None and not _has_same_portfolio(folder, config):
        found["portfolio"] = "a file with other content", config.portfolio
    return found


def _has_same_portfolio(folder: Path, config: TrainingConfig) -> bool:
    """Return whether the given TOML file has the learners of the folder. Comments may differ."""
    kept = _read_text(folder / PORTFOLIO, missing=b"")
    given = _read_text(Path(str(config.portfolio)), missing=b"")
    try:
        return tomllib.loads(kept) == tomllib.loads(given)
    except (ValueError, RecursionError):
        return False


def _plan_in(folder: Path, config: TrainingConfig) -> Plan:
    """Return the plan of the training in a folder."""
    plan = Plan(config, _portfolio_in(folder, config))
    if not plan.normalizes:
        return plan
    normalization = read_normalization(folder)
    if normalization is None:
        message = f"{str(folder)!r} must have the constants for its observations"
        remedy = "restore it, or start again in another folder"
        raise SaveFileError(f"{message}, but it has no {NORMALIZATION}: {remedy}.")
    return replace(plan, normalization=normalization)


def _portfolio_in(folder: Path, config: TrainingConfig) -> Recipe | MadePortfolio:
    about = read_about(folder)
    if about["made"]:
        return MadePortfolio(config.learners or (), names=about["learners"])
    path = folder / PORTFOLIO
    portfolio = read_recipe(_read_text(path), source=str(path))
    if config.device is not None:
        portfolio = portfolio.on_device(config.device)
    return portfolio


def _read_text(path: Path, *, missing: bytes | None = None) -> str:
    return read_file(path, missing=missing).decode("utf-8", "replace")


def _why_taken(folder: Path, config: TrainingConfig) -> str:
    """Return why a new training cannot use this folder, as the end of a sentence."""
    if not (folder / CONFIG).is_file():
        return "has other files"
    if not _is_training(folder):
        return "has the results of another command"
    found = differences(folder, config)
    if not found:
        return "has a finished training of the same configuration"
    name, *_ = found  # one is enough to explain it
    old, new = found[name]
    reason = f"has a training with {name}={schema.short(old)} instead of {schema.short(new)}"
    if _is_more(found) and not config.unnamed:
        return f"{reason} (`esbas resume {shlex.quote(str(folder))}` can extend it)"
    return reason


def _is_more(differences: Mapping[str, tuple[Any, Any]]) -> bool:
    """Return whether nothing differs but a larger budget, or more seeds."""
    for name, (old, new) in differences.items():
        is_larger_budget = name in ("steps", "episodes") and bool(old and new) and new > old
        has_more_seeds = name == "seeds" and set(old) <= set(new)
        if not (is_larger_budget or has_more_seeds):
            return False
    return True
