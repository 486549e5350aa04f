"""The notebook in `examples/` runs, and shows the score, tables and figures."""

import os

import nbformat
import pytest
from nbclient import NotebookClient

from documentation.pages import ROOT

pytestmark = pytest.mark.docs
NOTEBOOK = ROOT / "examples" / "training.ipynb"
WAIT = 600  # seconds for a cell, on a busy machine
PNG = "iVBORw0KGgo"  # how every PNG image begins, in base64


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """What each cell of the notebook shows: its last output by MIME type, by the cell's last
    line.
    """
    folder = tmp_path_factory.mktemp("notebook")
    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(path for path in paths if path))
        patch.setenv("IPYTHONDIR", str(folder / "ipython"))
        NotebookClient(
            notebook, timeout=WAIT, resources={"metadata": {"path": str(folder)}}
        ).execute()
    assert (folder / "lake" / "report.html").exists()
    found = {}
    for cell in notebook.cells:
        results = [
            output.data
            for output in cell.get("outputs", [])
            if output.output_type in ("execute_result", "display_data")
        ]
        if results:
            found[cell.source.splitlines()[-1]] = results[-1]
    return found


def test_the_training_shows_itself(shown):
    page = shown["training"]["text/html"]
    assert "Mean value (return) of" in page
    assert "<table" in page
    assert "<svg" in page


def test_the_score_has_an_interval(shown):
    assert " ± " in shown["training.score"]["text/plain"]
    assert "3 runs" in shown["training.score"]["text/plain"]


@pytest.mark.parametrize("cell", ["training.table()", "training.episodes()", "comparison.table()"])
def test_tables_are_html(shown, cell):
    assert shown[cell]["text/html"].startswith("<table")


def test_the_table_has_all_learners(shown):
    for name in ("tabular Q learning_rate 0.02", "tabular Q learning_rate 0.5", "random"):
        assert name in shown["training.table()"]["text/html"]


@pytest.mark.parametrize("cell", ["training.figure()", "comparison.figure()"])
def test_figures_are_images(shown, cell):
    assert shown[cell]["image/png"].startswith(PNG)


def test_the_evaluation_is_an_estimate_over_episodes(shown):
    assert "100 episodes" in shown["training.evaluate(episodes=100, progress=False)"]["text/plain"]


def test_the_notebook_is_stored_without_outputs():
    cells = [
        cell for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.cell_type == "code"
    ]
    assert cells
    assert [cell.source for cell in cells if cell.outputs or cell.execution_count] == []
