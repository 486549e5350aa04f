"""Schedules for learning rates and exploration.

They depend on the number of the episode, from 1, or on the number of transitions.
"""

from collections.abc import Sequence

from esbas.errors import require


def linear(start: float, horizon: float, episode: int) -> float:
    """Decay linearly to 0 within `horizon` episodes: start · max(0, 1 - (τ - 1) / horizon)."""
    return start * max(0.0, 1 - (episode - 1) / horizon)


def hyperbolic(start: float, decay: float, episode: int) -> float:
    """Decay hyperbolically: start / (1 + decay · τ). Constant if decay = 0."""
    return start / (1 + decay * episode)


LinearDecay = tuple[float, float, float]
"""The first value, the last value, and the number of transitions in between."""


def linear_decay(given: float | Sequence[float], *, name: str = "epsilon") -> LinearDecay:
    """Return the checked option `name`: (first, last, transitions), or one constant number."""
    message = (
        f"`{name}` must be a number from 0 to 1, or (first, last, transitions) with two such "
        f"numbers and one that is at least 0, but got {given!r}."
    )
    schedule = given if isinstance(given, Sequence) else (given, given, 0)
    require(len(schedule) == 3, message)
    first, last, transitions = schedule
    require(0 <= first <= 1 and 0 <= last <= 1 and transitions >= 0, message)
    return first, last, transitions


def value_at(schedule: LinearDecay, transitions: int) -> float:
    """Return the value of the schedule after a number of transitions."""
    first, last, duration = schedule
    done = min(transitions / duration, 1.0) if duration else 1.0
    return first + (last - first) * done
