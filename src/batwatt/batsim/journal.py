"""The journal of a session with a scheduler: a line of JSON for each exchange, and for what the session adds.

Lines: `begin` (what this session is of), `exchange` (message and reply, written before anything is done), `totals`,
`end` (why, and that all is in order), and others, which are for readers only. `n` counts them, `crc` is the CRC-32 of
the line without it.
"""

from __future__ import annotations

import json
import os
import threading
import zlib
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from batwatt.batsim import batsim4
from batwatt.batsim import events as ev
from batwatt.errors import BatwattError, InputError
from batwatt.files import open_own, refuse_device
from batwatt.units import now_text

MOST_BYTES = 64 << 20
"""Length in bytes at which a journal goes on in a new file."""
OLDER = 9
"""Number of older journals that are stored beside the present one, as PATH.1 (the last) to PATH.9."""


class Journal:
    """A file of lines that is only appended to. Threads may write."""

    def __init__(self, path: Path, most_bytes: int = MOST_BYTES) -> None:
        self.path = path
        self.ending = False
        """True once a line that cannot be written is no error any more."""
        self._most_bytes = most_bytes
        self._file: TextIO | None = None
        self._number = 0
        """Number of the last line."""
        self._length = 0
        """Length in bytes of the whole lines that were read."""
        self._lock = threading.RLock()

    def begin(self, **values: Any) -> None:
        """Begin a new file with the line `begin`; an older one gets another name. Raises InputError."""
        with self._lock:
            self.close()
            open_own(self.path, "a").close()
            if self.path.stat().st_size:
                for i in range(OLDER, 0, -1):
                    older = self.path.with_name(f"{self.path.name}.{i - 1}") if i > 1 else self.path
                    if older.exists():
                        older.replace(self.path.with_name(f"{self.path.name}.{i}"))
            self._file, self._number = open_own(self.path, "w"), 0
            self.write("begin", sync=True, **values)

    def resume(self) -> None:
        """Open the file for appending, without a line that a crash left half written. Raises InputError."""
        if not self._length:
            # `session` has not read it
            deque(self._rows(), 0)
        self._file = open_own(self.path, "a")
        self._file.truncate(self._length)

    @property
    def full(self) -> bool:
        """True if the journal is to go on in a new file."""
        with self._lock:
            return self._file is not None and self._file.tell() > self._most_bytes

    def write(self, kind: str, *, sync: bool = False, **values: Any) -> None:
        """Append a line; with `sync` it is on the disk when this returns."""
        with self._lock:
            file = self._file
            if file is None:
                return
            # a line that a full disk does not take stays in the buffer, before the next one
            self._number += 1
            text = json.dumps({"n": self._number, "time": now_text("milliseconds"), "kind": kind, **values})
            try:
                file.write(f'{text[:-1]}{CHECKSUM}{zlib.crc32(text.encode()):08x}"}}\n')
                file.flush()
                if sync:
                    os.fsync(file.fileno())
            except OSError:
                if not self.ending:
                    raise

    def note(self, what: str, **values: Any) -> None:
        """Append a line `note` of what happened."""
        self.write("note", what=what, **values)

    def exchange(self, message: ev.Message, reply: ev.Reply) -> None:
        """Append a message and its reply, before the reply is carried out."""
        self.write(
            "exchange",
            sync=bool(reply.decisions),
            message=json.loads(batsim4.write_message(message)),
            reply=json.loads(batsim4.write_reply(reply)),
        )

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):
                file.close()

    def session(self) -> tuple[Mapping[str, Any], list[tuple[ev.Message, ev.Reply]]] | None:
        """Return the beginning and the exchanges of the session, if it did not end in order. Raises InputError.

        The beginning has the last totals of the session, too, if there are some.
        """
        begin: Mapping[str, Any] | None = None
        exchanges: list[tuple[ev.Message, ev.Reply]] = []
        for number, row in enumerate(self._rows(), 1):
            if row["kind"] == "begin":
                begin = row
            elif row["kind"] == "end":
                return None
            elif row["kind"] == "exchange":
                exchanges.append(self._exchange(number, row))
            elif row["kind"] == "totals" and begin is not None:
                begin = {**begin, "totals": row["totals"]}
        return None if begin is None else (begin, exchanges)

    def _exchange(self, number: int, row: Mapping[str, Any]) -> tuple[ev.Message, ev.Reply]:
        try:
            message = batsim4.read_message(json.dumps(row["message"]))
            return message, batsim4.read_reply(json.dumps(row["reply"]))
        except (KeyError, BatwattError) as error:
            raise self._damaged(number, str(error)) from None

    def _rows(self) -> Iterator[Mapping[str, Any]]:
        if not self.path.exists():
            return
        refuse_device(self.path)
        self._length = 0
        with self.path.open("rb") as file:
            for number, content in enumerate(file, 1):
                line = content.decode(errors="replace")
                # a crash may leave the last line half written
                if not line.endswith("\n"):
                    continue
                self._number, self._length = number, self._length + len(content)
                text, _, checksum = line[:-3].rpartition(CHECKSUM)
                text += "}"
                if not text[1:] or checksum != f"{zlib.crc32(text.encode()):08x}":
                    raise self._damaged(number, "is no line of a journal, or not as it was written")
                row = json.loads(text)
                if row["n"] != number:
                    raise self._damaged(number, f"has the number {row['n']}: lines are missing")
                yield row

    def _damaged(self, line: int, problem: str) -> InputError:
        hint = "give --fresh to go on with the state of Slurm alone, or --export for another journal"
        return InputError(f"{self.path}: line {line}", problem, hint)


CHECKSUM = ', "crc": "'
"""Begin of the last value of a line."""


def same_decisions(one: ev.Reply, other: ev.Reply) -> bool:
    """Return whether two replies decide the same, whenever."""

    def decided(reply: ev.Reply) -> list[tuple[Any, Any]]:
        return [(row["type"], row["data"]) for row in json.loads(batsim4.write_reply(reply))["events"]]

    return decided(one) == decided(other)
