"""Files and sets of files appear at once, on the disk, or not at all, whoever is killed when."""

from __future__ import annotations

import errno
import gzip
import os
import signal
import stat
from pathlib import Path

import pytest
from files_of_tests import refusal

from batwatt import files
from batwatt.errors import InputError
from batwatt.files import open_text, read_text, whole_file, whole_set

NAMES = ("x_a.csv", "x_b.csv", "x_mark.json")


def write(folder: Path, text: str, *names: str, then=lambda: None, **options: object) -> None:
    with whole_set(folder, "x", last=("x_mark.json",), old=(*NAMES, "x_old.csv"), **options) as part:
        for name in names or NAMES:
            with whole_file(part / name) as out:
                out.write(text)
        then()


def content(folder: Path) -> dict[str, str]:
    """The visible files, and the names of hidden ones."""
    return {path.name: "" if path.is_dir() else path.read_text() for path in sorted(folder.iterdir())}


def killed(action) -> None:
    """Carry out an action in another process, which must be killed by SIGKILL in it."""
    pid = os.fork()
    if pid == 0:
        try:
            action()
        finally:
            os._exit(0)
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def dying_at(move: int):
    """`Path.replace` for files of the set, in whose n-th call (from 0) the process is killed instead."""
    moves = 0
    real = Path.replace

    def replace(self, target):
        nonlocal moves
        if Path(target).suffix != ".part" and ".part" not in Path(target).parent.name:
            moves += 1
            if moves == move + 1:
                die()
        return real(self, target)

    return replace


def test_who_is_killed_while_it_writes_leaves_nothing_after_the_next(tmp_path):
    write(tmp_path, "old")
    killed(lambda: write(tmp_path, "new", then=die))
    assert [name for name in content(tmp_path) if name not in NAMES] == [".x.1.part"]
    write(tmp_path, "next", "x_a.csv", "x_mark.json")
    assert content(tmp_path) == {"x_a.csv": "next", "x_mark.json": "next"}
    # of two runs of one prefix at a time each set is whole, and the last one to end stays
    write(tmp_path, "first", "x_a.csv", "x_b.csv", then=lambda: write(tmp_path, "second", "x_a.csv", "x_mark.json"))
    assert content(tmp_path) == {"x_a.csv": "first", "x_b.csv": "first"}


@pytest.mark.parametrize("move", range(3))
def test_who_is_killed_while_files_appear(tmp_path, monkeypatch, move):
    """Without the mark the set is not complete, and whoever writes it next completes it before all else."""
    write(tmp_path, "old")
    (tmp_path / "x_old.csv").touch()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", dying_at(move))
        killed(lambda: write(tmp_path, "new"))
    left = content(tmp_path)
    assert left.pop(".x.1.part") == "" and "x_mark.json" not in left
    assert list(left.values()) == ["new"] * move + ["old"] * (2 - move)

    def fail() -> None:
        assert content(tmp_path) == dict.fromkeys(NAMES, "new") | {".x.1.part": ""}
        raise ValueError

    with pytest.raises(ValueError):
        write(tmp_path, "newer", then=fail)
    assert content(tmp_path) == dict.fromkeys(NAMES, "new")


def test_an_interrupt_while_files_appear(tmp_path, monkeypatch):
    write(tmp_path, "old")
    real, interrupts = Path.replace, [KeyboardInterrupt]

    def replace(self, target):
        if Path(target).name == "x_b.csv" and Path(target).parent == tmp_path and interrupts:
            raise interrupts.pop()
        return real(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, "new")
    assert content(tmp_path) == dict.fromkeys(NAMES, "new")


def test_a_set_that_fails_leaves_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError):
        write(tmp_path / "a" / "b", "new", then=lambda: 1 / 0)
    assert content(tmp_path) == {}


def test_no_locks(tmp_path, monkeypatch):
    """On a file system without locks nobody's folder is taken for that of a dead process."""

    def flock(handle, how):
        raise OSError(files.UNSUPPORTED[0], "no locks")

    monkeypatch.setattr(files.fcntl, "flock", flock)
    (tmp_path / ".x.1.part").mkdir()
    (tmp_path / ".x.1.part" / files.RECORD).touch()
    write(tmp_path, "new", "x_a.csv")
    assert content(tmp_path) == {".x.1.part": "", "x_a.csv": "new"}
    for number in range(1, files.AT_ONCE + 1):
        (tmp_path / f".x.{number}.part").mkdir(exist_ok=True)
        (tmp_path / f".x.{number}.part" / files.RECORD).touch()
    with pytest.raises(InputError, match=r"cannot be written \(there are 8 files \.x\.N\.part of others"):
        write(tmp_path, "new")


