"""The values of the learners of a run, estimated from its trajectories: nothing is played."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from esbas._internal.columns import Array
from esbas.errors import InvalidValueError, SaveFileError, describe
from esbas.learner import Learner
from esbas.objective import DISCOUNT
from esbas.off_policy import (
    FewEffectiveSamplesWarning,
    OffPolicyEstimate,
    importance_sampling,
    per_decision,
)
from esbas.training.folder import TrainingFolder
from esbas.training.policies.finding import kept_trajectories, learners_at_checkpoint
from esbas.training.policies.layers import read_layers
from esbas.training.runs.episode_log import one_line, read_episodes
from esbas.training.runs.one_run import run_folder
from esbas.training.runs.plan import Plan, close_learner
from esbas.trajectory import Trajectory

DISCOUNTS: dict[Any, float] = {"return": 1.0, "discounted": DISCOUNT}
"""Objectives that are sums of rewards, which `per_decision` estimates better."""
ROUNDING = 1e-3  # of log-probabilities, recorded one by one and computed in batches


@dataclass(frozen=True, kw_only=True)
class OfflineScore:
    """The value of one policy: an estimate, a problem, or an estimate with a warning."""

    learner: str
    policy: str  # "exploring" or "greedy"
    estimate: OffPolicyEstimate | None = None
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class OfflineScores:
    """The scores of a run.

    Attributes:
        scores: one for each policy.
        frozen: whether the policies acted in these episodes as they are now. Otherwise they have
            learnt from them.
        unknown: the number of episodes that were left out, because the probabilities of their
            actions were not recorded, or not those that importance weights need: see
            `_remembers`.
    """

    scores: tuple[OfflineScore, ...]
    frozen: bool
    unknown: int


def score_offline(training: TrainingFolder, seed: int, *, names: Sequence[str]) -> OfflineScores:
    """Estimate the values of learners from the episodes of the last epoch.

    No policy has learnt from these episodes yet.
    """
    outermost = read_layers(training.folder, training.plan)[-1]
    kept = kept_trajectories(training, seed)
    epochs = read_episodes(run_folder(training.folder, seed)).epochs[: len(kept)]
    last_epoch = np.flatnonzero(epochs == epochs[-1]).tolist()
    recorded = [index for index in last_epoch if not np.isnan(kept[index].log_probs).any()]
    built: dict[str, Learner] = {}
    try:
        for name, stored in learners_at_checkpoint(training, seed).items():
            built[name] = stored.build(
                training.plan,
                observation_space=outermost.observation_space,
                action_space=outermost.action_space,
            )
        remembering = {name for name, learner in built.items() if _remembers(learner.policy())}
        known = [index for index in recorded if kept.arms[index] not in remembering]
        if not known:
            message = f"The run of seed {seed} has no log-probabilities of actions"
            cause = "because its learners do not return them"
            raise SaveFileError(f"{message}, {cause}: evaluate without --offline.")
        trajectories = [kept[index] for index in known]
        arms = [kept.arms[index] for index in known]
        behaviors = _as_recorded(trajectories, arms, built)
        estimate = partial(_estimator(training.plan), trajectories)
        if behaviors is not None:
            estimate = partial(estimate, behaviors=behaviors, arms=arms)
        scores = []
        for name in names:
            if name in built:
                scores += _scores(built[name], estimate)
    finally:
        for learner in built.values():
            close_learner(learner)
    return OfflineScores(
        scores=tuple(scores),
        frozen=behaviors is not None,
        unknown=len(last_epoch) - len(known),
    )


def _remembers(policy: Any) -> bool:
    """Return whether probabilities depend on what the policy remembers of an episode.

    A policy that is repeating an action takes no other one, so importance weights of what others
    would have done there cannot be known.
    """
    return hasattr(policy, "start") and not hasattr(policy, "log_probs")


def _as_recorded(
    trajectories: Sequence[Trajectory], arms: Sequence[str], learners: Mapping[str, Learner]
) -> dict[str, list[Array]] | None:
    """Return the log-probabilities of all actions under the policies that acted.

    None unless they are those that were recorded.
    """
    found = {}
    for name in sorted(set(arms)):
        if name not in learners:
            return None
        compute = getattr(learners[name].policy(), "log_probs", None)
        if compute is None:
            return None
        try:
            found[name] = [
                np.asarray(compute(each.observations[:-1], each.actions), float)
                for each in trajectories
            ]
        except Exception:  # the learner failed, or the trajectories are of another environment
            return None
    for index, (trajectory, arm) in enumerate(zip(trajectories, arms, strict=True)):
        if not _are_close(trajectory.log_probs, found[arm][index]):
            return None
    return found


def _are_close(recorded: Array, computed: Array) -> bool:
    if recorded.shape != computed.shape:
        return False
    return bool(np.allclose(recorded, computed, rtol=0, atol=ROUNDING))


def _estimator(plan: Plan) -> Callable[..., OffPolicyEstimate]:
    """Return the estimator for the plan's objective.

    It is weighted: values stay within the range of what was seen.
    """
    discount = DISCOUNTS.get(plan.config.objective)
    if discount is not None:
        return partial(per_decision, gamma=discount)
    return partial(importance_sampling, objective=plan.objective)


def _scores(learner: Learner, estimate: Callable[..., OffPolicyEstimate]) -> list[OfflineScore]:
    kinds = {"exploring": learner.policy}
    if hasattr(learner, "greedy_policy"):
        kinds["greedy"] = learner.greedy_policy
    return [_score(learner.name, kind, create, estimate) for kind, create in kinds.items()]


def _score(
    name: str, kind: str, create: Callable[[], Any], estimate: Callable[..., OffPolicyEstimate]
) -> OfflineScore:
    policy = create()
    if not hasattr(policy, "log_probs"):
        return OfflineScore(learner=name, policy=kind, problem="has no probabilities of actions")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FewEffectiveSamplesWarning)
        try:
            found = estimate(policy)
        except InvalidValueError as error:
            return OfflineScore(learner=name, policy=kind, problem=str(error))
        except Exception as error:  # the same causes as in `_as_recorded`
            return OfflineScore(learner=name, policy=kind, problem=one_line(describe(error)))
    problem = ""
    for warning in caught:
        if issubclass(warning.category, FewEffectiveSamplesWarning):
            problem += str(warning.message)
    return OfflineScore(learner=name, policy=kind, estimate=found, problem=problem)
