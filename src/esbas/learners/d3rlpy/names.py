"""The supported algorithms of d3rlpy and the names of their configurations.

They learn off-policy from single transitions. Not supported: `rebrac` needs the next action,
`cal_ql` the return, `prdc` all data at once, and `bc` does not use rewards.
"""

DISCRETE = {
    "dqn": "DQNConfig",
    "double_dqn": "DoubleDQNConfig",
    "nfq": "NFQConfig",
    "sac": "DiscreteSACConfig",
    "bcq": "DiscreteBCQConfig",
    "cql": "DiscreteCQLConfig",
    "discrete_sac": "DiscreteSACConfig",
    "discrete_bcq": "DiscreteBCQConfig",
    "discrete_cql": "DiscreteCQLConfig",
}
CONTINUOUS = {
    "ddpg": "DDPGConfig",
    "td3": "TD3Config",
    "td3_plus_bc": "TD3PlusBCConfig",
    "sac": "SACConfig",
    "cql": "CQLConfig",
    "iql": "IQLConfig",
    "awac": "AWACConfig",
    "crr": "CRRConfig",
    "bcq": "BCQConfig",
    "bear": "BEARConfig",
    "plas": "PLASConfig",
    "plas_with_perturbation": "PLASWithPerturbationConfig",
}
