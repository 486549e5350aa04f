"""An evolutionary population of AgileRL's DQNs.

It is trained within a budget of environment steps that includes its evaluations.
"""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import torch
from agilerl.algorithms import DQN
from agilerl.components import ReplayBuffer
from agilerl.components.data import Transition, transition_to_tensordict
from agilerl.hpo.mutation import Mutations
from agilerl.hpo.tournament import TournamentSelection
from agilerl.models.hpo import MutationProbabilities, TournamentSelectionSpec
from agilerl.modules import EvolvableMLP
from agilerl.vector import DummyVecEnv
from gymnasium import spaces

from esbas import seeding

AGENTS = 6
GENERATIONS = 10
"""At most, since evaluations also take steps.

Before the next selection, each agent trains for the 1 / (AGENTS * GENERATIONS)th part of the
budget, then for the rest of its episode.
"""
# Defaults of this package's DQN, for options that the protocol leaves out.
DEFAULTS = {"gamma": 0.99, "double": True}


class CountedEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Counts the steps of all agents, in training and evaluation, and records all episodes.

    Episode number i starts from the same seed as episode number i of every other method.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], seed: int) -> None:
        super().__init__(env)
        self.steps = 0
        self._seed = seed
        self.starts: list[int] = []
        self.returns: list[float] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        _, own = seeding.episode(self._seed, len(self.starts))
        self.starts.append(self.steps)
        self.returns.append(0.0)
        return self.env.reset(seed=own if seed is None else seed, options=options)

    def step(self, action: Any) -> Any:
        found = self.env.step(action)
        self.steps += 1
        self.returns[-1] += float(found[1])
        return found


class GreedyPolicy:
    """An agent of AgileRL as a policy of this package."""

    def __init__(self, agent: Any) -> None:
        self._agent = agent
        agent.set_training_mode(False)

    def act(self, observation: Any, rng: np.random.Generator) -> int:
        del rng  # it acts without chance
        return int(self._agent.get_action(observation[None])[0])


class Evolution:
    """Training, evaluation, selection and mutation, as in AgileRL's `train_off_policy`.

    There are two differences. Agents finish the episode that they have begun, so that every return
    in the curve is that of a whole episode, and epsilon depends on the steps of all agents
    together, as for all learners in the benchmark.

    Args:
        env: the environment.
        options: the options of this package's DQN that the agents start from.
        buffer_size: of the replay memory, which all agents share.
        steps: the budget.
        seed: of everything that is random.
    """

    def __init__(
        self,
        env: CountedEnv,
        options: Mapping[str, Any],
        *,
        buffer_size: int,
        steps: int,
        seed: int,
    ) -> None:
        self.env = env
        self.steps = steps
        self._options = DEFAULTS | dict(options)
        self._memory = ReplayBuffer(max_size=buffer_size)
        chances = MutationProbabilities()
        selection = TournamentSelectionSpec()
        short_seed = seeding.integer(seed, "agilerl") % 2**32
        # It also seeds the global generators of NumPy and PyTorch, which AgileRL draws from
        self._mutations = Mutations(
            no_mutation=chances.no_mut,
            architecture=chances.arch_mut,
            new_layer_prob=chances.new_layer,
            parameters=chances.params_mut,
            activation=chances.act_mut,
            rl_hp=chances.rl_hp_mut,
            rand_seed=short_seed,
        )
        self._selection = TournamentSelection(selection.tournament_size, selection.elitism, AGENTS)
        self._population = [self._new_agent(number, short_seed) for number in range(AGENTS)]
        self.generations = 0

    def run(self) -> Any:
        """Spend the budget, and return the agent that was best in the last evaluation.

        If there was no evaluation, it is any agent.
        """
        elite = self._population[0]
        population = self._mutations.mutation(self._population, pre_training_mut=True)
        while self.env.steps < self.steps:
            for agent in population:
                self._train(agent)
            for agent in population:
                if self.env.steps < self.steps:
                    agent.test(DummyVecEnv(self.env))  # one greedy episode
            if self.env.steps >= self.steps:
                break
            best, population, _ = self._selection.select(population)
            elite = best.clone()  # the next line may change the best one, too
            population = self._mutations.mutation(population)
            self.generations += 1
        return elite

    def _new_agent(self, number: int, seed: int) -> Any:
        own = self._options
        inputs = spaces.flatdim(self.env.observation_space)
        outputs = spaces.flatdim(self.env.action_space)
        network = EvolvableMLP(inputs, outputs, list(own["hidden"]), random_seed=seed + number)
        return DQN(
            self.env.observation_space,
            self.env.action_space,
            index=number,
            actor_network=network,
            batch_size=own["batch_size"],
            lr=own["learning_rate"],
            learn_step=own["train_freq"],
            gamma=own["gamma"],
            # AgileRL moves target networks by a small step after each update instead of copying.
            tau=1 / own["sync_every"],
            double=own["double"],
        )

    def _train(self, agent: Any) -> None:
        """Train the agent for its part of a generation.

        All agents fill the memory; an agent learns while it acts.
        """
        agent.set_training_mode(True)
        agent.init_training_step(True)
        began = self.env.steps
        share = self.steps // (AGENTS * GENERATIONS)
        while self.env.steps - began < share and self.env.steps < self.steps:
            observation, _ = self.env.reset()
            over = False
            while not over:
                action = agent.get_action(observation[None], self._epsilon())[0]
                following, reward, terminated, truncated, _ = self.env.step(int(action))
                self._remember(observation, action, reward, following, terminated)
                observation = following
                over = terminated or truncated
                due = self.env.steps % agent.learn_step == 0
                if due and len(self._memory) > self._first_size(agent):
                    agent.learn(self._memory.sample(agent.batch_size))
        agent.finalize_training_step(self.env.steps - began)

    def _remember(
        self, observation: Any, action: Any, reward: Any, following: Any, terminated: bool
    ) -> None:
        transition = Transition(
            obs=np.asarray(observation)[None],
            action=np.asarray(action)[None],
            reward=np.asarray(reward)[None],
            next_obs=np.asarray(following)[None],
            done=np.asarray(terminated)[None],
        )
        rows = transition_to_tensordict(transition)
        rows.batch_size = torch.Size([1])
        self._memory.add(rows)

    def _first_size(self, agent: Any) -> int:
        return max(int(self._options["learning_starts"]), int(agent.batch_size))

    def _epsilon(self) -> float:
        first, last, steps = self._options["epsilon"]
        progress = min(self.env.steps / steps, 1.0)
        return float(first + (last - first) * progress)
