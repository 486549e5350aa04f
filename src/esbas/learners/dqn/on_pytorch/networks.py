"""Q-networks in PyTorch as functions of flat weights.

Networks of equal shape are evaluated in one batched call.
"""

from esbas._internal.columns import Array
from esbas.learners.dqn.layout import NetworkLayout
from esbas.learners.dqn.on_pytorch.pytorch import torch

relu = torch.nn.functional.relu


def evaluate(network: NetworkLayout, weights: torch.Tensor, observations: Array) -> torch.Tensor:
    """Return the values of all actions, (K, B, A), by K networks.

    Args:
        network: their shape.
        weights: (K, size).
        observations: (K, B, ...).
    """
    x = _prepared(network, observations, weights.device)
    count = len(weights)
    flat = torch.split(weights, network.sizes, dim=1)
    parts = [part.view(count, *shape) for part, shape in zip(flat, network.shapes, strict=True)]
    for layer, (_, _, stride) in enumerate(network.convolutions):
        kernels, biases = parts[2 * layer : 2 * layer + 2]
        x = relu(_convolved(x, kernels, biases, stride))
    x = x.flatten(2)
    for layer in range(len(network.convolutions), len(parts) // 2):
        matrices, biases = parts[2 * layer : 2 * layer + 2]
        x = torch.baddbmm(biases.unsqueeze(1), x, matrices)
        if layer < len(parts) // 2 - 1:
            x = relu(x)
    return x


def _convolved(
    x: torch.Tensor, kernels: torch.Tensor, biases: torch.Tensor, stride: int
) -> torch.Tensor:
    """Apply K convolutions to (K, B, ...).

    On the CPU, one after the other is faster; elsewhere, one grouped call is.
    """
    if len(x) == 1:
        return torch.conv2d(x[0], kernels[0], biases[0], stride)[None]
    if x.device.type == "cpu":
        maps = [torch.conv2d(x[k], kernels[k], biases[k], stride) for k in range(len(x))]
        return torch.stack(maps)
    return grouped_convolution(x, kernels, biases, stride)


def grouped_convolution(
    x: torch.Tensor, kernels: torch.Tensor, biases: torch.Tensor, stride: int
) -> torch.Tensor:
    """Apply K convolutions to (K, B, ...) in one call."""
    count = len(x)
    batch = x.shape[1]
    together = x.transpose(0, 1).flatten(1, 2)  # (B, K * channels, ...)
    maps = torch.conv2d(together, kernels.flatten(0, 1), biases.flatten(), stride, groups=count)
    return maps.view(batch, count, -1, *maps.shape[2:]).transpose(0, 1)


def _prepared(network: NetworkLayout, observations: Array, device: torch.device) -> torch.Tensor:
    if not observations.flags.writeable:  # PyTorch would warn
        observations = observations.copy()
    x = torch.from_numpy(observations).to(device)
    if network.labels:
        return torch.nn.functional.one_hot(x - network.first, network.labels).float()
    x = x.float()
    if network.channels_last:
        x = x.permute(0, 1, 4, 2, 3)
    return x / 255 if network.bytes else x
