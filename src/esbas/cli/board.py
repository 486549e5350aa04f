"""`esbas board FOLDER...`: shows trainings in a browser while they run."""

import webbrowser
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

import tyro

from esbas.errors import MissingExtraError, require


@dataclass(frozen=True)
class Board:
    """Show trainings in a browser, while they run or afterwards, until Ctrl-C.

    Only this machine can open the page.
    """

    folders: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER...")]
    """One or more folders that `esbas train` wrote."""
    _: KW_ONLY
    port: int = 8001
    """The port; 0: any that is free."""
    open: bool = False
    """Open the page in the default browser."""
    trust: bool = False
    """Import the modules that the folders name. They can run any code: docs/safety.md."""

    def run(self) -> None:
        """Run `esbas board` with these options."""
        require(len(self.folders) > 0, "No folder is given: name one, as in esbas board FOLDER.")
        different = {folder.resolve() for folder in self.folders}
        given = ", ".join(repr(str(folder)) for folder in self.folders)
        is_once = len(different) == len(self.folders)
        require(is_once, f"Folders must be different, but got {given}: give each once.")
        try:
            from esbas.studies.server import running  # here, because FastAPI is an extra
            from esbas.studies.server.training_routes import create_training_app
        except ImportError as error:
            problem = f"esbas board needs FastAPI and uvicorn, but {error.name} is not installed"
            raise MissingExtraError(f"{problem}: pip install 'esbas[server]'.") from error
        from esbas.studies.server.training_files import watch

        app = create_training_app(watch(self.folders, trust=self.trust))
        with running.listen("127.0.0.1", self.port) as listening:
            address = running.address_of(listening)
            print(f"Trainings at {address}, for every program on this machine.", flush=True)
            if self.open:
                webbrowser.open(address)
            running.run(app, listening)
