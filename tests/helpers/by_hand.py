"""Rules, jobs and capacities written as text."""

from __future__ import annotations

import json
import re
from typing import Any

from batwatt.model.timeline import Timeline

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
            name, *lines = CHOICE.sub(lambda match, place=place: match[0][1:-1].split("|")[place], block).splitlines()
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


def job_row(text: str) -> dict[str, Any]:
    """A job of `name submission length hosts [field=number ..]` as in a workload, its profile in `_profile`."""
    name, submit_s, length_s, hosts, *words = text.split()
    row: dict[str, Any] = {"id": name, "subtime": float(submit_s), "res": int(hosts), "profile": f"p{name}"}
    row |= {field: float(value) for field, value in (word.split("=") for word in words)}
    return row | {"_profile": {"type": "delay", "delay": float(length_s)}}


def capacity_of(text: str) -> list[tuple[float, int]]:
    """`4 100:2 200:3`: 4 machines, 2 from 100 s on, 3 from 200 s on."""
    first, *words = text.split()
    return [(0.0, int(first)), *((float(time_s), int(count)) for time_s, count in (word.split(":") for word in words))]


def series_of(rows: list[tuple[float, int]]) -> Timeline:
    """The series of (time in s, machines)."""
    return Timeline(tuple(float(time_s) for time_s, _ in rows), tuple(float(count) for _, count in rows))
