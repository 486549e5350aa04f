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

from esbas._internal import schema
from esbas._internal.files import file_errors, read_file, write_atomically
from esbas._internal.schema import short
from esbas.errors import FileError, InvalidValueError, require
from esbas.reporting.files import plain, write_csv, write_json
from esbas.reporting.report import Section, page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[Any]
CONFIG = "config.json"
_CONFIG_SHAPE = {
    "command": str,
    "config": dict,
    "again": str,
    "versions": {str: str},
    "platform": str,
}
_DECISIVE = ("esbas", "numpy", "numba")  # other versions of these packages may give other results


class ReportFolder:
    """A folder with tables, figures, a summary and a report.

    Every file is written completely or not at all.

    Args:
        folder: exists when the first file is written.
        command_line: what gives the same results, for the report.
    """

    def __init__(self, folder: Path, *, command_line: str = "") -> None:
        self.folder = Path(folder)
        self._command_line = command_line
        self._versions = package_versions()
        self._figures: dict[str, bytes] = {}  # as SVG

    @property
    def command_line(self) -> str:
        """The command line that gives the same results."""
        return self._command_line

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
            # Keep the layout: computing it takes as long as drawing.
            figure.set_layout_engine("none")
            write_atomically(self.folder / f"{name}.{kind}", buffer.getvalue())
            if kind == "svg":
                self._figures[name] = buffer.getvalue()

    def summary(self, data: Mapping[str, Any]) -> None:
        """Write summary.json from plain data, arrays and Estimates.

        Numbers that are not finite become null.
        """
        write_json(self.folder / "summary.json", data)

    def report(self, title: str, sections: Sequence[Section]) -> None:
        """Write report.html."""
        kinds = (".json", ".csv", ".png", ".svg", ".gif")
        with file_errors(self.folder):
            files = [path.name for path in self.folder.iterdir() if path.suffix in kinds]
            started = datetime.fromtimestamp((self.folder / CONFIG).stat().st_mtime, UTC)
        text = page(
            title,
            sections,
            svg=self._svg,
            command=self.command_line,
            started=started,
            versions=self._versions,
            files=sorted(files),
        )
        write_atomically(self.folder / "report.html", text.encode())

    def _svg(self, name: str) -> bytes:
        rule = "The figure of a section must have been written by `Results.figure`"
        require(name in self._figures, f"{rule}, but {name!r} was not.")
        return self._figures[name]


class Results(ReportFolder):
    """The results of one command with one configuration.

    A folder with results of the same command and configuration is continued. A folder with other
    results is refused.

    Args:
        folder: created if it does not exist.
        command: the command that produces the results, such as "esbas reproduce bounds".
        config: the options that determine the results, by name; not the output folder or the number
            of jobs.
    """

    def __init__(self, folder: Path, *, command: str, config: Mapping[str, Any]) -> None:
        super().__init__(folder)
        self._command = command
        self._config = plain(config)
        try:
            old = self._read_config()
            self.folder.mkdir(parents=True, exist_ok=True)
            if old is None:
                about = {
                    "command": command,
                    "config": self._config,
                    "again": self.command_line,
                    "versions": self._versions,
                    "platform": platform.platform(),
                }
                write_json(self.folder / CONFIG, about)
        except FileError:
            raise
        except OSError as error:
            why = f"be a folder that can be written to, but {error.strerror or error}"
            raise _refused(self.folder, why) from error
        if old is not None:
            self._compare(old)

    def change(self, config: Mapping[str, Any], *, earlier: Mapping[str, Any]) -> None:
        """Change the configuration of the folder, because its results are extended.

        Args:
            config: the new one.
            earlier: what it replaces. The folder keeps a list of these.
        """
        about = read_config(self.folder)
        self._config = plain(config)
        about["config"] = self._config
        about["again"] = self.command_line
        about["earlier"] = [*about.get("earlier", []), plain(earlier)]
        write_json(self.folder / CONFIG, about)

    @property
    def command_line(self) -> str:
        """The command line that reproduces these results."""
        words = [self._command]
        for name, value in self._config.items():
            words += [shlex.quote(word) for word in _option(name, value)]
        return " ".join(words)

    def part(self, name: str) -> dict[str, Array] | None:
        """Return the arrays of a part that was stored earlier.

        None if the part is missing or damaged, so that it has to run again.
        """
        content = read_file(self._part_path(name), missing=b"")
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

    def _part_path(self, name: str) -> Path:
        is_valid = re.fullmatch(r"[\w+=,@-][\w.+=,@-]*", name) is not None
        require(is_valid, f"The name of a part must be a valid file name, but got {name!r}.")
        return self.folder / "parts" / f"{name}.npz"

    def _read_config(self) -> dict[str, Any] | None:
        """Return the content of config.json; None in a new folder."""
        if not self.folder.exists():
            return None
        if (self.folder / CONFIG).exists():
            return read_config(self.folder)
        for name in sorted(path.name for path in self.folder.iterdir()):
            if name != "parts" and not name.startswith("."):
                why = f"be new or have earlier results, but has {name!r} and no config.json"
                raise _refused(self.folder, why)
        return None

    def _compare(self, old: Mapping[str, Any]) -> None:
        """Raise an error unless the results in the folder have the same settings."""
        before = _settings(old["command"], old["config"], old["versions"])
        now = _settings(self._command, self._config, self._versions)
        for key in now | before:
            if now.get(key) != before.get(key):
                name = " ".join(key.split())[:200]
                made = f"{name}={short(before.get(key))}"
                differs = f"{made}, but this is {name}={short(now.get(key))}"
                why = f"have results of the same settings, but they were made with {differs}"
                raise _refused(self.folder, why)


