"""The commands of `bench/same_bytes.py` name every scheduler, part, reader, command, option and entry of the API."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

from cli_commands import COMMANDS, LEAVES

import batwatt
from batwatt.api.comparison_result import Comparison
from batwatt.cli.inputs import TABLES
from batwatt.inputs.convert import SUFFIXES
from batwatt.inputs.spec import kinds_of_series
from batwatt.run.find_scheduler import our_schedulers
from batwatt.scheduling.registry import KINDS, names

BENCH = Path(__file__).resolve().parents[1] / "bench"
sys.path.insert(0, str(BENCH))
from commands import SHARED, commands  # noqa: E402

SCHEDULERS = dict(our_schedulers())
LINES = [shlex.split(part) for line in (SHARED, *commands().values()) for part in re.split(" &&? ", line)]
WORDS = {word for line in LINES for word in line}
TEXT = "\n".join(" ".join(line) for line in LINES)
OUTSIDE = {"--dask", "--batsim", "--batsim-arg", "--forward-profiles-at-begin", "--time-limit"}
OUTSIDE |= {"--version", "--simgrid-version", "--token-file"}
"""Options that need a cluster, a real Batsim or a real Slurm, or whose output depends on time or on the version."""


def _pairs(value: Any) -> Iterator[tuple[str, str]]:
    """(option, text) of all options in a JSON value; a part with parameters has its name for a text."""
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield key, inner.get("name", "")
            yield from _pairs(inner)
        else:
            yield key, inner


def _options() -> set[tuple[str, str]]:
    objects = [json.loads(word[word.index("{") :]) for word in WORDS if "{" in word]
    return {(option, str(text)) for value in objects for option, text in _pairs(value)}


OPTIONS = _options()
# before other tests register parts of theirs
PARTS = [(kind, name) for kind in KINDS for name in names(kind)]


def test_hashes():
    hashes = json.loads((BENCH / "same_bytes.json").read_text(encoding="utf-8"))
    assert sorted(hashes.keys() ^ commands().keys()) == ["versions"]


def test_schedulers():
    assert [name for name in SCHEDULERS if f"-s {name}" not in TEXT and name != "powercap"] == []


def test_parts():
    assert [part for part in PARTS if part not in OPTIONS] == []


def test_choices_of_options():
    choices = {
        (option, text)
        for scheduler in SCHEDULERS.values()
        for option, field in scheduler.Options.model_fields.items()
        for literal in (field.annotation, *get_args(field.annotation))
        if get_origin(literal) is not None
        for text in get_args(literal)
        if isinstance(text, str)
    }
    assert sorted(choices - OPTIONS) == []


RUN = [words for words in LEAVES if not words.startswith("slurm ")]
"""Those of a real Slurm have tests of their own: no two runs of it are the same."""


def test_commands():
    assert [words for words in RUN if not re.search(rf"^{words}\b", TEXT, re.MULTILINE)] == []


def test_options_of_commands():
    options = {tuple(one.opts) for words in RUN for one in COMMANDS[words].params if one.opts[0].startswith("-")}
    assert [names for names in options if not (WORDS | OUTSIDE).intersection(names)] == []


def test_readers():
    assert [suffix for suffix in SUFFIXES if not re.search(rf"{re.escape(suffix)}[ ,]", TEXT)] == []
    assert [name for name in TABLES if f"--format {name}" not in TEXT] == []
    assert [kind for kind in {*kinds_of_series("power"), *kinds_of_series("machines")} if f"{kind}:" not in TEXT] == []


def test_api():
    source = (BENCH / "api_calls.py").read_text(encoding="utf-8")
    called = [name for name in batwatt.__all__ if name != "__version__"]
    assert [name for name in called if not re.search(rf"\bbw\.{name}\b", source)] == []
    attributes = [name for kind in (batwatt.Result, Comparison) for name in vars(kind) if not name.startswith("_")]
    assert [name for name in attributes if f".{name}" not in source] == []
