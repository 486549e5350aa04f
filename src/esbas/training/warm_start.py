"""Learners that start from what others have learnt in an earlier training. Its folder is read as data; nothing is imported."""

import dataclasses
import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esbas import archive, schema
from esbas.errors import InvalidValueError, SaveFileError, unknown
from esbas.files import read_file
from esbas.learner import Learner
from esbas.learners import SharedReplay
from esbas.training.options import checked, error_context
from esbas.training.portfolios.build import RESERVED, BuildContext
from esbas.training.portfolios.members import SETTINGS, MemberSpec, read_members
from esbas.training.portfolios.recipe import read_toml

_SHAPE = {"roster": {str: {"learner": Any, "fault": Any, str: Any}}, str: Any}


@dataclass(frozen=True, kw_only=True)
class SavedMember:
    """A learner in the checkpoint of an earlier training."""

    name: str
    algorithm: str
    options: Mapping[str, Any]  # of the algorithm, as they are written in the portfolio
    replay: Mapping[str, Any]  # of the replay memory, likewise
    state: Any  # None if it could not be saved

    def build(self, context: BuildContext) -> Learner:
        """Build it as it was, but without its replay memory. The algorithm must be one that the new portfolio names, too."""
        memory = checked(SharedReplay, self.replay, kind="[replay]", reserved=RESERVED)
        (spec,) = read_members([{"algorithm": self.algorithm, **self.options}], source="its portfolio")
        return dataclasses.replace(spec, name=self.name).build(dataclasses.replace(context, memory=memory, acting=True))


def start_from(members: Sequence[MemberSpec], learners: Sequence[Learner], context: BuildContext, *, folder: str | None) -> None:
    """Load what the members of earlier trainings have learnt: their policies, without optimisers and replay memories.

    Args:
        members: a member with `start_from` starts from the member with its name, or with the name `start_member`.
        learners: those of the members, just built.
        context: what they were built from. The earlier run is that with the same seed, or else that with the lowest.
        folder: of an earlier training. Other members start from the member there with the same name and algorithm, if any.
    """
    found, read = False, functools.cache(read_saved)  # a checkpoint can be large
    for member, learner in zip(members, learners, strict=True):
        own = member.start_from
        if own is None and folder is None:
            continue
        source = Path(own or folder or "")
        with error_context(member.where if own else "start_from"):
            saved = read(source, context.seed)
        name = member.start_member or member.name
        same = saved.get(name)
        if own is not None:
            if same is None:
                with error_context(member.where):
                    raise unknown(f"learner of {own!r}", name, saved, "set start_member")
            if same.algorithm != member.algorithm:
                message = f"{name!r} of {own!r} must have the algorithm {member.algorithm!r}, but has {same.algorithm!r}"
                raise InvalidValueError(f"{member.where}: {message}: set start_member")
        elif same is None or same.algorithm != member.algorithm:
            continue
        found = True
        what = f"must start from what {name!r} learnt in {str(source)!r}"
        with error_context(member.where, rule=what, remedy="give it the options that it had there, or another start"):
            _load(learner, same, context)
    if folder is not None and not found:
        names = ", ".join(repr(member.name) for member in members)
        message = f"a learner of {folder!r} must have the name and the algorithm of a member ({names}), but none has"
        raise InvalidValueError(f"{message}: name it with start_from and start_member in a [[member]] table")


def read_saved(folder: Path, seed: int) -> dict[str, SavedMember]:
    """The learners in a checkpoint of a training, by name: of the run with this seed, or else of that with the lowest."""
    found = [(path.parent.name.removeprefix("seed-"), path) for path in folder.glob("runs/seed-*/checkpoint.npz")]
    known = {int(number): path for number, path in found if number.isdecimal()}
    if not known:
        message = f"the folder of an earlier training must have a checkpoint, but {str(folder)!r} has none"
        raise SaveFileError(f"{message}: check the path, or wait for its first checkpoint")
    path, portfolio = known.get(seed) or known[min(known)], folder / "portfolio.toml"
    state = archive.read(path, "run")
    schema.check(state, _SHAPE, f"the run in {str(path)!r}")
    tables = read_toml(read_file(portfolio).decode("utf-8", "replace"), source=str(portfolio))
    members, replay, roster = _expanded(tables.get("member"), len(state["roster"])), tables.get("replay", {}), state["roster"]
    if members is None or not isinstance(replay, dict):
        message = f"{str(portfolio)!r} must be the portfolio of the learners in {str(path)!r}, but is not"
        raise SaveFileError(f"{message}: restore an earlier copy")
    return {
        name: SavedMember(name=name, algorithm=algorithm, options=options, replay=replay, state=roster[name]["learner"])
        for name, (algorithm, options) in zip(roster, members, strict=True)
    }


def _expanded(tables: Any, count: int) -> list[tuple[str, dict[str, Any]]] | None:
    """The algorithm and the options of each member, in the order of the portfolio; None unless there are `count` of them."""
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        return None
    members: list[tuple[str, dict[str, Any]]] = []
    for table in tables:
        grid, plain = table.get("grid", {}), {key: value for key, value in table.items() if key not in SETTINGS}
        if not isinstance(grid, dict) or not all(isinstance(values, list) for values in grid.values()):
            return None
        if len(members) + math.prod(map(len, grid.values())) > count:  # before they are created: there could be billions
            return None
        chosen = itertools.product(*grid.values())
        members += [(str(table.get("algorithm")), plain | dict(zip(grid, values, strict=True))) for values in chosen]
    return members if len(members) == count else None


def _load(learner: Any, saved: SavedMember, context: BuildContext) -> None:
    if learner.stationary:
        return
    if saved.state is None:
        raise SaveFileError("its state is not in the checkpoint: start from another learner")
    if not (hasattr(learner, "policy_state") and hasattr(learner, "load_policy_state")):
        learner.load_state_dict(saved.state)
        return
    earlier: Any = saved.build(context)
    try:
        earlier.load_state_dict(saved.state)
        learner.load_policy_state(earlier.policy_state())
    finally:
        getattr(earlier, "close", lambda: None)()
