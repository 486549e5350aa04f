"""Callbacks: objects that receive the events of a run, such as loggers. They can also stop it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esbas._internal.registry import import_object
from esbas._internal.schema import short
from esbas.errors import FileError, InvalidValueError
from esbas.loop import EpisodeRecord
from esbas.specs.options import checked, error_context, first_line, read_call
from esbas.specs.sources import label_of
from esbas.training.display.status import Status


@dataclass(frozen=True, kw_only=True)
class RunInfo:
    """The run that a callback belongs to."""

    env: str
    selector: str
    seed: int
    folder: Path  # of the run
    learners: tuple[str, ...]
    steps: int  # taken so far: more than 0 if the run continues


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What the greedy policy of one learner achieved in a few episodes without learning."""

    learner: str
    steps: int  # of training so far
    values: tuple[float, ...]  # of the objective, one per episode
    played: int  # environment steps of these episodes


class Callback:
    """Receives the events of a run. Override the methods that you need.

    Each run creates its own callbacks, in its process. A callback can stop a run, and affects its
    results in no other way. A callback that raises an exception is not called any more; the run
    continues, and the live view shows the error.
    """

    def on_start(self, run: RunInfo) -> None:
        """Receive the run when it starts or continues.

        A run that continues repeats what came after `run.steps`: TensorBoard, for example, hides
        what was logged there.
        """

    def on_episode(self, record: EpisodeRecord, *, steps: int) -> bool | None:
        """Receive an episode that has ended; `steps` is the number of environment steps after it.

        Returning True stops the run, with the usual evaluation and report.
        """

    def on_status(self, status: Status) -> None:
        """Receive the status several times per second, also in long episodes, and at the end."""

    def on_evaluation(self, evaluation: Evaluation) -> bool | None:
        """Receive an evaluation of a learner's greedy policy.

        Returning True stops the run after its next episode.
        """

    def on_end(self, *, finished: bool) -> None:
        """End, in any way; `finished` is whether the run has used up its budget."""


CallbackSource = str | Callable[[], Callback] | Callback
"""A class or a function without arguments, text such as "module:Class(option=1)", or a callback."""


def find_callback(source: Any) -> Callable[[], Any]:
    """Return a function that creates the callback of a `CallbackSource`.

    Raises an error if it is none, or has unknown options.
    """
    if isinstance(source, str):
        return _find_named(source)
    is_callback = hasattr(source, "on_episode") and not isinstance(source, type)
    if is_callback:
        return lambda: source
    if not _makes_callbacks(source):
        what = "text, callbacks, or classes or functions without arguments that create them"
        raise InvalidValueError(f"`callbacks` must be {what}, but got {short(source)}.")
    return lambda: source()


def _makes_callbacks(source: Any) -> bool:
    if isinstance(source, type):
        return hasattr(source, "on_episode")
    return callable(source)


def _find_named(text: str) -> Callable[[], Any]:
    with error_context(f"Callback {text!r}"):
        name, given = read_call(text)
        found = import_object(name)
        if not _makes_callbacks(found):
            raise InvalidValueError(
                "It must be a class of callbacks or a function, "
                f"but got {short(found)}: name a subclass of esbas.Callback."
            )
        options = checked(found, given, kind=name)
    return lambda: found(**options)


class GuardedCallback(Callback):
    """A callback of the user, which is not called any more once it has failed.

    The failure is noted. Errors of the file system are raised: the run needs the disk, too.

    Args:
        source: see `CallbackSource`.
        note: called with a sentence about the failure.
    """

    def __init__(self, source: CallbackSource, note: Callable[[str], None]) -> None:
        self._name = label_of(source)
        self._note = note
        self._callback = None
        self._callback = self._try("its creation", find_callback(source))

    def on_start(self, run: RunInfo) -> None:
        self._call("on_start", run)

    def on_episode(self, record: EpisodeRecord, *, steps: int) -> bool | None:
        return self._call("on_episode", record, steps=steps) is True

    def on_status(self, status: Status) -> None:
        self._call("on_status", status)

    def on_evaluation(self, evaluation: Evaluation) -> bool | None:
        return self._call("on_evaluation", evaluation) is True

    def on_end(self, *, finished: bool) -> None:
        self._call("on_end", finished=finished)

    def _call(self, method: str, *arguments: Any, **named: Any) -> Any:
        if self._callback is None:
            return None
        return self._try(method, lambda: getattr(self._callback, method)(*arguments, **named))

    def _try(self, where: str, function: Callable[[], Any]) -> Any:
        try:
            return function()
        except FileError:
            raise
        except Exception as error:  # code of the user
            self._callback = None
            problem = f"{type(error).__name__}: {first_line(error)}"
            failed = f"the callback {self._name!r} failed in {where} ({problem})"
            self._note(f"{failed} and is not called any more; the run continues")
            return None
