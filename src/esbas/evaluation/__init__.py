"""Off-policy evaluation: the value of a policy from the trajectories of others."""
