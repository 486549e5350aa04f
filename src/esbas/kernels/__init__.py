"""Whole runs of the paper's experiments, compiled from the same plain functions that the objects call."""
