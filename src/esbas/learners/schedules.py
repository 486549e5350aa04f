"""How rates of learning and exploration fall with the number of the episode, from 1, or of transitions."""

from collections.abc import Sequence

from esbas.errors import require


def linear(start: float, horizon: float, episode: int) -> float:
    """From `start` down to 0, which is reached after `horizon` episodes: start · max(0, 1 - (τ - 1) / horizon)."""
    return start * max(0.0, 1 - (episode - 1) / horizon)


def hyperbolic(start: float, decay: float, episode: int) -> float:
    """From `start` down, ever more slowly: start / (1 + decay · τ); constant for decay = 0."""
    return start / (1 + decay * episode)


Falling = tuple[float, float, float]  # the first number, the last one, and after how many transitions


def falling(given: float | Sequence[float], *, name: str = "epsilon") -> Falling:
    """What was given for `between`, checked; a number alone stays as it is for ever."""
    schedule = given if isinstance(given, Sequence) else (given, given, 0)
    fits = len(schedule) == 3 and 0 <= schedule[0] <= 1 and 0 <= schedule[1] <= 1 and schedule[2] >= 0
    require(fits, f"{name} is (first, last, transitions): two numbers from 0 to 1 and one >= 0", **{name: given})
    first, last, transitions = schedule
    return first, last, transitions


def between(schedule: Falling, transitions: int) -> float:
    """From the first number linearly to the last one."""
    first, last, duration = schedule
    done = min(transitions / duration, 1.0) if duration else 1.0
    return first + (last - first) * done
