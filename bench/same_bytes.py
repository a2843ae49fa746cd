"""Hash the output of the commands of `commands.py` (SHA-256), to prove that a change of the code changes no output.

    python bench/same_bytes.py --check      compare with bench/same_bytes.json; exit code 1 if a command differs
    python bench/same_bytes.py --write      write that file

`--only TEXT` runs the commands whose name contains the text, `--hashes FILE` names another file of hashes, and `--keep
FOLDER`, which must not exist, keeps the outputs. Each command runs in a folder of its own that has the inputs of the
repository, so no output depends on where the repository is. Versions, keys of cells and elapsed time are removed before
hashing. RENAMED lists the names that a change replaces on purpose; it is empty once the new hashes are written.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shlex
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
HASHES = Path(__file__).with_suffix(".json")
RENAMED: Mapping[str, str] = {}
"""New text -> the text that it replaces in the hashed outputs."""
INPUTS: Mapping[str, str] = {
    **{name: name for name in ("platforms", "workloads", "power_profiles", "papers", "start", "tests")},
    "periods": "workloads/periods",
    "cloud": "workloads/cloud",
}
"""Name of inputs for the commands -> their path in the repository, so that no output depends on the path."""
PRINTED_FROM = ("numpy", "pandas", "matplotlib", "gymnasium", "typer", "rich")
"""Distributions that outputs depend on, with their versions in the file of hashes."""
_VARIES = [
    re.compile(rb'"versions": \{[^}]*\}'),
    re.compile(rb'"(elapsed_s|wall_s|seconds|batwatt|python)": [^,}\n]+'),
    re.compile(rb"[0-9a-f]{32,64}"),
    re.compile(rb"\b[0-9.]+ (s|min) elapsed|in [0-9.]+ s\b"),
    re.compile(rb"[0-9]+ of [0-9]+ runs, .*\n"),
]
_LONG = re.compile(rb"[0-9]+\.[0-9]{9,}(e[-+]?[0-9]+)?")
"""Numbers whose last digits differ between processors, as the vector instructions of numpy differ."""
_SKIPPED = ("study.log", ".lock", "origin.json", ".parquet", ".npz")

Hashes = dict[str, str]
"""File -> its hash; `exit` -> the exit codes."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--check", action="store_true", help="compare with the file of hashes")
    what.add_argument("--write", action="store_true", help="write the file of hashes")
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--hashes", type=Path, default=HASHES, metavar="FILE")
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    options = parser.parse_args()
    begin = time.monotonic()
    with nullcontext(options.keep) if options.keep else TemporaryDirectory(prefix="same-bytes-") as base:
        hashes, slowest = run_all(Path(base).resolve(), options.only, options.jobs)
    old = json.loads(options.hashes.read_text(encoding="utf-8")) if options.hashes.exists() else {}
    differ = 0
    if options.write:
        others = {name: files for name, files in old.items() if options.only and options.only not in name}
        write(options.hashes, {**others, **hashes, "versions": versions()})
    else:
        differ = compare(old, hashes, options.only)
    failed = sorted(name for name, files in hashes.items() if set(files["exit"].split()) != {"0"})
    print(f"{len(hashes)} commands, {sum(map(len, hashes.values()))} hashes, {differ} commands differ, ", end="")
    print(f"{time.monotonic() - begin:.0f} s; slowest: {', '.join(slowest)}")
    if failed:
        print(f"exit code not 0: {', '.join(failed)}")
    return 1 if differ else 0


def versions() -> Hashes:
    return {name: version(name) for name in PRINTED_FROM}


def write(path: Path, hashes: Mapping[str, Hashes]) -> None:
    """Write the hashes of each command in one line, for short diffs."""
    lines = [f"{json.dumps(name)}: {json.dumps(hashes[name], sort_keys=True)}" for name in sorted(hashes)]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def compare(old: Mapping[str, Hashes], new: Mapping[str, Hashes], only: str) -> int:
    """Print the files that differ; return the number of commands with a difference."""
    expected = {name: files for name, files in old.items() if only in name and name != "versions"}
    differ = 0
    for name in sorted(expected.keys() | new.keys()):
        before, now = expected.get(name, {}), new.get(name, {})
        files = [file for file in sorted(before.keys() | now.keys()) if before.get(file) != now.get(file)]
        differ += bool(files)
        for file in files:
            print(f"{name}: {file}: {before.get(file, 'absent')} -> {now.get(file, 'absent')}")
    written_with = old.get("versions", {})
    for name, installed in versions().items():
        if differ and written_with.get(name) != installed:
            print(f"note: the hashes were written with {name} {written_with.get(name)}, here is {installed}")
    return differ


