"""The negotiation dialogue, compiled: one dialogue, fitted Q iteration, and whole runs of ESBAS."""
