"""Replaying dialogues recorded from Batsim 5 (v5.0.0-rc2) against the embedded engine.

tests/data/README.md says how the recordings are packed.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import golden

from batwatt.batsim.batsim5_schema import read_hello, read_reply, write_message
from batwatt.engine.server5 import Engine5
from batwatt.inputs.batsim_files import read_events5, read_workload5
from batwatt.inputs.platform_files import HostChoice, read_platform5
from batwatt.model.record import Record

ARCHIVE = Path(__file__).parents[1] / "data" / "batsim5.tar.xz"
_LINE = re.compile(r'\{"from": "(batsim|edc)"(?:, "flags": \d+)?, "message": (.*)\}')


def names() -> list[str]:
    return sorted(path.name for path in golden.recordings(ARCHIVE).iterdir())


class Recording:
    """What was said, in turn: `asked` are Batsim's messages, `answers` those to them; the hello stands apart."""

    def __init__(self, name: str) -> None:
        self.folder = golden.recordings(ARCHIVE) / name
        self.exit_code = json.loads((self.folder / "result.json").read_text())["exit_code"]
        self.words = shlex.split((self.folder / "command.txt").read_text())
        said = [self._said(line) for line in (self.folder / "messages.jsonl").read_text().splitlines()]
        self.stopped = bool(said) and said[-1][0] == "recorder"
        self.hello = said[1][1].encode() if said else b""
        self.asked = [text for who, text in said[2:] if who == "batsim"]
        self.answers = [text.encode() for who, text in said[2:] if who == "edc"]

    @staticmethod
    def _said(line: str) -> tuple[str, str]:
        match = _LINE.fullmatch(line)
        if match:
            return match[1], match[2]
        value = json.loads(line)
        return value["from"], value.get("text", "")

    def _given(self, option: str) -> list[str]:
        return [value for word, value in zip(self.words, self.words[1:], strict=False) if word == option]

    def engine(self) -> Engine5:
        """The engine of the recorded command line, after the hello."""
        loads = [read_workload5(self.folder / name, f"w{i}") for i, name in enumerate(self._given("-w"))]
        events = [read_events5(self.folder / name, f"ee{i}") for i, name in enumerate(self._given("--ee"))]
        master = (self._given("-m") or ["master_host"])[0]
        roles = {self.words[i + 1]: self.words[i + 2] for i, word in enumerate(self.words) if word == "-r"}
        platform, storage = read_platform5(self.folder / "platform.xml", master, roles)
        platform = HostChoice(master, int((self._given("--mmax") or ["0"])[0])).of(platform)
        features = read_hello(b"\2\0\0\0" + self.hello)
        return Engine5(platform, loads, events, features, energy="--energy-host" in self.words, storage=storage)

    def replay(self, sent: list[str]) -> Record | None:
        """Play the recorded scheduler; `sent` collects what the engine says. None: stopped as the recorder did."""
        engine = self.engine()
        for answer in self.answers:
            sent.append(write_message(engine.message()).removesuffix("\0"))
            engine.reply(read_reply(answer))
        if not engine.ended and not self.stopped:
            sent.append(write_message(engine.message()))
        return engine.close() if engine.ended else None
