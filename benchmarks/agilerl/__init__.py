"""AgileRL's evolutionary population on tasks of the control benchmark.

It needs a separate virtual environment: `make agilerl`.
"""
