"""Whole runs of the experiments, compiled from the functions that the library's objects call."""
