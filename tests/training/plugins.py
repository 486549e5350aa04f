"""Learners, a selector and objectives outside the package, for the tests of names such as
`training.plugins:Steady`.
"""

from typing import Any

from esbas import Objective, Pick, Selector, Trajectory
from esbas.learners import Constant


class Steady(Constant):
    """Always takes the same action."""

    def __init__(
        self, name: str, *, action_space: Any, seed: int, action: int = 0, label: str | None = None
    ) -> None:
        super().__init__(name, lambda _: action)
        self.space = action_space
        self.seed = seed
        self.label = label


class Plainest(Constant):
    """Has no options and uses no information about the task."""

    def __init__(self, name: str) -> None:
        super().__init__(name, lambda _: 1)


class Misnamed(Constant):
    def __init__(self, name: str) -> None:
        super().__init__(f"my {name}", lambda _: 1)


class Nameless(Constant):
    def __init__(self) -> None:
        super().__init__("nameless", lambda _: 1)


class Patient(Selector):
    """Changes the arm every few episodes."""

    def __init__(self, arms: Any, *, patience: int = 2, seed: int = 0) -> None:
        super().__init__(arms, seed=seed)
        self.patience = patience

    def pick(self, among: Any, context: Any) -> Pick:
        return Pick(among[self.number // self.patience % len(among)])


class Demanding(Patient):
    def __init__(self, arms: Any, *, needed: int) -> None:
        super().__init__(arms, patience=needed)


def negative_length(trajectory: Trajectory) -> float:
    return -float(len(trajectory))


def brief() -> Objective:
    return Objective(name="brief", function=len, maximize=False)


BRIEF = brief()
