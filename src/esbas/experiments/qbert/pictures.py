"""Figure 4 of the paper, with the networks: the game, what a network sees, and the layers. The recording of the best policy."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Rectangle

from esbas import seeding
from esbas.columns import Array
from esbas.envs.atari import EMULATED_FPS
from esbas.experiments.qbert.profiles import NETWORKS, Network
from esbas.experiments.qbert.setup import QbertSetup
from esbas.learners.deep.layout import NetworkLayout
from esbas.reporting.colours import COLOURS, INK, PAPER, QUIET
from esbas.training.folder import TrainingFolder
from esbas.training.policies.policy_file import StoredPolicy
from esbas.training.policies.scoring import greedy
from esbas.training.reports.recording import Recording
from esbas.training.runs.plan import Plan

FRAMES_BEFORE = 500  # of random actions, before the picture of the game
SECONDS = 30  # of the recording, at the speed of the game
_NETWORK_COLOURS = COLOURS[0], COLOURS[1], COLOURS[6]


def game_figure(setup: QbertSetup) -> Figure:
    """The game, the observation at the same time, and the three networks."""
    task = setup.make_task(render_mode="rgb_array")
    try:
        image, observation = _picture(task, steps=max(1, FRAMES_BEFORE // setup.profile.action_repeat))
        layouts = {network: _layout(network, task) for network in NETWORKS}
    finally:
        task.close()
    history, repeat = setup.profile.history, setup.profile.action_repeat
    figure = Figure(figsize=(10, 7.4), layout=ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.06), facecolor=PAPER)
    grid = figure.add_gridspec(2, 1 + history, width_ratios=[1.25, *[1] * history], height_ratios=[1, 1.55])
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


def _picture(task: Any, *, steps: int) -> tuple[Array, Array]:
    """The game after some random actions: its image, (H, W, 3), and the observation, (history, 84, 84)."""
    rng = seeding.generator(0, "picture of the game")
    observation, _ = task.reset(seed=0)
    image = task.render()
    for _ in range(steps):
        following, _, terminated, truncated, _ = task.step(int(rng.integers(task.action_space.n)))
        if terminated or truncated:
            break
        observation, image = following, task.render()
    return np.asarray(image), np.asarray(observation)


def _layout(network: Network, task: Any) -> NetworkLayout:
    actions = int(task.action_space.n)
    return NetworkLayout(task.observation_space, actions=actions, hidden=[network.hidden], convolutions=network.convolutions)


def _title(axes: Axes, text: str, *, bold: bool = True) -> None:
    axes.set_axis_off()
    axes.set_title(text, fontsize=12 if bold else 10, fontweight="bold" if bold else "normal", color=INK if bold else QUIET)


LEFT, RIGHT, HIGH = 1.6, 10.0, 0.62  # where the first and the last layer are, and the height of the input


def _draw_networks(axes: Axes, layouts: dict[Network, NetworkLayout]) -> None:
    """A row per network: a box per layer, as high as its image, as wide as it has channels."""
    for row, (network, layout) in enumerate(layouts.items()):
        _draw_network(axes, network, layout, y=-row, colour=_NETWORK_COLOURS[row])
    axes.set_xlim(0, RIGHT + 0.9)
    axes.set_ylim(0.62 - len(layouts), 0.5)
    axes.set_axis_off()


def _draw_network(axes: Axes, network: Network, layout: NetworkLayout, *, y: float, colour: str) -> None:
    side, boxes = 84, [(4, 84, "")]  # channels, side, how the layer is computed
    for filters, kernel, stride in network.convolutions:
        side = (side - kernel) // stride + 1
        boxes.append((filters, side, f"conv {kernel}x{kernel}/{stride}"))
    boxes += [(network.hidden, 0, "dense"), (layout.shapes[-1][0], 0, "dense")]
    places = np.linspace(LEFT, RIGHT, len(boxes))
    axes.text(0, y + 0.06, network.name, fontsize=13, fontweight="bold", color=INK, va="center")
    axes.text(0, y - 0.17, f"{layout.size / 1e6:.2f} million\nweights", fontsize=10, color=QUIET, va="center", linespacing=1.2)
    for place, (channels, side, kind) in zip(places, boxes, strict=True):
        width = 0.05 + 0.035 * np.sqrt(channels) if side else 0.09
        height = HIGH * side / 84 if side else HIGH * min(1.0, 0.07 * np.sqrt(channels) / 1.6 + 0.05)
        axes.add_patch(Rectangle((place - width / 2, y - height / 2), width, height, color=colour, alpha=0.85, linewidth=0))
        text = f"{channels} x {side} x {side}" if side else f"{channels}"
        axes.text(place, y - HIGH / 2 - 0.03, text, fontsize=10, color=INK, ha="center", va="top")
        if kind:
            step = places[1] - places[0]
            axes.text(place - step / 2, y + 0.05, kind, fontsize=10, color=QUIET, ha="center", va="bottom")
            gap = 0.28
            axes.annotate(
                "", (place - gap, y), (place - step + gap, y), arrowprops={"arrowstyle": "->", "color": QUIET, "linewidth": 1.2}
            )


def record(training: TrainingFolder, stored: StoredPolicy, path: Path, *, action_repeat: int) -> None:
    """Record the first seconds of a game that the policy plays without exploration, at the speed of the game."""
    task = training.plan.task(render_mode="rgb_array")
    recording = Recording(fps=EMULATED_FPS / action_repeat)
    try:
        learner = _built(stored, training.plan, task)
        try:
            _play(task, greedy(learner), recording, steps=SECONDS * EMULATED_FPS // action_repeat)
        finally:
            getattr(learner, "close", lambda: None)()
    finally:
        task.close()
    recording.write(path)


def _built(stored: StoredPolicy, plan: Plan, task: Any) -> Any:
    return stored.build(plan, observation_space=task.observation_space, action_space=task.action_space)


def _play(task: Any, policy: Any, recording: Recording, *, steps: int) -> None:
    rng = seeding.generator(0, "recording of the best policy")
    observation, _ = task.reset(seed=int(rng.integers(2**31)))
    for _ in range(steps):
        recording.add(task.render)
        observation, _, terminated, truncated, _ = task.step(policy.act(observation, rng))
        if terminated or truncated:
            break
