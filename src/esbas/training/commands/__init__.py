"""The commands `esbas train`, `resume`, `evaluate` and `compare`: a configuration and a function `main` each."""
