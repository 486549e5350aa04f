"""The path of an episode of ESBAS with tabular learners.

The architecture page lists the files that it runs through.
"""

import re
import sys
from pathlib import Path

import pytest

import esbas
from esbas.learners import TabularQ
from esbas.testing import Corridor

SOURCES = Path(esbas.__file__).parent
ARCHITECTURE = Path(__file__).parent.parent / "docs" / "architecture.md"


def executed(function):
    """The code of every function of esbas that is executed.

    Comprehensions and lambdas count too.
    """
    found = set()

    def trace(frame, event, argument):
        if Path(frame.f_code.co_filename).is_relative_to(SOURCES):
            found.add(frame.f_code)

    former = sys.getprofile()
    sys.setprofile(trace)
    try:
        function()
    finally:
        sys.setprofile(former)
    return found


def file_of(code):
    return Path(code.co_filename).relative_to(SOURCES).as_posix()


@pytest.fixture(scope="module")
def path():
    """Episode 8 starts an epoch: learners learn and the bandit is reset.

    Episode 11 is chosen by indices: all arms were tried.
    """
    learners = [
        TabularQ(f"rate {rate}", states=5, actions=2, learning_rate=rate)
        for rate in (0.02, 0.1, 0.5)
    ]
    selector = esbas.ESBAS([learner.name for learner in learners])
    run = esbas.run(Corridor(), learners, selector, objective=esbas.total_return())
    records = []
    traces = [executed(lambda: records.append(next(run))) for _ in range(11)]
    assert [record.epoch for record in records] == [0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]
    return traces[7] | traces[10]


def test_the_trace_sees_all_of_an_episode(path):
    names = {code.co_qualname for code in path}
    seen = {
        "Tabular.learn",
        "Selector.epoch_ready",
        "AllRounds.reset",
        "Corridor.reset",
        "Selector.ask",
        "UCB1.index",
    }
    assert (
        seen
        | {"EpsilonGreedy.act_with_log_prob", "Corridor.step", "Selector.tell", "AllRounds.settle"}
        <= names
    )


def test_the_architecture_page_lists_the_files_of_the_path(path):
    page = ARCHITECTURE.read_text(encoding="utf-8")
    _, marked, rest = page.partition("<!-- path -->")
    assert marked
    listed = re.findall(
        r"^\| `([\w/]+\.py)` \|", rest.partition("<!-- end of path -->")[0], re.MULTILINE
    )
    assert sorted(listed) == sorted({file_of(code) for code in path})
    assert f"executes {len(path)} functions in these files" in " ".join(page.split())
