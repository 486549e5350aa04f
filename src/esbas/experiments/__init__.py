"""Experiments: one folder each, with a configuration and `main(config)`."""
