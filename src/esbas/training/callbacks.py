"""Callbacks: objects that are told what happens in a run, such as loggers."""

from dataclasses import dataclass
from pathlib import Path

from esbas.runner import EpisodeRecord
from esbas.training.display.status import Status


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
    """Is told what happens in a run. Override the methods that you need; results do not depend on callbacks."""

    def on_start(self, run: RunInfo) -> None:
        """The run starts or continues. TensorBoard, for example, hides what was logged after `run.steps`."""

    def on_episode(self, record: EpisodeRecord, *, steps: int) -> None:
        """An episode has ended; `steps` is the number of environment steps after it."""

    def on_status(self, status: Status) -> None:
        """Called several times per second, and at the end."""

    def on_evaluation(self, evaluation: Evaluation) -> None:
        """The greedy policy of a learner has been evaluated."""

    def on_end(self, *, finished: bool) -> None:
        """The run has ended, in any way; `finished` says whether it has used up its budget."""
