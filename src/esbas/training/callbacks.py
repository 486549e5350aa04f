"""Callbacks: objects that are told what happens in a run, such as loggers."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esbas.errors import FileError, InvalidValueError
from esbas.registry import import_object
from esbas.runner import EpisodeRecord
from esbas.training.display.status import Status
from esbas.training.options import checked, error_context, first_line, read_call


@dataclass(frozen=True, kw_only=True)
class RunInfo:
    """The run that a callback belongs to."""

    task: str
    selector: str
    seed: int
    folder: Path  # of the run
    learners: tuple[str, ...]
    steps: int  # taken so far: more than 0 if the run continues


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What the greedy policy of one learner achieved in a few episodes from which nobody learns."""

    learner: str
    steps: int  # of training so far
    values: tuple[float, ...]  # of the objective, one per episode
    played: int  # environment steps of these episodes


class Callback:
    """Is told what happens in a run. Override the methods that you need; results do not depend on callbacks.

    Each run creates its own callbacks, in its process. A callback that raises an exception is not called any more; the run
    continues, and the live view shows the error.
    """

    def on_start(self, run: RunInfo) -> None:
        """The run starts or continues. TensorBoard, for example, hides what was logged after `run.steps`."""

    def on_episode(self, record: EpisodeRecord, *, steps: int) -> None:
        """An episode has ended; `steps` is the number of environment steps after it."""

    def on_status(self, status: Status) -> None:
        """Called several times per second, also within long episodes, and at the end."""

    def on_evaluation(self, evaluation: Evaluation) -> None:
        """The greedy policy of a learner has been evaluated."""

    def on_end(self, *, finished: bool) -> None:
        """The run has ended, in any way; `finished` says whether it has used up its budget."""


CallbackSource = str | Callable[[], Callback]
"""A class or a function without arguments, or a text such as "module:Class(option=1)"."""


def find_callback(source: Any) -> Callable[[], Any]:
    """What creates the callback of a `CallbackSource`; raises an error if it is none, or has unknown options."""
    if not isinstance(source, str):
        if not callable(source):
            rule = "a callback must be a class or a function without arguments"
            raise InvalidValueError(f"{rule}, but is {source!r}: pass the class")
        return lambda: source()
    with error_context(f"callback {source!r}"):
        name, given = read_call(source)
        found = import_object(name)
        if not callable(found):
            raise InvalidValueError(f"it must be a class or a function, but is {found!r}: name a class")
        options = checked(found, given, kind=name)
    return lambda: found(**options)


class GuardedCallback(Callback):
    """A callback of the user. Once it has failed, it is not called any more, and the failure is noted.

    Errors of the file system are raised: the run needs the disk, too.

    Args:
        source: see `CallbackSource`.
        note: called with a sentence about the failure.
    """

    def __init__(self, source: CallbackSource, note: Callable[[str], None]) -> None:
        self._name = source if isinstance(source, str) else getattr(source, "__qualname__", repr(source))
        self._note, self._callback = note, None
        self._callback = self._try("its creation", find_callback(source))

    def on_start(self, run: RunInfo) -> None:
        self._call("on_start", run)

    def on_episode(self, record: EpisodeRecord, *, steps: int) -> None:
        self._call("on_episode", record, steps=steps)

    def on_status(self, status: Status) -> None:
        self._call("on_status", status)

    def on_evaluation(self, evaluation: Evaluation) -> None:
        self._call("on_evaluation", evaluation)

    def on_end(self, *, finished: bool) -> None:
        self._call("on_end", finished=finished)

    def _call(self, method: str, *arguments: Any, **named: Any) -> None:
        if self._callback is not None:
            self._try(method, lambda: getattr(self._callback, method)(*arguments, **named))

    def _try(self, where: str, function: Callable[[], Any]) -> Any:
        try:
            return function()
        except FileError:
            raise
        except Exception as error:  # code of the user
            self._callback = None
            problem = f"{type(error).__name__}: {first_line(error)}"
            self._note(f"the callback {self._name!r} failed in {where} ({problem}) and is not called any more; the run continues")
            return None
