#!/usr/bin/env python3
"""A false Batsim for tests: `false_batsim(path, PART, ...)` writes an executable that takes Batsim's options.

play [ENDPOINT]         `batwatt engine` plays Batsim 5; without -s `batwatt batsim` Batsim 4, for this endpoint
talk CODE MESSAGE ...   say these messages of Batsim 4, each after the answer to the last, whatever signal comes
script LINE             run a line of shell
garbage                 print bytes that are no text, and die of SIGKILL

A copy of this file plays Batsim 5.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

NAMES = {"--external-events": "--events", "--energy-host": "--energy"}
"""Options of Batsim 5 that the engine calls otherwise."""


def false_batsim(path: Path, *part: object) -> Path:
    """Write the executable."""
    line = shlex.join([sys.executable, __file__, *map(str, part), "--"])
    path.write_text(f'#!/bin/sh\nexec {line} "$@"\n')
    path.chmod(0o755)
    return path


def play(words: list[str], endpoint: str = "") -> None:
    """Become the engine that plays Batsim with its options `words`."""
    if "-s" in words:
        text = words.index("-s") + 2
        options = [NAMES.get(word, word) for word in words]
        options[text] = f"--init={words[text]}"
        options = ["engine", *options, *([] if "--energy-host" in words else ["--no-energy"])]
    else:
        options = ["batsim", "-s", endpoint, *words]
    os.execv(sys.executable, [sys.executable, "-m", "batwatt", *options])


def talk(words: list[str], code: str, *messages: str) -> None:
    """Say the messages to the scheduler at the endpoint of `words`, and end with an exit code."""
    import zmq

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    socket = zmq.Context.instance().socket(zmq.REQ)
    socket.connect(words[words.index("-s") + 1])
    for message in messages:
        socket.send_string(message)
        socket.recv()
    os._exit(int(code))


def main() -> None:
    """Play the part of the command line."""
    end = sys.argv.index("--") if "--" in sys.argv else 0
    (part, *values), words = sys.argv[1:end] or ["play"], sys.argv[end + 1 :]
    if words == ["--version"]:
        print("v5.0.0-rc2" if part == "play" else "v4.2.1")
    elif part == "script":
        sys.exit(subprocess.run(["sh", "-c", *values]).returncode)
    elif part == "garbage":
        os.write(1, bytes(range(256)) * 999)
        os.kill(os.getpid(), signal.SIGKILL)
    else:
        {"play": play, "talk": talk}[part](words, *values)


if __name__ == "__main__":
    main()
