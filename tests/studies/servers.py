"""A PostgreSQL of its own for the tests, in a temporary folder, on a socket.

`python tests/store/servers.py COMMAND...` runs a command with its URL in the variable
ESBAS_POSTGRESQL.
"""

import contextlib
import getpass
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

OWNER = "postgres"  # the server refuses to run as root


def find_programs() -> Path:
    """The folder with initdb and pg_ctl. Debian keeps them outside of PATH."""
    found = shutil.which("initdb")
    folders = (
        [Path(found).resolve().parent]
        if found
        else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    )
    if not folders:
        raise SystemExit(
            "the tests of services need PostgreSQL's initdb, but there is none: "
            "make test-services installs it"
        )
    return folders[0]


class Server:
    """A running server. `url` is that of its database.

    Without `sync` it is fast, but a crash of the machine loses data.
    """

    def __init__(self, folder: Path, *, sync: bool) -> None:
        self._sync = sync
        root = os.geteuid() == 0
        self._user = OWNER if root else None
        if root:
            shutil.chown(folder, OWNER)
        self._programs = find_programs()
        self._folder = folder
        self._call(
            "initdb", "--auth=trust", "--no-sync", "--encoding=UTF8", "--pgdata", f"{folder}/data"
        )
        self.start()
        user = OWNER if root else getpass.getuser()
        self.url = f"postgresql://{user}@/postgres?host={quote(str(folder), safe='')}"

    def start(self) -> None:
        options = (
            f"-k '{self._folder}' -c listen_addresses='' -c fsync={'on' if self._sync else 'off'}"
        )
        self._call(
            "pg_ctl",
            "-w",
            "-D",
            f"{self._folder}/data",
            "-o",
            options,
            "-l",
            f"{self._folder}/log",
            "start",
        )

    def stop(self) -> None:
        """End the server at once, as a crash would: it recovers when it is started again."""
        self._call("pg_ctl", "-w", "-D", f"{self._folder}/data", "-m", "immediate", "stop")

    def _call(self, program: str, *words: str) -> None:
        command = [str(self._programs / program), *words]  # no pipe: the server would keep it open
        done = subprocess.run(
            command, user=self._user, cwd="/", stdout=subprocess.DEVNULL, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed with code {done.returncode}")


@contextlib.contextmanager
def postgresql(*, sync: bool) -> Iterator[Server]:
    """A server that is ended and removed after the block."""
    # A short path: sockets allow about 100 characters
    with tempfile.TemporaryDirectory(prefix="esbas-", dir="/tmp") as folder:
        server = Server(Path(folder), sync=sync)
        try:
            yield server
        finally:
            server.stop()


if __name__ == "__main__":
    with postgresql(sync=True) as running:
        sys.exit(
            subprocess.run(
                sys.argv[1:], env=os.environ | {"ESBAS_POSTGRESQL": running.url}, check=False
            ).returncode
        )
