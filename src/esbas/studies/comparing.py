"""Estimates from the log of a study what another selector would have achieved."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from esbas import seeding
from esbas.errors import StudyError
from esbas.selectors import Choice, Selector
from esbas.studies import events
from esbas.studies.description import build_selector
from esbas.studies.events import Event
from esbas.studies.study import Study

LEAST = 30  # kept rounds; with fewer, the estimate would be too uncertain to be useful


@dataclass(frozen=True)
class StudyComparison:
    """The mean value of a log, and an estimate of the mean value that another selector achieves."""

    rounds: int  # of the log that have a value
    mean: float
    error: float  # standard error of the mean
    matched: int  # rounds in which the other selector chose the same arm, and which were kept
    other_mean: float
    other_error: float


def compare(study: Study, selector: Mapping[str, Any], *, seed: int = 0) -> StudyComparison:
    """Estimate the mean value of another selector from a log, by rejection sampling.

    The other selector goes through the log. A round in which it chooses the arm of the log is kept
    with probability c / p, where p is the recorded propensity of the arm, and c the smallest one in
    the log; the selector is told the values of these rounds alone. So every arm is kept with the
    same probability c, and the kept rounds are a run of the other selector, but shorter (Mandel,
    Liu, Brunskill & Popović, Offline evaluation of online reinforcement learning algorithms, AAAI
    2016). The values of an arm must not depend on what was chosen before: the estimate is for arms
    that do not learn from the choices.

    A log without propensities, or in which some arms could not have been chosen, is refused.

    Args:
        study: the log.
        selector: plain data, see `describe_selector`, with the arms that the study began with.
        seed: of the random numbers that decide which rounds are kept.
    """
    smallest = _smallest_propensity(study)
    other = build_selector(selector)
    rng = seeding.generator(seed, "comparison")
    first_arms = study.description["selector"]["arms"]
    if set(other.arms) != set(first_arms):
        raise StudyError(
            "Both selectors must have the same arms, but the study began with "
            f"{first_arms} and the other selector has {list(other.arms)}."
        )
    told = _told_values(study)
    waiting = _Waiting(other)
    values: list[float] = []
    other_values: list[float] = []
    for event in study.history():
        if event.kind == events.ASKED and event.number in told:
            assert event.propensity is not None
            value = told[event.number]
            values.append(value)
            keep = rng.random() < smallest / event.propensity
            if waiting.matches(event, value, keep=keep):
                other_values.append(value)
        elif event.kind == events.ARM_ADDED:
            other.add_arm(str(event.arm), stationary=bool(event.data.get("stationary")))
        elif event.kind == events.ARM_REMOVED:
            waiting.give_up()
            other.remove_arm(str(event.arm))
    if len(other_values) < LEAST:
        raise StudyError(
            f"A comparison needs at least {LEAST} rounds in which both selectors choose the same "
            f"arm, but only {len(other_values)} of {len(values)} are left: record more rounds, "
            "with propensities farther from 0."
        )
    mean, error = _mean(values)
    other_mean, other_error = _mean(other_values)
    return StudyComparison(
        rounds=len(values),
        mean=mean,
        error=error,
        matched=len(other_values),
        other_mean=other_mean,
        other_error=other_error,
    )


class _Waiting:
    """A selector whose choice waits for a round of the log with the same arm.

    If its choice depends on the round, because of a context or of the arms that are available, it
    chooses anew in every round, from the same state.
    """

    def __init__(self, selector: Selector) -> None:
        self._selector = selector
        self._by_context = "context" in selector.wants
        self._choice: Choice | None = None

    def matches(self, event: Event, value: float, *, keep: bool) -> bool:
        """Return whether the selector chooses the same arm and the round is kept.

        Only then, the selector is told the value.
        """
        selector = self._selector
        before = None
        if self._by_context or "among" in event.data:
            self.give_up()
            before = selector.state_dict()
        choice = self._choice
        if choice is None:
            choice = selector.ask(among=event.data.get("among"), context=event.data.get("context"))
        if keep and choice.arm == event.arm:
            self._choice = None
            selector.tell(choice, value)
            return True
        if before is None:
            self._choice = choice
        else:
            selector.load_state_dict(before)
        return False

    def give_up(self) -> None:
        """Withdraw the choice that waits."""
        if self._choice is not None:
            self._selector.withdraw(self._choice)
            self._choice = None


def _told_values(study: Study) -> dict[int | None, float]:
    """Return the values in the log, by the number of their choice."""
    values = {}
    for event in study.history():
        if event.kind == events.TOLD:
            assert event.value is not None  # a column that this kind has
            values[event.number] = event.value
    return values


def _smallest_propensity(study: Study) -> float:
    """Return the smallest propensity in the log.

    A log that does not allow conclusions about other selectors is refused.
    """
    smallest = math.inf
    arms = len(study.description["selector"]["arms"])
    for event in study.history():
        if event.kind == events.ARM_ADDED:
            arms += 1
        elif event.kind == events.ARM_REMOVED:
            arms -= 1
        elif event.kind == events.ASKED:
            available = len(event.data["among"]) if "among" in event.data else arms
            smallest = min(smallest, _checked_propensity(event, available))
    return smallest


def _checked_propensity(event: Event, available: int) -> float:
    """Return the propensity of a choice among `available` arms, if it was a random choice."""
    if event.propensity is None:
        raise StudyError(
            f"A comparison needs a log with propensities, but choice {event.number} has none: "
            "use a selector that computes them, such as uniform or exp3."
        )
    if available > 1 and event.propensity >= 1:
        raise StudyError(
            "A comparison needs a log in which every arm could be chosen, but choice "
            f"{event.number} was certain ({event.arm!r}): use a selector that chooses at random, "
            "such as uniform or exp3."
        )
    return event.propensity


def _mean(values: list[float]) -> tuple[float, float]:
    """Return the mean and its standard error."""
    mean = math.fsum(values) / len(values)
    squares = math.fsum((value - mean) ** 2 for value in values)
    return mean, math.sqrt(squares / max(len(values) - 1, 1) / len(values))
