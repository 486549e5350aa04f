"""A client of the service of studies, with Python's standard library alone: `Client(url).study(name)`."""

from esbas.client.client import Client
from esbas.client.remote_study import RemoteStudy

__all__ = ["Client", "RemoteStudy"]
