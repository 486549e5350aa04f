"""`python -m esbas`: the command line."""

import sys

from esbas.cli import main

if __name__ == "__main__":
    sys.exit(main())
