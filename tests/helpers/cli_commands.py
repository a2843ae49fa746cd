"""Every command of the application, so that tests need not name them."""

from __future__ import annotations

from typing import Any

from batwatt.cli.main import application, commands_of, walk

COMMANDS: dict[str, Any] = dict(walk(commands_of(application())))
"""Commands and groups of commands by their words after `batwatt`."""
GROUPS = [words for words, command in COMMANDS.items() if hasattr(command, "commands")]
LEAVES = [words for words in COMMANDS if words not in GROUPS]
TABULAR = [words for words in LEAVES if any(option.name == "as_json" for option in COMMANDS[words].params)]
"""Commands that print a table, or JSON."""


def examples(words: str) -> list[str]:
    """The command lines of batwatt in a command's example, each on one line."""
    return [line for script in scripts(words) for line in script if line.startswith("batwatt ")]


def scripts(words: str) -> list[list[str]]:
    """The examples of a command as lines for a shell; those after an empty line are another script."""
    text = COMMANDS[words].epilog.replace("\b\n", "").partition("Example:\n")[2].replace("\\\n", " ")
    blocks = [[line.strip() for line in part.splitlines() if line.strip()] for part in text.split("\n\n")]
    return [lines for lines in blocks if any(line.startswith("batwatt ") for line in lines)]
