"""Tutorials, how-to guides and README are true: their blocks are run in order, and print what the page says.

A `bash` block is run by bash in a folder of its own for each page; a `text` block right after it must be its output, in
which `...` stands for anything. A `python` block that begins with `# NAME.py` is written to that file, another is run.
`BATWATT_UPDATE_DOCS=1 pytest tests/docs` writes the outputs anew instead.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HOWTO = (
    "own-jobs", "own-power", "machines", "many-settings", "compare", "read-results", "own-scheduler", "account",
)  # fmt: skip
PAGES = [
    *sorted((ROOT / "docs" / "tutorials").glob("*.md")),
    *(ROOT / "docs" / "howto" / f"{name}.md" for name in HOWTO),
    ROOT / "docs" / "reference" / "gym.md",
    ROOT / "docs" / "index.md",
    ROOT / "README.md",
]
DATA = ("platforms", "workloads", "power_profiles", "start")
UPDATE = bool(os.environ.get("BATWATT_UPDATE_DOCS"))
BLOCK = re.compile(r"^```(bash|python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[()][A-Z0-9]|\x0f")
FILE = re.compile(r"# (\w+\.py)\n")
ROWS, WIDTH = 50, 110
LIMIT_S = 150


@dataclass(frozen=True)
class Step:
    """A block that is run; `printed` is the output on the page, `span` where that stands, None without one."""

    language: str
    source: str
    printed: str = ""
    span: tuple[int, int] | None = None


def steps_of(text: str) -> Iterator[Step]:
    """The blocks of a page that are run, each with the output that follows at once."""
    blocks = list(BLOCK.finditer(text))
    for block, following in zip_longest(blocks, blocks[1:]):
        if block[1] == "text":
            continue
        if following and following[1] == "text" and not text[block.end() : following.start()].strip():
            yield Step(block[1], block[2], following[2], following.span(2))
        else:
            yield Step(block[1], block[2])


def matches(printed: str, output: str) -> bool:
    """Whether the output is what the page prints, blanks at ends of lines aside."""
    pattern = ".*?".join(re.escape(part) for part in plain(printed).split("..."))
    return re.fullmatch(pattern, plain(output), re.DOTALL) is not None


def plain(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def shown(command: list[str], folder: Path) -> str:
    """What a command prints on a terminal of 110 columns; it must end with exit code 0."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, WIDTH, 0, 0))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "TERM": "xterm", "NO_COLOR": "1", "COLUMNS": str(WIDTH)}
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=theirs, stderr=errors, stdin=subprocess.DEVNULL
        )
        os.close(theirs)
        parts = []
        try:
            while part := os.read(ours, 65536):
                parts.append(part)
        except OSError:
            pass  # the other end is closed
        finally:
            os.close(ours)
        code = process.wait(LIMIT_S)
        errors.seek(0)
        assert code == 0, f"exit code {code} of {command[-1]}\n{errors.read()}"
    return CONTROL.sub("", b"".join(parts).decode().replace("\r\n", "\n"))


def run_step(step: Step, folder: Path) -> str:
    if step.language == "bash":
        return shown(["bash", "-euo", "pipefail", "-c", step.source], folder)
    if name := FILE.match(step.source):
        (folder / name[1]).write_text(step.source, encoding="utf-8")
        return ""
    return shown([sys.executable, "-c", step.source], folder)


LONG = ("your-site", "your-own-policy", "compare")
"""Nightly: all systems on a day and on two weeks (tests/api/test_comparison), 240 simulations of a part."""
ON_PUSH = [pytest.param(page, marks=pytest.mark.deep) if page.stem in LONG else page for page in PAGES]


@pytest.mark.parametrize("page", ON_PUSH, ids=lambda page: page.relative_to(ROOT).with_suffix("").as_posix())
def test_a_page_prints_what_comes_out(page, tmp_path):
    for name in DATA:
        (tmp_path / name).symlink_to(ROOT / name)
    text = page.read_text(encoding="utf-8")
    outputs = [(step, run_step(step, tmp_path)) for step in steps_of(text)]
    wrong = [(step, output) for step, output in outputs if step.span and not matches(step.printed, output)]
    if UPDATE:
        for step, output in reversed(wrong):
            begin, end = step.span
            text = f"{text[:begin]}{plain(output)}\n{text[end:]}"
        page.write_text(text, encoding="utf-8")
        return
    assert [(step.source, plain(step.printed), plain(output)) for step, output in wrong] == []


def test_a_command_that_fails_fails(tmp_path):
    with pytest.raises(AssertionError, match="exit code 3"):
        run_step(Step("bash", "false || exit 3\n"), tmp_path)
    assert run_step(Step("bash", "test -t 1 && echo a terminal\n"), tmp_path) == "a terminal\n"
    assert run_step(Step("python", "# x.py\nprint(1)\n"), tmp_path) == ""
    assert run_step(Step("bash", "python x.py; python -c 'print(2)' >&2\n"), tmp_path) == "1\n"
