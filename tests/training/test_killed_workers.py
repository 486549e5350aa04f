"""A training in several processes, killed with signal 9: nothing is left running, and it resumes with the same results."""

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from esbas import archive
from esbas.training import Train
from processes import is_running, wait_until
from training.programs import assert_same, numbers, train_without_report

MEMBER = "dqn(hidden=[16], convolutions=[[4, 8, 8]], batch=8, learning_starts=10, train_every=2, overlap=true)"


def config(out: Path, processes: int) -> Train:
    return Train(
        "ALE/Klax-v5",
        env_kwargs=("frameskip=1",),
        wrappers=("AtariPreprocessing(frame_skip=60)", "FrameStackObservation(stack_size=4)"),
        members=(MEMBER, "random"),
        selector="ssbas",  # the network acts first, so it is compiled before the first checkpoint, which would delay the next one
        steps=240,
        eval_episodes=1,
        tensorboard=False,
        checkpoint_every=0,
        processes=processes,
        out=out,
    )


@pytest.mark.services
def test_a_killed_training_leaves_no_process_and_resumes_with_the_same_results(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    train_without_report(config(whole, 1))
    if (child := os.fork()) == 0:  # quicker than another program: everything is imported
        train_without_report(config(broken, 2))
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
    train_without_report(config(broken, 1))
    assert_same(_results(whole), _results(broken))


def _results(out: Path) -> tuple[bytes, dict[str, object]]:
    """Scores and the state of the run, without the list of files with stored frames: there is one per checkpoint."""
    episodes, state = numbers(out)
    for name in ("files", "digests"):
        del state["roster"]["DQN"]["learner"]["replay"][name]
    return episodes, state


def _episodes(out: Path) -> int:
    with suppress(ValueError):  # it is being written
        return int(archive.read(out / "runs" / "seed-0" / "checkpoint.npz", "run")["number"])
    return 0
