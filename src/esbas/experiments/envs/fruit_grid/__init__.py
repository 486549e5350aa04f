"""Fruit collection (Section 5.1 of the paper): maps, environment and pictures."""
