"""TensorBoard logs of a run: `tensorboard --logdir FOLDER`."""

import os
import re
import socket
import time
from collections.abc import Mapping

from esbas._internal.files import file_errors
from esbas.errors import MissingExtraError
from esbas.loop import EpisodeRecord
from esbas.training.callbacks import Callback, Evaluation, RunInfo
from esbas.training.display.status import Status

try:
    from tensorboard.compat.proto.event_pb2 import Event, SessionLog
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.record_writer import RecordWriter
except ImportError as error:
    message = "TensorBoard logs need TensorBoard, but it is not installed"
    install = "pip install tensorboard (part of 'esbas[deep]')"
    remedy = f"{install}, or turn these logs off (--no-tensorboard, tensorboard=False)"
    raise MissingExtraError(f"{message}: {remedy}.") from error


class TensorBoardWriter(Callback):
    """Writes scalars of one run over its steps, several times per second.

    The file episodes.csv has every episode.
    """

    def __init__(self) -> None:
        self._episode: dict[str, float] = {}  # the last one, until it is written

    def on_start(self, run: RunInfo) -> None:
        folder = run.folder / "tensorboard"
        unique = f"{time.time():010.0f}.{socket.gethostname()}.{os.getpid()}"
        self._path = folder / f"events.out.tfevents.{unique}"
        with file_errors(self._path):
            folder.mkdir(exist_ok=True)
            self._file = self._path.open("ab")
        # It writes in this thread, so that an error on disk is an error of the run.
        self._writer = RecordWriter(self._file)
        self._write(Event(file_version="brain.Event:2"))
        if run.steps:  # TensorBoard hides what an interrupted part of the run logged after them
            self._write(Event(step=run.steps + 1, session_log=SessionLog(status=SessionLog.START)))

    def on_episode(self, record: EpisodeRecord, *, steps: int) -> None:
        del steps
        self._episode = {"episode/value": record.value, "episode/length": record.length}

    def on_status(self, status: Status) -> None:
        scalars = {
            "run/steps per second": status.speed,
            "run/faults": sum(learner.faults for learner in status.learners),
        }
        for learner in status.learners:
            for key, value in learner.metrics.items():
                scalars[f"{_tag(key)}/{_tag(learner.name)}"] = value
        # Within an episode, these would be at the wrong step.
        if self._episode and not status.current:
            scalars |= self._episode
            scalars["run/recent value"] = status.value
            for learner in status.learners:
                scalars[f"share of control/{_tag(learner.name)}"] = learner.share
                if learner.episodes:
                    scalars[f"recent value in control/{_tag(learner.name)}"] = learner.value
            self._episode = {}
        self._write_scalars(scalars, status.steps)

    def on_evaluation(self, evaluation: Evaluation) -> None:
        mean = sum(evaluation.values) / max(len(evaluation.values), 1)
        self._write_scalars({f"evaluation/{_tag(evaluation.learner)}": mean}, evaluation.steps)

    def on_end(self, *, finished: bool) -> None:
        del finished
        with file_errors(self._path):
            self._file.close()

    def _write_scalars(self, scalars: Mapping[str, float], step: int) -> None:
        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in scalars.items()]
        self._write(Event(step=step, summary=Summary(value=values)))

    def _write(self, event: Event) -> None:
        event.wall_time = time.time()
        with file_errors(self._path):
            self._writer.write(event.SerializeToString())
            self._writer.flush()


def _tag(name: str) -> str:
    """Return a name without slashes, which would create groups."""
    return re.sub(r"[/\\]", "-", name)
