"""Modules for use inside of esbas only."""
