"""The exceptions of esbas.

Each also derives from a suitable builtin. Its message is a sentence: what is wrong, what was given,
and what to do.
"""

import difflib
from collections.abc import Iterable, Sequence


class EsbasError(Exception):
    """The base of all errors that esbas raises."""

    def __str__(self) -> str:
        # KeyError would print the message in quotes.
        return str(self.args[0]) if self.args else ""


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


class BrokenEnvError(InvalidValueError):
    """What an environment returns does not fit its spaces or Gymnasium's API."""


class DivergenceError(EsbasError, ArithmeticError):
    """A learner's values became infinite or NaN."""


class TimeLimitError(EsbasError, TimeoutError):
    """A learning call took longer than its time limit."""


class IsolationError(EsbasError, RuntimeError):
    """A learner in a separate process raised an error, or its process died."""


class SaveFileError(EsbasError, ValueError):
    """A save file is damaged, too new, or belongs to another run."""


class StoreError(EsbasError, RuntimeError):
    """A store of studies cannot be reached, is damaged, or is not a store."""


class StudyError(EsbasError, ValueError):
    """A request does not fit a study.

    For instance, the selector differs, a key was used before, or a claim has expired.
    """


class ServiceError(EsbasError, RuntimeError):
    """A service of studies cannot be reached, or refuses the request.

    Reasons for a refusal are a wrong token, the size of the request, or too many requests.
    """


class FileError(EsbasError, OSError):
    """A file cannot be read or written, for instance because the disk is full."""


class TrustError(EsbasError, PermissionError):
    """Opening a folder would import modules that it names, and `trust` was not given."""


class MissingExtraError(EsbasError, ImportError):
    """A part needs a library that is not installed."""


class EngineError(EsbasError, RuntimeError):
    """A job did not return: its process ended, or its arguments or its result cannot be sent."""


class WorkerLostError(EngineError):
    """A job's worker died repeatedly. Other jobs are not affected."""


class TrainingError(EsbasError, RuntimeError):
    """A training run stopped before its budget was used."""


class NoLearnerError(TrainingError):
    """No learner of a training run was able to act or to learn."""


class ContractError(EsbasError, AssertionError):
    """A plug-in breaks its contract (raised by `esbas.testing`)."""


def require(holds: bool, message: str) -> None:
    """Raise an InvalidValueError with this sentence unless the condition holds.

    >>> xi = -1
    >>> require(xi >= 0, f"`xi` must be at least 0, but got {xi!r}.")
    Traceback (most recent call last):
    esbas.errors.InvalidValueError: `xi` must be at least 0, but got -1.
    """
    if not holds:
        raise InvalidValueError(message)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, for messages and reprs.

    >>> counted(1, "arm"), counted(1200, "choice")
    ('1 arm', '1,200 choices')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


LONGEST_MESSAGE = 2000  # characters of a foreign error that are kept


def describe(error: BaseException | str) -> str:
    """Return the type and the message of an error of foreign code.

    The text is cut to a length, and has only characters that any file can store.
    """
    if isinstance(error, str):
        text = error
    else:
        kind = type(error).__name__
        try:
            text = f"{kind}: {error}"
        except Exception:  # its __str__ raises
            text = f"{kind}: (its message cannot be shown)"
    if len(text) > LONGEST_MESSAGE:
        text = f"{text[:LONGEST_MESSAGE]} ... ({len(text):,} characters)"
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


def unknown(kind: str, name: object, known: Iterable[str], otherwise: str = "") -> UnknownNameError:
    """Return the error for a name that is not among the known ones.

    Args:
        kind: what the name is for.
        name: the name that was given.
        known: the known names; the message suggests the nearest one.
        otherwise: what to do if none is near. Default: choose one of the known names.
    """
    names = list(known)
    nearest = _nearest(str(name), names)
    if nearest is not None:
        remedy = f"did you mean {nearest!r}?"
    elif otherwise.endswith("?"):
        remedy = otherwise
    elif otherwise:
        remedy = otherwise.rstrip(".") + "."
    elif names:
        remedy = f"choose one of {', '.join(map(repr, names))}."
    else:
        remedy = "there are none."
    return UnknownNameError(f"There is no {kind} named {name!r}: {remedy}")


def _nearest(name: str, names: Sequence[str]) -> str | None:
    """Return the name that the given one is probably meant to be, or None."""
    word = name.lower()
    if len(word) > 1:
        longer = [each for each in names if each.lower().startswith(word)]
        if longer:
            return min(longer, key=len)
    for each in names:
        if each.lower().endswith(f".{word}"):
            return each
    similar = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return similar[0] if similar else None
