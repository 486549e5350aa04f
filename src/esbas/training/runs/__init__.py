"""The runs of a training: what to run, one run with its checkpoints and logs, and the runs of several seeds."""
