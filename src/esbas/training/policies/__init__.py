"""Policies of a training: scored in episodes from which nobody learns, kept in files, and loaded without the task."""
