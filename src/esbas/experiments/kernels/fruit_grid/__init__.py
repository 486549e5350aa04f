"""The fruit collection experiment, compiled: whole runs, and the random numbers for them."""
