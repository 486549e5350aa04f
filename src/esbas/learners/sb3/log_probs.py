"""Log-probabilities of the actions of Stable-Baselines3 models while they explore.

They need no additional random draws. SAC and TQC draw from a Gaussian squashed by tanh, DQN and
QR-DQN explore epsilon-greedily. All draw uniformly from the action space before `learning_starts`
steps. TD3, DDPG and models with `action_noise` have no log-probabilities: their noise is clipped to
the bounds, so that their actions have no density.
"""

import math
from typing import Any, Protocol

import numpy as np
import sb3_contrib
import stable_baselines3

from esbas._internal.columns import Array
from esbas.learners.dqn.on_pytorch.pytorch import torch
from esbas.learners.epsilon_greedy import action_log_probs
from esbas.learners.sb3.hooks import OffPolicyAlgorithm, exploration_of, is_warming_up

_LARGEST = 1 - 2.0**-23  # the next float32 is 1, where the inverse of tanh is infinite


class LogProbs(Protocol):
    """The log-probabilities of a model's actions."""

    def before(self) -> None:
        """Prepare for `of_last`, before the model draws an action."""
        ...

    def of_last(self, observation: Array, action: Array) -> float:
        """Return the log-probability of the action that the model drew after `before`.

        The observation is one, as the model expects it.
        """
        ...

    def of(self, observations: Array, actions: Array) -> Array:
        """Return the log-probabilities, (N,), of actions (N, ...) for observations (N, ...)."""
        ...


def log_probs_of(model: OffPolicyAlgorithm) -> LogProbs | None:
    """Return the log-probabilities of the model, None if it has none."""
    if isinstance(model, stable_baselines3.SAC | sb3_contrib.TQC) and model.action_noise is None:
        return SquashedGaussian(model)
    if isinstance(model, stable_baselines3.DQN | sb3_contrib.QRDQN):
        return ExploringGreedy(model)
    return None


class SquashedGaussian:
    """Log-densities of SAC and TQC with respect to the action that the environment receives.

    The action is low + (high - low) (tanh(u) + 1) / 2 with a Gaussian u. So its log-density is
    log N(u) - log(1 - tanh²(u)) - log((high - low) / 2), summed over the dimensions.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._low = np.asarray(model.action_space.low, float).reshape(-1)
        self._high = np.asarray(model.action_space.high, float).reshape(-1)

    def before(self) -> None:
        pass

    def of_last(self, observation: Array, action: Array) -> float:
        """Return the log-density by the forward pass in which the action was drawn."""
        del observation
        gaussian = None
        if not is_warming_up(self._model):
            gaussian = self._model.actor.action_dist.distribution
        return float(self._log_densities(gaussian, action[None])[0])

    def of(self, observations: Array, actions: Array) -> Array:
        if is_warming_up(self._model):
            return self._log_densities(None, actions)
        policy = self._model.policy
        policy.set_training_mode(False)
        with torch.no_grad():
            seen, _ = policy.obs_to_tensor(observations)
            mean, log_std, _ = policy.actor.get_action_dist_params(seen)
        return self._log_densities(torch.distributions.Normal(mean, log_std.exp()), actions)

    def _log_densities(self, gaussian: Any, actions: Array) -> Array:
        """Return the log-densities, (N,), if u has this distribution; None: of a uniform action."""
        actions = np.asarray(actions, float).reshape(len(actions), -1)
        width = self._high - self._low
        outside = ((actions < self._low) | (actions > self._high)).any(axis=1)
        if gaussian is None:
            densities = np.full(len(actions), -np.log(width).sum())
        else:
            squashed = np.clip(2 * (actions - self._low) / width - 1, -_LARGEST, _LARGEST)
            mean = gaussian.mean.double().cpu().numpy()
            deviation = gaussian.stddev.double().cpu().numpy()
            distance = (np.arctanh(squashed) - mean) / deviation
            normal = -0.5 * distance**2 - np.log(deviation) - 0.5 * math.log(2 * math.pi)
            densities = (normal - np.log1p(-(squashed**2)) - np.log(width / 2)).sum(axis=1)
        return np.where(outside, -np.inf, densities)


class ExploringGreedy:
    """Log-probabilities of DQN and QR-DQN, which explore with the probability `exploration_rate`.

    If several actions are best, these models take the first one.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._forward_passes = 0
        network = model.q_net if isinstance(model, stable_baselines3.DQN) else model.quantile_net
        network.register_forward_hook(self._count)

    def _count(self, *_: Any) -> None:
        self._forward_passes += 1

    def before(self) -> None:
        self._forward_passes = 0

    def of_last(self, observation: Array, action: Array) -> float:
        """Return the log-probability of the action.

        If the model made a forward pass, the action is the best one. Otherwise the best action is
        computed here.
        """
        best = action[None] if self._forward_passes else self._best(observation[None])
        return float(self._log_probs(best, action[None])[0])

    def of(self, observations: Array, actions: Array) -> Array:
        return self._log_probs(self._best(observations), actions)

    def _best(self, observations: Array) -> Array:
        if is_warming_up(self._model):
            return np.zeros(len(observations), np.int64)  # all actions have the same probability
        best, _ = self._model.policy.predict(observations, deterministic=True)
        return np.asarray(best)

    def _log_probs(self, best: Array, actions: Array) -> Array:
        is_best = np.eye(int(self._model.action_space.n), dtype=bool)[best]  # (N, A)
        return action_log_probs(is_best, actions, epsilon=exploration_of(self._model))
