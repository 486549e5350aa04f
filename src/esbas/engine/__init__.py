"""How many runs go at once."""

from esbas.engine.local import Finished, run_parts

__all__ = ["Finished", "run_parts"]
