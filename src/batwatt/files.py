"""Files: read, written whole or not at all, alone or in sets, and on the disk first; devices are refused."""

from __future__ import annotations

import errno
import fcntl
import gzip
import hashlib
import io
import json
import math
import os
import shutil
import stat
import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TextIO

from batwatt.errors import InputError

PACKAGE = Path(__file__).parent
"""Folder of the package."""
PART = ".batwatt-"
"""Begin of the names of hidden folders of files that are being written."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a disk without room."""
SMALL = 1_000_000
"""Most characters of a text that a reader may keep for later reads."""
MOST_UNPACKED = 1 << 25
"""Bytes up to which any gzip file unpacks; a longer one unpacks to at most `MOST_TIMES` its size."""
MOST_TIMES = 20
"""Greatest size of an unpacked file in sizes of the packed one: tables reach 13, zeros a thousand."""
MOST_ROWS = 600_000
"""Rows up to which any gzip file unpacks: a year of minutes; a longer one has `LEAST_ROW` packed bytes for each row."""
LEAST_ROW = 7
"""Packed bytes of a row: logs of jobs have 8 and more, equal rows a hundredth of one."""
_UNREADABLE = (OSError, EOFError, zlib.error, ValueError)
"""What reading a file raises, plain or in gzip."""
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
    to, not replaced, but not through a link elsewhere. Raises InputError if the place cannot be written.
    """
    path = Path(path)
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    stream: IO[Any] | None = None
    if path.name in ("", "..") or (is_folder(path) and not is_link(path)):
        raise InputError(path, "is a folder", "name a file in it")
    with _unwritable(path):
        if _is_stream(path):
            handle = _opened_pipe(path) if path.is_fifo() else os.open(path, os.O_WRONLY)
            stream = os.fdopen(handle, mode, **text)  # type: ignore[call-overload]
    if stream is None:
        with (
            whole_set(path.parent, old=(path.name,), place=path) as part,
            (part / path.name).open(mode, **text) as stream,  # type: ignore[call-overload]
        ):
            yield stream
        return
    try:
        with stream:
            yield stream
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(path, f"cannot be written ({error.strerror})", "choose another place") from None


def _is_stream(path: Path) -> bool:
    """Return whether a path is a device or a pipe, or a link such as /dev/stdout; other links are replaced."""
    if is_link(path):
        return str(path.absolute().parent) in ("/dev", "/dev/fd", "/proc/self/fd") and path.exists()
    return path.exists() and not (path.is_file() or path.is_dir())


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
    folder: Path, *, last: Sequence[str] = (), old: Iterable[str] = (), durable: bool = True, place: object = None
) -> Iterator[Path]:
    """Yield a new hidden folder, of which all files appear in `folder` if the block succeeds, and else none.

    The files in `last` are removed first and appear after all others, in this order: a process that is killed while
    files appear leaves a folder without them. Files in `old` that are not in the set are removed. The set is on the
    disk first, unless it is not `durable` or part of another. Sets of several processes appear one after another.
    Links are replaced, not followed, and hidden folders of other processes stay as they are. Missing folders are made,
    and removed if the block fails. Raises InputError, with `place` as its place, if it cannot be written.
    """
    place = place or folder
    with _folders(folder, place):
        with _unwritable(place):
            _refuse_folders(folder, {*last, *old})
            part = Path(tempfile.mkdtemp(prefix=PART, dir=folder))
        try:
            yield part
            with _unwritable(place), _alone_in(folder):
                _appear(part, last, old, durable and not folder.name.startswith(PART))
        except OSError as error:
            if error.errno not in FULL:
                raise
            raise InputError(place, f"cannot be written ({error.strerror})", "make room on the disk") from None
        finally:
            shutil.rmtree(part, ignore_errors=True)


def open_own(path: Path, mode: str) -> TextIO:
    """Open a text file to write it ("w") or to append ("a"), in a folder that is made if missing.

    Raises InputError if it cannot be written, or is a link, a pipe, a device or also the file of another name.
    """
    how = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
    with _unwritable(path):
        make_folder(path.parent)
        if is_link(path):
            raise OSError(errno.ELOOP, "is a link")
        file = os.fdopen(os.open(path, how, 0o666), "a", encoding="utf-8", newline="")
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode) or state.st_nlink > 1:
            file.close()
            raise OSError(errno.EPERM, "is a pipe, or also the file of another name")
        if mode == "w":
            file.truncate(0)
    return file


def refuse_folder(prefix: Path, place: str) -> None:
    """Raise InputError for a prefix of files that is a folder."""
    if prefix.name in ("", "..") or is_folder(prefix):
        raise InputError(place, f"{str(prefix)!r} is a folder", f"give a prefix of files such as {prefix / 'run'}")


def check_place(prefix: Path, place: str, names: Iterable[str] = ()) -> None:
    """Raise InputError if files, some with these names, cannot be written under a prefix; nothing is left."""
    refuse_folder(prefix, place)
    with suppress(_Tried), whole_set(prefix.parent, old=names, place=f"{place} {prefix}"):
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
            make_folder(folder)
        yield
    except BaseException:
        for empty in made:
            with suppress(OSError):
                empty.rmdir()
        raise


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, if they are missing. Raises OSError."""
    for path in (folder, *folder.parents):
        if os.path.lexists(path) and not is_folder(path):
            raise NotADirectoryError(errno.ENOTDIR, f"{path} is {'no folder' if path.exists() else 'a dead link'}")
    folder.mkdir(parents=True, exist_ok=True)


