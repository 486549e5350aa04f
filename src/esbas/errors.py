"""Every exception of esbas. Each also derives from a suitable builtin, and its message has rule, value and remedy."""

import difflib
from collections.abc import Iterable, Sequence


class EsbasError(Exception):
    """The base of all errors that esbas raises."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""  # KeyError would print the message in quotes


class InvalidValueError(EsbasError, ValueError):
    """A value breaks a rule."""


class UnknownNameError(EsbasError, KeyError, ValueError):
    """An unknown name."""


class ChoiceError(EsbasError, ValueError):
    """A choice was told twice, or comes from another selector."""


class SpaceError(EsbasError, TypeError, ValueError):
    """The spaces of learners and environment differ."""


class NotEpisodicError(EsbasError, RuntimeError):
    """An episode did not end within the step limit."""


class DivergenceError(EsbasError, ArithmeticError):
    """What a learner learnt is infinite or undefined."""


class TimeLimitError(EsbasError, TimeoutError):
    """A learning call took longer than it may."""


class IsolationError(EsbasError, RuntimeError):
    """A learner in a process of its own raised, or its process died."""


class SaveFileError(EsbasError, ValueError):
    """A save file is damaged, too new, or belongs to another run."""


class StoreError(EsbasError, RuntimeError):
    """A store of studies cannot be reached, is damaged, or is not a store."""


class StudyError(EsbasError, ValueError):
    """A request does not fit a study: another selector, a key that was used before, a claim that is over."""


class ServiceError(EsbasError, RuntimeError):
    """A service of studies cannot be reached, or refuses the request: its token, its size, or the number of requests."""


class FileError(EsbasError, OSError):
    """A file cannot be read or written: the disk is full, the folder was deleted, ... See `esbas.files`."""


class TrustError(EsbasError, PermissionError):
    """Opening a folder would import modules that it names, and `trust` was not given."""


class MissingExtraError(EsbasError, ImportError):
    """A part needs a library that is not installed."""


class EngineError(EsbasError, RuntimeError):
    """A job did not return: its process ended, or its arguments or its result cannot be sent."""


class WorkerLostError(EngineError):
    """A job ended the process that ran it, or lost its machine, again and again. Other jobs are not affected."""


class TrainingError(EsbasError, RuntimeError):
    """A training run ended before its time."""


class ContractError(EsbasError, AssertionError):
    """A plug-in breaks its contract (raised by `esbas.testing`)."""


def require(holds: bool, rule: str, remedy: str = "", /, **got: object) -> None:
    """Raise an InvalidValueError unless the rule holds.

    >>> require(False, "xi >= 0", xi=-1)
    Traceback (most recent call last):
    esbas.errors.InvalidValueError: `xi >= 0` must hold, but got xi=-1
    """
    if not holds:
        values = ", ".join(f"{name}={value!r}" for name, value in got.items())
        raise InvalidValueError(f"`{rule}` must hold, but got {values}" + (f": {remedy}" if remedy else ""))


LONGEST_MESSAGE = 2000  # characters of a foreign error that are kept


def describe(error: BaseException | str) -> str:
    """The type and the message of an error of foreign code, cut to a length and to characters that any file can store."""
    if isinstance(error, str):
        text = error
    else:
        try:
            text = f"{type(error).__name__}: {error}"
        except KeyboardInterrupt:
            raise
        except BaseException:  # its __str__ raises
            text = f"{type(error).__name__}: (its message cannot be shown)"
    if len(text) > LONGEST_MESSAGE:
        text = f"{text[:LONGEST_MESSAGE]} ... ({len(text):,} characters)"
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


def unknown(kind: str, name: object, known: Iterable[str], otherwise: str = "") -> UnknownNameError:
    """The error for a name that is not among the known ones, with the nearest one as a suggestion, or `otherwise` all of them."""
    names = list(known)
    near = _nearest(str(name), names)
    remedy = f"did you mean {near!r}?" if near else otherwise or f"choose one of {', '.join(map(repr, names)) or 'none'}"
    return UnknownNameError(f"there is no {kind} named {name!r}: {remedy}")


def _nearest(name: str, names: Sequence[str]) -> str | None:
    """The shortest name that starts with the given one, one that has it after a dot, or the one with the smallest difference."""
    word = name.lower()
    starting = [each for each in names if each.lower().startswith(word)] if len(word) > 1 else []
    after_a_dot = [each for each in names if each.lower().endswith(f".{word}")]
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return next(iter([*sorted(starting, key=len), *after_a_dot, *near]), None)