def test_folders_that_cannot_be_synced(tmp_path, monkeypatch):
    """As on some network file systems; files can, or it is an error."""
    real, refused = os.fsync, [stat.S_ISDIR]

    def fsync(handle):
        if refused[0](os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    write(tmp_path, "new")
    assert content(tmp_path) == dict.fromkeys(NAMES, "new")
    refused[0] = stat.S_ISREG
    with pytest.raises(InputError, match="cannot be written"):
        write(tmp_path, "newer")
    assert content(tmp_path) == dict.fromkeys(NAMES, "new")


@pytest.fixture
def synced(monkeypatch):
    """The names of what was put on the disk, in order; `moved:` before those that got their names."""
    done: list[str] = []
    real_sync, real_replace = os.fsync, Path.replace

    def fsync(handle):
        done.append(Path(f"/proc/self/fd/{handle}").readlink().name)
        real_sync(handle)

    def replace(self, target):
        done.append(f"moved: {Path(target).name}")
        return real_replace(self, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", replace)
    return done


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks into /proc")
def test_sets_and_files_are_on_the_disk_before_they_appear(tmp_path, synced):
    write(tmp_path, "new", "x_mark.json", "x_a.csv")
    assert synced[:2] == ["moved: x_mark.json", "moved: x_a.csv"]  # within the hidden folder
    assert synced[2:6] == ["x_a.csv", "x_mark.json", ".x.1.part", ".set"]
    assert synced[6:] == ["moved: x_a.csv", "moved: x_mark.json", tmp_path.name]
    synced.clear()
    write(tmp_path, "new", "x_a.csv", durable=False)
    assert not [name for name in synced if not name.startswith("moved: ")]
    synced.clear()
    with whole_file(tmp_path / "x") as out:
        out.write("new")
    assert synced == [".x.1.part", "moved: x", tmp_path.name]


def test_a_file_whose_process_was_killed(tmp_path):
    def write_and_die() -> None:
        with whole_file(tmp_path / "x") as out:
            out.write("something long")
            out.flush()
            die()

    killed(write_and_die)
    assert content(tmp_path) == {".x.1.part": "something long"}
    with whole_file(tmp_path / "x") as one, whole_file(tmp_path / "x") as two:
        one.write("one")
        two.write("two")
    assert content(tmp_path) == {"x": "one"}


def test_a_pipe_is_written_to(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "x")
    reader = os.open(tmp_path / "x", os.O_RDONLY | os.O_NONBLOCK)
    with whole_file(tmp_path / "x") as out:
        out.write("new")
    assert os.read(reader, 10) == b"new" and (tmp_path / "x").is_fifo()
    os.close(reader)
    monkeypatch.setattr(files, "PEER_S", 0.1)
    with pytest.raises(InputError, match=r"x: cannot be written \(a pipe that nothing reads for 0.1 s\)"):
        files.write_text(tmp_path / "x", "x")


# reading -------------------------------------------------------------------------------------------------------------


def test_gzip_is_unpacked_by_its_first_bytes_whatever_the_name(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbfa,b\n1,\xe4\n"))
    with open_text(path) as stream:
        assert list(stream) == ["a,b\n", "1,\ufffd\n"]
    assert "byte 6 is not UTF-8" in refusal(read_text, path)
    path.write_bytes(gzip.compress(b"a\n") + gzip.compress("ä\n".encode()))
    assert read_text(path) == "a\nä\n"
    path.write_bytes(gzip.compress(b"a\n" * 9999)[:-20])
    for read in (read_text, lines_of):
        assert "cannot be read (Compressed file ended before the end-of-stream marker" in refusal(read, path)


def lines_of(path: Path) -> list[str]:
    with open_text(path) as stream:
        return list(stream)


def test_what_unpacks_to_a_thousand_times_its_size_is_refused(tmp_path):
    """4 MB that unpack to 4 GB: nothing is read beyond the bound."""
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(b"1,1\n" * (1 << 23)) * 2)
    for read in (read_text, lines_of):
        assert f"{path}: unpacks to more than 33554432 bytes, the most for a file of its size" in refusal(read, path)
    path.write_bytes(gzip.compress(b"1,1\n" * (1 << 23)))
    assert len(read_text(path)) == 1 << 25
    path.write_bytes(gzip.compress(b"x" * (1 << 25)))
    assert len(read_text(path)) == 1 << 25
    assert f"{path}: has a line of more than 16777216 bytes" in refusal(lines_of, path)


@pytest.mark.parametrize(
    ("first", "message"),
    [
        (b"PK\x03\x04", "is a zip archive or an Excel workbook, not UTF-8 text; unpack it, or save the sheet as CSV"),
        (b"PAR1", "is Parquet, not UTF-8 text; write it as CSV"),
        (b"\x89HDF\r\n", "is HDF5 or netCDF, not UTF-8 text; write the series as CSV"),
        (b"\xff\xfet\x00", "is in UTF-16, not UTF-8 text; save it as UTF-8 text"),
    ],
)
def test_formats_that_are_no_text_are_refused_by_name(tmp_path, first, message):
    path = tmp_path / "x.csv"
    path.write_bytes(first + b"more")
    for read in (read_text, lines_of):
        assert message in refusal(read, path)
