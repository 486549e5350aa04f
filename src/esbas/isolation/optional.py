"""The optional members of learners and policies, which isolation forwards."""

LEARNER_METHODS = "learn", "step", "greedy_policy", "state_dict", "load_state_dict"
LEARNER_ATTRIBUTES = "observation_space", "action_space", "time_limit"
POLICY_METHODS = "start", "act_with_log_prob", "log_probs"
