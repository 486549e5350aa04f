"""Figure 4 of the paper, with the networks, and the recording of the best policy.

The figure shows the game, what a network sees, and the layers.
"""

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Rectangle

from esbas import seeding
from esbas._internal.columns import Array
from esbas.envs.atari import EMULATED_FPS
from esbas.experiments.qbert.profiles import NETWORKS, Network
from esbas.experiments.qbert.setup import QbertSetup
from esbas.learners.dqn.layout import NetworkLayout
from esbas.reporting.colors import COLORS, INK, PAPER, QUIET
from esbas.training.folder import TrainingFolder
from esbas.training.policies.policy_file import StoredPolicy
from esbas.training.policies.scoring import greedy
from esbas.training.reports.recording import Recording

FRAMES_BEFORE = 500  # of random actions, before the picture of the game
SECONDS = 30  # of the recording, at the speed of the game
_NETWORK_COLORS = COLORS[0], COLORS[1], COLORS[6]

# Positions of the first and the last layer, and the height of the input.
LEFT = 1.6
RIGHT = 10.0
HIGH = 0.62


def game_figure(setup: QbertSetup) -> Figure:
    """Draw the game, the observation at the same time, and the three networks."""
    env = setup.make_env(render_mode="rgb_array")
    try:
        steps = max(1, FRAMES_BEFORE // setup.profile.action_repeat)
        image, observation = _picture(env, steps=steps)
        layouts = {network: _layout(network, env) for network in NETWORKS}
    finally:
        env.close()
    history = setup.profile.history
    repeat = setup.profile.action_repeat
    figure = Figure(
        figsize=(10, 7.4), layout=ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.06), facecolor=PAPER
    )
    grid = figure.add_gridspec(
        2, 1 + history, width_ratios=[1.25, *[1] * history], height_ratios=[1, 1.55]
    )
    axes = figure.add_subplot(grid[0, 0])
    axes.imshow(image, interpolation="nearest")
    _title(axes, setup.game)
    for k, frame in enumerate(observation):
        axes = figure.add_subplot(grid[0, 1 + k])
        axes.imshow(frame, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        ago = repeat * (history - 1 - k)
        _title(axes, f"{ago} frames ago" if ago else "now", bold=False)
    axes = figure.add_subplot(grid[1, :])
    _draw_networks(axes, layouts)
    return figure


def _picture(env: Any, *, steps: int) -> tuple[Array, Array]:
    """Return the game after some random actions.

    This is its image, (H, W, 3), and the observation, (history, 84, 84).
    """
    rng = seeding.generator(0, "picture of the game")
    observation, _ = env.reset(seed=0)
    image = env.render()
    for _ in range(steps):
        following, _, terminated, truncated, _ = env.step(int(rng.integers(env.action_space.n)))
        if terminated or truncated:
            break
        observation = following
        image = env.render()
    return np.asarray(image), np.asarray(observation)


def _layout(network: Network, env: Any) -> NetworkLayout:
    return NetworkLayout(
        env.observation_space,
        actions=int(env.action_space.n),
        hidden=[network.hidden],
        convolutions=network.convolutions,
    )


def _title(axes: Axes, text: str, *, bold: bool = True) -> None:
    axes.set_axis_off()
    if bold:
        axes.set_title(text, fontsize=12, fontweight="bold", color=INK)
    else:
        axes.set_title(text, fontsize=10, fontweight="normal", color=QUIET)


def _draw_networks(axes: Axes, layouts: dict[Network, NetworkLayout]) -> None:
    """Draw a row per network: a box per layer, as high as its image, as wide as it has channels."""
    for row, (network, layout) in enumerate(layouts.items()):
        _draw_network(axes, network, layout, y=-row, color=_NETWORK_COLORS[row])
    axes.set_xlim(0, RIGHT + 0.9)
    axes.set_ylim(0.62 - len(layouts), 0.5)
    axes.set_axis_off()


class DrawnLayer(NamedTuple):
    """A layer of a network, as it is drawn."""

    channels: int  # or units
    side: int  # of its image; 0 for a dense layer
    computed_by: str = ""

    @property
    def width(self) -> float:
        """The width of its box."""
        return 0.05 + 0.035 * math.sqrt(self.channels) if self.side else 0.09

    @property
    def height(self) -> float:
        """The height of its box."""
        if self.side:
            return HIGH * self.side / 84
        return HIGH * min(1.0, 0.07 * math.sqrt(self.channels) / 1.6 + 0.05)

    @property
    def text(self) -> str:
        """Its size in words."""
        if self.side:
            return f"{self.channels} x {self.side} x {self.side}"
        return f"{self.channels}"


def _layers(network: Network, actions: int) -> list[DrawnLayer]:
    side = 84
    layers = [DrawnLayer(4, side)]
    for filters, kernel, stride in network.convolutions:
        side = (side - kernel) // stride + 1
        layers.append(DrawnLayer(filters, side, f"conv {kernel}x{kernel}/{stride}"))
    layers.append(DrawnLayer(network.hidden, 0, "dense"))
    layers.append(DrawnLayer(actions, 0, "dense"))
    return layers


def _draw_network(
    axes: Axes, network: Network, layout: NetworkLayout, *, y: float, color: str
) -> None:
    weights = f"{layout.size / 1e6:.2f} million\nweights"
    axes.text(0, y + 0.06, network.name, fontsize=13, fontweight="bold", color=INK, va="center")
    axes.text(0, y - 0.17, weights, fontsize=10, color=QUIET, va="center", linespacing=1.2)
    layers = _layers(network, layout.shapes[-1][0])
    positions = np.linspace(LEFT, RIGHT, len(layers))
    step = positions[1] - positions[0]
    gap = 0.28  # between an arrow and the middle of a box
    for x, layer in zip(positions, layers, strict=True):
        corner = (x - layer.width / 2, y - layer.height / 2)
        axes.add_patch(
            Rectangle(corner, layer.width, layer.height, color=color, alpha=0.85, linewidth=0)
        )
        below = y - HIGH / 2 - 0.03
        axes.text(x, below, layer.text, fontsize=10, color=INK, ha="center", va="top")
        if layer.computed_by:
            between = x - step / 2
            axes.text(
                between,
                y + 0.05,
                layer.computed_by,
                fontsize=10,
                color=QUIET,
                ha="center",
                va="bottom",
            )
            axes.annotate(
                "",
                (x - gap, y),
                (x - step + gap, y),
                arrowprops={"arrowstyle": "->", "color": QUIET, "linewidth": 1.2},
            )


def record(
    training: TrainingFolder, stored: StoredPolicy, path: Path, *, action_repeat: int
) -> None:
    """Record the first seconds of a game that the policy plays without exploration.

    The recording has the speed of the game.
    """
    env = training.plan.env(render_mode="rgb_array")
    recording = Recording(fps=EMULATED_FPS / action_repeat)
    try:
        learner = stored.build(
            training.plan, observation_space=env.observation_space, action_space=env.action_space
        )
        try:
            _play(env, greedy(learner), recording, steps=SECONDS * EMULATED_FPS // action_repeat)
        finally:
            if hasattr(learner, "close"):
                learner.close()
    finally:
        env.close()
    recording.write(path)


def _play(env: Any, policy: Any, recording: Recording, *, steps: int) -> None:
    rng = seeding.generator(0, "recording of the best policy")
    observation, _ = env.reset(seed=int(rng.integers(2**31)))
    for _ in range(steps):
        recording.add(env.render)
        observation, _, terminated, truncated, _ = env.step(policy.act(observation, rng))
        if terminated or truncated:
            break
