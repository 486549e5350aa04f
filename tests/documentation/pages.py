"""Reads the documentation for tests: its pages, their fenced blocks, and the programs that the
Python blocks make up.
"""

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
SHORTER = {
    "deep.md": {"60_000": "600", "50_000": "150"},
    "faults.md": {"20_000": "400"},
    "python.md": {"120_000": "800", "60_000": "400", "20_000": "400", "range(5)": "range(2)"},
}
"""Budgets that are replaced, in this order, in every block of the page that contains them."""
MLFLOW = """
calls = []
def recorder(name):
    return lambda *given, **named: calls.append((name, given, named))
start_run = recorder("start_run")
log_metrics = recorder("log_metrics")
end_run = recorder("end_run")
"""
"""A module that records the calls of docs/metrics.md."""


@dataclass(frozen=True)
class Program:
    """A block, and those before it that it continues: a block without an import continues the
    block before.
    """

    page: str
    line: int  # of the first line of code in the page
    code: str

    @property
    def module(self):
        """The name of the file, if the block starts with it in a comment."""
        named = re.match(r"# (\w+)\.py\n", self.code)
        return named[1] if named else "documented"

    @property
    def is_script(self):
        return 'if __name__ == "__main__":' in self.code

    def write(self, folder):
        """Write the code to a file whose line numbers are those of the page."""
        code = self.code
        for long, short in SHORTER.get(self.page, {}).items():
            code = code.replace(long, short)
        path = folder / f"{self.module}.py"
        path.write_text("\n" * (self.line - 1) + code, "utf-8")
        return path


def fences(page):
    """(line, language, code) of every fenced block of a page."""
    text = page.read_text("utf-8")
    return [
        (text[: found.start()].count("\n") + 2, found[2], textwrap.dedent(found[3]))
        for found in FENCE.finditer(text)
    ]


def programs():
    found = []
    for page in PAGES:
        blocks = [(line, code) for line, language, code in fences(page) if language == "python"]
        for number, (line, code) in enumerate(blocks):
            if re.search(r"^(import|from) ", code, re.MULTILINE) or not number:
                found.append(Program(page.name, line, code))
            else:
                former = found.pop()
                gap = line - former.line - former.code.count("\n")
                found.append(Program(page.name, former.line, former.code + "\n" * gap + code))
    return found
