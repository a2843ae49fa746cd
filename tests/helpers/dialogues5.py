"""Recorded dialogues of Batsim 5: those of the real one, and those of our schedulers; tests/data/README.md.

`play(words)` plays Batsim 5 with its command line: it says what was recorded for its inputs.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from functools import cache
from pathlib import Path
from typing import Any

import golden

DATA = Path(__file__).parents[1] / "data"
REAL, OURS = DATA / "batsim5.tar.xz", DATA / "batsim5-schedulers.tar.xz"
_LINE = re.compile(r'\{"from": "(\w+)"(?:, "flags": \d+)?, "message": (.*)\}')
_DEADLOCK = "Oops! Deadlock detected, some activities are still around but will never complete."


@cache
def names(archive: Path) -> list[str]:
    return sorted(path.name for path in golden.recordings(archive).iterdir())


class Recording:
    """What was said, in turn: `messages` are Batsim's, `answers` those to them; the hello stands apart.

    Of our schedulers also the same in the protocol of Batsim 4: `events` and `decisions`.
    """

    def __init__(self, archive: Path, name: str) -> None:
        self.folder = golden.recordings(archive) / name
        self.result: dict[str, Any] = json.loads((self.folder / "result.json").read_text())
        said = [_said(line) for line in (self.folder / "messages.jsonl").read_text().splitlines()]
        self.hello = said[1][1] if said else ""
        self.messages, self.answers, self.events, self.decisions = (
            [text for speaker, text in said[2:] if speaker == who] for who in ("batsim", "edc", "events", "decisions")
        )


def _said(line: str) -> tuple[str, str]:
    """Return the speaker, and the text byte for byte."""
    match = _LINE.fullmatch(line)
    if match:
        return match[1], match[2]
    value = json.loads(line)
    return value["from"], value.get("text", "")


def unversioned(hello: str) -> dict[str, Any]:
    """A hello without the version of batwatt."""
    message = json.loads(hello.rstrip("\0"))
    message["events"][0]["event"]["decision_component_version"] = ""
    return message


def play(words: list[str]) -> None:
    """Play Batsim 5 with the options `words`, and end with its exit code.

    An answer that is not the recorded one ends it with exit code 1.
    """
    import zmq

    after = {word: words[index + 1 :] for index, word in enumerate(words) if word in ("-s", "-e", "-w")}
    events = [words[words.index("--external-events") + 1]] if "--external-events" in words else []
    recordings = _of_inputs(*[Path(name).read_text() for name in (after["-w"][0], *events)])
    (endpoint, init, *_), prefix = after["-s"], after["-e"][0]
    with zmq.Context() as context, context.socket(zmq.REQ) as socket:
        socket.setsockopt(zmq.LINGER, 500)
        socket.connect(endpoint)
        text = init.encode()
        socket.send(len(text).to_bytes(4, "little") + text)
        hello = socket.recv()
        if hello[:4] != b"\2\0\0\0" or unversioned(hello[4:].decode()) != unversioned(recordings[0].hello):
            sys.exit(f"error: another hello than recorded: {hello!r}")
        turn = 0
        while turn < len(recordings[0].messages):
            socket.send_string(f"{recordings[0].messages[turn]}\0")
            answer = socket.recv_string().rstrip("\0")
            expected = [recording.answers[turn] for recording in recordings]
            recordings = [one for one, text in zip(recordings, expected, strict=True) if text == answer]
            if not recordings:
                sys.exit(f"error: recorded was {' or '.join(expected)}, answered {answer}")
            turn += 1
    Path(prefix).parent.mkdir(parents=True, exist_ok=True)
    for path in (recordings[0].folder / "out").iterdir():
        shutil.copyfile(path, prefix + path.name)
    sys.exit(_DEADLOCK if recordings[0].result["exit_code"] else 0)


def _of_inputs(*texts: str) -> list[Recording]:
    """Return the recordings with these inputs: a workload, and events. They differ by their schedulers only."""
    recordings = []
    for name in names(OURS):
        recording = Recording(OURS, name)
        paths = [recording.folder / "w0.json", recording.folder / "events.txt"]
        if [path.read_text() for path in paths if path.exists()] == list(texts):
            recordings.append(recording)
    if not recordings:
        sys.exit("error: no dialogue was recorded for this workload and these events")
    return recordings
