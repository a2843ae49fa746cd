"""The journal: a line of JSON for each exchange with the scheduler, and for each command that changes something.

Lines: `begin` (what this session is of), `exchange` (message and reply, written before anything is done), `do` (a
command, what it is for, and its answer), `note` (what happened), `end` (why, and that everything was given back).
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from batwatt.engine import batsim4
from batwatt.engine import events as ev
from batwatt.errors import BatwattError, InputError
from batwatt.files import open_own, refuse_device

LOCKS = Path("/run")
"""Folder of locks that only root can create."""


class Journal:
    """A file of lines that is only appended to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: TextIO | None = None
        self.ending = False
        """True once a line that cannot be written is no error any more."""

    def open(self) -> None:
        """Open the file for appending, without a line that a crash left half written. Raises InputError."""
        self._file = open_own(self.path, "a")
        self._file.truncate(self.path.read_bytes().rfind(b"\n") + 1)

    def write(self, kind: str, *, sync: bool = False, **values: Any) -> None:
        """Append a line; with `sync` it is on the disk when this returns."""
        file = self._file
        if file is None:
            return
        date = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        try:
            file.write(json.dumps({"time": date, "kind": kind, **values}) + "\n")
            file.flush()
            if sync:
                os.fsync(file.fileno())
        except OSError:
            if not self.ending:
                raise

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
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None

    def session(self) -> tuple[Mapping[str, Any], list[tuple[ev.Message, ev.Reply]]] | None:
        """Return the beginning and the exchanges of the last session, if it did not end in order. Raises InputError.

        The beginning has the last totals of the session, too, if there are some.
        """
        begin: Mapping[str, Any] | None = None
        rows: list[tuple[int, Mapping[str, Any]]] = []
        for number, row in self._rows():
            if row["kind"] == "begin":
                begin, rows = row, []
            elif row["kind"] == "end":
                begin, rows = None, []
            elif row["kind"] == "exchange":
                rows.append((number, row))
            elif row["kind"] == "totals" and begin is not None:
                begin = {**begin, "totals": row["totals"]}
        return None if begin is None else (begin, [self._exchange(number, row) for number, row in rows])

    def _exchange(self, number: int, row: Mapping[str, Any]) -> tuple[ev.Message, ev.Reply]:
        try:
            message = batsim4.read_message(json.dumps(row["message"]))
            return message, batsim4.read_reply(json.dumps(row["reply"]))
        except (KeyError, BatwattError) as error:
            raise InputError(
                f"{self.path}: line {number}", str(error), "give another --export, or move it away"
            ) from None

    def _rows(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        if not self.path.exists():
            return
        refuse_device(self.path)
        with self.path.open(encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, 1):
                if line.endswith("\n"):
                    try:
                        row = json.loads(line)
                        assert isinstance(row["kind"], str)
                    except (ValueError, KeyError, TypeError, AssertionError):
                        raise InputError(
                            f"{self.path}: line {number}",
                            "is no line of a journal",
                            "give another --export, or move it away",
                        ) from None
                    yield number, row


def same_decisions(one: ev.Reply, other: ev.Reply) -> bool:
    """Return whether two replies decide the same, whenever."""
    texts = [
        [(row["type"], row["data"]) for row in json.loads(batsim4.write_reply(reply))["events"]]
        for reply in (one, other)
    ]
    return texts[0] == texts[1]


@contextmanager
def only_one(cluster: str) -> Iterator[None]:
    """Hold the lock of a cluster on this machine. Raises InputError if another process has it."""
    folder = LOCKS if os.access(LOCKS, os.W_OK) else Path(tempfile.gettempdir())
    path = folder / f"batwatt-slurm-{cluster}.lock"
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise InputError(path, f"cannot be opened ({error.strerror})", "remove it") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(
                f"cluster {cluster}", "another `batwatt slurm` operates it", "end that one first"
            ) from None
        yield
    finally:
        os.close(handle)
