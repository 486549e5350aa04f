"""Tables, figures and reports of a training, and recordings of episodes."""
