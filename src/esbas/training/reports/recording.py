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

from esbas.envs import atari
from esbas.errors import EsbasError, InvalidValueError, MissingExtraError
from esbas.files import write_atomically
from esbas.training.options import first_line

WIDTH = 400
"""In pixels; wider images are scaled down, and those of less than half of it are doubled."""
FRAMES = 500
"""The maximum; of longer episodes every second, fourth, ... frame is kept."""
LONGEST_FRAME = 100
"""Milliseconds: if frames were left out, the others are shown for this time at most, so long episodes are played faster."""
_QUIET = {"PYGAME_HIDE_SUPPORT_PROMPT": "1"}
_OFF_SCREEN = {"SDL_VIDEODRIVER": "dummy"}  # images need no display; without one pygame would warn
_NO_DISPLAY = "--render needs a display, but there is none: record an episode with --video FILE.gif"
_SHORTEST = 20  # milliseconds; most viewers slow down shorter frames


class Recording:
    """The frames of one episode, as small images or as text."""

    def __init__(self, *, fps: float) -> None:
        self._fps, self._seen, self._stride = fps, 0, 1
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
                    self.images, self._stride = self.images[::2], 2 * self._stride
        self._seen += 1

    def write(self, path: Path) -> None:
        """Write a GIF with the frame rate of the task, or the highest that viewers support. Long episodes are played faster."""
        buffer, own = io.BytesIO(), 1000 / self._fps
        duration = max(_SHORTEST, round(min(self._stride * own, max(own, LONGEST_FRAME))))
        first, *others = self.images
        first.save(buffer, "GIF", save_all=True, append_images=others, duration=duration, loop=0)
        write_atomically(path, buffer.getvalue())


class RecordedEnv:
    """An environment that calls a function after each reset and step."""

    def __init__(self, env: Any, show: Callable[[], None]) -> None:
        self._env, self._show = env, show

    def reset(self, *, seed: int | None = None) -> Any:
        result = self._env.reset(seed=seed)
        self._show()
        return result

    def step(self, action: Any) -> Any:
        result = self._env.step(action)
        self._show()
        return result


class RenderedTask:
    """A task that is rendered: all episodes in a window, or a recording of the first one.

    Args:
        make: creates the task with a render mode.
        window: show every episode, in a window or as text.
        record: raise an error if images cannot be recorded; otherwise `trouble` has the reason.
    """

    def __init__(self, make: Callable[[str | None], Any], *, window: bool, record: bool) -> None:
        self._must, self._window, self.trouble = window or record, window, ""
        self.env = make(None)
        self.recording = Recording(fps=_steps_per_second(self.env))
        self.mode = _mode(self.env.metadata.get("render_modes") or [], window=window, record=record)
        wanted = _QUIET if window else _QUIET | _OFF_SCREEN
        self._environment = {name: value for name, value in wanted.items() if name not in os.environ}
        os.environ |= self._environment
        self._try(lambda: self._open(make))

    def for_episode(self, number: int) -> Any:
        """The environment for an episode; `number` starts at 1."""
        if self._window:
            return RecordedEnv(self.env, lambda: print(self.env.render())) if self.mode == "ansi" else self.env
        return RecordedEnv(self.env, self._add_frame) if number == 1 and self.mode is not None else self.env

    def _open(self, make: Callable[[str | None], Any]) -> None:
        """Create the task again with its render mode, if it has one."""
        if self.mode is not None:
            if self.mode == "human" and atari.is_game(self.env):
                _check_display_of_emulator()
            shown = make(self.mode)
            self.env.close()
            self.env = shown
            with warnings.catch_warnings(action="ignore"):  # such as a missing frame rate, at the first image
                shown.reset(seed=0)  # so that missing libraries are found now
                if self.mode == "human":
                    _check_display()
                else:
                    shown.render()

    def _add_frame(self) -> None:
        if not self.trouble:
            self._try(lambda: self.recording.add(self.env.render))

    def _try(self, show: Callable[[], None]) -> None:
        """Call `show`; its errors are raised only if rendering was requested."""
        try:
            show()
        except Exception as error:  # whatever an environment, its libraries or the display raise
            wrong = _explain(error)
            if self._must:
                self.close()
                raise wrong from error
            self.trouble = str(wrong)

    def close(self) -> None:
        self.env.close()
        for name in self._environment:
            os.environ.pop(name, None)


def _mode(modes: Sequence[str], *, window: bool, record: bool) -> str | None:
    wanted = ("human", "ansi") if window else ("rgb_array",) if record else ("rgb_array", "ansi")
    found = [mode for mode in wanted if mode in modes]
    if not found and (window or record):
        option, kinds = "--render" if window else "--video", " or ".join(wanted)
        has = ", ".join(modes) or "none"
        raise InvalidValueError(
            f"{option} needs a task with render mode {kinds}, but the modes of this task are {has}: remove {option}"
        )
    return found[0] if found else None


def _steps_per_second(env: Any) -> float:
    """At the speed that the task is made for. Games of ale-py do not say how often they repeat actions."""
    repeats = atari.repeats_of(env)
    return float(env.metadata.get("render_fps") or 30) if repeats is None else atari.EMULATED_FPS / repeats


def _check_display_of_emulator() -> None:
    """Raise an error if the emulator would draw to an invisible window because there is no display."""
    names = "SDL_VIDEODRIVER", "DISPLAY", "WAYLAND_DISPLAY"
    if sys.platform == "linux" and not any(os.environ.get(name) for name in names):
        raise InvalidValueError(_NO_DISPLAY)


def _check_display() -> None:
    """Raise an error if pygame draws to an invisible window because there is no display."""
    pygame: Any = sys.modules.get("pygame")
    invisible = pygame is not None and pygame.display.get_init() and pygame.display.get_driver() in ("dummy", "offscreen")
    if invisible and "SDL_VIDEODRIVER" not in os.environ:
        raise InvalidValueError(_NO_DISPLAY)


def _explain(error: Exception) -> EsbasError:
    message = first_line(error)
    if isinstance(error, DependencyNotInstalled | ImportError) and "pygame" in message:
        return MissingExtraError("rendering this task needs pygame, but it is not installed: pip install 'esbas[render]'")
    if isinstance(error, EsbasError):
        return error
    return InvalidValueError(
        f"the task must render, but {type(error).__name__}: {message}: fix it, or remove --render and --video"
    )


def _small(frame: Any) -> Image.Image:
    """An image (H, W, 3) at most WIDTH wide and not very small, with its own palette."""
    image = Image.fromarray(frame.astype(np.uint8, copy=False))
    if image.width > WIDTH:
        image = image.resize((WIDTH, max(1, round(image.height * WIDTH / image.width))), Image.Resampling.BILINEAR)
    image = image.quantize(128, method=Image.Quantize.FASTOCTREE)  # four times as fast as the default method
    doubled = 2 * image.width, 2 * image.height
    return image.resize(doubled, Image.Resampling.NEAREST) if doubled[0] < WIDTH else image
