"""Progress, tables and figures in a real notebook kernel."""

import os
from pathlib import Path

import nbclient
import nbformat
import pytest

pytestmark = [
    pytest.mark.docs,
    pytest.mark.filterwarnings("default"),  # of Jupyter
]

TRAINING = """
import esbas
learners = "tabular_q", "random"
options = dict(steps=20_000, seeds=(0, 1), jobs={jobs}, out="{out}", tensorboard=False)
esbas.train("FrozenLake-v1", learners=learners, **options)
"""
OBJECTS = """
training = esbas.load_training("{out}")
display(training.table())
display(training.episodes())
training.figure()
"""


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_training_in_a_notebook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    source = str(Path("src").resolve())
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([source, os.environ.get("PYTHONPATH", "")]))
    cells = [text.format(out=tmp_path / "it", jobs=jobs) for text in (TRAINING, OBJECTS)]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute(cwd=str(tmp_path))
    training, objects = notebook.cells
    areas = [
        each
        for each in training.outputs
        if "recent: the last" in each.get("data", {}).get("text/html", "")
    ]
    (area,) = areas  # one area, updated in place
    assert "tabular Q" in area.data["text/html"]
    assert area.data["text/plain"].count("done") == 2  # the last picture
    (printed,) = [each.text for each in training.outputs if each.output_type == "stream"]
    assert printed.startswith("FrozenLake-v1: 2 learners")  # where the results go
    assert len(printed.splitlines()) == 1
    table, episodes, figure = objects.outputs
    assert "share of control" in table.data["text/html"]
    assert "rows</p>" in episodes.data["text/html"]
    assert len(figure.data["image/png"]) > 10_000
    assert figure.metadata["image/png"]["width"] == 800
