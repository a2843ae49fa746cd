#!/usr/bin/env python3
"""A false Batsim for tests: `false_batsim(path, PART, ...)` writes an executable that takes Batsim's options.

recorded                Batsim 5, which says what was recorded for its inputs (dialogues5.py)
either ENDPOINT         the same; without -s `batwatt batsim` plays Batsim 4, for this endpoint
talk CODE MESSAGE ...   say these messages of Batsim 4, each after the answer to the last, whatever signal comes
script LINE             run a line of shell
garbage                 print bytes that are no text, and die of SIGKILL
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path


def false_batsim(path: Path, *part: object) -> Path:
    """Write the executable."""
    line = shlex.join([sys.executable, __file__, *map(str, part), "--"])
    path.write_text(f'#!/bin/sh\nexec {line} "$@"\n')
    path.chmod(0o755)
    return path


def recorded(words: list[str], endpoint: str = "") -> None:
    """Play Batsim 5 with the options `words`; without -s become Batsim 4."""
    if "-s" not in words:
        os.execv(sys.executable, [sys.executable, "-m", "batwatt", "batsim", "-s", endpoint, *words])
    import dialogues5

    dialogues5.play(words)


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
    end = sys.argv.index("--")
    (part, *values), words = sys.argv[1:end], sys.argv[end + 1 :]
    if words == ["--version"]:
        print("v5.0.0-rc2" if part == "recorded" else "v4.2.1")
    elif part == "script":
        sys.exit(subprocess.run(["sh", "-c", *values]).returncode)
    elif part == "garbage":
        os.write(1, bytes(range(256)) * 999)
        os.kill(os.getpid(), signal.SIGKILL)
    else:
        {"recorded": recorded, "either": recorded, "talk": talk}[part](words, *values)


if __name__ == "__main__":
    main()
