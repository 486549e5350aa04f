"""Fuzzers: hostile input for everything that is read back. `make fuzz` runs them all; a slice of them is part of the tests.

A target is a function that makes one input from a random generator and tries it. It may raise an `EsbasError`; anything else, a
message of more than one line, or an input that takes too long is a failure. To add one, decorate it in a module of this package:

    @target("bytes of a log")
    def log_bytes(rng): ...
"""
