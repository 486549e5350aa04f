"""Q-networks in PyTorch as functions of flat weights: networks of equal shape are evaluated in one batched call."""

from esbas.columns import Array
from esbas.learners.deep.layout import NetworkLayout
from esbas.learners.deep.pytorch import torch

relu = torch.nn.functional.relu


class Network(NetworkLayout):
    """A network that PyTorch evaluates."""

    def __call__(self, weights: torch.Tensor, observations: Array) -> torch.Tensor:
        """The values of all actions, (K, B, A), by K networks with weights (K, size) for observations (K, B, ...)."""
        x, count = self._prepared(observations), len(weights)
        parts = [
            part.view(count, *shape) for part, shape in zip(torch.split(weights, self.sizes, dim=1), self.shapes, strict=True)
        ]
        for layer, (_, _, stride) in enumerate(self.convolutions):
            kernels, biases = parts[2 * layer : 2 * layer + 2]
            maps = [
                torch.conv2d(x[k], kernels[k], biases[k], stride) for k in range(count)
            ]  # one grouped convolution would be slower
            x = relu(torch.stack(maps))
        x = x.flatten(2)
        for layer in range(len(self.convolutions), len(parts) // 2):
            matrices, biases = parts[2 * layer : 2 * layer + 2]
            x = torch.baddbmm(biases.unsqueeze(1), x, matrices)
            if layer < len(parts) // 2 - 1:
                x = relu(x)
        return x

    def _prepared(self, observations: Array) -> torch.Tensor:
        x = torch.from_numpy(
            observations if observations.flags.writeable else observations.copy()
        )  # PyTorch warns about read-only arrays
        if self.labels:
            return torch.nn.functional.one_hot(x - self.first, self.labels).float()
        x = x.float()
        if self.channels_last:
            x = x.permute(0, 1, 4, 2, 3)
        return x / 255 if self.bytes else x
