"""The values of all members of a run, estimated from its trajectories: nothing is played."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from esbas.columns import Array
from esbas.errors import InvalidValueError, SaveFileError, describe
from esbas.evaluation import FewEffectiveSamplesWarning, OffPolicyEstimate, importance_sampling, per_decision
from esbas.learner import Learner
from esbas.objective import DISCOUNT, make_objective
from esbas.training.folder import TrainingFolder
from esbas.training.policies.finding import kept_trajectories, members_at_checkpoint
from esbas.training.policies.layers import read_layers
from esbas.training.runs.episode_log import one_line, read_episodes
from esbas.training.runs.one_run import run_folder
from esbas.trajectory import Trajectory

DISCOUNTS = {"return": 1.0, "discounted": DISCOUNT}
"""Objectives that are sums of rewards, which `per_decision` estimates better."""
ROUNDING = 1e-3  # of log-probabilities, recorded one by one and computed in batches


@dataclass(frozen=True, kw_only=True)
class OfflineScore:
    """What the trajectories say about one policy: an estimate, or a problem, or an estimate with a warning."""

    learner: str
    policy: str  # "exploring" or "greedy"
    estimate: OffPolicyEstimate | None = None
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class OfflineScores:
    """The scores of a run.

    Attributes:
        scores: one for each policy.
        frozen: whether the policies acted in these episodes as they are now. Otherwise they have learnt from them.
        unknown: the number of episodes that were left out, because their probabilities were not recorded.
    """

    scores: tuple[OfflineScore, ...]
    frozen: bool
    unknown: int


def score_offline(training: TrainingFolder, seed: int, *, names: Sequence[str]) -> OfflineScores:
    """Estimate the values of members from the episodes of the last epoch, from which nobody has learnt yet."""
    outermost = read_layers(training.folder, training.plan)[-1]
    kept = kept_trajectories(training, seed)
    epochs = read_episodes(run_folder(training.folder, seed)).epochs[: len(kept)]
    recent = [i for i in np.flatnonzero(epochs == epochs[-1]).tolist() if not np.isnan(kept[i].log_probs).any()]
    unknown = int((epochs == epochs[-1]).sum()) - len(recent)
    if not recent:
        message = f"log-probabilities of actions must have been recorded, but the run of seed {seed} has none"
        raise SaveFileError(f"{message}: its learners do not say them, so evaluate without --offline")
    trajectories, arms = [kept[i] for i in recent], [kept.arms[i] for i in recent]
    members, built = members_at_checkpoint(training, seed), dict[str, Learner]()
    try:
        for name, stored in members.items():
            spaces = {"observation_space": outermost.observation_space, "action_space": outermost.action_space}
            built[name] = stored.build(training.plan, **spaces)
        behaviours = _as_recorded(trajectories, arms, built)
        options: dict[str, Any] = {} if behaviours is None else {"behaviours": behaviours, "arms": arms}
        estimate = partial(_estimator(training.plan.objective), trajectories, **options)
        scores = [score for name in names if name in built for score in _scores(built[name], estimate)]
    finally:
        for learner in built.values():
            getattr(learner, "close", lambda: None)()
    return OfflineScores(scores=tuple(scores), frozen=behaviours is not None, unknown=unknown)


def _as_recorded(
    trajectories: Sequence[Trajectory], arms: Sequence[str], learners: Mapping[str, Learner]
) -> dict[str, list[Array]] | None:
    """Log-probabilities of all actions under the policies that acted; None unless they are those that were recorded."""
    found = {}
    for name in sorted(set(arms)):
        compute = getattr(learners[name].policy(), "log_probs", None) if name in learners else None
        if compute is None:
            return None
        try:
            found[name] = [np.asarray(compute(each.observations[:-1], each.actions), float) for each in trajectories]
        except Exception:  # of a learner, or because the trajectories are not those of this task
            return None
    pairs = zip(trajectories, arms, range(len(arms)), strict=True)
    alike = all(_are_close(each.log_probs, found[arm][i]) for each, arm, i in pairs)
    return found if alike else None


def _are_close(recorded: Array, computed: Array) -> bool:
    return recorded.shape == computed.shape and bool(np.allclose(recorded, computed, rtol=0, atol=ROUNDING))


def _estimator(objective: str) -> Callable[..., OffPolicyEstimate]:
    """Weighted: values stay within the range of what was seen."""
    if objective in DISCOUNTS:
        return partial(per_decision, gamma=DISCOUNTS[objective])
    return partial(importance_sampling, objective=make_objective(objective))


def _scores(learner: Learner, estimate: Callable[..., OffPolicyEstimate]) -> list[OfflineScore]:
    kinds = {"exploring": learner.policy}
    if hasattr(learner, "greedy_policy"):
        kinds["greedy"] = learner.greedy_policy
    return [_score(learner.name, kind, create, estimate) for kind, create in kinds.items()]


def _score(name: str, kind: str, create: Callable[[], Any], estimate: Callable[..., OffPolicyEstimate]) -> OfflineScore:
    policy = create()
    if not hasattr(policy, "log_probs"):
        return OfflineScore(learner=name, policy=kind, problem="has no probabilities of actions")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FewEffectiveSamplesWarning)
        try:
            found = estimate(policy)
        except InvalidValueError as error:
            return OfflineScore(learner=name, policy=kind, problem=str(error))
        except Exception as error:  # of the learner, or because the trajectories are not those of this task
            return OfflineScore(learner=name, policy=kind, problem=one_line(describe(error)))
    few = [str(each.message) for each in caught if issubclass(each.category, FewEffectiveSamplesWarning)]
    return OfflineScore(learner=name, policy=kind, estimate=found, problem="".join(few))
