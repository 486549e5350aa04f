"""`esbas study copy URL NAME TARGET`: copies a study to another store."""

from contextlib import closing
from dataclasses import KW_ONLY, dataclass
from typing import Annotated

import tyro

from esbas.cli.study.arguments import Name, Url, existing_store
from esbas.reporting.terminal import print_text
from esbas.studies import copy_study, open_store


@dataclass(frozen=True)
class CopyStudy:
    """Copy a study to another store, such as from SQLite to PostgreSQL. Both can be in use."""

    url: Url
    """sqlite:///FILE, the path of a file, or postgresql://user:password@host/database."""
    name: Name
    """The name of the study."""
    target: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TARGET")]
    """The URL of the other store, or of the same one."""
    _: KW_ONLY
    new_name: str | None = None
    """The name of the copy. Default: the same name."""

    def run(self) -> None:
        """Run `esbas study copy` with these options."""
        with existing_store(self.url) as source:
            source.get(self.name)  # before the target is created
            with closing(open_store(self.target)) as target:
                events = copy_study(source, self.name, target, new_name=self.new_name)
                copied = f"Copied {events:,} events of {self.name!r}"
                print_text(f"{copied} to {self.new_name or self.name!r} in {target.url}.")
