"""Schedules for learning rates and exploration, by the number of the episode (from 1) or by the number of transitions."""

from collections.abc import Sequence

from esbas.errors import require


def linear(start: float, horizon: float, episode: int) -> float:
    """Linear decay from `start` to 0 within `horizon` episodes: start · max(0, 1 - (τ - 1) / horizon)."""
    return start * max(0.0, 1 - (episode - 1) / horizon)


def hyperbolic(start: float, decay: float, episode: int) -> float:
    """Hyperbolic decay: start / (1 + decay · τ). Constant if decay = 0."""
    return start / (1 + decay * episode)


LinearDecay = tuple[float, float, float]  # first value, last value, number of transitions in between


def linear_decay(given: float | Sequence[float], *, name: str = "epsilon") -> LinearDecay:
    """Check the option `name`: (first, last, transitions), or one number for a constant value."""
    schedule = given if isinstance(given, Sequence) else (given, given, 0)
    fits = len(schedule) == 3 and 0 <= schedule[0] <= 1 and 0 <= schedule[1] <= 1 and schedule[2] >= 0
    require(fits, f"{name} is (first, last, transitions): two numbers from 0 to 1 and one >= 0", **{name: given})
    first, last, transitions = schedule
    return first, last, transitions


def value_at(schedule: LinearDecay, transitions: int) -> float:
    """The value of the schedule after a number of transitions."""
    first, last, duration = schedule
    done = min(transitions / duration, 1.0) if duration else 1.0
    return first + (last - first) * done
