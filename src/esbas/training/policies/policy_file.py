"""Policies in files: what acting needs of one learner, and where it comes from."""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esbas._internal import archive, schema
from esbas.errors import EsbasError, SaveFileError, describe
from esbas.learner import Learner
from esbas.objective import Objective
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
        mean: of the evaluation that selected it. The maximum of noisy means is too high: `rescored`
            is not.
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
        """The mean value of the fresh episodes; before the end of the run, of the evaluation."""
        if self.rescored:
            return sum(self.rescored) / len(self.rescored)
        return self.mean

    def build(
        self, plan: Plan, *, observation_space: Any, action_space: Any, isolate: bool | None = None
    ) -> Learner:
        """Build the learner with this policy; see `Plan.build_learner`."""
        learner = plan.build_learner(
            self.learner,
            observation_space=observation_space,
            action_space=action_space,
            seed=self.seed,
            isolate=isolate,
        )
        self.load_into(learner)
        return learner

    def load_into(self, learner: Any) -> None:
        """Load this policy into a learner."""
        failed = f"Learner {self.learner!r} cannot load its saved policy"
        try:
            if self.whole:
                learner.load_state_dict(self.state)
            else:
                learner.load_policy_state(self.state)
        except EsbasError as error:
            raise SaveFileError(f"{failed}: {error}") from error
        except Exception as error:  # the state is damaged, or the learner has changed
            reason = " ".join(describe(error).split())[:300]
            remedy = "go back to an earlier copy, or build the learner as it was"
            raise SaveFileError(f"{failed} ({reason}): {remedy}.") from error


def best_of(policies: Iterable[StoredPolicy], objective: Objective) -> StoredPolicy | None:
    """Return the best of these policies; None if there are none.

    Those that were scored again on fresh episodes come first.
    """

    def rank(policy: StoredPolicy) -> tuple[bool, float]:
        return bool(policy.rescored), objective.score(policy.expected)

    return max(policies, key=rank, default=None)


def state_of(learner: Any) -> tuple[dict[str, Any], bool]:
    """Return what acting needs of the learner, and whether it is the whole state.

    It is, if the learner has no method that returns less.
    """
    is_whole = not (hasattr(learner, "policy_state") and hasattr(learner, "load_policy_state"))
    state: dict[str, Any] = learner.state_dict() if is_whole else learner.policy_state()
    archive.check(state)
    return state, is_whole


def write_policy(path: Path, policy: StoredPolicy) -> None:
    """Write a policy as arrays and plain data."""
    content = {each.name: getattr(policy, each.name) for each in dataclasses.fields(policy)}
    archive.write(path, "policy", content)


def read_policy(path: Path) -> StoredPolicy:
    """Read what `write_policy` wrote."""
    state = archive.read(path, "policy")
    schema.check(state, _SHAPE, f"the policy in {str(path)!r}")
    state["rescored"] = tuple(state["rescored"])
    return StoredPolicy(**state)
