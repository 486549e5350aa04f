"""Learners with a table of action values."""
