"""A small sample of each target; each night `python -m tests.fuzz` tries thousands with another seed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from .__main__ import TARGETS

SAMPLE = 20


@pytest.mark.parametrize("target", TARGETS)
def test_a_sample_is_read_or_refused(target):
    words = [sys.executable, "-m", "tests.fuzz", target, "--inputs", str(SAMPLE), "--seed", "1"]
    done = subprocess.run(words, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    ok, refused, internal = map(int, re.findall(r"(\d+) (?:ok|refused|internal)", done.stdout))
    # inputs that are all refused, or all read, try little
    assert ok + refused == SAMPLE and ok and refused and not internal