@contextmanager
def _unwritable(place: object) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        # of a path that no file can have
        problem = f"cannot be written ({getattr(error, 'strerror', None) or error})"
        raise InputError(place, problem, "choose another place for the output") from None


def _refuse_folders(folder: Path, names: Iterable[str]) -> None:
    """Raise OSError for a folder where a file of a set belongs."""
    for name in sorted(names):
        path = folder / name
        if path.is_dir() and not is_link(path):
            raise IsADirectoryError(errno.EISDIR, f"{name} is a folder")


def _appear(part: Path, last: Sequence[str], old: Iterable[str], durable: bool) -> None:
    """Move the files of a set from its hidden folder to the folder of that one. Raises OSError."""
    folder, files = part.parent, {path.name for path in part.iterdir()}
    _refuse_folders(folder, files)
    names = [*sorted(files - {*last}), *(name for name in last if name in files)]
    if durable:
        for name in names:
            sync(part / name)
    gone = sorted({*old, *last} - files)
    try:
        _move(part, names, last, gone)
    except BaseException:
        # a set that has begun to appear must not stay half
        _move(part, names, last, gone)
        raise
    if durable:
        sync(folder)


def _move(part: Path, names: Sequence[str], last: Sequence[str], gone: Sequence[str]) -> None:
    """Move the files that are still in a hidden folder, and remove those that are `gone`. Raises OSError."""
    folder, left = part.parent, [name for name in names if os.path.lexists(part / name)]
    for name in (*(name for name in reversed(last) if name in left), *gone):
        (folder / name).unlink(missing_ok=True)
    for name in left:
        (part / name).replace(folder / name)


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
    except _UNREADABLE as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path | str, error: Exception) -> InputError:
    reason = getattr(error, "strerror", None) or str(error)
    return InputError(path, f"cannot be read ({reason})", "check its path, permissions and content")


def read_bytes(path: Path | str) -> bytes:
    """Return the bytes of a file. Raises InputError if it cannot be read."""
    with readable(path):
        return Path(path).read_bytes()


def sha256_of(path: Path | str) -> str:
    """Return the SHA-256 of a file, read in parts. Raises InputError if it cannot be read."""
    with readable(path), Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


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

    Raises InputError for a file that unpacks to more than `MOST_UNPACKED` bytes and `MOST_TIMES` its size, or to more
    than `MOST_ROWS` rows and one for each `LEAST_ROW` of its bytes, for the first bytes in `FORMATS`, and while it is
    read for a line of more than `longest_line` bytes.
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
    """Raise InputError if a packed file has too many bytes or rows once unpacked; leave it at its beginning."""
    packed = path.stat().st_size
    most = {"bytes": max(MOST_UNPACKED, MOST_TIMES * packed), "rows": max(MOST_ROWS, packed // LEAST_ROW)}
    size = dict.fromkeys(most, 0)
    with readable(path):
        while all(size[what] <= most[what] for what in most) and (block := source.read(1 << 20)):
            size["bytes"] += len(block)
            size["rows"] += max(block.count(b"\n"), block.count(b"\r"))
        source.seek(0)
    for what, bound in most.items():
        if size[what] > bound:
            problem = f"unpacks to more than {bound} {what}, the most for a file of its size"
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
        try:
            content = self._source.read(len(buffer))
        except _UNREADABLE as error:
            raise _unreadable(self._path, error) from None
        buffer[: len(content)] = content
        end = content.rfind(b"\n")
        self._line = self._line + len(content) if end < 0 else len(content) - end - 1
        if self._line > self._longest:
            raise InputError(self._path, f"has a line of more than {self._longest} bytes", "is it a table, or a log?")
        return len(content)


def digest_of(path: Path) -> str | None:
    """Return the SHA-256 of a file's content; None if it cannot be read. Raises InputError for a device."""
    refuse_device(path)
    try:
        return sha256_of(path)
    except InputError:
        return None


def is_file(path: Path | str) -> bool:
    """Return whether a path is a file; False, without an error, for one that is too long or has a null byte."""
    return os.path.isfile(path)  # noqa: PTH113  (Path.is_file raises OSError for some names)


def is_folder(path: Path | str) -> bool:
    """Return whether a path is a folder; False, without an error, for one that no folder can have."""
    return os.path.isdir(path)  # noqa: PTH112  (Path.is_dir raises OSError for some names)


def is_link(path: Path | str) -> bool:
    """Return whether a path is a symbolic link; False, without an error, for one that no link can have."""
    return os.path.islink(path)  # noqa: PTH114  (Path.is_symlink raises OSError for some names)


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
