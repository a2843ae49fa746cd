"""The command `init`: a folder to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from batwatt.cli.printing import tell
from batwatt.errors import InputError, printable


def init(folder: Annotated[Path, typer.Argument(help="A new folder, or an empty one.")]) -> None:
    """Write a start: platforms, workloads, signals, a study, a policy of your own, and a README with commands.

    [bold]Example:[/] batwatt init first
    """
    from batwatt.cli.start import SOURCES, write_start
    from batwatt.files import PART, whole_set

    try:
        # a killed process leaves its hidden folder
        others = [path for path in folder.iterdir() if not path.name.startswith(PART)]
    except OSError:
        others = []  # missing or not readable, which `whole_set` reports
    if others:
        raise InputError(folder, f"is not empty: {others[0].name} is there", "give a new or an empty folder")
    with whole_set(folder, last=["README.md"], place=folder) as part:
        write_start(part)
    tell(f"{len(SOURCES)} files in {printable(folder)}; {printable(folder / 'README.md')} has commands to begin with")
