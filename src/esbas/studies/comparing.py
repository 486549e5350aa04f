"""What another selector would have achieved, estimated from the log of a study."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from esbas import seeding
from esbas.errors import StudyError
from esbas.selectors import Choice, Selector
from esbas.store import events
from esbas.store.description import build_selector
from esbas.store.events import Event
from esbas.store.study import Study

LEAST = 30  # rounds that both must agree on: an estimate from fewer says nothing


@dataclass(frozen=True)
class Comparison:
    """The mean value of the rounds in a log, and an estimate of what another selector achieves in `matched` rounds."""

    rounds: int  # of the log that have a value
    mean: float
    error: float  # standard error of the mean
    matched: int  # rounds in which the other selector chose the same arm, and which were kept
    other_mean: float
    other_error: float


def compare(study: Study, selector: Mapping[str, Any], *, seed: int = 0) -> Comparison:
    """Estimate the mean value of another selector from a log, by rejection sampling.

    The other selector goes through the log. A round in which it chooses the arm of the log is kept with probability c / p, where
    p is the recorded propensity of the arm, and c the smallest one in the log; the selector is told the values of these rounds
    alone. So every arm is kept with the same probability c, and the kept rounds are a run of the other selector, but shorter
    (Mandel, Liu, Brunskill & Popović, Offline evaluation of online reinforcement learning algorithms, AAAI 2016). The values of
    an arm must not depend on what was chosen before: the estimate is for arms that do not learn from the choices.

    A log without propensities, or in which some arms could not have been chosen, is refused.

    Args:
        study: the log.
        selector: plain data, see `describe_selector`, with the arms that the study began with.
        seed: of the random numbers that decide which rounds are kept.
    """
    kept_if = _smallest_propensity(study)
    other, rng = build_selector(selector), seeding.generator(seed, "comparison")
    if set(other.arms) != set(study.description["selector"]["arms"]):
        begun = study.description["selector"]["arms"]
        raise StudyError(f"both selectors must have the same arms, but got {list(other.arms)} and {begun}: change them")
    told = {event.number: event.value for event in study.history() if event.kind == events.TOLD}
    waiting = _Waiting(other)
    values: list[float] = []
    others: list[float] = []
    for event in study.history():
        if event.kind == events.ASKED and event.number in told:
            value = float(told[event.number] or 0.0)
            values.append(value)
            assert event.propensity is not None
            if waiting.matches(event, value, keep=rng.random() < kept_if / event.propensity):
                others.append(value)
        elif event.kind == events.ARM_ADDED:
            other.add_arm(str(event.arm), stationary=bool(event.data.get("stationary")))
        elif event.kind == events.ARM_REMOVED:
            waiting.give_up()
            other.remove_arm(str(event.arm))
    if len(others) < LEAST:
        rule = f"at least {LEAST} rounds must be left in which both selectors choose the same arm"
        raise StudyError(f"{rule}, but {len(others)} of {len(values)} are: record more rounds, with propensities farther from 0")
    return Comparison(len(values), *_mean(values), len(others), *_mean(others))


class _Waiting:
    """A selector whose choice waits for a round of the log with the same arm.

    If its choice depends on the round, because of a context or of the arms that are available, it chooses anew in every round,
    from the same state.
    """

    def __init__(self, selector: Selector) -> None:
        self._selector = selector
        self._by_context = "context" in selector.wants
        self._choice: Choice | None = None

    def matches(self, event: Event, value: float, *, keep: bool) -> bool:
        """Whether the selector chooses the same arm and the round is kept; only then it is told the value."""
        selector, before = self._selector, None
        if self._by_context or "among" in event.data:
            self.give_up()
            before = selector.state_dict()
        choice = self._choice or selector.ask(among=event.data.get("among"), context=event.data.get("context"))
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


def _smallest_propensity(study: Study) -> float:
    """The smallest propensity in the log. Refuses logs from which nothing about other selectors follows."""
    smallest, arms = math.inf, len(study.description["selector"]["arms"])
    for event in study.history():
        arms += (event.kind == events.ARM_ADDED) - (event.kind == events.ARM_REMOVED)
        if event.kind != events.ASKED:
            continue
        if event.propensity is None:
            raise StudyError(
                f"a log must have propensities to be compared with another selector, but choice {event.number} has none: "
                "use a selector that computes them, such as uniform or exp3"
            )
        available = len(event.data["among"]) if "among" in event.data else arms
        if available > 1 and event.propensity >= 1:
            raise StudyError(
                f"every arm must have had a chance for a comparison, but choice {event.number} was certain ({event.arm!r}): "
                "use a selector that chooses at random, such as uniform or exp3"
            )
        smallest = min(smallest, event.propensity)
    return smallest


def _mean(values: list[float]) -> tuple[float, float]:
    """The mean and its standard error."""
    mean = math.fsum(values) / len(values)
    squares = math.fsum((value - mean) ** 2 for value in values)
    return mean, math.sqrt(squares / max(len(values) - 1, 1) / len(values))
