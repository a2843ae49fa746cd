"""What the documentation says holds: its commands parse, its links lead somewhere."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from cli_commands import COMMANDS

from batwatt.errors import InputError

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
DOCS = ("docs", "docs/tutorials", "docs/howto", "docs/reference", "docs/explanation", "docker", "papers")
FOLDERS = [
    *DOCS,
    "platforms",
    "power_profiles",
    "workloads",
    *(path.parent for path in ROOT.glob("papers/*/README.md")),
]
PAGES = sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).glob("*.md"))])
SHELL = ("&", "|", ">", ">>", "2>", "2>&1", "<")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def check_command(line: str) -> None:
    """Assert that the parser of `batwatt ...` takes its words."""
    # a variable of the shell may be a number
    words = shlex.split(re.sub(r"\$\w+", "1", line))
    assert words[0] == "batwatt", line
    # what follows is the shell's
    words = words[1 : next((i for i, word in enumerate(words) if word in SHELL), len(words))]
    command = COMMANDS[""]
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        assert words[0] in command.commands, f"no command {words[0]!r} in: {line}"
        command = command.commands[words.pop(0)]
    if not {"-h", "--help", "--help-all"} & {*words}:
        try:
            command.make_context(command.name, words)
        except InputError as error:
            # files of the reader are not there
            assert "no such file or folder" in str(error)


def options_of(line: str) -> dict[str, str]:
    """Option -> value of a command line in which every option has one."""
    words = shlex.split(line)
    return {word: words[i + 1] for i, word in enumerate(words[:-1]) if word.startswith("-")}


def blocks(page: Path, language: str) -> list[str]:
    return [body for name, body in FENCE.findall(page.read_text(encoding="utf-8")) if name == language]


def commands(page: Path) -> list[str]:
    lines = [line for block in blocks(page, "bash") for line in block.replace("\\\n", " ").splitlines()]
    return [line.strip() for line in lines if line.strip().startswith("batwatt ")]


def test_there_are_commands_to_check():
    assert len(commands(README)) >= 2 and sum(len(commands(page)) for page in PAGES) >= 80


@pytest.mark.parametrize(("page", "line"), [(page.name, line) for page in PAGES for line in commands(page)])
def test_every_command_parses(page, line):
    check_command(line)


def slug(heading: str) -> str:
    """The anchor that is made of a heading: lower case, no punctuation, blanks to hyphens."""
    characters = (c for c in heading.lower() if c in " -_" or unicodedata.category(c)[0] in "LN")
    return "".join(characters).replace(" ", "-")


def links(page: Path) -> list[str]:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    return [target for target in targets if "://" not in target and not target.startswith("mailto:")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    for target in links(page):
        name, _, anchor = target.partition("#")
        goal = (page.parent / name).resolve() if name else page
        assert goal.exists(), f"{target} in {page.name}"
        if anchor and goal.suffix == ".md":
            text = FENCE.sub("", goal.read_text(encoding="utf-8"))
            if "<!-- generated: " in text:
                continue  # `make docs` knows its headings
            headings = [slug(line.lstrip("#").strip()) for line in text.splitlines() if line.startswith("#")]
            assert anchor in headings, f"{target} in {page.name}: {headings}"


def test_pages_that_the_code_names_exist():
    for folder in ("src", "schedulers", "papers", "tests", "bench"):
        for path in (ROOT / folder).rglob("*.py"):
            for name in re.findall(r"docs/[\w/-]+\.md", path.read_text(encoding="utf-8")):
                assert (ROOT / name).exists(), f"{path.relative_to(ROOT)} names {name}"


def test_the_picture_is_of_today():
    made = subprocess.run(
        [sys.executable, ROOT / "docs/images/make.py", "--check"], capture_output=True, text=True, timeout=120
    )
    assert (made.returncode, made.stdout) == (0, "main.png: same\n"), made.stderr
