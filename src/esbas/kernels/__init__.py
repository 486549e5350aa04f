"""Whole runs of the experiments, compiled from the same functions that the library's objects call."""
