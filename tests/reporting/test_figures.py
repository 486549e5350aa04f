import io
import subprocess
import sys

import numpy as np
from PIL import Image

from esbas.reporting import figures


def test_a_curve_has_its_band():
    _, axes = figures.new_figure()
    figures.curve_with_band(axes, [1, 2, 3], [1, 2, 3], [0.5, 0.5, 0.5], "a")
    figures.curve_with_band(axes, [1, 2, 3], [1, 2, 3], [np.nan] * 3, "one run")
    assert [line.get_label() for line in axes.get_lines()] == ["a", "one run"]
    (band,) = axes.collections
    corners = band.get_paths()[0].vertices
    assert corners[:, 1].min() == 0.5
    assert corners[:, 1].max() == 3.5


def test_a_band_stays_within_what_is_possible():
    _, axes = figures.new_figure()
    figures.curve_with_band(axes, [1, 2], [1, 99], [5, 5], "a", within=(0, 100))
    heights = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (0, 100)
    assert figures.observed([[3, 1], [2, 5]]) == (1, 5)


def test_long_names_are_wrapped():
    _, axes = figures.new_figure()
    figures.curve_with_band(
        axes, [1, 2], [1, 2], [0, 0], "a learner whose name is much too long " * 9
    )
    shown = axes.get_lines()[0].get_label().splitlines()
    assert len(shown) == 3
    assert max(map(len, shown)) <= 32


def test_stacked_shares_fill_the_panel():
    _, axes = figures.new_figure()
    shares = np.array([[0.25, 0.5], [0.75, 0.5]])
    figures.stacked_shares(axes, [1, 2], shares, ["a", "b"])
    tops = [area.get_paths()[0].vertices[:, 1].max() for area in axes.collections]
    assert [area.get_label() for area in axes.collections] == ["b", "a"]
    assert tops == [75, 100]


def test_lines_of_shares():
    _, axes = figures.new_figure()
    figures.share_lines(axes, [1, 2], [[0.25, 0.5], [0.75, 0.5]], ["a", "b"])
    np.testing.assert_array_equal(axes.get_lines()[1].get_ydata(), [75, 50])


def test_a_notebook_shows_a_figure():
    figure, axes = figures.new_figure(width=4.0, height=3.0)
    figures.curve_with_band(axes, [1, 2], [1, 2], [0.5, 0.5], "a")
    image, size = figure._repr_png_()
    assert size == {"width": 400, "height": 300}
    with Image.open(io.BytesIO(image)) as found:
        assert found.size == (800, 600)
        assert len(found.convert("RGB").getcolors(800 * 600)) > 2  # something is drawn
    assert figure.dpi == 100


def test_drawing_leaves_no_global_state():
    program = """
import sys, matplotlib
def settings():
    # Asking for the backend loads pyplot.
    names = [name for name in matplotlib.rcParams if name != "backend"]
    return {name: matplotlib.rcParams[name] for name in names}
before = settings()
from esbas.reporting import figures
figure, axes = figures.new_figure()
figure._repr_png_()
assert settings() == before
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
