"""`esbas board FOLDER...`: shows trainings in a browser while they run."""

import webbrowser
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

import tyro

from esbas.errors import MissingExtraError, require


@dataclass(frozen=True)
class Board:
    """Show trainings in a browser, while they run or afterwards, until Ctrl-C. Only this machine can open the page."""

    folders: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER...")]
    """One or more folders that `esbas train` wrote."""
    _: KW_ONLY
    port: int = 8001
    """The port; 0: any that is free."""
    open: bool = False
    """Open the page in the default browser."""
    trust: bool = False
    """Import the modules that the folders name. Imported modules can run any code: docs/safety.md."""

    def run(self) -> None:
        """Run `esbas board` with these options."""
        require(len(self.folders) > 0, "there is a folder to show", "esbas board FOLDER...", folders=[])
        places = [folder.resolve() for folder in self.folders]
        require(len(set(places)) == len(places), "folders are different", folders=[str(folder) for folder in self.folders])
        try:
            from esbas.server import running  # here, because FastAPI is an extra
            from esbas.server.training_routes import create_training_app
        except ImportError as error:
            message = f"esbas board needs FastAPI and uvicorn, but {error.name} is not installed"
            raise MissingExtraError(f"{message}: pip install 'esbas[server]'") from error
        from esbas.server.training_files import watch

        app = create_training_app(watch(self.folders, trust=self.trust))
        with running.listen("127.0.0.1", self.port) as place:
            address = running.address_of(place)
            print(f"Trainings at {address}, for every program on this machine.", flush=True)
            if self.open:
                webbrowser.open(address)
            running.run(app, place)
