"""Run every benchmark of this folder in turn, or named ones: `python -m benchmarks core`."""

import importlib
import pkgutil
import sys
from pathlib import Path

from esbas.errors import unknown


def main(names: list[str]) -> None:
    found = pkgutil.iter_modules([str(Path(__file__).parent)])
    modules = [module.name for module in found if not module.ispkg]  # packages need their own .venv
    known = sorted(name for name in modules if not name.startswith("_"))
    for name in names or known:
        if name not in known:
            raise SystemExit(str(unknown("benchmark", name, known)))
        print(f"\n== {name}", flush=True)
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main(sys.argv[1:])
