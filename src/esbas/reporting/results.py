"""A crash-safe results folder: every file is written completely or not at all."""

import io
import platform
import re
import shlex
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from esbas import schema
from esbas.errors import FileError, InvalidValueError, require
from esbas.files import file_errors, read_file, write_atomically
from esbas.reporting.files import plain, write_csv, write_json
from esbas.reporting.report import Section, page
from esbas.schema import short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[Any]
CONFIG = "config.json"
_CONFIG_SHAPE = {"command": str, "config": dict, "again": str, "versions": {str: str}, "platform": str}
_DECISIVE = ("esbas", "numpy", "numba")  # other versions of these packages may give other results


class Results:
    """The results of one command with one configuration.

    A folder with results of the same command and configuration is continued. A folder with other results is refused.

    Args:
        folder: created if it does not exist.
        command: the command that produces the results, such as "esbas reproduce bounds".
        config: the options that determine the results, by name; not the output folder or the number of jobs.
    """

    def __init__(self, folder: Path, *, command: str, config: Mapping[str, Any]) -> None:
        self.folder = Path(folder)
        self._command, self._config, self._versions = command, plain(config), _versions()
        self._figures: dict[str, bytes] = {}  # as SVG
        try:
            old = self._read_config()
            self.folder.mkdir(parents=True, exist_ok=True)
            if old is None:
                about = {"command": command, "config": self._config, "again": self.command_line}
                write_json(self.folder / CONFIG, about | {"versions": self._versions, "platform": platform.platform()})
        except FileError:
            raise
        except OSError as error:
            raise _refused(self.folder, f"be a folder that can be written to, but {error.strerror or error}") from error
        if old is not None:
            self._compare(old)

    def change(self, config: Mapping[str, Any], *, earlier: Mapping[str, Any]) -> None:
        """Change the configuration of the folder, because its results are extended; it keeps a list of what was `earlier`."""
        about, self._config = read_config(self.folder), plain(config)
        history = [*about.get("earlier", []), plain(earlier)]
        write_json(self.folder / CONFIG, about | {"config": self._config, "again": self.command_line, "earlier": history})

    @property
    def command_line(self) -> str:
        """The command line that reproduces these results."""
        return " ".join(
            [self._command, *(shlex.quote(word) for name, value in self._config.items() for word in _option(name, value))]
        )

    def part(self, name: str) -> dict[str, Array] | None:
        """The arrays of a part that was stored earlier. None if it is missing or damaged, so that it has to run again."""
        path = self._part_path(name)
        content = read_file(path, missing=b"")
        try:
            return _arrays(content)
        except Exception:  # a damaged file can raise anything
            return None

    def store_part(self, name: str, arrays: Mapping[str, Array]) -> None:
        """Store the arrays of a finished part."""
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **dict(arrays))
        path = self._part_path(name)
        with file_errors(path.parent):
            path.parent.mkdir(exist_ok=True)
        write_atomically(path, buffer.getvalue())

    def table(self, name: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Write NAME.csv at full precision. Unknown values are left empty."""
        write_csv(self.folder / f"{name}.csv", header, rows)

    def figure(self, name: str, figure: "Figure") -> None:
        """Write NAME.png and NAME.svg. The same figure gives the same bytes."""
        import matplotlib as mpl  # slow to import, and only needed here

        for kind, about in (("svg", {"Date": None}), ("png", None)):
            buffer = io.BytesIO()
            with mpl.rc_context({"svg.hashsalt": "esbas", "svg.fonttype": "path"}):
                figure.savefig(buffer, format=kind, dpi=160, metadata=about)
            figure.set_layout_engine("none")  # keep the layout: computing it takes as long as drawing
            write_atomically(self.folder / f"{name}.{kind}", buffer.getvalue())
            if kind == "svg":
                self._figures[name] = buffer.getvalue()

    def summary(self, data: Mapping[str, Any]) -> None:
        """Write summary.json from plain data, arrays and Estimates. Numbers that are not finite become null."""
        write_json(self.folder / "summary.json", data)

    def report(self, title: str, sections: Sequence[Section]) -> None:
        """Write report.html."""
        with file_errors(self.folder):
            files = sorted(
                path.name for path in self.folder.iterdir() if path.suffix in (".json", ".csv", ".png", ".svg", ".gif")
            )
            started = datetime.fromtimestamp((self.folder / CONFIG).stat().st_mtime, UTC)
        command, versions = self.command_line, self._versions
        text = page(title, sections, svg=self._svg, command=command, started=started, versions=versions, files=files)
        write_atomically(self.folder / "report.html", text.encode())

    def _svg(self, name: str) -> bytes:
        require(name in self._figures, "the figure of a section has been written by Results.figure", figure=name)
        return self._figures[name]

    def _part_path(self, name: str) -> Path:
        require(re.fullmatch(r"[\w+=,@-][\w.+=,@-]*", name) is not None, "the name of a part is a valid file name", name=name)
        return self.folder / "parts" / f"{name}.npz"

    def _read_config(self) -> dict[str, Any] | None:
        """The content of config.json; None in a new folder."""
        if not self.folder.exists():
            return None
        if not (self.folder / CONFIG).exists():
            others = sorted(p.name for p in self.folder.iterdir() if p.name != "parts" and not p.name.startswith("."))
            if others:
                raise _refused(self.folder, f"be new or hold earlier results, but holds {others[0]!r} and no config.json")
            return None
        return read_config(self.folder)

    def _compare(self, old: Mapping[str, Any]) -> None:
        new_flat = (
            {"command": self._command} | self._config | {f"version of {name}": self._versions.get(name) for name in _DECISIVE}
        )
        old_flat = (
            {"command": old["command"]} | old["config"] | {f"version of {name}": old["versions"].get(name) for name in _DECISIVE}
        )
        for key in dict.fromkeys([*new_flat, *old_flat]):
            if new_flat.get(key) != old_flat.get(key):
                before, now = short(old_flat.get(key)), short(new_flat.get(key))
                name = " ".join(key.split())[:200]
                differs = f"{name}={before}, but this is {name}={now}"
                raise _refused(self.folder, f"contain results of the same settings, but they were made with {differs}")


def read_config(folder: Path) -> dict[str, Any]:
    """The content of config.json in a results folder: what was computed, and with which versions."""
    path = folder / CONFIG
    text = read_file(path)
    remedy = "restore an earlier copy, or use another folder"
    content = schema.read_json(text, repr(str(path)), remedy=remedy)
    extended = {"earlier": [dict]} if isinstance(content, dict) and "earlier" in content else {}
    schema.check(content, _CONFIG_SHAPE | extended, repr(str(path)), remedy=remedy)
    return dict(content)


def _arrays(content: bytes) -> dict[str, Array]:
    """The arrays of an .npz file; raises anything if it is damaged."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in file.infolist()) or file.testzip() is not None:
            raise zipfile.BadZipFile
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        found = dict(arrays)
    if not all(isinstance(each, np.ndarray) for each in found.values()):  # an entry that is no array is returned as bytes
        raise zipfile.BadZipFile
    return found


def _option(name: str, value: Any) -> list[str]:
    """The words of an option on the command line."""
    flag = "--" + name.replace("_", "-")
    if value is None:
        return []
    if isinstance(value, bool):
        return [flag if value else "--no-" + flag[2:]]
    return [flag, *map(str, value if isinstance(value, list) else [value])]


def _versions() -> dict[str, str]:
    """Versions of Python and of the installed packages that matter for results."""
    versions, deep = {"python": platform.python_version()}, ("torch", "stable-baselines3", "scikit-learn", "d3rlpy")
    for name in ("esbas", "numpy", "numba", "scipy", "matplotlib", "gymnasium", "ale-py", *deep):
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


def _refused(folder: Path, why: str) -> InvalidValueError:
    return InvalidValueError(f"the results folder {str(folder)!r} must {why}: give another --out")
