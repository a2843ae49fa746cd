"""Rules worked out by hand, written as text: a name, then its lines."""

from __future__ import annotations

import json
import re


def blocks_of(text: str) -> dict[str, list[str]]:
    """Rules by name, which stands in a line that is not indented, before the lines of the rule; # begins a remark."""
    blocks: dict[str, list[str]] = {}
    for line in filter(str.strip, text.splitlines()):
        if not line.startswith(" "):
            assert line not in blocks, line
            lines = blocks[line] = []
        elif not line.strip().startswith("#"):
            lines.append(line.strip())
    return blocks


def options_of(line: str) -> dict[str, object]:
    """`name=value, name=value`: numbers, objects of JSON, and other texts as they are."""
    options: dict[str, object] = {}
    for word in re.split(r", (?=\w+=)", line):
        name, value = word.split("=", 1)
        try:
            options[name] = json.loads(value)
        except ValueError:
            options[name] = value
    return options
