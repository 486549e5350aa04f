"""Rendering of episodes: in a window, as a GIF, or as text."""

import io
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.error import DependencyNotInstalled
from PIL import Image

from esbas._internal.files import write_atomically
from esbas.envs import atari
from esbas.errors import EsbasError, InvalidValueError, MissingExtraError
from esbas.specs.options import first_line

WIDTH = 400
"""Pixels. Wider images are scaled down, and those of less than half of it are doubled."""
FRAMES = 500
"""At most. Of longer episodes, every second, fourth, ... frame is kept."""
LONGEST_FRAME = 100
"""Milliseconds that a frame is shown at most if others were left out.

So long episodes are played faster.
"""
_QUIET = {"PYGAME_HIDE_SUPPORT_PROMPT": "1"}
_OFF_SCREEN = {"SDL_VIDEODRIVER": "dummy"}  # images need no display; without one pygame would warn
_NO_DISPLAY = (
    "--render needs a display, but there is none: record an episode with --video FILE.gif."
)
_SHORTEST = 20  # milliseconds; most viewers slow down shorter frames


class Recording:
    """The frames of one episode, as small images or as text."""

    def __init__(self, *, fps: float) -> None:
        self._fps = fps
        self._seen = 0
        self._stride = 1
        self.images: list[Image.Image] = []
        self.text = ""  # the last frame

    def add(self, render: Callable[[], Any]) -> None:
        """Add the next frame; it is rendered only if it is kept."""
        if self._seen % self._stride == 0:
            frame = render()
            if isinstance(frame, str):
                self.text = frame
            elif frame is not None:
                self.images.append(_small(np.asarray(frame)))
                if len(self.images) > FRAMES:
                    self.images = self.images[::2]
                    self._stride = 2 * self._stride
        self._seen += 1

    def write(self, path: Path) -> None:
        """Write a GIF with the frame rate of the environment, or the highest that viewers support.

        Long episodes are played faster.
        """
        buffer = io.BytesIO()
        step = 1000 / self._fps  # milliseconds
        longest = max(step, LONGEST_FRAME)
        duration = max(_SHORTEST, round(min(self._stride * step, longest)))
        first, *others = self.images
        first.save(buffer, "GIF", save_all=True, append_images=others, duration=duration, loop=0)
        write_atomically(path, buffer.getvalue())


class RecordedEnv:
    """An environment that calls a function after each reset and step."""

    def __init__(self, env: Any, show: Callable[[], None]) -> None:
        self._env = env
        self._show = show

    def reset(self, *, seed: int | None = None) -> Any:
        result = self._env.reset(seed=seed)
        self._show()
        return result

    def step(self, action: Any) -> Any:
        result = self._env.step(action)
        self._show()
        return result


class RenderedEnv:
    """An environment that is rendered: all episodes in a window, or a recording of the first one.

    Args:
        make: creates the environment with a render mode.
        window: show every episode, in a window or as text.
        record: raise an error if images cannot be recorded; otherwise `problem` has the reason.
    """

    def __init__(self, make: Callable[[str | None], Any], *, window: bool, record: bool) -> None:
        self._is_requested = window or record
        self._window = window
        self.problem = ""
        self.env = make(None)
        self.recording = Recording(fps=_steps_per_second(self.env))
        self.mode = _mode(self.env.metadata.get("render_modes") or [], window=window, record=record)
        wanted = _QUIET if window else _QUIET | _OFF_SCREEN
        self._variables = {name: text for name, text in wanted.items() if name not in os.environ}
        os.environ |= self._variables
        self._try(lambda: self._open(make))

    def for_episode(self, number: int) -> Any:
        """Return the environment for an episode; `number` starts at 1."""
        if self._window:
            if self.mode == "ansi":
                return RecordedEnv(self.env, self._print_frame)
            return self.env
        if number == 1 and self.mode is not None:
            return RecordedEnv(self.env, self._add_frame)
        return self.env

    def _open(self, make: Callable[[str | None], Any]) -> None:
        """Create the environment again with its render mode, if it has one."""
        if self.mode is None:
            return
        if self.mode == "human" and atari.is_game(self.env):
            _check_display_of_emulator()
        shown = make(self.mode)
        self.env.close()
        self.env = shown
        # The first image may warn, for instance of a missing frame rate.
        with warnings.catch_warnings(action="ignore"):
            shown.reset(seed=0)  # so that missing libraries are found now
            if self.mode == "human":
                _check_display()
            else:
                shown.render()

    def _print_frame(self) -> None:
        print(self.env.render())

    def _add_frame(self) -> None:
        if not self.problem:
            self._try(lambda: self.recording.add(self.env.render))

    def _try(self, show: Callable[[], None]) -> None:
        """Call `show`; its errors are raised only if rendering was requested."""
        try:
            show()
        except Exception as error:  # whatever an environment, its libraries or the display raise
            explained = _explain(error)
            if self._is_requested:
                self.close()
                raise explained from error
            self.problem = str(explained)

    def close(self) -> None:
        self.env.close()
        for name in self._variables:
            os.environ.pop(name, None)