def _settings(
    command: str, config: Mapping[str, Any], versions: Mapping[str, str]
) -> dict[str, Any]:
    """Return everything that determines results, by name."""
    settings: dict[str, Any] = {"command": command, **config}
    for name in _DECISIVE:
        settings[f"version of {name}"] = versions.get(name)
    return settings


def read_config(folder: Path) -> dict[str, Any]:
    """Return the content of config.json: what was computed, and with which versions."""
    path = folder / CONFIG
    text = read_file(path)
    remedy = "restore an earlier copy, or use another folder"
    content = schema.read_json(text, repr(str(path)), remedy=remedy)
    shape: dict[str, Any] = dict(_CONFIG_SHAPE)
    if isinstance(content, dict):
        if content.get("kind") == "training":
            problem = f"The folder {str(folder)!r} has a training, not results of this command"
            raise InvalidValueError(f"{problem}: give another --out.")
        if "earlier" in content:
            shape["earlier"] = [dict]
    schema.check(content, shape, repr(str(path)), remedy=remedy)
    return dict(content)


def _arrays(content: bytes) -> dict[str, Array]:
    """Return the arrays of an .npz file; raise any error if it is damaged."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        # A compressed entry could take any amount of memory.
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in file.infolist()):
            raise zipfile.BadZipFile
        if file.testzip() is not None:
            raise zipfile.BadZipFile
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        found = dict(arrays)
    # NumPy returns an entry that is no array as bytes.
    if not all(isinstance(each, np.ndarray) for each in found.values()):
        raise zipfile.BadZipFile
    return found


def _option(name: str, value: Any) -> list[str]:
    """Return the words of an option on the command line."""
    option = name.replace("_", "-")
    if value is None:
        return []
    if isinstance(value, bool):
        return [f"--{option}" if value else f"--no-{option}"]
    values = value if isinstance(value, list) else [value]
    return [f"--{option}", *map(str, values)]


def package_versions() -> dict[str, str]:
    """Return the versions of Python and of the installed packages that matter for results."""
    versions = {"python": platform.python_version()}
    deep = ("torch", "stable-baselines3", "scikit-learn", "d3rlpy")
    for name in ("esbas", "numpy", "numba", "scipy", "matplotlib", "gymnasium", "ale-py", *deep):
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


def _refused(folder: Path, why: str) -> InvalidValueError:
    return InvalidValueError(f"The results folder {str(folder)!r} must {why}: give another --out.")
