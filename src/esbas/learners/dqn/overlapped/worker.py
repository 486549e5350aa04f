"""The program of a worker process: it makes updates on request, and ends with its parent."""

from contextlib import suppress
from multiprocessing.connection import Connection

from esbas.errors import describe
from esbas.learners.dqn.overlapped.network_memory import NetworkMemory
from esbas.learners.dqn.overlapped.updating import UpdateResult, update


def main(file: int) -> None:
    """Answer requests from the connection with this file number."""
    connection = Connection(file)
    with suppress(EOFError, OSError):  # the parent has ended
        networks = [NetworkMemory(spec, file=each) for spec, each in connection.recv()]
        while True:
            index, source, count = connection.recv()
            answer: UpdateResult | str
            try:
                answer = update(networks[index], source, count)
            except Exception as error:
                answer = describe(error)
            connection.send((index, answer))
