"""`esbas serve URL`: serves the studies of a store over HTTP."""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from esbas.cli.study.arguments import Url
from esbas.errors import MissingExtraError, ServiceError
from esbas.studies.server.settings import ServiceLimits
from esbas.studies.server.tokens import TokenFile


@dataclass(frozen=True)
class Serve:
    """Serve the studies of a store over HTTP, until Ctrl-C.

    docs/service.md describes the requests and the tokens.
    """

    url: Url
    """sqlite:///FILE, the path of a file, or postgresql://user:password@host/database. The store is
    created if there is none."""
    _: KW_ONLY
    host: str = "127.0.0.1"
    """The address to listen at. Addresses that other machines can reach need --token-file."""
    port: int = 8000
    """The port; 0: any that is free."""
    token_file: Path | None = None
    """TOML with the tokens of the clients. Default: programs on this machine need none."""
    rate: float = ServiceLimits.rate
    """Requests per second and client."""
    max_body: int = ServiceLimits.body
    """Bytes of the body of a request."""
    trust: bool = False
    """Import the modules that the studies in the store name. They can run any code:
    docs/safety.md."""

    def run(self) -> None:
        """Run `esbas serve` with these options."""
        try:
            from esbas.studies.server import running  # here, because FastAPI is an extra
            from esbas.studies.server.app import create_app
            from esbas.studies.server.guard import is_loopback
        except ImportError as error:
            problem = f"esbas serve needs FastAPI and uvicorn, but {error.name} is not installed"
            raise MissingExtraError(f"{problem}: pip install 'esbas[server]'.") from error
        if self.token_file is None and not is_loopback(self.host):
            problem = f"Other machines can reach {self.host!r}, but there are no tokens"
            remedy = "add --token-file, or use --host 127.0.0.1"
            raise ServiceError(f"{problem}: {remedy}.")
        limits = ServiceLimits(rate=self.rate, body=self.max_body)
        tokens = None if self.token_file is None else TokenFile(self.token_file)
        with running.listen(self.host, self.port) as listening:
            app = create_app(self.url, tokens=tokens, limits=limits, trust=self.trust)
            clients = "every program on this machine, without tokens"
            if tokens is not None:
                clients = f"{len(tokens.current())} tokens"
            store = app.state.service.studies.store.url
            address = running.address_of(listening)
            print(f"Studies in {store} at {address}, for {clients}.", flush=True)
            running.run(app, listening)
