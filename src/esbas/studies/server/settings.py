"""Limits of the service."""

from dataclasses import dataclass, fields

from esbas.errors import require


@dataclass(frozen=True, kw_only=True)
class ServiceLimits:
    """Limits of the service. All must be positive."""

    body: int = 1_000_000
    """Bytes of the body of a request."""
    body_seconds: float = 30.0
    """Seconds until the body of a request has arrived."""
    rate: float = 5000.0
    """Requests per second and client (token, or address if there are no tokens)."""
    studies: int = 1000
    """Studies in the store; existing ones can be used also if there are more."""
    open_studies: int = 100
    """Studies that are kept in memory, each with a connection to the store."""
    slow_requests: int = 4
    """Requests at a time that may take a while: pages of the log, descriptions, streams."""
    explanations: int = 2
    """Explanations of earlier choices at a time."""
    streams: int = 100
    """Streams of events at a time."""
    stream_seconds: float = 300.0
    """Seconds until a stream ends. Clients then continue with the header Last-Event-ID."""
    poll_seconds: float = 0.25
    """Seconds between two reads of the log of a study that has streams."""
    page: int = 1000
    """Events in an answer."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            require(value > 0, f"`{field.name}` must be greater than 0, but got {value!r}.")
