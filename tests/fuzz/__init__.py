"""Fuzzers: hostile input for everything that is read back.

`make fuzz` runs them all; a slice of them is part of the tests.

A target is a function that makes one input from a random generator and tries it. It may raise an
`EsbasError`. Failures are: any other error, a message of more than one line, an input that takes
too long, a process that is started, a file that is written outside of the temporary folder, and a
part that refuses a state but has changed. A hostile state whose types and sizes are right may be
loaded: see `harness.nonsense_allowed`. To add a target, decorate it in a module of this package:

    @target("bytes of a log")
    def log_bytes(rng): ...
"""
