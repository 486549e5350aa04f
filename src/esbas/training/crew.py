"""The runs of several seeds, one after the other or in processes of their own; Ctrl-C ends them between two episodes, saved."""

import multiprocessing
import queue
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from esbas.errors import EsbasError, TrainingError
from esbas.training.plan import Plan
from esbas.training.single import Keeping, is_finished, train_seed
from esbas.training.status import Status

PATIENCE = 0.2  # seconds between two looks at the processes
_STOPS = signal.SIGINT, signal.SIGTERM


class Interrupt:
    """Turns the first Ctrl-C, or a SIGTERM, into a wish to stop, granted after the episode; the second one interrupts at once."""

    def __init__(self) -> None:
        self.wished = False
        self._former: dict[int, Any] = {}

    def __enter__(self) -> "Interrupt":
        self._main = threading.current_thread() is threading.main_thread()  # elsewhere there are no signals
        for number in _STOPS if self._main else ():
            self._former[number] = signal.signal(number, self._wish)
        return self

    def _wish(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if self.wished:
            raise KeyboardInterrupt
        self.wished = True
        print("esbas: stopping after this episode; Ctrl-C again stops at once", file=sys.stderr)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)


def train_all(
    plan: Plan, seeds: Sequence[int], folder: Path, *, jobs: int, keeping: Keeping, tell: Callable[[Status], None]
) -> None:
    """Bring the runs of all seeds to their ends; raises KeyboardInterrupt if somebody stopped them on the way."""
    waiting = [seed for seed in seeds if not is_finished(folder, seed)]
    with Interrupt() as interrupt:
        if jobs == 1 or len(waiting) <= 1:
            for seed in waiting:
                train_seed(plan, seed, folder, keeping=keeping, tell=tell, stop=lambda: interrupt.wished)
                if interrupt.wished:
                    break
        else:
            _in_processes(plan, waiting, folder, jobs, keeping, tell, lambda: interrupt.wished)
        if interrupt.wished and not all(is_finished(folder, seed) for seed in seeds):
            raise KeyboardInterrupt


def _in_processes(
    plan: Plan,
    waiting: list[int],
    folder: Path,
    jobs: int,
    keeping: Keeping,
    tell: Callable[[Status], None],
    wished: Callable[[], bool],
) -> None:
    context = multiprocessing.get_context("spawn")
    news: Any = context.Queue()
    stop = context.Event()
    running: dict[int, BaseProcess] = {}
    failures: dict[int, str] = {}
    try:
        while waiting or running:
            if wished() or failures:
                stop.set()
                waiting.clear()
            while waiting and len(running) < jobs:
                seed = waiting.pop(0)
                running[seed] = context.Process(target=_child, args=(plan, seed, folder, keeping, news, stop))
                running[seed].start()
            for message in _arrived(news):
                if isinstance(message, Status):
                    tell(message)
                else:
                    failures[message[0]] = message[1]
            for seed in [seed for seed, process in running.items() if not process.is_alive()]:
                process = running.pop(seed)
                process.join()
                if process.exitcode:
                    failures.setdefault(seed, f"its process ended with exit code {process.exitcode}")
    finally:
        for process in running.values():  # after an error, or a second Ctrl-C: checkpoints stand
            process.kill()
    for seed, why in failures.items():
        raise TrainingError(f"the run of seed {seed} must go on to its end, but {why}: `esbas resume {folder}` continues it")


def _arrived(news: Any) -> list[Any]:
    """What the processes told since the last look, waiting a little for the first."""
    messages = []
    try:
        messages.append(news.get(timeout=PATIENCE))
        while True:
            messages.append(news.get_nowait())
    except queue.Empty:
        return messages


def _child(plan: Plan, seed: int, folder: Path, keeping: Keeping, news: Any, stop: Any) -> None:
    for number in _STOPS:  # Ctrl-C reaches every process of a terminal; the parent says when to stop
        signal.signal(number, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None
    try:
        train_seed(plan, seed, folder, keeping=keeping, tell=news.put, stop=lambda: stop.is_set() or not parent.is_alive())
    except EsbasError as error:
        news.put((seed, str(error)))
    except Exception as error:
        news.put((seed, f"{type(error).__name__}: {error}"))
