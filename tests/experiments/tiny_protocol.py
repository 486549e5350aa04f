"""A protocol that takes a second, for tests of the control benchmark."""

TEXT = """
bins = 10
seeds = 3
block = 2
resamples = 100
level = 0.05
commit_share = 0.5
random_steps = 400
recommended = "kalman-thompson"
chance = "uniform"

[selectors]
kalman-thompson = "kalman-thompson"
uniform = "uniform"
ssbas = "ssbas"

[quick]
seeds = 2
share_of_steps = 0.5
tasks = ["Rooms"]
methods = ["kalman-thompson"]

[portfolio.table]
default = "rate 0.5"
bad = "rate 0.001"
common = { algorithm = "tabular_q", epsilon = 0.2 }
[[portfolio.table.learner]]
name = "rate {learning_rate}"
grid = { learning_rate = [0.5, 0.1, 0.001] }

[portfolio.network]
default = "a"
[portfolio.network.common]
algorithm = "dqn"
hidden = [8]
batch_size = 8
learning_starts = 50
train_freq = 8
epsilon = [1.0, 0.1, 200]
[[portfolio.network.learner]]
name = "a"
learning_rate = 0.001
[[portfolio.network.learner]]
name = "b"
learning_rate = 0.01

[[task]]
name = "Rooms"
kind = "confirmatory"
env = "esbas.experiments.envs:FourRooms(max_episode_steps=50)"
steps = 1_500
threshold = -1.0
final_episodes = 3
portfolio = "table"

[[task]]
name = "Shop"
kind = "development"
env = "esbas.experiments.envs:Inventory"
steps = 600
final_episodes = 2
portfolio = "table"

[[task]]
name = "Missing"
kind = "ablation"
env = "no_such_package:Task-v0"
steps = 100
seeds = 30
final_episodes = 1
portfolio = "table"

[[task]]
name = "Pole"
kind = "ablation"
env = "CartPole-v1"
steps = 300
final_episodes = 1
portfolio = "network"
methods = ["kalman-thompson", "uniform", "alone", "fixed"]
share_data = false
evaluate_all = true
about = "learners that do not share their data"
"""
