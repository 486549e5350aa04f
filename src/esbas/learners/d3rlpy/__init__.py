"""Algorithms of d3rlpy as learners of a portfolio. Only `names` can be imported without d3rlpy."""
