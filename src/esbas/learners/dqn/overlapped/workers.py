"""Makes the updates of networks: in this process, or beside the acting in worker processes."""

import json
import os
import signal
import subprocess
import sys
import weakref
from collections.abc import Callable, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, Protocol

from esbas.errors import IsolationError
from esbas.learners.dqn.overlapped.network_memory import NetworkMemory
from esbas.learners.dqn.overlapped.updating import UpdateResult, update

MOST_DEATHS = 3  # of the process that makes one and the same update
_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "from esbas.learners.dqn.overlapped.worker import main; main(int(sys.argv[1]))"
)


class Trainer(Protocol):
    """Makes updates: one at a time for each network."""

    def add(self, network: NetworkMemory) -> None:
        """Prepare for updates of this network."""
        ...

    def start(self, network: NetworkMemory, source: int, count: int) -> None:
        """Start an update, see `updating.update`. Raises an error if it cannot be made."""
        ...

    def wait(self, network: NetworkMemory) -> UpdateResult:
        """Return the result of the update that was started."""
        ...

    def close(self) -> None:
        """Release everything. A later `start` still works."""
        ...


def trainer_for(processes: int) -> Trainer:
    """Return a trainer with this many processes. With 1, it is the calling one."""
    return Workers(processes) if processes > 1 else InProcess()


class InProcess:
    """Makes updates at once."""

    def __init__(self) -> None:
        self._results: dict[NetworkMemory, UpdateResult] = {}

    def add(self, network: NetworkMemory) -> None:
        """Nothing to prepare."""

    def start(self, network: NetworkMemory, source: int, count: int) -> None:
        self._results[network] = update(network, source, count)

    def wait(self, network: NetworkMemory) -> UpdateResult:
        return self._results.pop(network)

    def close(self) -> None:
        """Nothing to release."""


class Workers:
    """Makes updates in processes that share the networks' memory.

    Each network belongs to one process, and all processes have about the same amount of work. A
    process that is killed is started again and repeats its unfinished updates: their inputs are
    unchanged, so the results are the same.
    """

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self._networks: list[NetworkMemory] = []
        self._owners: dict[NetworkMemory, _Worker] = {}

    def add(self, network: NetworkMemory) -> None:
        self.close()
        self._networks.append(network)
        self._owners = {}

    def start(self, network: NetworkMemory, source: int, count: int) -> None:
        if not self._owners:
            self._distribute()
        self._owners[network].start(network, source, count)

    def wait(self, network: NetworkMemory) -> UpdateResult:
        return self._owners[network].wait(network)

    def close(self) -> None:
        for worker in set(self._owners.values()):
            worker.stop()

    def _distribute(self) -> None:
        """Distribute the networks: the largest first, each to the process with the least work."""
        count = min(self._processes, len(self._networks))
        shares: list[list[NetworkMemory]] = [[] for _ in range(count)]
        for network in sorted(self._networks, key=_work, reverse=True):
            least = min(shares, key=_total_work)
            least.append(network)
        for share in shares:
            worker = _Worker(share)
            for network in share:
                self._owners[network] = worker


def _work(network: NetworkMemory) -> int:
    return network.spec.layout.operations * network.spec.batch_size


def _total_work(networks: Sequence[NetworkMemory]) -> int:
    return sum(_work(network) for network in networks)


class _Worker:
    """One process: started when there is something to do, and again if it was killed."""

    def __init__(self, networks: Sequence[NetworkMemory]) -> None:
        self._networks = list(networks)
        # Unfinished updates, in order: source and count, by the index of the network.
        self._jobs: dict[int, tuple[int, int]] = {}
        self._answers: dict[int, UpdateResult | str] = {}  # a text is an error
        self._deaths = 0  # since the last answer
        self._connection: Connection | None = None
        self._end: Callable[[], Any] = lambda: None

    def start(self, network: NetworkMemory, source: int, count: int) -> None:
        index = self._networks.index(network)
        self._jobs[index] = source, count
        if self._connection is None:
            self._launch()
        else:
            self._send(self._connection, (index, source, count))

    def wait(self, network: NetworkMemory) -> UpdateResult:
        index = self._networks.index(network)
        while index not in self._answers:
            self._receive()
        answer = self._answers.pop(index)
        if isinstance(answer, str):
            raise IsolationError(
                "A process that trains must finish its updates, "
                f"but raised {answer}: see its output."
            )
        return answer

    def stop(self) -> None:
        """End the process. The next one repeats unfinished updates."""
        self._end()
        self._connection = None

    def _receive(self) -> None:
        if self._connection is None:
            self._launch()
        assert self._connection is not None
        try:
            index, answer = self._connection.recv()
        except (EOFError, OSError):
            self.stop()
            self._deaths += 1
            if self._deaths >= MOST_DEATHS:
                self._deaths = 0
                index = next(iter(self._jobs))  # the oldest one, which was in progress
                del self._jobs[index]
                self._answers[index] = (
                    f"nothing, and was killed {MOST_DEATHS} times in the same one"
                )
        except BaseException:  # Ctrl-C or a time limit: half of an answer may have been read
            self.stop()
            raise
        else:
            self._deaths = 0
            self._answers[index] = answer
            del self._jobs[index]

    def _launch(self) -> None:
        """Start a process and give it all unfinished updates."""
        ours, theirs = Pipe()
        files = [network.file for network in self._networks]
        command = [sys.executable, "-c", _PROGRAM, str(theirs.fileno()), json.dumps(sys.path)]
        # Ctrl-C is for the process that acts.
        former = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process = subprocess.Popen(  # noqa: S603
                command, pass_fds=[theirs.fileno(), *files], stdin=subprocess.DEVNULL
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, former)
            theirs.close()
        self._connection = ours
        self._end = weakref.finalize(self, _end, process, ours, os.getpid())
        self._send(ours, [(network.spec, network.file) for network in self._networks])
        for index, (source, count) in self._jobs.items():
            self._send(ours, (index, source, count))

    def _send(self, connection: Connection, message: object) -> None:
        try:
            connection.send(message)
        except OSError:
            pass  # the process has died, which `_receive` will notice
        except BaseException:
            self.stop()
            raise


def _end(process: subprocess.Popen[bytes], connection: Connection, owner: int) -> None:
    """Kill the process, unless this is a fork of its parent."""
    connection.close()
    if os.getpid() == owner:
        process.kill()
        process.wait()
