"""How many runs go at once."""

from esbas.engine.local import run_parts

__all__ = ["run_parts"]
