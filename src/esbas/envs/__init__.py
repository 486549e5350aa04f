"""Environments of the paper's experiments."""
