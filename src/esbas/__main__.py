"""`python -m esbas`: the command line."""

from esbas.cli import program

if __name__ == "__main__":
    program()
