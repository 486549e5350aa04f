"""Measurements of speed. See `python -m benchmarks`.

Each module has `main()`, which prints both sides and their ratio from one run.
"""
