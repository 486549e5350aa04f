"""Runs every benchmark of this folder in turn, or those named on the command line: `python -m benchmarks core`."""

import importlib
import pkgutil
import sys
from pathlib import Path

from esbas.errors import unknown


def main(names: list[str]) -> None:
    # packages need an environment of their own
    found = pkgutil.iter_modules([str(Path(__file__).parent)])
    known = sorted(module.name for module in found if not module.name.startswith("_") and not module.ispkg)
    for name in names or known:
        if name not in known:
            raise SystemExit(str(unknown("benchmark", name, known)))
        print(f"\n== {name}", flush=True)
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main(sys.argv[1:])
