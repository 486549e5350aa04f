"""Learners that start from what others have learnt in an earlier training.

The folder of that training is read as data; nothing is imported.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esbas._internal import archive, schema
from esbas._internal.files import read_file
from esbas.errors import InvalidValueError, SaveFileError, unknown
from esbas.learner import Learner
from esbas.learners import SharedReplay
from esbas.specs.options import checked, error_context
from esbas.specs.portfolios.build import RESERVED, BuildContext
from esbas.specs.portfolios.learner_tables import SETTINGS, LearnerSpec, read_learner_tables
from esbas.specs.portfolios.recipe import read_toml
from esbas.training.normalization import Normalization, read_normalization

_SHAPE = {"roster": {str: {"learner": Any, "fault": Any, str: Any}}, str: Any}


@dataclass(frozen=True, kw_only=True)
class SavedLearner:
    """A learner in the checkpoint of an earlier training."""

    name: str
    algorithm: str
    options: Mapping[str, Any]  # of the algorithm, as they are written in the portfolio
    replay: Mapping[str, Any]  # of the replay memory, likewise
    state: Any  # None if it could not be saved

    def build(self, context: BuildContext) -> Learner:
        """Build it as it was, but without its replay memory.

        The new portfolio names the same algorithm, so nothing is imported that it does not import.
        """
        memory = checked(SharedReplay, self.replay, kind="[replay]", reserved=RESERVED)
        table = {"algorithm": self.algorithm, **self.options}
        (spec,) = read_learner_tables([table], source="its portfolio")
        acting = dataclasses.replace(context, memory=memory, acting=True)
        return dataclasses.replace(spec, name=self.name).build(acting)


def start_from(
    specs: Sequence[LearnerSpec],
    learners: Sequence[Learner],
    context: BuildContext,
    *,
    folder: str | None,
    normalization: Normalization | None,
) -> None:
    """Load what the learners of earlier trainings have learnt.

    Only policies are loaded, without optimizers and replay memories.

    Args:
        specs: of the learners. One with `start_from` starts from the learner with its name, or with
            the name `start_learner`.
        learners: just built, in the same order.
        context: what they were built from. The earlier run is that with the same seed, or else that
            with the lowest.
        folder: of an earlier training. Other learners start from the learner there with the same
            name and algorithm, if any.
        normalization: of observations. It must be that of the earlier training.
    """
    read = functools.cache(read_saved)  # a checkpoint can be large
    has_started = False
    for spec, learner in zip(specs, learners, strict=True):
        is_named = spec.start_from is not None
        source = spec.start_from if is_named else folder
        if source is None:
            continue
        path = Path(source)
        with error_context(spec.where if is_named else "start_from"):
            saved_learners = read(path, context.seed)
        name = spec.start_learner or spec.name
        saved = saved_learners.get(name)
        if is_named:
            saved = _checked_start(spec, saved, name, saved_learners)
        elif saved is None or saved.algorithm != spec.algorithm:
            continue
        has_started = True
        if not learner.stationary:
            _check_normalization(path, normalization)
        what = f"must start from what {name!r} learnt in {str(path)!r}"
        remedy = "give it the options that it had there, or another start"
        with error_context(spec.where, rule=what, remedy=remedy):
            _load(learner, saved, context)
    if folder is not None and not has_started:
        names = ", ".join(repr(spec.name) for spec in specs)
        needed = f"the name and the algorithm of one of the learners ({names})"
        remedy = "name it with start_from and start_learner in a [[learner]] table"
        raise InvalidValueError(f"No learner of {folder!r} has {needed}: {remedy}.")


def _check_normalization(folder: Path, wanted: Normalization | None) -> None:
    """Raise an error unless an earlier training saw the same observations."""
    found = read_normalization(folder)
    if found == wanted:
        return
    if wanted is None:
        problem = "was trained with normalized observations"
        remedy = "add --normalize-observations, which takes over its constants"
    elif found is None:
        problem = "was trained without normalized observations"
        remedy = "remove --normalize-observations, or train it so as well"
    else:
        problem = "was trained with other constants for its observations"
        remedy = "start from one earlier training only"
    raise InvalidValueError(f"The earlier training {str(folder)!r} {problem}: {remedy}.")


def _checked_start(
    spec: LearnerSpec, saved: SavedLearner | None, name: str, known: Mapping[str, SavedLearner]
) -> SavedLearner:
    """Return the saved learner that a table of the portfolio names, if it is a suitable one."""
    if saved is None:
        with error_context(spec.where):
            raise unknown(f"learner of {spec.start_from!r}", name, known, "set start_learner")
    if saved.algorithm != spec.algorithm:
        needed = f"must have the algorithm {spec.algorithm!r}, but has {saved.algorithm!r}"
        message = f"{name!r} of {spec.start_from!r} {needed}"
        raise InvalidValueError(f"{spec.where}: {message}: set start_learner.")
    return saved


def read_saved(folder: Path, seed: int) -> dict[str, SavedLearner]:
    """Read the learners in a checkpoint of a training, by name.

    The run is that with this seed, or else that with the lowest.
    """
    checkpoints = _checkpoints(folder)
    if not checkpoints:
        remedy = "check the path, or wait for its first checkpoint"
        raise SaveFileError(f"The earlier training {str(folder)!r} has no checkpoint: {remedy}.")
    path = checkpoints.get(seed) or checkpoints[min(checkpoints)]
    state = archive.read(path, "run")
    schema.check(state, _SHAPE, f"the run in {str(path)!r}")
    roster = state["roster"]
    portfolio = folder / "portfolio.toml"
    tables = read_toml(read_file(portfolio).decode("utf-8", "replace"), source=str(portfolio))
    replay = tables.get("replay", {})
    described = _expanded(tables.get("learner"), len(roster))
    if described is None or not isinstance(replay, dict):
        message = f"{str(portfolio)!r} is not the portfolio of the learners in {str(path)!r}"
        raise SaveFileError(f"{message}: restore an earlier copy.")
    saved = {}
    for name, (algorithm, options) in zip(roster, described, strict=True):
        saved[name] = SavedLearner(
            name=name,
            algorithm=algorithm,
            options=options,
            replay=replay,
            state=roster[name]["learner"],
        )
    return saved


def _checkpoints(folder: Path) -> dict[int, Path]:
    """Return the checkpoints of a training, by seed."""
    found = {}
    for path in folder.glob("runs/seed-*/checkpoint.npz"):
        seed = path.parent.name.removeprefix("seed-")
        if seed.isdecimal():
            found[int(seed)] = path
    return found


def _expanded(tables: Any, count: int) -> list[tuple[str, dict[str, Any]]] | None:
    """Return the algorithm and the options of each learner, in the order of the portfolio.

    None unless there are `count` of them.
    """
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        return None
    described: list[tuple[str, dict[str, Any]]] = []
    for table in tables:
        grid = table.get("grid", {})
        if not isinstance(grid, dict):
            return None
        if not all(isinstance(values, list) for values in grid.values()):
            return None
        # Checked before the combinations are created, because there could be billions.
        combinations = math.prod(len(values) for values in grid.values())
        if len(described) + combinations > count:
            return None
        algorithm = str(table.get("algorithm"))
        plain = {key: value for key, value in table.items() if key not in SETTINGS}
        for values in itertools.product(*grid.values()):
            options = plain | dict(zip(grid, values, strict=True))
            described.append((algorithm, options))
    return described if len(described) == count else None


def _load(learner: Any, saved: SavedLearner, context: BuildContext) -> None:
    if learner.stationary:
        return
    if saved.state is None:
        raise SaveFileError("Its state is not in the checkpoint: start from another learner.")
    if not (hasattr(learner, "policy_state") and hasattr(learner, "load_policy_state")):
        learner.load_state_dict(saved.state)
        return
    earlier: Any = saved.build(context)
    try:
        earlier.load_state_dict(saved.state)
        learner.load_policy_state(earlier.policy_state())
    finally:
        if hasattr(earlier, "close"):
            earlier.close()
