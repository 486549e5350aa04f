"""Off-policy algorithms of Stable-Baselines3 and sb3-contrib as members of a portfolio."""
