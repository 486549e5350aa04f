"""The program of a worker process: it makes the updates that it is asked for, and ends with its parent."""

from contextlib import suppress
from multiprocessing.connection import Connection

from esbas.errors import describe
from esbas.learners.deep.network_memory import NetworkMemory
from esbas.learners.deep.updating import Outcome, update


def main(file: int) -> None:
    """Answer requests from the connection with this file number."""
    connection = Connection(file)
    with suppress(EOFError, OSError):  # the parent has ended
        networks = [NetworkMemory(spec, file=each) for spec, each in connection.recv()]
        while True:
            place, source, count = connection.recv()
            answer: Outcome | str
            try:
                answer = update(networks[place], source, count)
            except Exception as error:
                answer = describe(error)
            connection.send((place, answer))
