"""Policies of a training: scored, kept in files, and loaded without the environment."""
