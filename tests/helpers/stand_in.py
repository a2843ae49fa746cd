#!/usr/bin/env python3
"""Batsim 5's command line, behind which `batwatt engine --protocol 5` plays it: a Batsim for tests without one."""

from __future__ import annotations

import os
import sys

VERSION = "v5.0.0-rc2"
NAMES = {"--external-events": "--events", "--energy-host": "--energy"}
"""Options of Batsim that the engine calls otherwise."""


def engine_words(words: list[str]) -> list[str]:
    """The engine's options for those of Batsim 5."""
    text = words.index("-s") + 2
    found = [NAMES.get(word, word) for word in words]
    found[text] = f"--init={words[text]}"
    return [*found, *([] if "--energy-host" in words else ["--no-energy"])]


if __name__ == "__main__":
    if sys.argv[1:] == ["--version"]:
        print(VERSION)
    else:
        os.execv(
            sys.executable, [sys.executable, "-m", "batwatt", "engine", "--protocol", "5", *engine_words(sys.argv[1:])]
        )
