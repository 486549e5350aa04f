"""The shapes and initial weights of a Q-network, independent of what evaluates it."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from esbas import spaces
from esbas.columns import Array
from esbas.errors import SpaceError, require, unknown

Convolution = tuple[int, int, int]  # filters, kernel, stride
NATURE: tuple[Convolution, ...] = ((32, 8, 4), (64, 4, 2), (64, 3, 1))  # Mnih et al. (2015)
INITIALIZATIONS = "pytorch", "he_uniform"
SMALL_IMAGE: tuple[Convolution, ...] = ((16, 3, 1),)  # Young and Tian (2019), for 10 x 10


class NetworkLayout:
    """Maps observations to the values of all actions: convolutions for images, then dense layers with ReLU between them.

    Args:
        observation_space: Box or Discrete. Integers are one-hot encoded, bytes are divided by 255.
        actions: the number of actions.
        hidden: the widths of the dense layers.
        convolutions: (filters, kernel, stride) each. Defaults to a standard choice for images (three axes of bytes or Booleans)
            and to none otherwise.
    """

    def __init__(
        self, observation_space: Any, *, actions: int, hidden: Sequence[int], convolutions: Sequence[Convolution] | None = None
    ) -> None:
        self.labels = int(observation_space.n) if spaces.is_discrete(observation_space) else 0  # one-hot encoded if not 0
        self.first = int(observation_space.start) if self.labels else 0
        shape, dtype = ((), None) if self.labels else (tuple(observation_space.shape), np.dtype(observation_space.dtype))
        self.bytes = dtype == np.uint8
        image = len(shape) == 3 and (dtype in (np.uint8, bool))
        if convolutions is None:
            convolutions = () if not image else NATURE if min(sorted(shape)[1:]) >= 36 else SMALL_IMAGE
        self.convolutions = tuple(map(tuple, convolutions))
        self.channels_last = bool(self.convolutions) and shape[-1] < shape[0]
        self.shapes: list[tuple[int, ...]] = []  # weights and biases alternate
        self.operations = 0  # multiplications for one observation
        inputs = self.labels or math.prod(shape)
        if self.convolutions:
            inputs = self._add_convolutions(shape)
        for outputs in (*hidden, actions):
            require(outputs >= 1, "a layer is at least 1 wide", hidden=tuple(hidden), actions=actions)
            self.shapes += [(inputs, outputs), (outputs,)]
            self.operations += inputs * outputs
            inputs = outputs
        self.sizes = [math.prod(shape) for shape in self.shapes]
        self.size = sum(self.sizes)  # the number of weights

    def _add_convolutions(self, shape: tuple[int, ...]) -> int:
        require(len(shape) == 3, "convolutions are for observations with three axes", "pass convolutions=()", shape=shape)
        channels, *sides = (shape[2], *shape[:2]) if self.channels_last else shape
        for filters, kernel, stride in self.convolutions:
            self.shapes += [(filters, channels, kernel, kernel), (filters,)]
            sides = [(side - kernel) // stride + 1 for side in sides]
            self.operations += filters * channels * kernel**2 * math.prod(sides)
            channels = filters
            if min(sides) < 1:
                raise SpaceError(
                    f"an image must be at least as large as the kernels, but is {shape}: choose smaller convolutions"
                )
        return channels * math.prod(sides)

    def initial(self, rng: np.random.Generator, initialization: str = "pytorch") -> Array:
        """Initial weights, (size,), uniform within ±√(1 / inputs), or as He et al. (2015): ±√(6 / inputs), biases 0."""
        if initialization not in INITIALIZATIONS:
            raise unknown("initialization", initialization, INITIALIZATIONS)
        he, parts = initialization == "he_uniform", []
        for weights, biases in zip(self.shapes[::2], self.shapes[1::2], strict=True):
            inputs = weights[0] if len(weights) == 2 else math.prod(weights[1:])
            bounds = (math.sqrt(6 / inputs), 0.0) if he else (math.sqrt(1 / inputs),) * 2
            both = zip((weights, biases), bounds, strict=True)
            parts += [rng.uniform(-bound, bound, math.prod(shape)) for shape, bound in both]
        return np.concatenate(parts).astype(np.float32)

    def describe(self) -> dict[str, Any]:
        """What a program needs, besides the weights, to compute the same values: plain data."""
        strides = [stride for _, _, stride in self.convolutions]
        layers: list[dict[str, Any]] = [{"layer": "convolution", "stride": stride} for stride in strides]
        layers += [{"layer": "dense"} for _ in range(len(self.shapes) // 2 - len(strides))]
        labels = {"labels": self.labels, "first": self.first} if self.labels else None
        scale = 1 / 255 if self.bytes else 1.0
        return {"one_hot": labels, "channels_last": self.channels_last, "scale": scale, "layers": layers}

    def parts(self, weights: Array) -> list[Array]:
        """The weights and biases of the layers, alternating, for the weights of one network, (size,)."""
        return [
            part.reshape(shape) for part, shape in zip(np.split(weights, np.cumsum(self.sizes)[:-1]), self.shapes, strict=True)
        ]
