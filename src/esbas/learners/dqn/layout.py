"""The shapes and initial weights of a Q-network, independent of what evaluates it."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from esbas._internal import spaces
from esbas._internal.columns import Array
from esbas.errors import SpaceError, require, unknown

Convolution = tuple[int, int, int]  # filters, kernel, stride
INITIALIZATIONS = "pytorch", "he_uniform"
NATURE: tuple[Convolution, ...] = ((32, 8, 4), (64, 4, 2), (64, 3, 1))  # Mnih et al. (2015)
SMALL_IMAGE: tuple[Convolution, ...] = ((16, 3, 1),)  # Young and Tian (2019), for 10 x 10


class NetworkLayout:
    """The layers of a network that maps observations to the values of all actions.

    It has convolutions for images, then dense layers, with ReLU between them.

    Args:
        observation_space: Box or Discrete. Integers are one-hot encoded, bytes are divided by 255.
        actions: the number of actions.
        hidden: the widths of the dense layers.
        convolutions: (filters, kernel, stride) each. Defaults to a standard choice for images
            (three axes of bytes or Booleans) and to none otherwise.
    """

    def __init__(
        self,
        observation_space: Any,
        *,
        actions: int,
        hidden: Sequence[int],
        convolutions: Sequence[Convolution] | None = None,
    ) -> None:
        shape: tuple[int, ...] = ()
        dtype = None
        self.labels = 0  # how many there are, one-hot encoded; 0: observations are arrays
        self.first = 0  # the first label
        if spaces.is_discrete(observation_space):
            self.labels = int(observation_space.n)
            self.first = int(observation_space.start)
        else:
            shape = tuple(observation_space.shape)
            dtype = np.dtype(observation_space.dtype)
        self.bytes = dtype == np.uint8
        if convolutions is None:
            convolutions = _usual_convolutions(shape, dtype)
        self.convolutions = tuple(map(tuple, convolutions))
        self.channels_last = bool(self.convolutions) and shape[-1] < shape[0]
        self.shapes: list[tuple[int, ...]] = []  # weights and biases alternate
        self.operations = 0  # multiplications for one observation
        inputs = self.labels or math.prod(shape)
        if self.convolutions:
            inputs = self._add_convolutions(shape)
        for outputs in (*hidden, actions):
            require(
                outputs >= 1,
                f"The widths in `hidden` must be at least 1, but got {tuple(hidden)!r}.",
            )
            self.shapes += [(inputs, outputs), (outputs,)]
            self.operations += inputs * outputs
            inputs = outputs
        self.sizes = [math.prod(shape) for shape in self.shapes]
        self.size = sum(self.sizes)  # the number of weights

    def _add_convolutions(self, shape: tuple[int, ...]) -> int:
        """Add the layers of the convolutions and return the number of their outputs."""
        require(
            len(shape) == 3,
            "Convolutions need observations with three axes, "
            f"but the observations have the shape {shape}: pass `convolutions=()`.",
        )
        if self.channels_last:
            *sides, channels = shape
        else:
            channels, *sides = shape
        for filters, kernel, stride in self.convolutions:
            self.shapes += [(filters, channels, kernel, kernel), (filters,)]
            sides = [(side - kernel) // stride + 1 for side in sides]
            self.operations += filters * channels * kernel**2 * math.prod(sides)
            channels = filters
            if min(sides) < 1:
                raise SpaceError(
                    f"Images must be at least as large as the kernels, but have the shape {shape}: "
                    "choose smaller `convolutions`."
                )
        return channels * math.prod(sides)

    def initial(self, rng: np.random.Generator, initialization: str = "pytorch") -> Array:
        """Draw initial weights, (size,), uniform within ±√(1 / inputs).

        With "he_uniform", they are within ±√(6 / inputs), and biases are 0 (He et al., 2015).
        """
        if initialization not in INITIALIZATIONS:
            raise unknown("initialization", initialization, INITIALIZATIONS)
        parts = []
        for weights, biases in zip(self.shapes[::2], self.shapes[1::2], strict=True):
            inputs = weights[0] if len(weights) == 2 else math.prod(weights[1:])
            if initialization == "he_uniform":
                bound = math.sqrt(6 / inputs)
                bias_bound = 0.0
            else:
                bound = math.sqrt(1 / inputs)
                bias_bound = bound
            parts.append(rng.uniform(-bound, bound, math.prod(weights)))
            parts.append(rng.uniform(-bias_bound, bias_bound, math.prod(biases)))
        return np.concatenate(parts).astype(np.float32)

    def describe(self) -> dict[str, Any]:
        """Return what a program needs besides the weights to compute the values, as plain data."""
        layers: list[dict[str, Any]] = []
        for _, _, stride in self.convolutions:
            layers.append({"layer": "convolution", "stride": stride})
        while len(layers) < len(self.shapes) // 2:
            layers.append({"layer": "dense"})
        return {
            "one_hot": {"labels": self.labels, "first": self.first} if self.labels else None,
            "channels_last": self.channels_last,
            "scale": 1 / 255 if self.bytes else 1.0,
            "layers": layers,
        }

    def parts(self, weights: Array) -> list[Array]:
        """Split the weights of one network, (size,), into the weights and biases of its layers."""
        flat = np.split(weights, np.cumsum(self.sizes)[:-1])
        return [part.reshape(shape) for part, shape in zip(flat, self.shapes, strict=True)]


def _usual_convolutions(shape: tuple[int, ...], dtype: Any) -> Sequence[Convolution]:
    if len(shape) != 3 or dtype not in (np.uint8, bool):
        return ()  # no image
    smaller_side = sorted(shape)[1]  # the channels are the smallest axis
    return NATURE if smaller_side >= 36 else SMALL_IMAGE
