"""Rules worked out by hand, written as text: a name, then its lines."""

from __future__ import annotations

import json
import re

CHOICE = re.compile(r"\{[^{}|]*\|[^{}]*\}")


def blocks_of(text: str) -> dict[str, list[str]]:
    """Rules by name, which stands in a line that is not indented, before the lines of the rule; # begins a remark.

    Where a rule has `{a|b}` there are two, one with `a` in this place and one with `b`, and so for all such places.
    """
    blocks: dict[str, list[str]] = {}
    for block in re.split(r"^(?=\S)", text.strip(), flags=re.MULTILINE)[1:]:
        block = "\n".join(line for line in block.splitlines() if not line.strip().startswith("#"))
        choices = CHOICE.search(block)
        for place in range(len(choices[0].split("|")) if choices else 1):
            name, *lines = CHOICE.sub(lambda found, place=place: found[0][1:-1].split("|")[place], block).splitlines()
            assert name not in blocks, name
            blocks[name] = [line.strip() for line in lines]
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
