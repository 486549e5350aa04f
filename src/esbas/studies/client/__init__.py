"""A client of the service of studies, made with Python's standard library alone.

`Client(url).study(name)` returns a study of the service.
"""

from esbas.studies.client.client import Client
from esbas.studies.client.remote_study import RemoteStudy

__all__ = ["Client", "RemoteStudy"]
