"""Watching an episode: in a window, as a GIF, or as text, whatever the task can show."""

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

from esbas.errors import EsbasError, InvalidValueError, MissingExtraError
from esbas.files import write_atomically
from esbas.training.options import first_line

WIDTH = 400
"""Pixels; wider pictures are scaled down."""
FRAMES = 500
"""At most; of a longer episode every second, fourth, ... frame is kept."""
_QUIET = {"PYGAME_HIDE_SUPPORT_PROMPT": "1"}
_OFF_SCREEN = {"SDL_VIDEODRIVER": "dummy"}  # pictures need no display; pygame complains where there is none
_SHORTEST = 20  # milliseconds: what takes less is slowed down by most viewers


class Film:
    """The frames of one episode, few and small: pictures, or texts."""

    def __init__(self, *, fps: float) -> None:
        self._fps, self._seen, self._stride = fps, 0, 1
        self.pictures: list[Image.Image] = []
        self.text = ""  # the last one

    def add(self, render: Callable[[], Any]) -> None:
        """The next frame, which is rendered only if it is kept."""
        if self._seen % self._stride == 0:
            frame = render()
            if isinstance(frame, str):
                self.text = frame
            elif frame is not None:
                self.pictures.append(_small(np.asarray(frame)))
                if len(self.pictures) > FRAMES:
                    self.pictures, self._stride = self.pictures[::2], 2 * self._stride
        self._seen += 1

    def write(self, path: Path) -> None:
        """As a GIF that runs as fast as the task's own frames, or as fast as viewers go."""
        buffer, duration = io.BytesIO(), max(_SHORTEST, round(1000 * self._stride / self._fps))
        first, *others = self.pictures
        first.save(buffer, "GIF", save_all=True, append_images=others, duration=duration, loop=0)
        write_atomically(path, buffer.getvalue())


class Filmed:
    """An environment whose every step is shown to a film."""

    def __init__(self, env: Any, show: Callable[[], None]) -> None:
        self._env, self._show = env, show

    def reset(self, *, seed: int | None = None) -> Any:
        """The first frame is where the episode starts."""
        told = self._env.reset(seed=seed)
        self._show()
        return told

    def step(self, action: Any) -> Any:
        """One frame more."""
        told = self._env.step(action)
        self._show()
        return told


class Stage:
    """The task, and how it is shown; a film of the first episode is made unless there is a window.

    Args:
        make: makes the task for a render mode.
        window: show every episode, in a window, or as text where the task has none.
        film: whether pictures are a must; otherwise `trouble` tells what went wrong with them.
    """

    def __init__(self, make: Callable[[str | None], Any], *, window: bool, film: bool) -> None:
        self._must, self._window, self.trouble = window or film, window, ""
        self.env = make(None)
        self.film = Film(fps=float(self.env.metadata.get("render_fps") or 30))
        self.mode = _mode(self.env.metadata.get("render_modes") or [], window=window, film=film)
        wanted = _QUIET if window else _QUIET | _OFF_SCREEN
        self._lent = {name: value for name, value in wanted.items() if name not in os.environ}
        os.environ |= self._lent
        self._try(lambda: self._open(make))

    def for_episode(self, number: int) -> Any:
        """The environment for this episode, from 1."""
        if self._window:
            return Filmed(self.env, lambda: print(self.env.render())) if self.mode == "ansi" else self.env
        return Filmed(self.env, self._shoot) if number == 1 and self.mode is not None else self.env

    def _open(self, make: Callable[[str | None], Any]) -> None:
        """The task again, with its render mode, if there is anything to see."""
        if self.mode is not None:
            shown = make(self.mode)
            self.env.close()
            self.env = shown
            with warnings.catch_warnings(action="ignore"):  # such as one of a missing frame rate, at the first picture
                shown.reset(seed=0)  # what a window or a picture lacks shows now
                if self.mode == "human":
                    _check_display()
                else:
                    shown.render()

    def _shoot(self) -> None:
        if not self.trouble:
            self._try(lambda: self.film.add(self.env.render))

    def _try(self, show: Callable[[], None]) -> None:
        """A task that cannot be shown is an error only if somebody wants to see it."""
        try:
            show()
        except Exception as error:  # whatever an environment, its libraries or the display raise
            wrong = _told(error)
            if self._must:
                self.close()
                raise wrong from error
            self.trouble = str(wrong)

    def close(self) -> None:
        """The window, too."""
        self.env.close()
        for name in self._lent:
            os.environ.pop(name, None)


def _mode(modes: Sequence[str], *, window: bool, film: bool) -> str | None:
    wanted = ("human", "ansi") if window else ("rgb_array",) if film else ("rgb_array", "ansi")
    found = [mode for mode in wanted if mode in modes]
    if not found and (window or film):
        option, kinds = "--render" if window else "--video", " or ".join(wanted)
        has = ", ".join(modes) or "none"
        raise InvalidValueError(
            f"{option} needs a task with the render mode {kinds}, but its modes are {has}: leave {option} out"
        )
    return found[0] if found else None


def _check_display() -> None:
    """Where there is no display, pygame draws windows that nobody sees, and says nothing."""
    pygame: Any = sys.modules.get("pygame")
    unseen = pygame is not None and pygame.display.get_init() and pygame.display.get_driver() in ("dummy", "offscreen")
    if unseen and "SDL_VIDEODRIVER" not in os.environ:
        raise InvalidValueError(
            "a window needs a display, but there is none here: film an episode instead, with --video FILE.gif"
        )


def _told(error: Exception) -> EsbasError:
    message = first_line(error)
    if isinstance(error, DependencyNotInstalled | ImportError) and "pygame" in message:
        return MissingExtraError("to show this task, pygame must be installed, but it is not: pip install 'esbas[render]'")
    if isinstance(error, EsbasError):
        return error
    return InvalidValueError(
        f"to be shown, the task must render, but {type(error).__name__}: {message}: mend that, or do without"
    )


def _small(frame: Any) -> Image.Image:
    """A picture (H, W, 3) no wider than WIDTH, with a palette of its own."""
    picture = Image.fromarray(frame.astype(np.uint8, copy=False))
    if picture.width > WIDTH:
        picture = picture.resize((WIDTH, max(1, round(picture.height * WIDTH / picture.width))), Image.Resampling.BILINEAR)
    return picture.quantize(128, method=Image.Quantize.FASTOCTREE)  # four times as fast as the usual one
