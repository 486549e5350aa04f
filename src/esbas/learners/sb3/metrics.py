"""Numbers that describe the learning of a model. They are computed without random numbers, so they do not change a run."""

from typing import Any

import sb3_contrib
import stable_baselines3

from esbas.learners.deep.pytorch import torch
from esbas.learners.sb3.hooks import OffPolicyAlgorithm, ReplayView, is_warming_up

NEWEST = 32  # transitions on which values are computed


def metrics_of(model: OffPolicyAlgorithm, replay: ReplayView) -> dict[str, float]:
    """The loss of the last training, the exploration of models for discrete actions, and values on the newest transitions.

    The TD error is given for models for discrete actions. Elsewhere it would depend on sampled actions.
    """
    logged, found = model.logger.name_to_value, {}
    for key in ("train/loss", "train/critic_loss"):
        if key in logged:
            found["loss"] = float(logged[key])
    if hasattr(model, "exploration_rate"):
        found["epsilon"] = 1.0 if is_warming_up(model) else float(model.exploration_rate)
    return found | _values(model, replay)


def _values(model: Any, replay: ReplayView) -> dict[str, float]:
    samples = replay.newest(NEWEST)
    if samples is None:
        return {}
    model.policy.set_training_mode(False)
    with torch.no_grad():
        if not isinstance(model, stable_baselines3.DQN | sb3_contrib.QRDQN):
            values = model.critic(samples.observations, samples.actions)
            return {"mean Q": float((values[0] if isinstance(values, tuple) else values).mean())}
        network, target = _networks(model)
        values = network(samples.observations).gather(1, samples.actions.long()).squeeze(1)
        best = target(samples.next_observations).max(dim=1).values
        discounts = model.gamma if samples.discounts is None else samples.discounts.squeeze(1)
        goals = samples.rewards.squeeze(1) + (1 - samples.dones.squeeze(1)) * discounts * best
        return {"mean Q": float(values.mean()), "TD error": float((goals - values).abs().mean())}


def _networks(model: Any) -> tuple[Any, Any]:
    """Functions from observations to the values of all actions, (N, A), by the network and by its target."""
    if isinstance(model, stable_baselines3.DQN):
        return model.q_net, model.q_net_target
    return lambda seen: model.quantile_net(seen).mean(dim=1), lambda seen: model.quantile_net_target(seen).mean(dim=1)
