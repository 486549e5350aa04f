"""Log-probabilities of the actions of Stable-Baselines3 models while they explore, without additional random draws.

SAC and TQC draw from a Gaussian squashed by tanh, DQN and QR-DQN explore epsilon-greedily. All draw uniformly from the action
space before `learning_starts` steps. TD3, DDPG and models with `action_noise` have no log-probabilities: their noise is clipped
to the bounds, so that their actions have no density.
"""

import math
from typing import Any, Protocol

import numpy as np
import sb3_contrib
import stable_baselines3

from esbas.columns import Array
from esbas.learners.deep.pytorch import torch
from esbas.learners.epsilon_greedy import action_log_probs
from esbas.learners.sb3.hooks import OffPolicyAlgorithm, is_warming_up

_LARGEST = 1 - 2.0**-23  # the next float32 is 1, where the inverse of tanh is infinite


class LogProbs(Protocol):
    """The log-probabilities of a model's actions."""

    def before(self) -> None:
        """Called before the model draws an action."""
        ...

    def of_last(self, observation: Array, action: Array) -> float:
        """The log-probability of the action that the model drew after `before`, for one observation as the model expects it."""
        ...

    def of(self, observations: Array, actions: Array) -> Array:
        """The log-probabilities, (N,), of actions (N, ...) for observations (N, ...) as the model expects them."""
        ...


def log_probs_of(model: OffPolicyAlgorithm) -> LogProbs | None:
    """The log-probabilities of the model, None if it has none."""
    if isinstance(model, stable_baselines3.SAC | sb3_contrib.TQC) and model.action_noise is None:
        return SquashedGaussian(model)
    if isinstance(model, stable_baselines3.DQN | sb3_contrib.QRDQN):
        return ExploringGreedy(model)
    return None


class SquashedGaussian:
    """Log-densities of SAC and TQC with respect to the action that the environment receives.

    The action is low + (high - low) (tanh(u) + 1) / 2 with a Gaussian u, so its log-density is log N(u) - log(1 - tanh²(u))
    - log((high - low) / 2), summed over the dimensions.
    """

    def __init__(self, model: Any) -> None:
        self._model, bounds = model, (model.action_space.low, model.action_space.high)
        self._low, self._high = (np.asarray(bound, float).reshape(-1) for bound in bounds)

    def before(self) -> None:
        pass

    def of_last(self, observation: Array, action: Array) -> float:
        """Use the distribution of the forward pass in which the action was drawn."""
        del observation
        gaussian = None if is_warming_up(self._model) else self._model.actor.action_dist.distribution
        return float(self._log_densities(gaussian, action[None])[0])

    def of(self, observations: Array, actions: Array) -> Array:
        if is_warming_up(self._model):
            return self._log_densities(None, actions)
        policy = self._model.policy
        policy.set_training_mode(False)
        with torch.no_grad():
            mean, log_std, _ = policy.actor.get_action_dist_params(policy.obs_to_tensor(observations)[0])
        return self._log_densities(torch.distributions.Normal(mean, log_std.exp()), actions)

    def _log_densities(self, gaussian: Any, actions: Array) -> Array:
        """The densities, (N,), if u has this distribution, or of the uniform distribution if it is None."""
        actions, width = np.asarray(actions, float).reshape(len(actions), -1), self._high - self._low
        outside = ((actions < self._low) | (actions > self._high)).any(axis=1)
        if gaussian is None:
            densities = np.full(len(actions), -np.log(width).sum())
        else:
            squashed = np.clip(2 * (actions - self._low) / width - 1, -_LARGEST, _LARGEST)
            mean, deviation = (each.double().cpu().numpy() for each in (gaussian.mean, gaussian.stddev))
            normal = -0.5 * ((np.arctanh(squashed) - mean) / deviation) ** 2 - np.log(deviation) - 0.5 * math.log(2 * math.pi)
            densities = (normal - np.log1p(-(squashed**2)) - np.log(width / 2)).sum(axis=1)
        return np.where(outside, -np.inf, densities)


class ExploringGreedy:
    """Log-probabilities of DQN and QR-DQN, which explore with the probability `exploration_rate`.

    If several actions are best, these models take the first one.
    """

    def __init__(self, model: Any) -> None:
        self._model, self._forward_passes = model, 0
        network = model.q_net if isinstance(model, stable_baselines3.DQN) else model.quantile_net
        network.register_forward_hook(self._count)

    def _count(self, *_: Any) -> None:
        self._forward_passes += 1

    def before(self) -> None:
        self._forward_passes = 0

    def of_last(self, observation: Array, action: Array) -> float:
        """If the model made a forward pass, the action is the best one; only if it did not, the best action is computed here."""
        best = action[None] if self._forward_passes else self._best(observation[None])
        return float(self._log_probs(best, action[None])[0])

    def of(self, observations: Array, actions: Array) -> Array:
        return self._log_probs(self._best(observations), actions)

    def _best(self, observations: Array) -> Array:
        if is_warming_up(self._model):
            return np.zeros(len(observations), np.int64)  # all actions have the same probability
        return np.asarray(self._model.policy.predict(observations, deterministic=True)[0])

    def _log_probs(self, best: Array, actions: Array) -> Array:
        epsilon = 1.0 if is_warming_up(self._model) else float(self._model.exploration_rate)
        return action_log_probs(np.eye(int(self._model.action_space.n), dtype=bool)[best], actions, epsilon=epsilon)
