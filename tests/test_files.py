"""Files and sets of files appear on the disk or not at all, whoever is killed when, and whatever lies in the folder."""

from __future__ import annotations

import errno
import gzip
import os
import random
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
    with whole_set(folder, last=("x_mark.json",), old=(*NAMES, "x_old.csv"), **options) as part:
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
        if not Path(target).parent.name.startswith(files.PART):
            moves += 1
            if moves == move + 1:
                die()
        return real(self, target)

    return replace


def hidden(folder: Path) -> list[str]:
    return [name for name in content(folder) if name.startswith(files.PART)]


def test_who_is_killed_while_it_writes_leaves_a_hidden_folder(tmp_path):
    write(tmp_path, "old")
    killed(lambda: write(tmp_path, "new", then=die))
    [left] = hidden(tmp_path)
    assert content(tmp_path) == dict.fromkeys(NAMES, "old") | {left: ""}
    write(tmp_path, "next", "x_a.csv", "x_mark.json")
    assert content(tmp_path) == {"x_a.csv": "next", "x_mark.json": "next", left: ""}
    # of two runs of one prefix at a time each set is whole, and the last one to end stays
    write(tmp_path, "first", "x_a.csv", "x_b.csv", then=lambda: write(tmp_path, "second", "x_a.csv", "x_mark.json"))
    assert content(tmp_path) == {"x_a.csv": "first", "x_b.csv": "first", left: ""}


@pytest.mark.parametrize("move", range(3))
def test_who_is_killed_while_files_appear(tmp_path, monkeypatch, move):
    """Without the mark the set is not complete; the next one is."""
    write(tmp_path, "old")
    (tmp_path / "x_old.csv").touch()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", dying_at(move))
        killed(lambda: write(tmp_path, "new"))
    left = content(tmp_path)
    assert left.pop(*hidden(tmp_path)) == "" and "x_mark.json" not in left
    assert list(left.values()) == ["new"] * move + ["old"] * (2 - move)
    write(tmp_path, "newer")
    assert {name: text for name, text in content(tmp_path).items() if text} == dict.fromkeys(NAMES, "newer")


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
    def flock(handle, how):
        raise OSError(files.UNSUPPORTED[0], "no locks")

    monkeypatch.setattr(files.fcntl, "flock", flock)
    write(tmp_path, "new", "x_a.csv")
    assert content(tmp_path) == {"x_a.csv": "new"}


def test_a_folder_in_the_place_of_a_file(tmp_path):
    """It is named before the work begins if the name is declared, and nothing appears in any case."""
    write(tmp_path, "old")
    begun: list[str] = []
    for name in ("x_old.csv", "x_new.csv"):
        (tmp_path / name).mkdir()
        with pytest.raises(InputError, match=rf"cannot be written \({name} is a folder\)"):
            write(tmp_path, "new", *NAMES, "x_new.csv", then=lambda name=name: begun.append(name))
        (tmp_path / name).rmdir()
    assert begun == ["x_new.csv"] and content(tmp_path) == dict.fromkeys(NAMES, "old")


@pytest.mark.parametrize("path", ["", ".", "..", "/", "folder", "folder/", "folder/..", "new/.."])
def test_a_folder_for_a_file(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    with pytest.raises(InputError) as error:
        files.write_text(Path(path), "text")
    assert str(error.value) == f"{Path(path)}: is a folder; name a file in it"
    assert [*tmp_path.rglob("*")] == [tmp_path / "folder"]


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "dead").symlink_to(tmp_path / "none")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    (tmp_path / "file").touch()
    left = {path.name for path in tmp_path.iterdir()}
    for name, problem in (("dead", "a dead link"), ("circle", "a dead link"), ("file", "no folder")):
        message = rf"x: cannot be written \({tmp_path / name} is {problem}\); choose"
        for path in (tmp_path / name / "x", tmp_path / name / "a/x"):
            for write_to in (lambda path: files.write_text(path, "text"), lambda path: files.open_own(path, "a")):
                with pytest.raises(InputError, match=message):
                    write_to(path)
    assert {path.name for path in tmp_path.iterdir()} == left


def test_a_full_disk(tmp_path):
    write(tmp_path, "old")

    def fill() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(InputError, match=r"cannot be written \(No space left on device\); make room"):
        write(tmp_path, "new", then=fill)
    assert content(tmp_path) == dict.fromkeys(NAMES, "old")


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
    assert synced[2:] == ["x_a.csv", "x_mark.json", "moved: x_a.csv", "moved: x_mark.json", tmp_path.name]
    synced.clear()
    write(tmp_path, "new", "x_a.csv", durable=False)
    assert not [name for name in synced if not name.startswith("moved: ")]
    synced.clear()
    with whole_file(tmp_path / "x") as out:
        out.write("new")
    assert synced == ["x", "moved: x", tmp_path.name]


def test_a_file_whose_process_was_killed(tmp_path):
    def write_and_die() -> None:
        with whole_file(tmp_path / "x") as out:
            out.write("something long")
            out.flush()
            die()

    (tmp_path / "x").write_text("old")
    killed(write_and_die)
    [left] = hidden(tmp_path)
    assert content(tmp_path) == {"x": "old", left: ""}
    with whole_file(tmp_path / "x") as one, whole_file(tmp_path / "x") as two:
        one.write("one")
        two.write("two")
    assert content(tmp_path) == {"x": "one", left: ""}


def test_rights_are_those_of_other_files(tmp_path):
    (tmp_path / "other").write_text("")
    files.write_text(tmp_path / "x", "x")
    write(tmp_path, "new")
    modes = {path.name: path.stat().st_mode for path in tmp_path.iterdir()}
    assert set(modes.values()) == {modes["other"]}


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
    path, lines = tmp_path / "x.gz", (b"1,1".ljust(127) + b"\n") * (1 << 18)
    path.write_bytes(gzip.compress(lines) * 2)
    for read in (read_text, lines_of):
        assert f"{path}: unpacks to more than 33554432 bytes, the most for a file of its size" in refusal(read, path)
    path.write_bytes(gzip.compress(lines))
    assert len(read_text(path)) == 1 << 25
    path.write_bytes(gzip.compress(b"x" * (1 << 25)))
    assert len(read_text(path)) == 1 << 25
    assert f"{path}: has a line of more than 16777216 bytes" in refusal(lines_of, path)


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_what_unpacks_to_millions_of_rows_is_refused(tmp_path, end):
    """Rows take hundreds of bytes as jobs: 600,000, or one for each 7 bytes of the packed file."""
    path = tmp_path / "x.csv"
    path.write_bytes(gzip.compress((b"1,1,1" + end) * 600_000))
    assert len(lines_of(path)) == 600_000
    path.write_bytes(gzip.compress((b"1,1,1" + end) * 600_001))
    for read in (read_text, lines_of):
        message = f"{path}: unpacks to more than 600000 rows, the most for a file of its size; unpack it yourself"
        assert message in refusal(read, path)
    # noise of 7 MB, in lines of a few hundred bytes
    noise = gzip.compress(random.Random(1).randbytes(7_000_000))
    path.write_bytes(noise + gzip.compress(end + (b"1,1,1" + end) * 600_001))
    assert len(lines_of(path)) > 600_001


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
