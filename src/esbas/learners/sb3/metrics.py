"""Numbers that describe the learning of a model.

They are computed without random numbers, so they do not change a run.
"""

from typing import Any

import sb3_contrib
import stable_baselines3

from esbas.learners.dqn.on_pytorch.pytorch import torch
from esbas.learners.sb3.hooks import OffPolicyAlgorithm, ReplayView, exploration_of

NEWEST = 32  # transitions on which values are computed


def metrics_of(model: OffPolicyAlgorithm, replay: ReplayView) -> dict[str, float]:
    """Return the loss of the last training, and values on the newest transitions.

    Models for discrete actions also have epsilon and a TD error. For other models, it would depend
    on sampled actions.
    """
    logged = model.logger.name_to_value
    found = {}
    for key in ("train/loss", "train/critic_loss"):
        if key in logged:
            found["loss"] = float(logged[key])
    if hasattr(model, "exploration_rate"):
        found["epsilon"] = exploration_of(model)
    return found | _values(model, replay)


def _values(model: Any, replay: ReplayView) -> dict[str, float]:
    samples = replay.newest(NEWEST)
    if samples is None:
        return {}
    model.policy.set_training_mode(False)
    with torch.no_grad():
        if not isinstance(model, stable_baselines3.DQN | sb3_contrib.QRDQN):
            values = model.critic(samples.observations, samples.actions)
            if isinstance(values, tuple):  # one for each critic
                values = values[0]
            return {"mean Q": float(values.mean())}
        network, target = _networks(model)
        values = network(samples.observations).gather(1, samples.actions.long()).squeeze(1)
        best = target(samples.next_observations).max(dim=1).values
        discounts = model.gamma if samples.discounts is None else samples.discounts.squeeze(1)
        goals = samples.rewards.squeeze(1) + (1 - samples.dones.squeeze(1)) * discounts * best
        return {"mean Q": float(values.mean()), "TD error": float((goals - values).abs().mean())}


def _networks(model: Any) -> tuple[Any, Any]:
    """Return functions from observations to the values of all actions, (N, A).

    The first one is the network, the second one its target.
    """
    if isinstance(model, stable_baselines3.DQN):
        return model.q_net, model.q_net_target

    def mean_of_quantiles(observations: Any) -> Any:
        return model.quantile_net(observations).mean(dim=1)

    def mean_of_target_quantiles(observations: Any) -> Any:
        return model.quantile_net_target(observations).mean(dim=1)

    return mean_of_quantiles, mean_of_target_quantiles
