"""Files: read, written whole or not at all, alone or in sets, and on the disk first; devices are refused."""

from __future__ import annotations

import errno
import fcntl
import gzip
import io
import json
import math
import os
import shutil
import stat
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from batwatt.errors import InputError

RECORD = ".set"
"""The file of a hidden folder that the writer of a set locks; once the set is complete, it lists its files."""
AT_ONCE = 8
"""Most processes that write the same file or set at a time."""
SMALL = 1_000_000
"""Most characters of a text that a reader may keep for later reads."""
MOST_UNPACKED = 1 << 25
"""Bytes up to which any gzip file unpacks; a longer one unpacks to at most `MOST_TIMES` its size."""
MOST_TIMES = 20
"""Greatest size of an unpacked file in sizes of the packed one: tables reach 13, zeros a thousand."""
LONGEST_LINE = 1 << 24
"""Most bytes of a line of a file that is read line by line."""
FORMATS = {
    b"PK\x03\x04": ("a zip archive or an Excel workbook", "unpack it, or save the sheet as CSV"),
    b"BZh": ("packed by bzip2", "unpack it, or pack it by gzip"),
    b"\xfd7zXZ": ("packed by xz", "unpack it, or pack it by gzip"),
    b"\x28\xb5\x2f\xfd": ("packed by zstd", "unpack it, or pack it by gzip"),
    b"PAR1": ("Parquet", "write it as CSV"),
    b"\x89HDF": ("HDF5 or netCDF", "write the series as CSV"),
    b"CDF\x01": ("netCDF", "write the series as CSV"),
    b"CDF\x02": ("netCDF", "write the series as CSV"),
    b"\xd0\xcf\x11\xe0": ("an Excel workbook", "save the sheet as CSV"),
    b"\xff\xfe": ("in UTF-16", "save it as UTF-8 text"),
    b"\xfe\xff": ("in UTF-16", "save it as UTF-8 text"),
}
"""First bytes of files that are not read as text -> format, and what to do."""
PEER_S = 10.0
"""Longest wait in s for the reader of a named pipe."""
UNSUPPORTED = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK, errno.EBADF, errno.EINVAL)
"""Errors of file systems that have no locks, or none for folders, or cannot put folders on the disk."""


