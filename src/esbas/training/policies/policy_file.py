"""Policies in files: what acting needs of one learner, and where it comes from."""

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esbas import archive, schema
from esbas.errors import EsbasError, SaveFileError, describe, unknown
from esbas.learner import Learner
from esbas.objective import Objective
from esbas.training.portfolios.build import BuildContext
from esbas.training.runs.plan import Plan

BEST = "best.npz"
_SHAPE = {
    "learner": str,
    "algorithm": str,
    "seed": schema.Number(min=0, max=2**1000, whole=True),
    "steps": schema.COUNT,
    "mean": float,
    "whole": bool,
    "state": dict,
    "rescored": [float],
    "rescored_steps": schema.COUNT,
    "problem": str,
}


@dataclass(frozen=True, kw_only=True)
class StoredPolicy:
    """The policy of one learner as it was at some time of the training.

    Attributes:
        learner: the name of the learner.
        algorithm: its algorithm in the portfolio.
        seed: of the run.
        steps: environment steps of training until then.
        mean: of the evaluation that selected it. The maximum of noisy means is too high: `rescored` is not.
        whole: whether the state is that of `state_dict`, not of `policy_state`.
        state: of the learner.
        rescored: the values of fresh episodes at the end of the run; empty before.
        rescored_steps: the environment steps that these episodes took.
        problem: why it could not be scored again; empty if it could.
    """

    learner: str
    algorithm: str
    seed: int
    steps: int
    mean: float
    whole: bool
    state: dict[str, Any]
    rescored: tuple[float, ...] = ()
    rescored_steps: int = 0
    problem: str = ""

    @property
    def expected(self) -> float:
        """The mean value of the fresh episodes, or, before the end of the run, that of the evaluation."""
        return sum(self.rescored) / len(self.rescored) if self.rescored else self.mean

    def build(self, plan: Plan, *, observation_space: Any, action_space: Any, isolate: bool | None = None) -> Learner:
        """The learner with this policy. `isolate` says whether it gets a separate process; None: as in the portfolio."""
        members = {member.name: member for member in plan.recipe.members}
        if self.learner not in members:
            raise unknown("learner", self.learner, members)
        member = members[self.learner]
        context = BuildContext(
            observation_space=observation_space,
            action_space=action_space,
            memory=plan.recipe.memory,
            steps=plan.steps or plan.episodes or 1,  # for schedules, which acting does not need
            seed=self.seed,
            acting=True,
        )
        member.check_spaces(context)
        learner = dataclasses.replace(member, isolate=member.isolate if isolate is None else isolate).build(context)
        load: Callable[[Any], None] = getattr(learner, "load_state_dict" if self.whole else "load_policy_state")
        try:
            load(self.state)
        except EsbasError as error:
            raise SaveFileError(f"learner {self.learner!r} must load its saved policy, but {error}") from error
        except Exception as error:  # of a damaged state, or of a learner that has changed
            message = f"learner {self.learner!r} must load its saved policy, but {' '.join(describe(error).split())[:300]}"
            raise SaveFileError(f"{message}: go back to an earlier copy, or build the learner as it was") from error
        return learner


def best_of(policies: Iterable[StoredPolicy], objective: Objective) -> StoredPolicy | None:
    """The best of these policies. Those that were scored again on fresh episodes come first."""
    return max(policies, key=lambda each: (bool(each.rescored), objective.score(each.expected)), default=None)


def state_of(learner: Any) -> tuple[dict[str, Any], bool]:
    """What acting needs of the learner, and whether it is the whole state because the learner cannot say."""
    small = hasattr(learner, "policy_state") and hasattr(learner, "load_policy_state")
    state: dict[str, Any] = learner.policy_state() if small else learner.state_dict()
    archive.check(state)
    return state, not small


def write_policy(path: Path, policy: StoredPolicy) -> None:
    """Write a policy as arrays and plain data."""
    archive.write(path, "policy", {each.name: getattr(policy, each.name) for each in dataclasses.fields(policy)})


def read_policy(path: Path) -> StoredPolicy:
    """Read what `write_policy` wrote."""
    state = archive.read(path, "policy")
    schema.check(state, _SHAPE, f"the policy in {str(path)!r}")
    return StoredPolicy(**state | {"rescored": tuple(state["rescored"])})
