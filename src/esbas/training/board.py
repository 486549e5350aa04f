"""What TensorBoard shows of a run, as it goes: `tensorboard --logdir FOLDER`."""

import re
from pathlib import Path
from types import TracebackType

from esbas.errors import MissingExtraError
from esbas.runner import EpisodeRecord
from esbas.training.status import Status


class Board:
    """Scalars of one run, over its steps; a context manager.

    Args:
        folder: for the event files.
        steps: taken before: what an earlier, interrupted part of the run logged behind them is hidden.
    """

    def __init__(self, folder: Path, *, steps: int) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            told = "TensorBoard logs need PyTorch and TensorBoard, but they are not installed"
            raise MissingExtraError(f"{told}: pip install 'esbas[deep]', or --no-tensorboard") from error
        self._writer = SummaryWriter(str(folder), purge_step=steps + 1 if steps else None)

    def add(self, record: EpisodeRecord, status: Status) -> None:
        """An episode."""
        scalars = {"episode/value": record.value, "episode/length": record.length, "run/recent value": status.value}
        scalars |= {"run/steps per second": status.speed, "run/faults": sum(member.faults for member in status.members)}
        for member in status.members:
            scalars[f"share of control/{_tag(member.name)}"] = member.share
        scalars[f"value in control/{_tag(record.arm)}"] = record.value
        for name, value in scalars.items():
            self._writer.add_scalar(name, value, status.steps)

    def flush(self) -> None:
        """Let others see what was added."""
        self._writer.flush()

    def __enter__(self) -> "Board":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._writer.close()


def _tag(name: str) -> str:
    """A name without the slashes that would make groups of it."""
    return re.sub(r"[/\\]", "-", name)
