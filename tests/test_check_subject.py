"""The check of a commit's message."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CHECK = Path(__file__).resolve().parents[1] / ".github" / "check_subject.py"


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ("s" * 72 + "\n\nThe reason.\n", ""),
        ("# a comment of git\nA subject\n", ""),
        ("s" * 73, "the subject has 73 characters, at most 72 are allowed"),
        ("A subject\nand its reason", "the second line must be blank"),
        ("\n\n", "the subject is empty"),
    ],
)
@pytest.mark.skipif(not CHECK.is_file(), reason="no .github here: an unpacked sdist")
def test_messages(tmp_path, message, problem):
    file = tmp_path / "message"
    file.write_text(message)
    done = subprocess.run([sys.executable, CHECK, file], capture_output=True, text=True)
    assert done.returncode == bool(problem) and problem in done.stderr