def run_all(base: Path, only: str, jobs: int) -> tuple[dict[str, Hashes], list[str]]:
    """Run the commands; return the hashes of each, and the names and times of the slowest."""
    # imported once, for all forks
    import api_calls  # noqa: F401
    from commands import SHARED, commands
    from small_inputs import write_inputs

    from batwatt.cli.main import application
    from batwatt.run.find_scheduler import our_schedulers

    application()
    list(our_schedulers())
    # for the scripts that commands start
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    (base / "results").mkdir(parents=True)
    write_inputs(base / "made")
    wait_for(fork(lambda: carry_out(base, "shared", SHARED)))
    if set(json.loads((base / "results" / "shared").read_text(encoding="utf-8"))["files"]["exit"].split()) != {"0"}:
        raise SystemExit((base / "shared" / "printed.txt").read_text(encoding="utf-8"))
    waiting = [(name, line) for name, line in commands().items() if only in name][::-1]
    running: dict[int, str] = {}
    results = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            name, line = waiting.pop()
            running[fork(lambda name=name, line=line: carry_out(base, name, line))] = name
        pid, _ = os.wait()
        name = running.pop(pid)
        results[name] = json.loads((base / "results" / _folder(name)).read_text(encoding="utf-8"))
    times = sorted(((result["seconds"], name) for name, result in results.items()), reverse=True)
    return {name: result["files"] for name, result in results.items()}, [f"{name} {s:.0f} s" for s, name in times[:4]]


def carry_out(base: Path, name: str, line: str) -> int:
    """Run a line of commands (`&&`: one after another, `&`: together) in a folder of its own; store the hashes."""
    folder = base / _folder(name)
    (folder / "out").mkdir(parents=True)
    for inputs, place in INPUTS.items():
        (folder / inputs).symlink_to(ROOT / place)
    (folder / "made").symlink_to(base / "made")
    os.chdir(folder)
    begin = time.monotonic()
    codes: list[int] = []
    for step in line.split(" && "):
        forks = []
        for part in step.split(" & "):
            log = Path(f"printed{len(codes) + len(forks) or ''}.txt")
            forks.append(fork(lambda part=part, log=log: call(shlex.split(part), log)))
        codes += [wait_for(pid) for pid in forks]
        if any(codes):
            break
    files = {"exit": " ".join(map(str, codes))} | hashes_of(folder, base)
    result = {"files": files, "seconds": time.monotonic() - begin}
    (base / "results" / folder.name).write_text(json.dumps(result), encoding="utf-8")
    return 0


def call(words: list[str], log: Path) -> int:
    """Run a command, or for `api NAME` a function of `api_calls`; write its output to a file, return its exit code."""
    import api_calls

    from batwatt.__main__ import main

    with log.open("wb") as out:
        for stream in (1, 2):
            os.dup2(out.fileno(), stream)
    sys.argv = ["batwatt", *words]
    os.environ.update(COLUMNS="120", TERM="dumb")
    try:
        code = api_calls.CALLS[words[1]]() if words[0] == "api" else main()
    except SystemExit as end:
        code = end.code
    sys.stdout.flush()
    return int(code or 0)


def fork(work: Callable[[], int]) -> int:
    """Call a function in a child process, with the result as exit code; return the id of the process."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 99
    try:
        code = work()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        # handlers of the command print at the end of this process
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os._exit(code)


def wait_for(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def hashes_of(folder: Path, base: Path) -> Hashes:
    """Hash printed and written files; files of cells, whose names are keys, are hashed as a set."""
    digests_of: dict[str, list[str]] = {}
    for path in sorted([*folder.glob("printed*.txt"), *(folder / "out").rglob("*")]):
        if path.is_file() and not path.name.endswith(_SKIPPED):
            name = re.sub(r"[0-9a-f]{16,}", "KEY", str(path.relative_to(folder)).removeprefix("out/"))
            digest = hashlib.sha256(neutral(path.read_bytes(), base)).hexdigest()
            digests_of.setdefault(name, []).append(digest)
    joined = {name: "".join(sorted(digests)) for name, digests in digests_of.items()}
    return {name: hashlib.sha256(digests.encode()).hexdigest()[:8] for name, digests in joined.items()}


def neutral(data: bytes, base: Path) -> bytes:
    """Return the content without the parts that depend on the machine, the place and the time."""
    if data[:4] == b"\x89PNG":
        return data
    for place in (base, ROOT):
        data = data.replace(str(place).encode(), b"")
    for new, old in RENAMED.items():
        data = data.replace(new.encode(), old.encode())
    for pattern in _VARIES:
        data = pattern.sub(b"", data)
    return _LONG.sub(lambda match: b"%.9g" % float(match[0]), data)


def _folder(name: str) -> str:
    return re.sub(r"\W+", "-", name).strip("-")


if __name__ == "__main__":
    raise SystemExit(main())