def _mode(modes: Sequence[str], *, window: bool, record: bool) -> str | None:
    """Return the render mode to use, of those that the environment has; None if there is none."""
    wanted = ["rgb_array", "ansi"]
    if window:
        wanted = ["human", "ansi"]
    elif record:
        wanted = ["rgb_array"]
    for mode in wanted:
        if mode in modes:
            return mode
    if not window and not record:
        return None
    option = "--render" if window else "--video"
    needed = f"{option} needs an environment with render mode {' or '.join(wanted)}"
    available = ", ".join(modes) or "none"
    raise InvalidValueError(
        f"{needed}, but the modes of this one are {available}: remove {option}."
    )


def _steps_per_second(env: Any) -> float:
    """Return the speed that the environment is made for."""
    repeats = atari.repeats_of(env)
    if repeats is not None:  # a game of ale-py: its metadata ignore that actions are repeated
        return atari.EMULATED_FPS / repeats
    return float(env.metadata.get("render_fps") or 30)


def _check_display_of_emulator() -> None:
    """Raise an error if the emulator would draw to an invisible window, without a display."""
    names = "SDL_VIDEODRIVER", "DISPLAY", "WAYLAND_DISPLAY"
    if sys.platform == "linux" and not any(os.environ.get(name) for name in names):
        raise InvalidValueError(_NO_DISPLAY)


def _check_display() -> None:
    """Raise an error if pygame draws to an invisible window, without a display."""
    pygame: Any = sys.modules.get("pygame")
    if pygame is None or not pygame.display.get_init():
        return
    is_invisible = pygame.display.get_driver() in ("dummy", "offscreen")
    if is_invisible and "SDL_VIDEODRIVER" not in os.environ:
        raise InvalidValueError(_NO_DISPLAY)


def _explain(error: Exception) -> EsbasError:
    message = first_line(error)
    if isinstance(error, DependencyNotInstalled | ImportError) and "pygame" in message:
        needed = "Rendering this environment needs pygame"
        return MissingExtraError(f"{needed}, but it is not installed: pip install 'esbas[render]'.")
    if isinstance(error, EsbasError):
        return error
    failed = f"The environment does not render ({type(error).__name__}: {message})"
    return InvalidValueError(f"{failed}: fix it, or remove --render and --video.")


def _small(frame: Any) -> Image.Image:
    """Return an image (H, W, 3) at most WIDTH wide and not very small, with its own palette."""
    image = Image.fromarray(frame.astype(np.uint8, copy=False))
    if image.width > WIDTH:
        height = max(1, round(image.height * WIDTH / image.width))
        image = image.resize((WIDTH, height), Image.Resampling.BILINEAR)
    # This method is four times as fast as the default one.
    image = image.quantize(128, method=Image.Quantize.FASTOCTREE)
    if 2 * image.width < WIDTH:
        doubled = (2 * image.width, 2 * image.height)
        image = image.resize(doubled, Image.Resampling.NEAREST)
    return image
