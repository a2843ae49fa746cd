"""Every command of the application, so that tests need not name them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from batwatt.cli.main import application


def _walked(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, one in getattr(command, "commands", {}).items():
        yield from _walked(one, f"{path} {name}".strip())


COMMANDS: dict[str, Any] = dict(_walked(get_command(application()), ""))
"""Commands and groups of commands by their words after `batwatt`."""
GROUPS = [words for words, command in COMMANDS.items() if hasattr(command, "commands")]
LEAVES = [words for words in COMMANDS if words not in GROUPS]


def examples(words: str) -> list[str]:
    """The command lines of a command's example, each on one line."""
    text = COMMANDS[words].help.partition("Example:[/]")[2].replace("\n  ", " ")
    return [line.strip() for line in text.splitlines() if line.strip().startswith("batwatt ")]
