"""What TensorBoard shows of a run, as it goes: `tensorboard --logdir FOLDER`."""

import re
import time
from pathlib import Path
from types import TracebackType

from esbas.errors import MissingExtraError
from esbas.runner import EpisodeRecord
from esbas.training.status import Status

try:
    from tensorboard.compat.proto.event_pb2 import Event, SessionLog
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter
except ImportError as error:
    told = "TensorBoard logs need TensorBoard, but it is not installed"
    raise MissingExtraError(f"{told}: pip install 'esbas[deep]', or --no-tensorboard") from error


class Board:
    """Scalars of one run over its steps, a few times per second: every episode is in episodes.csv. A context manager.

    Args:
        folder: for the event files.
        steps: taken before: what an earlier, interrupted part of the run logged behind them is hidden.
    """

    def __init__(self, folder: Path, *, steps: int) -> None:
        self._writer = EventFileWriter(str(folder))
        if steps:
            self._write(Event(step=steps + 1, session_log=SessionLog(status=SessionLog.START)))

    def add(self, record: EpisodeRecord, status: Status) -> None:
        """How the run is doing after this episode."""
        scalars = {"episode/value": record.value, "episode/length": record.length, "run/recent value": status.value}
        scalars |= {"run/steps per second": status.speed, "run/faults": sum(member.faults for member in status.members)}
        for member in status.members:
            scalars[f"share of control/{_tag(member.name)}"] = member.share
            if member.episodes:
                scalars[f"recent value in control/{_tag(member.name)}"] = member.value
        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in scalars.items()]
        self._write(Event(step=status.steps, summary=Summary(value=values)))

    def _write(self, event: Event) -> None:
        event.wall_time = time.time()
        self._writer.add_event(event)

    def __enter__(self) -> "Board":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._writer.close()


def _tag(name: str) -> str:
    """A name without the slashes that would make groups of it."""
    return re.sub(r"[/\\]", "-", name)
