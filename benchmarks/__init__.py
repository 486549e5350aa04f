"""Measurements of speed: each module has `main()`, prints both sides and their ratio from one run. See `python -m benchmarks`."""
