"""Deep Q-learning in PyTorch, and the replay memory that deep learners share."""
