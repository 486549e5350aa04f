"""A learner that forks the process: only the original process continues the run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent

FORKING = """
import os, sys, warnings
from doubles import Faulty
from esbas import ESBAS, SSBAS, run
from esbas.testing import Corridor

where, raises, log = sys.argv[1], sys.argv[2] == "raises", sys.argv[3]

class Forking(Faulty):
    def _call(self, where_called):
        try:
            super()._call(where_called)
        except RuntimeError:
            if os.fork() == 0:
                if raises:
                    raise
            else:
                os.wait()

    def state_dict(self):
        if where == "state_dict":
            self._where = "policy"
            self._fails = lambda call: True
            self._call("policy")
        return super().state_dict()

fails = (lambda call: False) if where == "state_dict" else (lambda call: call == 1)
learners = [Forking("bad", where, fails=fails), Faulty("good", action=1)]
episodes = run(Corridor(4, slip=0.0, max_steps=6), learners, (ESBAS if where == "learn" else SSBAS)(["bad", "good"]), episodes=6)
list(episodes)
if where == "state_dict":
    warnings.simplefilter("ignore")
    episodes.save(log + ".npz")
with open(log, "a") as file:
    file.write("end\\n")
"""


@pytest.mark.parametrize("raises", ["raises", "returns"])
@pytest.mark.parametrize("where", ["policy", "start", "act", "learn", "step", "state_dict"])
def test_a_fork_in_a_learner_does_not_continue_as_the_program(tmp_path, where, raises):
    log = tmp_path / "log"
    command = [sys.executable, "-c", FORKING, where, raises, str(log)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])}
    result = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    assert log.read_text() == "end\n"  # once
