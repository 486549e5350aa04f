"""A training in several processes is killed: nothing is left running, and it resumes the same."""

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from esbas._internal import archive
from processes import is_running, wait_until
from training.programs import assert_same, numbers, train_without_report

LEARNER = (
    "dqn(hidden=[16], convolutions=[[4, 8, 8]], batch_size=8, learning_starts=10, train_freq=2, "
    "overlap=true)"
)


def train(out: Path, processes: int) -> None:
    train_without_report(
        "ALE/Klax-v5",
        env_kwargs=("frameskip=1",),
        wrappers=("AtariPreprocessing(frame_skip=60)", "FrameStackObservation(stack_size=4)"),
        learners=(LEARNER, "random"),
        # the network acts first, so it is compiled before the first checkpoint, which would delay
        # the next one
        selector="ssbas",
        steps=240,
        eval_episodes=1,
        tensorboard=False,
        checkpoint_every=0,
        processes=processes,
        out=out,
    )


@pytest.mark.services
def test_a_killed_training_leaves_no_process_and_resumes_with_the_same_results(
    tmp_path: Path,
) -> None:
    whole = tmp_path / "whole"
    broken = tmp_path / "broken"
    train(whole, 1)
    if (child := os.fork()) == 0:  # quicker than another program: everything is imported
        train(broken, 2)
        os._exit(1)
    try:
        wait_until(lambda: _episodes(broken) >= 2, "the second episode")
        workers = Path(f"/proc/{child}/task/{child}/children").read_text().split()
    finally:
        os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert len(workers) == 1
    wait_until(lambda: not any(map(is_running, workers)), "the end of the workers")
    assert _episodes(broken) < _episodes(whole)
    train(broken, 1)
    assert_same(_results(whole), _results(broken))


def _results(out: Path) -> tuple[bytes, dict[str, object]]:
    """Return scores and the state of the run, without the files of frames, one per checkpoint."""
    episodes, state = numbers(out)
    for name in ("files", "digests"):
        del state["roster"]["DQN"]["learner"]["replay"][name]
    return episodes, state


def _episodes(out: Path) -> int:
    with suppress(ValueError):  # it is being written
        return int(archive.read(out / "runs" / "seed-0" / "checkpoint.npz", "run")["number"])
    return 0
