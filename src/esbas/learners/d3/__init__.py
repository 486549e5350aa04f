"""Algorithms of d3rlpy as members of a portfolio. Only `names` can be imported without d3rlpy."""
