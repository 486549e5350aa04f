"""Saving a large replay memory: frames of Q*bert under random play, a save every 1,000 steps."""

import tempfile
import time
from pathlib import Path
from typing import Any

import ale_py
import gymnasium
import numpy as np

from esbas import Transition
from esbas._internal import archive
from esbas.learners import SharedReplay

STEPS = 20_000
EVERY = 1_000


def main() -> None:
    env = _make_env()
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "replay"
        path = Path(made) / "checkpoint.npz"
        replay = SharedReplay(env, buffer_size=STEPS, stack=4, folder=folder)
        seen, _ = env.reset(seed=0)
        adding = 0.0
        saving: list[float] = []
        for number in range(1, STEPS + 1):
            action = int(rng.integers(env.action_space.n))
            following, reward, terminated, truncated, _ = env.step(action)
            start = time.process_time()
            replay.add(Transition(seen, action, float(reward), following, terminated, truncated))
            adding += time.process_time() - start
            seen = following
            if terminated or truncated:
                seen, _ = env.reset()
            if number % EVERY == 0:
                start = time.process_time()
                archive.write(path, "replay", replay.state_dict())
                saving.append(time.process_time() - start)
        rows = sum(each.stat().st_size for each in folder.iterdir())
        rest = path.stat().st_size
        print(
            f"adding: {adding / STEPS * 1e6:.0f} us per step, {replay.episodes} episodes",
            flush=True,
        )
        print(f"rows: {rows / STEPS:.0f} bytes per step instead of {84 * 84 + 18:,}", flush=True)
        print(
            f"the rest of the last save, {rest:,} bytes: {rest / replay.episodes:,.0f} per episode",
            flush=True,
        )
        print(
            f"saving: {sum(saving) / STEPS * 1e6:.0f} us per new step;"
            f" the last save {saving[-1] * 1e3:.0f} ms",
            flush=True,
        )
        again = SharedReplay(env, buffer_size=STEPS, stack=4, folder=folder)
        start = time.process_time()
        again.load_state_dict(archive.read(path, "replay"))
        print(f"loading: {(time.process_time() - start) / STEPS * 1e6:.0f} us per step", flush=True)
    env.close()


def _make_env() -> Any:
    gymnasium.register_envs(ale_py)
    env = gymnasium.make("ALE/Qbert-v5", frameskip=1, repeat_action_probability=0.0)
    env = gymnasium.wrappers.AtariPreprocessing(env, noop_max=30, frame_skip=4, screen_size=84)
    return gymnasium.wrappers.FrameStackObservation(env, stack_size=4)
