"""What is computed from the logs of a training: tables, figures, reports, and recordings of episodes."""
