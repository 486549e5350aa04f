"""What the report of a training shows of its evaluations."""

import json
import re

import pytest

from esbas import cli

LEARNERS = ["tabular_q(learning_rate=0.1)", "tabular_q(learning_rate=0.5)"]


@pytest.mark.parametrize(("every", "drawn"), [([], False), (["--eval-every", "100"], True)])
def test_the_report_has_the_last_evaluations_and_a_figure_if_there_are_several(
    tmp_path, every, drawn
):
    out = tmp_path / "it"
    words = [
        "train",
        "FrozenLake-v1(is_slippery=False)",
        "--learners",
        *LEARNERS,
        "--steps",
        "300",
        "--no-tensorboard",
        *every,
    ]
    assert cli.main([*words, "--out", str(out)]) == 0
    page = (out / "report.html").read_text()
    section = page[page.index("<h2>Best policy</h2>") : page.index("<h2>Learners</h2>")]
    assert (out / "evaluations.png").exists() is drawn
    assert ("<svg" in section) is drawn
    table = section[section.index("<tbody>") :]
    names = [
        re.sub("<.*?>", "", name) for name in re.findall(r"<td[^>]*>(tabular Q.*?)</td>", table)
    ]
    assert names == ["tabular Q learning_rate 0.1", "tabular Q learning_rate 0.5"]
    steps = json.loads((out / "summary.json").read_text())["evaluation steps"]
    assert f"and {steps:,} evaluation steps" in section
