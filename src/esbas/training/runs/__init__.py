"""The runs of a training: their plan, one run with its checkpoints and logs, several seeds."""