@contextmanager
def whole_file(path: Path | str, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a file that appears under `path`, on the disk, only if the block succeeds, as do missing folders.

    Text mode by default (UTF-8, `\\n`), `mode="wb"` for bytes. A device or a pipe (/dev/null, /dev/stdout) is written
    to, not replaced. Raises InputError if the place cannot be written.
    """
    path = Path(path)
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    stream: IO[Any] | None = None
    with _unwritable(path):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if path.exists() and not path.is_file():
            # a device or a pipe
            handle = _opened_pipe(path) if path.is_fifo() else os.open(path, os.O_WRONLY)
            stream = os.fdopen(handle, mode, **text)  # type: ignore[call-overload]
    if stream is not None:
        try:
            with stream:
                yield stream
        except BrokenPipeError:
            raise
        except OSError as error:
            raise InputError(path, f"cannot be written ({error.strerror})", "choose another place") from None
        return
    with _folders(path.parent, path):
        with _unwritable(path):
            part, handle = _claimed(path.parent, path.name)
        durable = not _within_set(path.parent)
        with os.fdopen(handle, mode, **text) as stream:  # type: ignore[call-overload]
            try:
                yield stream
                stream.flush()
                if durable:
                    os.fsync(handle)
                part.replace(path)
            except BaseException:
                # before it is unlocked: later it may be a file of another process
                part.unlink(missing_ok=True)
                raise
    if durable:
        sync(path.parent)


def write_text(path: Path, text: str) -> Path:
    """Write a text, whole or not at all; return the path. Raises InputError."""
    with whole_file(path) as out:
        out.write(text)
    return path


def write_json(path: Path | str, content: Mapping[str, Any], *, allow_nan: bool = False) -> None:
    """Write an object as JSON, whole or not at all. Raises InputError."""
    with whole_file(path) as out:
        json.dump(content, out, indent=2, allow_nan=allow_nan)
        out.write("\n")


@contextmanager
def whole_set(
    folder: Path,
    name: str,
    *,
    last: Sequence[str] = (),
    old: Iterable[str] = (),
    durable: bool = True,
    place: object = None,
) -> Iterator[Path]:
    """Yield a hidden folder, of which all files appear in `folder` if the block succeeds, and else none.

    The files in `last` appear after all others, in this order: where the last one is, the set is complete. Files in
    `old` that are not in the set are removed. The set is on the disk first, unless it is not `durable` or part of
    another. If this process is killed while files appear, the next one that writes the set `name` completes it, and
    one that was killed before leaves nothing. Of processes that write the same set at the same time each writes all
    of it, one after another. Missing folders are made, and removed if the block fails. Raises InputError, with `place`
    as its place, if it cannot be written.
    """
    place = place or folder / name
    with _folders(folder, place):
        with _unwritable(place):
            part, lock = _claimed(folder, name, RECORD)
        try:
            yield part
            with _unwritable(place):
                _complete(part, lock, last, old, durable and not _within_set(folder))
        finally:
            with _unwritable(place):
                try:
                    _appear(part, name)
                except BaseException:
                    # a set that has begun to appear must not stay half
                    _appear(part, name)
                    raise
                finally:
                    os.close(lock)


def refuse_folder(prefix: Path, place: str) -> None:
    """Raise InputError for a prefix of files that is a folder."""
    if prefix.name in ("", "..") or is_folder(prefix):
        raise InputError(place, f"{str(prefix)!r} is a folder", f"give a prefix of files such as {prefix / 'run'}")


def check_place(prefix: Path, place: str) -> None:
    """Raise InputError if files cannot be written under a prefix; nothing is left."""
    refuse_folder(prefix, place)
    with suppress(_Tried), whole_set(prefix.parent, prefix.name, place=f"{place} {prefix}"):
        raise _Tried


class _Tried(Exception):
    """A set of files can be written."""


@contextmanager
def _folders(folder: Path, place: object) -> Iterator[None]:
    """Make missing folders, and remove them if the block fails. Raises InputError."""
    with _unwritable(place):
        made = [missing for missing in (folder, *folder.parents) if not missing.exists()]
    try:
        with _unwritable(place):
            folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for empty in made:
            with suppress(OSError):
                empty.rmdir()
        raise


@contextmanager
def _unwritable(place: object) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        # of a path that no file can have
        problem = f"cannot be written ({getattr(error, 'strerror', None) or error})"
        raise InputError(place, problem, "choose another place for the output") from None


def _parts(folder: Path, name: str) -> list[Path]:
    return [folder / f".{name}.{number}.part" for number in range(1, AT_ONCE + 1)]


def _claimed(folder: Path, name: str, record: str = "") -> tuple[Path, int]:
    """Return a hidden file, or a folder with a `record`, free of living processes, empty, locked. Raises OSError."""
    for part in _parts(folder, name):
        if (lock := _locked(part, record)) is not None:
            if record:
                with _alone_in(folder):
                    _settle(part)
            os.truncate(lock, 0)
            return part, lock
    hidden = f"{AT_ONCE} files .{name}.N.part of others, or of killed processes where files cannot be locked"
    raise OSError(errno.EBUSY, f"there are {hidden}", str(folder / name))


def _locked(part: Path, record: str = "") -> int | None:
    """Make a hidden file, or a folder with a `record`, and lock it; None if it is another process's. Raises OSError."""
    path = part / record
    tries = 100
    while True:
        try:
            tries -= 1
            if record:
                part.mkdir(exist_ok=True)
            made = not path.exists()
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        except FileNotFoundError:
            # its process has ended meanwhile; a folder such as /proc holds no files of ours
            if tries and part.parent.is_dir():
                continue
            raise
        except OSError:
            if part.exists():
                return None
            raise
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists() and os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        except OSError as error:
            if made and error.errno in UNSUPPORTED:
                return handle
            os.close(handle)
            return None
        os.close(handle)


def _within_set(folder: Path) -> bool:
    return (folder / RECORD).exists()


def _complete(part: Path, lock: int, last: Sequence[str], old: Iterable[str], durable: bool) -> None:
    """Record that the set in a hidden folder is complete: from here on it will appear."""
    files = {path.name for path in part.iterdir()} - {RECORD}
    names = [*sorted(files - {*last}), *(name for name in last if name in files)]
    if durable:
        for name in names:
            sync(part / name)
        sync(part)
    os.pwrite(lock, json.dumps({"files": names, "old": sorted({*old} - files), "durable": durable}).encode(), 0)
    if durable:
        os.fsync(lock)


def _appear(part: Path, name: str) -> None:
    """Let a set appear, after those of processes that were killed, or remove it if it is not complete."""
    with _alone_in(part.parent):
        for other in _parts(part.parent, name):
            if other != part and other.is_dir() and (lock := _locked(other, RECORD)) is not None:
                _settle(other)
                _remove(other)
                os.close(lock)
        _settle(part)
        _remove(part)


def _settle(part: Path) -> None:
    """Move the files of a complete set to their folder, and empty the hidden folder."""
    folder = part.parent
    try:
        record = json.loads((part / RECORD).read_bytes())
    except (ValueError, FileNotFoundError):
        record = {"files": [], "old": [], "durable": False}
    names = record["files"]
    if names and (part / names[-1]).exists():
        # a reader sees meanwhile that the set is not complete
        (folder / names[-1]).unlink(missing_ok=True)
    for name in record["old"]:
        (folder / name).unlink(missing_ok=True)
    for name in names:
        if (part / name).exists():
            (part / name).replace(folder / name)
    if record["durable"]:
        sync(folder)
    for left in part.iterdir():
        if left.is_dir():
            shutil.rmtree(left)
        elif left.name != RECORD:
            left.unlink()


def _remove(part: Path) -> None:
    (part / RECORD).unlink(missing_ok=True)
    try:
        part.rmdir()
    except OSError:
        pass  # another process has begun to use it


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Lock the folder, where folders can be locked: no other process lets a set appear in it during the block."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in UNSUPPORTED:
                raise
        yield
    finally:
        os.close(handle)


def sync(path: Path) -> None:
    """Put a file, or the names in a folder, on the disk and not only in memory."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in UNSUPPORTED or not path.is_dir():
            raise
    finally:
        os.close(handle)


@contextmanager
def readable(path: Path | str) -> Iterator[None]:
    """Let the block read a file. Raises InputError if it is a device or a pipe, or cannot be read."""
    refuse_device(path)
    try:
        yield
    except (OSError, EOFError, zlib.error, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(path, f"cannot be read ({reason})", "check its path, permissions and content") from None


def read_bytes(path: Path | str) -> bytes:
    """Return the bytes of a file. Raises InputError if it cannot be read."""
    with readable(path):
        return Path(path).read_bytes()


def read_text(path: Path | str) -> str:
    """Return the text of a UTF-8 file, or of one in gzip, without a byte order mark. Raises InputError."""
    with open_bytes(path) as stream:
        content = stream.read()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(path, f"byte {error.start} is not UTF-8", "save the file as UTF-8 text") from None


@contextmanager
def open_bytes(path: Path | str, longest_line: float = math.inf) -> Iterator[IO[bytes]]:
    """Open a file of text for reading, unpacked if it begins like gzip, whatever its name.

    Raises InputError for a file that unpacks to more than `MOST_UNPACKED` bytes and `MOST_TIMES` its size, for the
    first bytes in `FORMATS`, and while it is read for a line of more than `longest_line` bytes.
    """
    path = Path(path)
    with ExitStack() as files:
        with readable(path):
            packed = files.enter_context(path.open("rb"))
            first = packed.peek(8)
        for mark, (name, hint) in FORMATS.items():
            if first.startswith(mark):
                raise InputError(path, f"is {name}, not UTF-8 text", hint)
        is_packed = first.startswith(b"\x1f\x8b")
        source: io.BufferedIOBase = gzip.GzipFile(fileobj=packed) if is_packed else packed
        if is_packed:
            # before rows of it are in memory
            _refuse_unpacked(source, path)
        yield files.enter_context(io.BufferedReader(_Lines(source, path, longest_line), 1 << 16))


def _refuse_unpacked(source: io.BufferedIOBase, path: Path) -> None:
    """Raise InputError if a packed file is too large once unpacked; leave it at its beginning."""
    size, most = 0, max(MOST_UNPACKED, MOST_TIMES * path.stat().st_size)
    with readable(path):
        while size <= most and (block := source.read(1 << 20)):
            size += len(block)
        source.seek(0)
    if size > most:
        problem = f"unpacks to more than {most} bytes, the most for a file of its size"
        raise InputError(path, problem, "unpack it yourself if that is right")


@contextmanager
def open_text(path: Path | str) -> Iterator[IO[str]]:
    """Open a file of text for reading line by line, as `open_bytes` does. Raises InputError.

    Bytes that are not UTF-8 become replacement characters: comments of old logs have names in other encodings.
    """
    with (
        readable(path),
        open_bytes(path, LONGEST_LINE) as stream,
        io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="") as text,
    ):
        yield text


class _Lines(io.RawIOBase):
    """The bytes of a stream; reading raises InputError for a line of more than `longest` bytes."""

    def __init__(self, source: io.BufferedIOBase, path: Path, longest: float) -> None:
        self._source, self._path, self._longest = source, path, longest
        self._line = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read bytes into a buffer; return their number. Raises InputError."""
        with readable(self._path):
            content = self._source.read(len(buffer))
        buffer[: len(content)] = content
        end = content.rfind(b"\n")
        self._line = self._line + len(content) if end < 0 else len(content) - end - 1
        if self._line > self._longest:
            raise InputError(self._path, f"has a line of more than {self._longest} bytes", "is it a table, or a log?")
        return len(content)


def is_file(path: Path | str) -> bool:
    """Return whether a path is a file; False, without an error, for one that is too long or has a null byte."""
    return os.path.isfile(path)  # noqa: PTH113


def is_folder(path: Path | str) -> bool:
    """Return whether a path is a folder; False, without an error, for one that no folder can have."""
    return os.path.isdir(path)  # noqa: PTH112


def refuse_device(path: Path | str) -> None:
    """Raise InputError for a device or a pipe, such as /dev/zero: some never end, and inputs are read several times.

    /dev/null is allowed.
    """
    try:
        state = Path(path).stat()
    except (OSError, ValueError):
        return  # the reader reports why it cannot be read
    if stat.S_ISCHR(state.st_mode) and state.st_rdev == Path(os.devnull).stat().st_rdev:
        return
    if not (stat.S_ISREG(state.st_mode) or stat.S_ISDIR(state.st_mode)):
        kind = "a pipe" if stat.S_ISFIFO(state.st_mode) else "a device"
        raise InputError(path, f"is {kind}, not a file", "save its content in a file")


def _opened_pipe(path: Path) -> int:
    """Return the end of a named pipe to write to, once there is a reader. Raises OSError."""
    until = time.monotonic() + PEER_S
    while True:
        try:
            handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            os.set_blocking(handle, True)
            return handle
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            if time.monotonic() > until:
                raise OSError(errno.ENXIO, f"a pipe that nothing reads for {PEER_S:g} s") from None
            time.sleep(0.05)
